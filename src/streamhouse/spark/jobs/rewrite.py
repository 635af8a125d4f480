"""New segments from old ones, in one worker: blocks that keep all their records are copied, others encoded again.

Offsets, timestamps and whose clock they are stay as they were. Batches that are encoded again lose their producer, by
which only a leader recognises repeats, and a leader has that from its metadata store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from streamhouse.format import kernel
from streamhouse.format.batch import HEADER_BYTES, build, iter_headers, place, read_header, stamp_append_time
from streamhouse.format.column_stream import ColumnsPart, iter_columns
from streamhouse.format.compression import Codec
from streamhouse.format.object_keys import segment_key
from streamhouse.format.records import encode_columns
from streamhouse.format.segment import DEFAULT_BLOCK_BYTES, Lineage, StoredBlock, encode_segment, open_segment
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import CorruptData
from streamhouse.objects.blocking import BlockingStore
from streamhouse.runtime.entropy import new_uuid
from streamhouse.spark.jobs.column_filter import Rows
from streamhouse.spark.jobs.key_index import Flags
from streamhouse.spark.jobs.objects import Objects
from streamhouse.wire.http.planning import SegmentInfo

_PART_ROWS = 100_000
_PART_BYTES = 8 * 2**20
_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An old segment; `kept` is a bit for each of its records, empty if none stays, None if all do."""

    key: str
    record_count: int
    kept: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RewritePointer:
    """Neighbouring segments, [base_offset, end_offset) of a log, to be made into one, or a few if they are large."""

    objects: Objects
    topic_id: UUID
    partition: int
    base_offset: int
    end_offset: int
    epoch: int
    log_start_offset: int
    generation: int
    codec: Codec
    target_bytes: int
    sources: tuple[Source, ...]

    @property
    def lineage(self) -> Lineage | None:
        """None if the node has no generations: then it could not read what has one either."""
        if not self.generation:
            return None
        return Lineage(self.generation, self.base_offset, self.end_offset, self.log_start_offset)


def rewrite(pointer: RewritePointer) -> list[SegmentInfo]:
    """The new segments, stored and not yet registered; they cover the same offsets. They are stored in order and have a
    name in common that is new at every try: what a worker left that died is nobody's, and the node cleans it up."""
    store = pointer.objects.open()
    attempt = new_uuid()
    added: list[SegmentInfo] = []
    runs: list[Buffer | StoredBlock] = []
    base_offset, size_bytes = pointer.base_offset, 0
    for run in _runs(store, pointer):
        run_bytes = len(_batches_in(run))
        if size_bytes and size_bytes + run_bytes > pointer.target_bytes:
            added.append(_store(store, pointer, attempt, base_offset, None, runs))
            base_offset = added[-1].end_offset
            runs, size_bytes = [], 0
        runs.append(run)
        size_bytes += run_bytes
    assert runs, "the last record of what is rewritten is always kept"
    runs[-1:] = _reaching_to(runs[-1], pointer.end_offset)
    added.append(_store(store, pointer, attempt, base_offset, pointer.end_offset, runs))
    return added


def _batches_in(run: Buffer | StoredBlock) -> memoryview:
    return memoryview(run.run if isinstance(run, StoredBlock) else run)


def _runs(store: BlockingStore, pointer: RewritePointer) -> Iterator[Buffer | StoredBlock]:
    for source in pointer.sources:
        if source.kept == b"":
            continue
        footer, blocks = open_segment(store.get(source.key))
        if footer.record_count != source.record_count:
            raise CorruptData(
                f"segment {source.key} has {footer.record_count} records instead of {source.record_count}",
                hint="see what `streamhouse maintain verify` says",
            )
        if source.kept is None:
            yield from blocks
        else:
            flags = np.unpackbits(np.frombuffer(source.kept, np.uint8), count=source.record_count)
            yield from _kept_runs(blocks, flags.view(np.bool_), pointer.codec)


