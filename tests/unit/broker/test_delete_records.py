"""Deleting records: the start of the log moves, uploads come first where they must."""

from __future__ import annotations

import pytest

from log_parts.batches import sent
from log_parts.engines import Bench, Running, bench, finishes
from streamhouse.broker.broker import Broker, Identity
from streamhouse.model.errors import OffsetOutOfRange, PolicyViolation
from streamhouse.model.settings import Settings


def broker_of(shared: Bench, running: Running) -> Broker:
    return Broker(
        settings=Settings(),
        identity=Identity(cluster_id="c", node_id=1, agent_id="agent"),
        clock=shared.clock,
        metadata=shared.metadata,
        engine=running.engine,
        topics=running.topics,
        groups=None,  # type: ignore[arg-type]  # no part in this
        nodes=None,  # type: ignore[arg-type]
        configs=None,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("before_offset", [0, 1, 3, 5])
@pytest.mark.parametrize("uploaded", [0, 2, 5])
async def test_records_below_an_offset_go_wherever_they_are(before_offset: int, uploaded: int) -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()
        for number in range(5):
            if number == uploaded:
                await running.engine.flush()
            await running.produce(sent())
        broker = broker_of(shared, running)

        start = await finishes(broker.delete_records(running.leader(), before_offset), "the deletion")

        assert start == running.leader().log_start_offset == before_offset
        assert running.leader().high_watermark == 5


async def test_minus_one_deletes_all_there_is() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await running.produce(sent(), sent())

        assert await broker_of(shared, running).delete_records(running.leader(), -1) == 2
        await running.produce(sent())
        assert running.leader().high_watermark == 3


@pytest.mark.parametrize("before_offset", [-2, 3, 10**15])
async def test_an_offset_beyond_the_log_is_refused(before_offset: int) -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await running.produce(sent(), sent())

        with pytest.raises(OffsetOutOfRange):
            await broker_of(shared, running).delete_records(running.leader(), before_offset)


async def test_the_start_never_goes_back() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()
        await running.produce(sent(), sent(), sent())
        broker = broker_of(shared, running)
        await broker.delete_records(running.leader(), 2)

        assert await broker.delete_records(running.leader(), 1) == 2


async def test_a_deletion_whose_answers_were_lost_is_heard_of_all_the_same() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()
        for _ in range(3):
            await running.produce(sent())
            await running.engine.flush()
        shared.metadata.fail("advance_log_start", times=2, lost_answer=True)

        start = await finishes(broker_of(shared, running).delete_records(running.leader(), 2), "the deletion")

        leader = running.leader()
        assert start == leader.log_start_offset == 2
        (rows,) = await shared.metadata.load_segments([leader.partition])
        assert [row.object_key for row in leader.segments] == [row.object_key for row in rows]


@pytest.mark.parametrize("policy", ["delete", "compact,delete", "compact", ""])
async def test_what_is_only_compacted_keeps_its_records(policy: str) -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create(cleanup_policy=policy)
        await running.produce(sent(), sent())
        broker = broker_of(shared, running)

        if policy == "compact":
            with pytest.raises(PolicyViolation):
                await broker.delete_records(running.leader(), 1)
        else:
            assert await broker.delete_records(running.leader(), 1) == 1
