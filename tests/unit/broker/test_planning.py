"""Plans for partitions that another node leads: what changes between two questions must never leave a gap."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from services.clock import ManualClock
from streamhouse.broker.planning import LogSlice, Planner, ReadPlan
from streamhouse.client.peer import FoundOffset
from streamhouse.format.segment_index import SegmentIndex
from streamhouse.log.committed_log import CommittedLogs
from streamhouse.metadata.store import PartitionRow, SegmentRow
from streamhouse.model.errors import InvalidInput, NotFound
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import Topic

TOPIC = Topic(name="orders", topic_id=UUID(int=7), partition_count=1, config={}, created_at_ms=0)
BLOCK_BYTES = 100


def segment(base_offset: int, end_offset: int) -> SegmentRow:
    return SegmentRow(
        base_offset=base_offset,
        end_offset=end_offset,
        record_count=end_offset - base_offset,
        size_bytes=1_000,
        min_timestamp_ms=base_offset,
        max_timestamp_ms=end_offset - 1,
        epoch=1,
        object_key=f"segments/{base_offset}",
        checksum=0,
    )


@dataclass
class Elsewhere:
    """A partition of another node's: its leader's answer, then the two reads of the metadata store, as they were when
    each was made."""

    log_start_offset: int = 0
    committed_end: int = 0
    high_watermark: int = 0
    uncommitted_bytes: int = 0
    row: tuple[int, int] = (0, 0)
    """Log start and next offset."""
    segments: Sequence[SegmentRow] = ()
    asked: list[str] = field(default_factory=list)

    # --- the parts of a planner ---

    def leaders_of(self, _: Topic) -> list[None]:
        return [None]

    async def offset_at(self, topic: Topic, partition: int, timestamp_ms: int) -> FoundOffset:
        self.asked.append("leader")
        return FoundOffset(
            offset=self.high_watermark,
            log_start_offset=self.log_start_offset,
            committed_end=self.committed_end,
            high_watermark=self.high_watermark,
            uncommitted_bytes=self.uncommitted_bytes,
            leader_epoch=1,
        )

    async def load_partitions(self, partitions: Sequence[TopicPartition]) -> list[PartitionRow]:
        self.asked.append("row")
        log_start_offset, next_offset = self.row
        return [
            PartitionRow(
                topic=TOPIC.name,
                partition=partitions[0],
                log_start_offset=log_start_offset,
                next_offset=next_offset,
                durable_end=next_offset,
                producer_state=b"",
                epochs=((1, 0),),
            )
        ]

    async def load_segments(self, _: Sequence[TopicPartition]) -> list[list[SegmentRow]]:
        self.asked.append("segments")
        return [list(self.segments)]

    async def index_of(self, row: SegmentRow) -> SegmentIndex:
        """Blocks of ten records."""
        first_offsets = array("q", range(row.base_offset, row.end_offset, 10))
        return SegmentIndex(
            first_offsets=first_offsets,
            max_timestamps=array("q", (first + 9 for first in first_offsets)),
            record_counts=array("q", [10] * len(first_offsets)),
            positions=array("q", range(8, 9 + BLOCK_BYTES * len(first_offsets), BLOCK_BYTES)),
        )

    async def plan(self, start: int = 0, end: int = 2**62, *, piece_bytes: int = 2**20) -> ReadPlan:
        planner = Planner(
            topics=self,  # type: ignore[arg-type]
            forwarder=self,  # type: ignore[arg-type]
            reader=self,  # type: ignore[arg-type]
            committed_logs=CommittedLogs(self, ManualClock(), 1_000),  # type: ignore[arg-type]
            store=self,  # type: ignore[arg-type]
        )
        (plan,) = await planner.plan(
            [LogSlice(topic=TOPIC, partition=0, start=start, end=end)], piece_bytes=piece_bytes
        )
        return plan


def covered(plan: ReadPlan) -> list[tuple[int, int]]:
    """Of pieces and tail, joined where they meet."""
    ranges: list[tuple[int, int]] = []
    for start, end in [*((piece.run.start, piece.run.end) for piece in plan.pieces), (plan.tail_start, plan.tail_end)]:
        if ranges and ranges[-1][1] == start:
            ranges[-1] = (ranges[-1][0], end)
        elif start < end:
            ranges.append((start, end))
    return ranges


async def test_the_leader_is_asked_before_the_metadata_store() -> None:
    log = Elsewhere(high_watermark=5)
    await log.plan()

    assert log.asked[0] == "leader"


async def test_pieces_and_tail_meet_where_the_segments_end() -> None:
    log = Elsewhere(
        committed_end=40,
        high_watermark=50,
        uncommitted_bytes=1_000,
        row=(0, 40),
        segments=[segment(0, 20), segment(20, 40)],
    )
    plan = await log.plan(15, 45)

    assert covered(plan) == [(15, 45)]
    assert (plan.tail_start, plan.tail_end, plan.tail_bytes) == (40, 45, 500)


async def test_what_was_committed_after_the_leader_was_asked_is_in_pieces_and_not_in_the_tail() -> None:
    log = Elsewhere(
        committed_end=20,
        high_watermark=50,
        uncommitted_bytes=3_000,
        row=(0, 60),
        segments=[segment(0, 20), segment(20, 60)],
    )
    plan = await log.plan()

    assert covered(plan) == [(0, 50)], "no further than the leader said"
    assert (plan.tail_start, plan.tail_bytes) == (50, 0)


async def test_what_was_committed_between_the_two_reads_stays_in_the_tail() -> None:
    log = Elsewhere(committed_end=20, high_watermark=50, row=(0, 20), segments=[segment(0, 20), segment(20, 40)])
    plan = await log.plan()

    assert covered(plan) == [(0, 50)]
    assert plan.tail_start == 20


async def test_what_was_dropped_after_the_leader_was_asked_is_said_to_be_deleted() -> None:
    log = Elsewhere(committed_end=40, high_watermark=50, row=(20, 40), segments=[segment(20, 40)])
    plan = await log.plan()

    assert (plan.log_start_offset, covered(plan)) == (20, [(20, 50)])


async def test_what_was_dropped_between_the_two_reads_is_said_to_be_deleted() -> None:
    log = Elsewhere(committed_end=40, high_watermark=50, row=(0, 40), segments=[segment(20, 40)])
    plan = await log.plan()

    assert (plan.log_start_offset, covered(plan)) == (20, [(20, 50)])


async def test_where_everything_was_dropped_between_the_two_reads_only_the_tail_is_left() -> None:
    plan = await Elsewhere(committed_end=40, high_watermark=50, row=(0, 40), segments=[]).plan()

    assert (plan.log_start_offset, covered(plan)) == (40, [(40, 50)])


async def test_a_log_without_segments_is_all_tail() -> None:
    plan = await Elsewhere(high_watermark=7, uncommitted_bytes=70).plan(2)

    assert (plan.log_start_offset, covered(plan), plan.tail_bytes) == (0, [(2, 7)], 50)


async def test_a_log_that_starts_within_a_segment_is_read_from_there() -> None:
    log = Elsewhere(log_start_offset=15, committed_end=40, high_watermark=40, row=(15, 40), segments=[segment(0, 40)])
    plan = await log.plan(piece_bytes=BLOCK_BYTES)

    assert covered(plan) == [(15, 40)]
    assert plan.pieces[0].run.start_byte == 8 + BLOCK_BYTES


async def test_a_range_that_is_deleted_altogether_is_empty_where_the_log_starts() -> None:
    log = Elsewhere(log_start_offset=30, committed_end=40, high_watermark=50, row=(30, 40), segments=[segment(30, 40)])
    plan = await log.plan(0, 10)

    assert (plan.pieces, plan.tail_start, plan.tail_end, plan.log_start_offset) == ([], 30, 30, 30)


async def test_slices_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidInput):
        LogSlice(topic=TOPIC, partition=0, start=2, end=1)
    with pytest.raises(NotFound):
        LogSlice(topic=TOPIC, partition=1, start=0, end=1)
    with pytest.raises(InvalidInput, match="piece_bytes"):
        await Elsewhere().plan(piece_bytes=0)
