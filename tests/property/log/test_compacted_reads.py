"""Reading logs with any gaps: from every offset come the next records that there are, and never nothing before the
end, for a consumer that is told nothing would ask for the same again and again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import uuid4

from hypothesis import given, settings
from hypothesis import strategies as st

from log_parts.batches import EPOCH
from log_parts.leaders import PARTITION, Partition
from log_parts.segments import new_store, reader_of
from streamhouse.broker.fetch import Fetcher, PartitionRead
from streamhouse.broker.offsets import newest_timestamp, offset_at
from streamhouse.format.batch import HEADER_BYTES, build, iter_headers, place, read_header
from streamhouse.format.object_keys import segment_key
from streamhouse.format.records import Record, decode_records, encode_records
from streamhouse.format.segment import encode_segment
from streamhouse.log.reader import SegmentReader
from streamhouse.metadata.store import SegmentRow
from streamhouse.objects.memory import MemoryStore


@dataclass(frozen=True, slots=True)
class Row:
    """A segment that stands for [base_offset, end_offset): the offsets of its batches, and whether its last batch says
    that it reaches to the end."""

    base_offset: int
    end_offset: int
    batches: list[list[int]]
    reaches_to_end: bool


@dataclass(frozen=True, slots=True)
class Log:
    rows: list[Row]
    tail: list[int]
    log_start_offset: int
    block_bytes: int

    @property
    def committed_end(self) -> int:
        return self.rows[-1].end_offset

    @property
    def offsets(self) -> list[int]:
        """Those that a reader should get."""
        kept = [offset for row in self.rows for batch in row.batches for offset in batch]
        return [offset for offset in kept + self.tail if offset >= self.log_start_offset]


@st.composite
def logs(draw: st.DrawFn) -> Log:
    rows: list[Row] = []
    base_offset = 0
    for _ in range(draw(st.integers(1, 4))):
        end_offset = base_offset + draw(st.integers(1, 12))
        kept = sorted(draw(st.sets(st.integers(base_offset, end_offset - 1), min_size=1)))
        size = draw(st.integers(1, 4))
        batches = [kept[start : start + size] for start in range(0, len(kept), size)]
        rows.append(Row(base_offset, end_offset, batches, draw(st.booleans())))
        base_offset = end_offset
    tail = list(range(base_offset, base_offset + draw(st.integers(0, 3))))
    last = max(offset for batch in rows[-1].batches for offset in batch)
    return Log(rows, tail, draw(st.integers(0, last)), draw(st.sampled_from([1, 200, 4_000])))


def timestamp_of(offset: int) -> int:
    return 1_000 + offset * 7 % 13


def batch_of(offsets: list[int], end_offset: int | None = None) -> bytearray:
    encoded = encode_records(
        [Record(offset, timestamp_of(offset), b"key", str(offset).encode()) for offset in offsets], base_offset=None
    )
    if end_offset is not None:
        header = read_header(encoded)
        encoded = build(header._replace(last_offset_delta=end_offset - 1 - offsets[0]), encoded[HEADER_BYTES:])
    batch = bytearray(encoded)
    place(batch, 0, offsets[0], EPOCH)
    return batch


async def store(log: Log, objects: MemoryStore) -> list[SegmentRow]:
    rows = []
    for row in log.rows:
        batches = [batch_of(offsets) for offsets in row.batches]
        if row.reaches_to_end:
            batches[-1] = batch_of(row.batches[-1], row.end_offset)
        encoded = encode_segment(batches, epoch=EPOCH, block_bytes=log.block_bytes)
        key = segment_key(PARTITION.topic_id, PARTITION.partition, row.base_offset, EPOCH, uuid4())
        await objects.create(key, encoded.parts)
        rows.append(
            SegmentRow(
                base_offset=row.base_offset,
                end_offset=row.end_offset,
                record_count=encoded.record_count,
                size_bytes=encoded.size_bytes,
                min_timestamp_ms=encoded.min_timestamp_ms,
                max_timestamp_ms=encoded.max_timestamp_ms,
                epoch=EPOCH,
                object_key=key,
                checksum=encoded.checksum,
            )
        )
    return rows


def led(log: Log, rows: list[SegmentRow]) -> Partition:
    partition = Partition(next_offset=log.committed_end, log_start_offset=log.log_start_offset, segments=rows)
    for offset in log.tail:
        partition.leader.replay(memoryview(batch_of([offset])))
    return partition


async def consume(reader: SegmentReader, partition: Partition, start: int, max_bytes: int) -> list[int]:
    """As a consumer does it: on from the end of the last batch that it got, records before its position left out."""
    leader = partition.leader
    found: list[int] = []
    position = start
    while position < leader.high_watermark:
        read = PartitionRead(leader, position, max_bytes)
        await Fetcher(reader).read([read], max_bytes)
        assert read.problem is None
        batches = b"".join(bytes(part) for part in read.parts)
        records = decode_records(batches, start_offset=position)
        assert all(record.value == str(record.offset).encode() for record in records)
        found += [record.offset for record in records]
        if not batches:
            break
        headers = [header for _, header in iter_headers(batches)]
        assert headers[-1].end_offset > position, "each answer brings the consumer on"
        position = headers[-1].end_offset
    return found


@settings(database=None, deadline=None, max_examples=60)
@given(logs(), st.sampled_from([1, 100, 400, 2**20]))
def test_from_every_offset_come_all_records_behind_it_once(log: Log, max_bytes: int) -> None:
    async def run() -> None:
        objects, inner = new_store()
        with reader_of(objects) as reader:
            partition = led(log, await store(log, inner))
            for start in range(log.log_start_offset, partition.leader.high_watermark):
                expected = [offset for offset in log.offsets if offset >= start]
                assert await consume(reader, partition, start, max_bytes) == expected
            await reader.close()

    asyncio.run(run())


@settings(database=None, deadline=None, max_examples=60)
@given(logs())
def test_a_time_is_at_the_first_record_that_is_left_and_as_late(log: Log) -> None:
    async def run() -> None:
        objects, inner = new_store()
        with reader_of(objects) as reader:
            leader = led(log, await store(log, inner)).leader
            left = [(offset, timestamp_of(offset)) for offset in log.offsets]
            for wanted in range(999, 1_015):
                later = [each for each in left if each[1] >= wanted]
                assert await offset_at(reader, leader, wanted) == (later[0] if later else None)
            newest = max((timestamp for _, timestamp in left), default=None)
            first = next((each for each in left if each[1] == newest), None)
            assert await newest_timestamp(reader, leader) == first
            await reader.close()

    asyncio.run(run())
