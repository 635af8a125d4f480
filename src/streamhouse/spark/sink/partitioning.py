"""Rows to partitions: keys where every other door sends them, rows without a key to partitions in turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from streamhouse.core.key_partitions import key_partitions
from streamhouse.format.arrow import ArrowArray
from streamhouse.model.errors import InvalidInput

# Rows without a key that stay together, for a batch of a few rows costs as much as one of many.
_LEAST_RUN_ROWS = 1024


class PartitionedRows(NamedTuple):
    """Rows in the order of their partitions: of each partition that has some, which rows."""

    rows: pa.RecordBatch
    ranges: list[tuple[int, range]]


class Partitioner:
    """For one task and topic. Tasks begin with different partitions, so that small ones fill them evenly too."""

    def __init__(self, topic: str, partition_count: int, first: int) -> None:
        self._topic = topic
        self._partition_count = partition_count
        self._turn = first % partition_count

    def partition(self, rows: pa.RecordBatch) -> PartitionedRows:
        names = rows.schema.names
        if "partition" not in names and self._partition_count == 1:
            return PartitionedRows(rows, [(0, range(rows.num_rows))])
        if "partition" not in names and "key" not in names:
            return PartitionedRows(rows, list(self._in_turn(rows.num_rows)))
        return _sort(rows, self._choose(rows))

    def _in_turn(self, count: int) -> Iterator[tuple[int, range]]:
        run_rows = self._run_rows(count)
        for start in range(0, count, run_rows):
            yield self._turn, range(start, min(start + run_rows, count))
            self._turn = (self._turn + 1) % self._partition_count

    def _choose(self, rows: pa.RecordBatch) -> ArrowArray:
        names = rows.schema.names
        count = rows.num_rows
        keys = rows.column("key") if "key" in names else pa.nulls(count, pa.binary())
        chosen = self._by_key(keys)
        if "partition" not in names:
            return chosen
        chosen = pc.coalesce(rows.column("partition"), chosen)
        bounds = pc.min_max(chosen)
        least, most = bounds["min"].as_py(), bounds["max"].as_py()
        if count and not 0 <= least <= most < self._partition_count:
            wrong = least if least < 0 else most
            raise InvalidInput(
                f"column 'partition' says {wrong}, and {self._topic} has {self._partition_count} partitions",
                hint="leave it out or null, and the key chooses",
            )
        return chosen

    def _by_key(self, keys: ArrowArray) -> ArrowArray:
        if keys.offset:
            keys = pa.concat_arrays([keys, keys.slice(0, 0)])
        count = len(keys)
        run_rows = self._run_rows(keys.null_count)
        validity, offsets, data = (None if buffer is None else memoryview(buffer) for buffer in keys.buffers())
        chosen = key_partitions(
            offsets if offsets is not None and count else bytes(4),
            data if data is not None else b"",
            validity if keys.null_count else None,
            count,
            self._partition_count,
            self._turn,
            run_rows,
        )
        self._turn = (self._turn + -(-keys.null_count // run_rows)) % self._partition_count
        return pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(chosen)])

    def _run_rows(self, count: int) -> int:
        """How many rows without a key stay together: once around, if there are enough of them."""
        return max(_LEAST_RUN_ROWS, -(-count // self._partition_count))


def _sort(rows: pa.RecordBatch, chosen: ArrowArray) -> PartitionedRows:
    """Rows of one partition keep their order: the sort is a stable one."""
    ranges: list[tuple[int, range]] = []
    start = 0
    for item in pc.value_counts(chosen).sort(by="values"):
        end = start + item["counts"].as_py()
        ranges.append((item["values"].as_py(), range(start, end)))
        start = end
    return PartitionedRows(rows if len(ranges) == 1 else rows.take(pc.array_sort_indices(chosen)), ranges)
