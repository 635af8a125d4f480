"""How long the store has been silent to who reads from it, and an end to the waiting when it is known to be away."""

from __future__ import annotations

import asyncio

import pytest

from log_parts.engines import finishes
from streamhouse.log.watched_reads import WatchedReads
from streamhouse.model.errors import NotFound, StorageUnavailable
from streamhouse.objects.faulty import FaultyStore, Operation
from streamhouse.objects.memory import MemoryStore
from streamhouse.testing.clock import MovableClock

REMEMBERED_MS = 30_000


class Parts:
    def __init__(self) -> None:
        self.clock = MovableClock()
        self.objects = FaultyStore(MemoryStore(self.clock), self.clock)
        self.reads = WatchedReads(self.objects, self.clock, REMEMBERED_MS)

    async def read(self, key: str = "a") -> bytes:
        return await self.reads.get_range(key, 0, 4)

    @property
    def is_overdue(self) -> bool:
        """By more than a busy machine explains."""
        return self.reads.overdue_ms() >= 4_000


async def with_objects() -> Parts:
    parts = Parts()
    for key in ("a", "b"):
        await parts.objects.create(key, [b"1234"])
    return parts


async def test_what_is_answered_is_not_overdue() -> None:
    parts = await with_objects()
    assert parts.reads.overdue_ms() == 0
    assert await parts.read() == b"1234"
    with pytest.raises(NotFound):
        await parts.read("nothing")
    parts.clock.pass_time(5_000)
    assert parts.reads.overdue_ms() == 0


async def test_a_read_that_is_under_way_is_overdue_until_it_is_answered() -> None:
    parts = await with_objects()
    hold = parts.objects.hold(Operation.READ)
    reading = asyncio.create_task(parts.read())
    await finishes(hold.reached.wait(), "the read")
    parts.clock.pass_time(5_000)
    assert parts.is_overdue
    hold.release()
    await reading
    assert parts.reads.overdue_ms() == 0


async def test_an_answer_to_one_read_shows_that_the_store_is_there_for_all() -> None:
    parts = await with_objects()
    hold = parts.objects.hold(Operation.READ, matches=lambda key: key == "a")
    reading = asyncio.create_task(parts.read())
    await finishes(hold.reached.wait(), "the read")
    parts.clock.pass_time(5_000)
    await parts.read("b")
    assert not parts.is_overdue
    parts.clock.pass_time(5_000)
    assert parts.is_overdue
    hold.release()
    await reading


async def test_reads_that_fail_at_once_are_overdue_while_they_are_tried_again() -> None:
    parts = await with_objects()
    parts.objects.fail(Operation.READ, times=None)
    for _ in range(5):
        with pytest.raises(StorageUnavailable):
            await parts.read()
        parts.clock.pass_time(1_000)
    assert parts.is_overdue
    parts.clock.pass_time(REMEMBERED_MS)
    assert parts.reads.overdue_ms() == 0, "nobody wants it any more"
    with pytest.raises(StorageUnavailable):
        await parts.read()
    assert not parts.is_overdue, "that is the first of others"


async def test_while_the_store_is_away_nobody_waits_for_it() -> None:
    parts = await with_objects()
    hold = parts.objects.hold(Operation.READ)
    reading = asyncio.create_task(parts.read())
    await finishes(hold.reached.wait(), "the read")
    parts.clock.pass_time(5_000)
    parts.reads.set_away(True)
    parts.reads.set_away(True)
    with pytest.raises(StorageUnavailable, match="does not reach"):
        await finishes(reading, "the end of the waiting")
    assert parts.is_overdue
    with pytest.raises(StorageUnavailable, match="does not reach"):
        await finishes(parts.read(), "a read that is not begun")
    hold.release()
    parts.reads.set_away(False)
    assert await parts.read() == b"1234"


async def test_who_is_cancelled_while_it_reads_is_cancelled() -> None:
    parts = await with_objects()
    hold = parts.objects.hold(Operation.READ)
    reading = asyncio.create_task(parts.read())
    await finishes(hold.reached.wait(), "the read")
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
