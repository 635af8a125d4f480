"""Segments are registered together, in order, until the metadata store has answered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import uuid4

import pytest

from log_parts.engines import finishes
from log_parts.leaders import PARTITION, segment_row
from services.clock import ManualClock
from streamhouse.log.committer import SegmentCommitter
from streamhouse.metadata.store import SegmentCommit
from streamhouse.model.errors import CorruptData, MetadataUnavailable, StaleEpoch


def commit(number: int = 0) -> SegmentCommit:
    return SegmentCommit(
        partition=PARTITION,
        agent_id="agent",
        epoch=1,
        commit_id=uuid4(),
        segment=segment_row(number, number + 1),
        producer_state=b"",
    )


class Store:
    """Answers as it is told; the first transaction can be held up."""

    def __init__(self) -> None:
        self.transactions: list[list[int]] = []
        self.problems: list[Exception] = []
        self.answers: dict[int, Exception] = {}
        self.gate = asyncio.Event()
        self.gate.set()

    async def commit_segments(self, commits: Sequence[SegmentCommit]) -> list[Exception | None]:
        self.transactions.append([item.segment.base_offset for item in commits])
        await self.gate.wait()
        if self.problems:
            raise self.problems.pop(0)
        return [self.answers.get(item.segment.base_offset) for item in commits]


def committer(store: Store) -> SegmentCommitter:
    return SegmentCommitter(store, ManualClock())  # type: ignore[arg-type]


async def test_while_one_transaction_runs_the_next_one_gathers() -> None:
    store = Store()
    store.gate.clear()
    commits = committer(store)
    waiting = [asyncio.ensure_future(commits.commit(commit(0)))]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting += [asyncio.ensure_future(commits.commit(commit(number))) for number in range(1, 6)]
    await asyncio.sleep(0)
    store.gate.set()

    await asyncio.gather(*waiting)

    assert store.transactions == [[0], [1, 2, 3, 4, 5]]


async def test_a_transaction_is_not_larger_than_a_hundred_commits_and_all_are_made() -> None:
    store = Store()
    commits = committer(store)

    await asyncio.gather(*(commits.commit(commit(number)) for number in range(250)))

    assert [len(transaction) for transaction in store.transactions] == [100, 100, 50]
    assert [number for transaction in store.transactions for number in transaction] == list(range(250))


async def test_a_store_that_is_away_is_asked_again_until_it_answers() -> None:
    store = Store()
    store.problems = [MetadataUnavailable("away")] * 5

    await committer(store).commit(commit())

    assert store.transactions == [[0]] * 6


async def test_each_commit_gets_its_own_answer() -> None:
    store = Store()
    store.answers = {1: StaleEpoch("not yours")}
    commits = committer(store)

    answers = await asyncio.gather(*(commits.commit(commit(number)) for number in range(3)), return_exceptions=True)

    assert [type(answer) for answer in answers] == [type(None), StaleEpoch, type(None)]


async def test_a_store_that_is_broken_fails_the_commit_instead_of_leaving_it_waiting() -> None:
    store = Store()
    store.problems = [CorruptData("the database is damaged")]

    with pytest.raises(CorruptData):
        await finishes(committer(store).commit(commit()), "the commit")


async def test_after_a_broken_answer_the_next_commit_is_made() -> None:
    store = Store()
    store.problems = [CorruptData("the database is damaged")]
    commits = committer(store)
    first = asyncio.ensure_future(commits.commit(commit(0)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    await finishes(commits.commit(commit(1)), "the next commit")

    first.cancel()


async def test_who_gave_up_waiting_does_not_disturb_the_others() -> None:
    store = Store()
    store.gate.clear()
    commits = committer(store)
    given_up = asyncio.ensure_future(commits.commit(commit(0)))
    kept = asyncio.ensure_future(commits.commit(commit(1)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    given_up.cancel()
    store.gate.set()

    await kept
    assert store.transactions == [[0, 1]]
