"""The latest record of every key: found in each segment alone, and then among the segments, one part of the keys at a
time.

Keys are compared as bytes. Hashes only divide them into parts, so that two keys with the same hash stay two keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamhouse.core.key_partitions import key_partitions
from streamhouse.format.arrow import ArrowArray
from streamhouse.format.column_stream import iter_columns
from streamhouse.format.segment import open_segment
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import CorruptData
from streamhouse.spark.jobs.column_filter import key_array

Integers: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int64]]"
Flags: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.bool_]]"
Parts: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.int32]]"

_PART_ROWS = 200_000
_PART_BYTES = 16 * 2**20
_INT64_MAX = 2**63 - 1

_PRIME = 1_000_003
_OFFSET_BYTES = 4
_MANY_PARTS = 2**16


@dataclass(frozen=True, slots=True)
class KeyEntries:
    """The last record of each key in one segment. Ordinals count the segment's records from 0. `is_expired`: it is a
    tombstone that has been kept for long enough, and the segment has no older record of its key."""

    keys: ArrowArray
    ordinals: Integers
    is_expired: Flags

    def to_bytes(self) -> bytes:
        batch = pa.RecordBatch.from_arrays(
            [self.keys, pa.array(self.ordinals.astype(np.int32)), pa.array(self.is_expired)],
            names=["key", "ordinal", "is_expired"],
        )
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return sink.getvalue().to_pybytes()

    @classmethod
    def from_buffer(cls, data: pa.Buffer) -> KeyEntries:
        with pa.ipc.open_stream(data) as reader:
            batch = reader.read_next_batch()
        ordinals = np.asarray(batch.column(1)).astype(np.int64)
        return cls(batch.column(0), ordinals, batch.column(2).to_numpy(zero_copy_only=False))


@dataclass(frozen=True, slots=True)
class SegmentKeys:
    """What compaction needs to know of one segment; records without a key are always kept."""

    record_count: int
    entries: KeyEntries
    keyless: Integers


def index_segment(data: Buffer, *, drops_tombstones: bool) -> SegmentKeys:
    """Everything in the segment is checked on the way: compaction must not take damage for the truth."""
    footer, blocks = open_segment(data)
    keys: list[ArrowArray] = []
    tombstones: list[Flags] = []
    for part in iter_columns(
        (block.run for block in blocks),
        start_offset=0,
        end_offset=_INT64_MAX,
        target_rows=_PART_ROWS,
        target_bytes=_PART_BYTES,
        as_text=False,
        keys_only=True,
    ):
        keys.append(key_array(part.columns))
        tombstones.append(_nulls(part.columns.value_validity, part.columns.count))
    record_count = sum(map(len, keys))
    if record_count != footer.record_count:
        raise CorruptData(f"the segment has {record_count} records, its footer says {footer.record_count}")
    column = pa.chunked_array(keys, pa.binary())
    is_keyed = column.is_valid().to_numpy()
    ordinals = np.flatnonzero(is_keyed)
    latest, repeats = _latest_of_each(column.drop_null() if column.null_count else column)
    last = ordinals[latest.rows]
    is_expired = np.concatenate(tombstones)[last] & ~repeats if drops_tombstones else np.zeros(len(last), np.bool_)
    return SegmentKeys(record_count, KeyEntries(latest.keys, last, is_expired), np.flatnonzero(~is_keyed))


def latest_among(segments: Mapping[int, KeyEntries]) -> dict[int, Integers]:
    """The ordinals that each segment keeps, of records with a key; segments are numbered by offset."""
    numbers = sorted(segments)
    entries = [segments[number] for number in numbers]
    latest, repeats = _latest_of_each(pa.chunked_array([each.keys for each in entries], pa.binary()))
    is_expired = np.concatenate([each.is_expired for each in entries])
    rows = latest.rows[~(is_expired[latest.rows] & ~repeats)]
    rows.sort()
    kept: dict[int, Integers] = {}
    first = 0
    for number, each in zip(numbers, entries, strict=True):
        start, stop = np.searchsorted(rows, [first, first + len(each.ordinals)])
        kept[number] = each.ordinals[rows[start:stop] - first]
        first += len(each.ordinals)
    return kept


def split_by_key(entries: KeyEntries, parts: int) -> dict[int, KeyEntries]:
    """The same key is in the same part, whatever the segment. Parts without keys are left out."""
    if parts == 1 or not len(entries.keys):
        return {0: entries} if len(entries.keys) else {}
    part_of = _parts_of(entries.keys, parts).astype(np.uint16 if parts <= _MANY_PARTS else np.int32)
    # numpy sorts small numbers by counting them. Then every part is a slice of the same memory.
    order = np.argsort(part_of, kind="stable")
    keys, ordinals, is_expired = entries.keys.take(order), entries.ordinals[order], entries.is_expired[order]
    starts = np.searchsorted(part_of[order], np.arange(parts + 1)).tolist()
    return {
        part: KeyEntries(keys.slice(start, stop - start), ordinals[start:stop], is_expired[start:stop])
        for part, (start, stop) in enumerate(pairwise(starts))
        if start < stop
    }


@dataclass(frozen=True, slots=True)
class _Latest:
    keys: ArrowArray
    rows: Integers


def _latest_of_each(column: pa.ChunkedArray[pa.Scalar[pa.DataType]]) -> tuple[_Latest, Flags]:
    """Each key once, with its last row, and whether it has others."""
    if not len(column):
        return _Latest(pa.array([], pa.binary()), np.empty(0, np.int64)), np.empty(0, np.bool_)
    encoded: Any = pc.dictionary_encode(column).combine_chunks()
    codes = np.asarray(encoded.indices)
    rows = np.empty(len(encoded.dictionary), np.int64)
    # Where an index comes several times, the last assignment is the one that stays.
    rows[codes] = np.arange(len(codes))
    return _Latest(encoded.dictionary, rows), np.bincount(codes, minlength=len(rows)) > 1


def _nulls(validity: Buffer | None, count: int) -> Flags:
    if validity is None:
        return np.zeros(count, np.bool_)
    bits = np.unpackbits(np.frombuffer(validity, np.uint8), count=count, bitorder="little")
    return ~bits.view(np.bool_)


def _parts_of(keys: ArrowArray, parts: int) -> Parts:
    """The hashes of a partition's keys have a remainder in common, so that parts by the same hash could stay empty; its
    remainder of a large prime has nothing to do with that."""
    _, offset_bytes, data = keys.buffers()
    offsets = memoryview(offset_bytes or b"")[_OFFSET_BYTES * keys.offset :]
    remainders = key_partitions(offsets, memoryview(data or b""), None, len(keys), _PRIME, 0, 1)
    return np.frombuffer(remainders, np.int32) % np.int32(parts)
