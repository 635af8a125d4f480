"""Which records of many logs compaction keeps, found in parallel: by segment, then by key, then by segment again.

What Spark shuffles are not records but blobs: the keys of a segment that belong to one part of all keys, and the
ordinals that are left of them. A worker holds one segment, or one part of a partition's keys, at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import lz4.block
import numpy as np
import pyarrow as pa

from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import CorruptBatch, CorruptData
from streamhouse.spark.jobs.failures import spark_errors
from streamhouse.spark.jobs.key_index import Flags, Integers, KeyEntries, index_segment, latest_among, split_by_key
from streamhouse.spark.jobs.objects import Objects
from streamhouse.spark.jobs.pointers import Pointers, spread
from streamhouse.spark.jobs.progress import Bars, watched

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator
    from pyspark.sql import SparkSession

_INDEXED = "log int, part int, segment int, record_count long, blob binary"
_LEFT = "log int, segment int, record_count long, blob binary"
_KEPT = "log int, segment int, kept_count long, blob binary"


# Parts of keys are numbered from 0. Records without one are below: minus one, minus the number of their segment.
_KEYLESS = -1
_VERIFY = "see what `streamhouse maintain verify` says"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPointer:
    """A segment to be indexed. Logs and their segments are numbered, segments by offset."""

    objects: Objects
    log: int
    segment: int
    key: str
    record_count: int
    drops_tombstones: bool
    parts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a segment keeps; `bits` has one for each record, and is None if all stay."""

    count: int
    bits: bytes | None


def find_survivors(spark: SparkSession, pointers: Sequence[KeyPointer], bars: Bars) -> dict[tuple[int, int], Kept]:
    """By log and segment; segments that keep nothing are left out."""
    if not pointers:
        return {}
    indexed = spark.sparkContext.accumulator(0)
    with (
        bars("reading keys", len(pointers)) as bar,
        spread(spark, pointers) as (rows, sent),
        watched(bar, indexed),
        spark_errors(),
    ):
        found = (
            rows.mapInArrow(_Index(sent, indexed), _INDEXED)
            .groupBy("log", "part")
            .applyInArrow(_find_latest, _LEFT)
            .groupBy("log", "segment")
            .applyInArrow(_gather, _KEPT)
            .toArrow()
        )
    return {
        (log, segment): Kept(count=count, bits=lz4.block.decompress(blob) if blob else None)
        for log, segment, count, blob in zip(*(column.to_pylist() for column in found.columns), strict=True)
    }


class _Index:
    def __init__(self, sent: Pointers[KeyPointer], indexed: Accumulator[int]) -> None:
        self._sent = sent
        self._indexed = indexed

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, pointer in self._sent.of(batches):
            yield _index(pointer)
            self._indexed.add(1)


def _index(pointer: KeyPointer) -> pa.RecordBatch:
    try:
        found = index_segment(pointer.objects.open().get(pointer.key), drops_tombstones=pointer.drops_tombstones)
    except CorruptBatch as problem:
        raise CorruptData(f"segment {pointer.key} cannot be compacted: {problem.message}", hint=_VERIFY) from None
    if found.record_count != pointer.record_count:
        raise CorruptData(
            f"segment {pointer.key} has {found.record_count} records instead of {pointer.record_count}", hint=_VERIFY
        )
    blobs = {part: entries.to_bytes() for part, entries in split_by_key(found.entries, pointer.parts).items()}
    if len(found.keyless):
        # Nothing competes with these. As a part of their own they only pass through.
        blobs[_KEYLESS - pointer.segment] = _pack(found.keyless)
    count = len(blobs)
    return pa.RecordBatch.from_pydict(
        {
            "log": pa.array([pointer.log] * count, pa.int32()),
            "part": pa.array(list(blobs), pa.int32()),
            "segment": pa.array([pointer.segment] * count, pa.int32()),
            "record_count": pa.array([found.record_count] * count, pa.int64()),
            "blob": pa.array(list(blobs.values()), pa.binary()),
        }
    )


def _find_latest(rows: pa.Table) -> pa.Table:
    """One part of the keys of one log, from all its segments."""
    if rows["part"][0].as_py() <= _KEYLESS:
        return rows.select(["log", "segment", "record_count", "blob"])
    segments: list[int] = rows["segment"].to_numpy().tolist()
    counts = dict(zip(segments, rows["record_count"].to_numpy().tolist(), strict=True))
    entries = {
        segment: KeyEntries.from_buffer(blob.as_buffer()) for segment, blob in zip(segments, rows["blob"], strict=True)
    }
    kept = {segment: ordinals for segment, ordinals in latest_among(entries).items() if len(ordinals)}
    return pa.table(
        {
            "log": rows["log"].take([0] * len(kept)),
            "segment": pa.array(list(kept), pa.int32()),
            "record_count": pa.array([counts[segment] for segment in kept], pa.int64()),
            "blob": pa.array([_pack(ordinals) for ordinals in kept.values()], pa.binary()),
        }
    )


def _gather(rows: pa.Table) -> pa.Table:
    """All that one segment keeps."""
    record_count = rows["record_count"][0].as_py()
    kept: Flags = np.zeros(record_count, np.bool_)
    for blob in rows["blob"]:
        kept[_unpack(blob.as_buffer())] = True
    kept_count = int(np.count_nonzero(kept))
    bits = lz4.block.compress(np.packbits(kept).tobytes()) if kept_count < record_count else b""
    return pa.table(
        {
            "log": rows["log"].slice(0, 1),
            "segment": rows["segment"].slice(0, 1),
            "kept_count": pa.array([kept_count], pa.int64()),
            "blob": pa.array([bits], pa.binary()),
        }
    )


def _pack(ordinals: Integers) -> bytes:
    return ordinals.astype(np.int32).tobytes()


def _unpack(blob: Buffer) -> Integers:
    return np.frombuffer(blob, np.int32).astype(np.int64)