def _kept_runs(blocks: Iterable[StoredBlock], kept: Flags, codec: Codec) -> Iterator[Buffer | StoredBlock]:
    """Neighbouring blocks that lose records are encoded together, so that batches stay large."""
    thinned: list[Buffer] = []
    thinned_flags: list[Flags] = []
    position = 0
    for block in blocks:
        count = _record_count(block.run)
        flags = kept[position : position + count]
        position += count
        if not flags.any():
            continue
        if flags.all():
            yield from _encoded(thinned, thinned_flags, codec)
            thinned, thinned_flags = [], []
            yield block
        else:
            thinned.append(block.run)
            thinned_flags.append(flags)
    yield from _encoded(thinned, thinned_flags, codec)


def _record_count(run: Buffer) -> int:
    view = memoryview(run)
    summary = kernel.scan_run(view, 0, len(view))
    return summary.record_count


def _encoded(runs: Sequence[Buffer], flags: Sequence[Flags], codec: Codec) -> Iterator[Buffer]:
    if not runs:
        return
    # Epochs never go back in a log, and a record may only be said to be of a later one than it is: consumers take a
    # record from beyond the end of its epoch for one that was lost.
    leader_epoch = max(header.leader_epoch for _, header in iter_headers(runs[-1]))
    kept = np.concatenate(flags)
    position = 0
    for part in iter_columns(
        runs,
        start_offset=0,
        end_offset=_INT64_MAX,
        target_rows=_PART_ROWS,
        target_bytes=_PART_BYTES,
        as_text=False,
    ):
        of_part = kept[position : position + part.columns.count]
        position += part.columns.count
        if of_part.any():
            for batch in _batches(part, of_part, codec):
                placed = bytearray(batch)
                place(placed, 0, read_header(placed).base_offset, leader_epoch)
                yield placed


def _batches(part: ColumnsPart, kept: Flags, codec: Codec) -> Iterator[bytes]:
    rows = Rows.of(part.columns).filter(kept)
    if not part.is_log_append_time:
        yield from _encode(rows, codec)
        return
    # Such a batch has one timestamp for all of its records, in its header.
    for stretch in rows.stretches_of_one_timestamp():
        timestamp_ms = int(stretch.batch.column("timestamp")[0].as_py())
        for batch in _encode(stretch, codec):
            yield stamp_append_time(batch, timestamp_ms)


def _encode(rows: Rows, codec: Codec) -> list[bytes]:
    return encode_columns(rows.columns(), codec=codec, base_offset=None, max_batch_bytes=DEFAULT_BLOCK_BYTES)


def _reaching_to(run: Buffer | StoredBlock, end_offset: int) -> list[Buffer | StoredBlock]:
    """The run with its last batch's end moved to where the old segments ended, as Kafka's cleaner leaves it: then
    consumers go on from there, and the object alone tells which offsets it stands for."""
    view = _batches_in(run)
    position, header = list(iter_headers(view))[-1]
    last_offset_delta = end_offset - 1 - header.base_offset
    if not header.last_offset_delta < last_offset_delta <= _INT32_MAX:
        return [run]
    last = build(
        header._replace(last_offset_delta=last_offset_delta),
        view[position + HEADER_BYTES : position + header.size_bytes],
    )
    return [view[:position], last] if position else [last]


def _store(
    store: BlockingStore,
    pointer: RewritePointer,
    attempt: UUID,
    base_offset: int,
    end_offset: int | None,
    runs: Sequence[Buffer | StoredBlock],
) -> SegmentInfo:
    encoded = encode_segment(runs, epoch=pointer.epoch, lineage=pointer.lineage)
    key = segment_key(pointer.topic_id, pointer.partition, base_offset, pointer.epoch, attempt)
    store.create(key, encoded.parts)
    return SegmentInfo(
        base_offset=base_offset,
        end_offset=encoded.end_offset if end_offset is None else end_offset,
        record_count=encoded.record_count,
        size_bytes=encoded.size_bytes,
        min_timestamp_ms=encoded.min_timestamp_ms,
        max_timestamp_ms=encoded.max_timestamp_ms,
        epoch=pointer.epoch,
        object_key=key,
        checksum=encoded.checksum,
    )
