"""A partition whose records are in segments of an object store, in blocks as small as a test likes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from log_parts.batches import EPOCH, real
from log_parts.leaders import PARTITION, Partition
from services.clock import ManualClock
from streamhouse.format.batch import place, read_header
from streamhouse.format.object_keys import segment_key
from streamhouse.format.segment import encode_segment
from streamhouse.log.leader import PartitionLeader
from streamhouse.log.reader import SegmentReader
from streamhouse.metadata.store import SegmentRow
from streamhouse.objects.faulty import FaultyStore
from streamhouse.objects.memory import MemoryStore


def at(base_offset: int, batch: memoryview) -> memoryview:
    """The batch at an offset of the log."""
    place(batch, 0, base_offset, EPOCH)
    return batch


def run_of(values: Sequence[bytes], base_offset: int = 0, *, timestamps: Sequence[int] = ()) -> list[memoryview]:
    """One batch for each value, one offset after the other."""
    return [
        at(base_offset + index, real(value, timestamps=(timestamps[index],) if timestamps else ()))
        for index, value in enumerate(values)
    ]


@dataclass
class Stored:
    """A partition in segments, and a reader of it."""

    leader: PartitionLeader
    objects: FaultyStore
    inner: MemoryStore
    reader: SegmentReader
    segments: list[list[memoryview]]

    @property
    def batches(self) -> list[bytes]:
        return [bytes(batch) for segment in self.segments for batch in segment]

    def offsets(self, parts: Sequence[bytes | bytearray | memoryview]) -> list[int]:
        """The base offsets of what was read, which must be the very bytes that were stored."""
        read = b"".join(parts)
        found = []
        for batch in self.batches:
            if read.startswith(batch):
                read = read[len(batch) :]
                found.append(read_header(batch).base_offset)
        assert read == b"", "what was read was stored, in this order"
        return found


@contextmanager
def reader_of(objects: FaultyStore, cache_bytes: int = 2**24) -> Iterator[SegmentReader]:
    with ThreadPoolExecutor(2) as threads:
        yield SegmentReader(objects, cache_bytes, threads)


async def store_segments(
    reader: SegmentReader,
    objects: FaultyStore,
    inner: MemoryStore,
    segments: list[list[memoryview]],
    *,
    block_bytes: int,
    log_start_offset: int = 0,
) -> Stored:
    """Their rows follow one another without gaps, also where batches were compacted away."""
    rows: list[SegmentRow] = []
    starts = [read_header(batches[0]).base_offset for batches in segments]
    for batches, following in zip(segments, [*starts[1:], None], strict=True):
        encoded = encode_segment(batches, epoch=EPOCH, block_bytes=block_bytes)
        key = segment_key(PARTITION.topic_id, PARTITION.partition, encoded.base_offset, EPOCH, uuid4())
        await inner.create(key, encoded.parts)
        rows.append(
            SegmentRow(
                base_offset=encoded.base_offset,
                end_offset=encoded.end_offset if following is None else following,
                record_count=encoded.record_count,
                size_bytes=encoded.size_bytes,
                min_timestamp_ms=encoded.min_timestamp_ms,
                max_timestamp_ms=encoded.max_timestamp_ms,
                epoch=EPOCH,
                object_key=key,
                checksum=encoded.checksum,
            )
        )
    partition = Partition(next_offset=rows[-1].end_offset, log_start_offset=log_start_offset, segments=rows)
    return Stored(partition.leader, objects, inner, reader, segments)


def new_store() -> tuple[FaultyStore, MemoryStore]:
    clock = ManualClock()
    inner = MemoryStore(clock)
    return FaultyStore(inner, clock), inner
