"""A search in one partition over logs with gaps, as compaction and retention leave them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamhouse.broker.records import ReadRecords, RecordDoor
from streamhouse.client.peer import FoundOffset
from streamhouse.format.rows import Record
from streamhouse.model.errors import OffsetOutOfRange, UnreadableRecords
from streamhouse.model.topic import Topic
from streamhouse.server.http.rest.filters import RecordFilter
from streamhouse.server.http.rest.partition_scan import PartitionScan, ScanLimits

TOPIC = Topic(name="orders", topic_id=UUID(int=1), partition_count=1, config={}, created_at_ms=0)
MOST_UNREADABLE = 5


class SparseLog:
    """Reads as a partition's log does, of which only some offsets are left; some of them cannot be given as rows."""

    def __init__(self, offsets: list[int], *, start: int, end: int, unreadable: Collection[int] = ()) -> None:
        self._offsets = offsets
        self._unreadable = sorted(unreadable)
        self._start = start
        self._end = end
        self.reads = 0

    async def read(self, topic: Topic, partition: int, offset: int, *, max_records: int) -> ReadRecords:
        self.reads += 1
        if not self._start <= offset <= self._end:
            raise OffsetOutOfRange("not there")
        end = next((at for at in self._unreadable if at >= offset), self._end)
        found = [at for at in self._offsets if offset <= at < end][:max_records]
        if not found and end < self._end:
            raise UnreadableRecords("damaged", next_offset=end + 1)
        return ReadRecords(
            records=[Record(at, at, None, b"") for at in found],
            next_offset=found[-1] + 1 if len(found) == max_records else end,
            log_start_offset=self._start,
            high_watermark=self._end,
        )

    async def offset_at(self, topic: Topic, partition: int, timestamp_ms: int) -> FoundOffset:
        return FoundOffset(
            offset=self._start,
            log_start_offset=self._start,
            committed_end=self._end,
            high_watermark=self._end,
            uncommitted_bytes=0,
            leader_epoch=0,
        )


def found_offsets(log: SparseLog, asked: tuple[int, int], *, newest_first: bool, at_once: int = 50) -> list[int]:
    """By as many scans as it takes, each of which takes only some of its matches."""
    offsets: list[int] = []
    left = asked
    while left[0] < left[1]:
        scan = scan_of(log, left, newest_first=newest_first, at_once=at_once)
        taken = scan.matches[:at_once]
        offsets += [record.offset for record in taken]
        left = scan.left_after(len(taken), newest_first=newest_first)
    return offsets


def scan_of(log: SparseLog, asked: tuple[int, int], *, newest_first: bool, at_once: int = 50) -> PartitionScan:
    limits = ScanLimits(
        matches=at_once, match_bytes=2**20, scanned_records=1_000, scanned_bytes=2**20, unreadable=MOST_UNREADABLE
    )
    scan = PartitionScan(cast(RecordDoor, log), TOPIC, 0, asked, RecordFilter(), limits)
    asyncio.run(scan.run(newest_first=newest_first))
    return scan


@pytest.mark.parametrize("newest_first", [False, True])
@settings(database=None, deadline=None)
@given(data=st.data())
def test_whatever_is_left_of_a_log_is_found_once_and_in_order(newest_first: bool, data: Any) -> None:
    offsets = sorted(data.draw(st.sets(st.integers(0, 3_000), max_size=60)))
    start = data.draw(st.integers(0, 100))
    asked = (data.draw(st.integers(0, 500)), data.draw(st.integers(0, 4_000)))
    unreadable = data.draw(st.sets(st.integers(0, 3_000), max_size=60))
    log = SparseLog([at for at in offsets if at >= start], start=start, end=3_001, unreadable=unreadable)

    expected = [at for at in offsets if at >= start and asked[0] <= at < asked[1] and at not in unreadable]
    assert found_offsets(log, asked, newest_first=newest_first, at_once=7) == (
        expected[::-1] if newest_first else expected
    )


def test_steps_back_that_grew_over_a_gap_shrink_again_where_records_are_dense() -> None:
    dense = list(range(100_000))
    log = SparseLog([*dense, 900_000], start=0, end=900_001)

    found = found_offsets(log, (90_000, 900_001), newest_first=True, at_once=5_000)

    assert found == [900_000, *range(99_999, 89_999, -1)]


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_search_ends_in_a_log_that_nobody_can_read_and_says_where_to_go_on(newest_first: bool) -> None:
    """Each batch that is passed over takes a read, and there may be millions of them."""
    end = 1_000_000
    log = SparseLog([], start=0, end=end, unreadable=range(end))

    scan = scan_of(log, (0, end), newest_first=newest_first)

    assert log.reads < 100
    assert MOST_UNREADABLE <= len(scan.unreadable) < 2 * MOST_UNREADABLE
    count = len(scan.unreadable)
    assert scan.left == ((0, end - count) if newest_first else (count, end))
    assert set(scan.unreadable) == set(range(end - count + 1, end + 1) if newest_first else range(1, count + 1))
