"""Segments made from others by hand: the same records at the same offsets, but for those that are taken out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import uuid4

from log_parts.engines import Running
from streamhouse.format.batch import HEADER_BYTES, build, place, read_header
from streamhouse.format.object_keys import segment_key
from streamhouse.format.records import Record, columns_of, decode_records, encode_columns
from streamhouse.format.segment import EncodedSegment, Lineage, decode_segment, encode_segment
from streamhouse.log.leader import PartitionLeader
from streamhouse.metadata.store import SegmentRow
from streamhouse.model.names import TopicPartition

Keep = Callable[[Record], bool]


def rewritten(
    objects: Sequence[bytes],
    keep: Keep,
    *,
    epoch: int,
    end_offset: int | None = None,
    batch_bytes: int = 2**20,
    block_bytes: int = 2**18,
    lineage: Lineage | None = None,
) -> EncodedSegment:
    """One segment with the records of several that are to be kept. `end_offset`: where its last batch is said to end,
    as Kafka's cleaner leaves it when the last record was not kept."""
    records = [
        record for content in objects for block in decode_segment(content)[1] for record in decode_records(block)
    ]
    kept = columns_of([record for record in records if keep(record)])
    encoded = encode_columns(kept, base_offset=None, max_batch_bytes=batch_bytes)
    if end_offset is not None:
        last = read_header(encoded[-1])
        last = last._replace(last_offset_delta=end_offset - 1 - last.base_offset)
        encoded[-1] = build(last, encoded[-1][HEADER_BYTES:])
    batches = [bytearray(batch) for batch in encoded]
    for batch in batches:
        place(batch, 0, read_header(batch).base_offset, epoch)
    return encode_segment(batches, epoch=epoch, block_bytes=block_bytes, lineage=lineage)


def row_of(partition: TopicPartition, encoded: EncodedSegment, base_offset: int, epoch: int) -> SegmentRow:
    """The segment stands for the offsets from `base_offset` on, also where its first records were taken out."""
    return SegmentRow(
        base_offset=base_offset,
        end_offset=encoded.end_offset,
        record_count=encoded.record_count,
        size_bytes=encoded.size_bytes,
        min_timestamp_ms=encoded.min_timestamp_ms,
        max_timestamp_ms=encoded.max_timestamp_ms,
        epoch=epoch,
        object_key=segment_key(partition.topic_id, partition.partition, base_offset, epoch, uuid4()),
        checksum=encoded.checksum,
    )


async def store_rewritten(
    running: Running,
    rows: Sequence[SegmentRow],
    keep: Keep = lambda record: True,
    *,
    leader: PartitionLeader | None = None,
    lineage: Lineage | None = None,
) -> SegmentRow:
    """In the object store, not registered yet."""
    objects = running.bench.inner
    epoch = max(row.epoch for row in rows)
    encoded = rewritten([await objects.get(row.object_key) for row in rows], keep, epoch=epoch, lineage=lineage)
    row = row_of((leader or running.leader()).partition, encoded, rows[0].base_offset, epoch)
    await objects.create(row.object_key, encoded.parts)
    return row
