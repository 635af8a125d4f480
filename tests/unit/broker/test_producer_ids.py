"""Producer ids: never one twice, from the store in blocks."""

from __future__ import annotations

import asyncio

import pytest

from streamhouse.broker.producer_ids import ProducerIds
from streamhouse.model.errors import MetadataUnavailable


class Store:
    def __init__(self) -> None:
        self.next_id = 0
        self.asked = 0
        self.problem: Exception | None = None

    async def allocate_producer_ids(self, count: int) -> int:
        self.asked += 1
        await asyncio.sleep(0)
        if self.problem is not None:
            raise self.problem
        first, self.next_id = self.next_id, self.next_id + count
        return first


async def test_many_at_once_get_one_each_and_the_store_is_asked_seldom() -> None:
    store = Store()
    ids = ProducerIds(store)

    given = await asyncio.gather(*(ids.take() for _ in range(2_500)))

    assert len(set(given)) == 2_500
    assert store.asked == 3


async def test_two_nodes_on_one_store_never_give_the_same() -> None:
    store = Store()
    nodes = [ProducerIds(store), ProducerIds(store)]

    given = [await node.take() for _ in range(1_500) for node in nodes]

    assert len(set(given)) == 3_000


async def test_a_store_that_is_away_is_asked_again_by_the_next() -> None:
    store = Store()
    ids = ProducerIds(store)
    store.problem = MetadataUnavailable("away")
    with pytest.raises(MetadataUnavailable):
        await ids.take()
    store.problem = None

    assert await ids.take() == 0
