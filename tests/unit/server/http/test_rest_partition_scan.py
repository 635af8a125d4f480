"""A search in one partition over logs with gaps, as compaction and retention leave them, and over long records."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from heapq import merge
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamhouse.broker.records import ReadRecords, RecordDoor
from streamhouse.client.peer import FoundOffset
from streamhouse.format.rows import Record
from streamhouse.model.errors import OffsetOutOfRange, Unavailable, UnreadableRecords
from streamhouse.model.topic import Topic
from streamhouse.server.http.rest import merged_search, search
from streamhouse.server.http.rest.filters import RecordFilter
from streamhouse.server.http.rest.first_matches import FirstMatches
from streamhouse.server.http.rest.merged_search import MergedSearch
from streamhouse.server.http.rest.partition_scan import PartitionScan, ScanLimits
from streamhouse.server.http.rest.search import Search

TOPIC = Topic(name="orders", topic_id=UUID(int=1), partition_count=1, config={}, created_at_ms=0)
MOST_UNREADABLE = 5
RECORD_BYTES = 100_000


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


class CountedBytes(bytes):
    """Tells a log when nobody has them any more."""

    log: LongRecords

    def __del__(self) -> None:
        self.log.held -= 1


class LongRecords(SparseLog):
    """A partition's log whose records are long, or some of them; it counts how many of the long ones are held at a time
    by whoever read them."""

    PAGE = 2
    """So many long records are a page; short ones come together."""

    def __init__(self, *, count: int, long: Collection[int] | None = None) -> None:
        super().__init__([], start=0, end=count)
        self._long = range(count) if long is None else long
        self.held = self.most_held = self.read_records = 0

    async def read(self, topic: Topic, partition: int, offset: int, *, max_records: int) -> ReadRecords:
        records: list[Record] = []
        for at in range(offset, min(self._end, offset + max_records)):
            records.append(Record(at, at, None, self._value() if at in self._long else b""))
            if at in self._long and len(records) >= self.PAGE:
                break
        self.read_records += len(records)
        await asyncio.sleep(0)  # as others go on meanwhile
        return ReadRecords(
            records=records, next_offset=offset + len(records), log_start_offset=0, high_watermark=self._end
        )

    def _value(self) -> CountedBytes:
        value = CountedBytes(RECORD_BYTES)
        value.log = self
        self.held += 1
        self.most_held = max(self.most_held, self.held)
        return value


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


def scan_of(
    log: SparseLog, asked: tuple[int, int], *, newest_first: bool, at_once: int = 50, held_bytes: int = 2**20
) -> PartitionScan:
    limits = limits_of(at_once, held_bytes=held_bytes)
    scan = PartitionScan(cast(RecordDoor, log), TOPIC, 0, asked, RecordFilter(), limits)
    asyncio.run(scan.run(newest_first=newest_first))
    return scan


def limits_of(matches: int, *, held_bytes: int = 2**20, match_bytes: int = 2**20) -> ScanLimits:
    return ScanLimits(
        matches=matches,
        match_bytes=match_bytes,
        scanned_records=1_000,
        scanned_bytes=2**20,
        held_bytes=held_bytes,
        unreadable=MOST_UNREADABLE,
    )


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


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_search_of_long_records_holds_only_some_of_them(newest_first: bool) -> None:
    log = LongRecords(count=1_000)

    scan = scan_of(log, (0, 1_000), newest_first=newest_first, at_once=3, held_bytes=20 * RECORD_BYTES)

    assert [record.offset for record in scan.matches] == ([999, 998, 997] if newest_first else [0, 1, 2])
    assert log.most_held <= 20 + LongRecords.PAGE
    assert log.read_records < 100, "what a step was too long for is hardly read again"


def test_of_long_and_short_records_each_is_found_once() -> None:
    log = LongRecords(count=3_000, long=range(500, 600))

    assert found_offsets(log, (0, 3_000), newest_first=True) == list(range(2_999, -1, -1))


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_search_of_many_partitions_holds_no_more_than_of_a_few(
    newest_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once, answer = 8, 5
    monkeypatch.setattr(search, "_HELD_BYTES", at_once * 10 * RECORD_BYTES)
    log = LongRecords(count=100)
    first = FirstMatches(50, answer * RECORD_BYTES, newest_first=newest_first)
    whole = Search(
        door=cast(RecordDoor, log),
        topic=TOPIC,
        parts=[dict.fromkeys(range(200), (0, 100))],
        wanted=RecordFilter(),
        newest_first=newest_first,
    )
    limits = limits_of(50, held_bytes=whole.held_bytes, match_bytes=2 * RECORD_BYTES)
    scans = [whole.scan(partition, left, limits) for partition, left in whole.parts[0].items()]

    asyncio.run(whole.run(scans, first.add))

    assert len(first.records) == answer
    assert sum(len(scan.matches) for scan in scans) == answer
    assert log.most_held <= at_once * (10 + LongRecords.PAGE) + 2 * answer


class OneAway(SparseLog):
    """Partition 0 has no leader; of the others nothing comes."""

    ended = 0

    async def read(self, topic: Topic, partition: int, offset: int, *, max_records: int) -> ReadRecords:
        if partition == 0:
            raise Unavailable("no leader")
        try:
            await asyncio.Event().wait()
        finally:
            self.ended += 1
        raise AssertionError("nothing wakes it")


async def test_where_one_partition_fails_the_search_of_the_others_ends() -> None:
    log = OneAway([], start=0, end=9)
    whole = Search(door=cast(RecordDoor, log), topic=TOPIC, parts=[], wanted=RecordFilter(), newest_first=False)
    with pytest.raises(Unavailable):
        await whole.run([whole.scan(partition, (0, 9), limits_of(1)) for partition in (1, 2, 0)])
    assert log.ended == 2


@pytest.mark.parametrize("newest_first", [False, True])
@settings(database=None, deadline=None)
@given(data=st.data())
def test_the_first_matches_are_the_same_in_whatever_order_partitions_end(newest_first: bool, data: Any) -> None:
    times = data.draw(st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=5))
    limit = data.draw(st.integers(1, 12))
    found = [
        [(partition, Record(offset, time, None, b"x")) for offset, time in enumerate(each)]
        for partition, each in enumerate(times)
    ]
    if newest_first:
        found = [each[::-1] for each in found]
    sign = -1 if newest_first else 1
    expected = list(merge(*found, key=lambda each: (sign * each[1].timestamp_ms, each[0])))[:limit]

    first = FirstMatches(limit, 1_000, newest_first=newest_first)
    scans = [ended_scan(partition, found[partition], newest_first=newest_first) for partition in range(len(times))]
    for partition in data.draw(st.permutations(range(len(times)))):
        first.add(scans[partition])

    assert first.records == expected
    left = [(scan.partition, offset) for scan in scans for offset in range(*scan.left)]
    assert sorted(left + [(partition, record.offset) for partition, record in expected]) == [
        (partition, offset) for partition, each in enumerate(times) for offset in range(len(each))
    ]


def ended_scan(partition: int, found: list[tuple[int, Record]], *, newest_first: bool) -> PartitionScan:
    """That has looked at all there is, and found all of it."""
    end = 0 if newest_first else len(found)
    scan = PartitionScan(cast(RecordDoor, None), TOPIC, partition, (end, end), RecordFilter(), limits_of(50))
    scan.matches += [record for _, record in found]
    return scan


@pytest.mark.parametrize("newest_first", [True, False])
async def test_what_cannot_be_read_is_told_once_though_records_around_it_are_looked_at_again(
    newest_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merged_search, "_HELD_RECORDS", 20)
    log = SparseLog([at for at in range(200) if at != 30], start=0, end=200, unreadable=[30])
    merged = MergedSearch(
        Search(
            door=cast(RecordDoor, log),
            topic=TOPIC,
            parts=[{0: (0, 200)}],
            wanted=RecordFilter(),
            newest_first=newest_first,
        )
    )
    told: list[tuple[int, UnreadableRecords]] = []
    found: list[int] = []
    while not merged.is_at_end:
        told += await merged.look()
        found += [record.offset for _, record in merged.take(1000, 2**20)]
    assert sorted(found) == [at for at in range(200) if at != 30]
    assert [problem.next_offset for _, problem in told] == [31]
