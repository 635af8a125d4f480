"""Rows that a topic does not take are refused alone, and the order of the others is kept."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from log_parts.engines import bench
from services.clock import ManualClock
from streamhouse.broker.records import NewRecord, NotTried, RecordDoor
from streamhouse.client.peer import Produced
from streamhouse.format.batch import read_header
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import InvalidRecords, NotLeader, Unavailable
from streamhouse.model.topic import Topic


class Leader:
    """Stores so many records, each batch in that time, and is then deposed."""

    def __init__(self, takes: int, *, batch_ms: int = 0) -> None:
        self._takes = takes
        self._batch_ms = batch_ms
        self.clock = ManualClock()
        self.given_ms: list[int] = []
        self.stored = 0

    async def produce(self, topic: Topic, partition: int, batch: Buffer, *, timeout_ms: int) -> Produced:
        count = read_header(batch).record_count
        self.given_ms.append(timeout_ms)
        self.clock.advance(self._batch_ms)
        if self.stored + count > self._takes:
            raise NotLeader("deposed")
        self.stored += count
        return Produced(base_offset=self.stored - count, append_time_ms=-1, leader_epoch=1)


async def outcomes_of(leader: Leader, *keys: bytes | None) -> list[object]:
    """An offset, or the kind of a refusal, of each."""
    with ThreadPoolExecutor(1) as threads:
        async with bench() as shared, shared.engine() as running:
            topic = await running.create("compacted", cleanup_policy="compact")
            door = RecordDoor(running.topics, leader, leader.clock, threads, auto_create_topics=False)  # type: ignore[arg-type]
            outcomes = await door.append(topic, [NewRecord(b"value", key, partition=0) for key in keys])
    return [type(each) if isinstance(each, Exception) else each.offset for each in outcomes]


async def test_a_record_without_a_key_is_refused_alone() -> None:
    outcomes = await outcomes_of(Leader(takes=9), b"a", None, b"b", b"c", None)
    assert outcomes == [0, InvalidRecords, 1, 2, InvalidRecords]


async def test_what_follows_a_record_that_could_not_be_stored_is_not_tried() -> None:
    outcomes = await outcomes_of(Leader(takes=1), b"a", None, b"b", None, b"c")
    assert outcomes == [0, InvalidRecords, NotLeader, InvalidRecords, NotTried]


async def test_rows_that_are_appended_one_after_the_other_have_one_time_together() -> None:
    leader = Leader(takes=9, batch_ms=12_000)
    outcomes = await outcomes_of(leader, b"a", None, b"b", None, b"c", None, b"d", None, b"e")
    assert outcomes == [0, InvalidRecords, 1, InvalidRecords, 2, InvalidRecords, Unavailable, InvalidRecords, NotTried]
    assert leader.given_ms == [30_000, 18_000, 6_000]
