"""Partitions for a column of keys in plain Python, for machines that could not compile `_key_partitions`."""

from __future__ import annotations

from array import array

from streamhouse.core.partitioner import partition_for_key
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import InvalidInput


def key_partitions(
    offsets: Buffer,
    data: Buffer,
    validity: Buffer | None,
    count: int,
    partition_count: int,
    first: int,
    run_rows: int,
) -> bytes:
    """The partition of each key of an Arrow binary column, as native int32. The columns' buffers are as in `Columns`.

    Rows without a key go to one partition after the other, `run_rows` to each in turn, beginning with `first`."""
    if count < 0 or not 0 < partition_count < 2**31 or first < 0 or run_rows < 1:
        raise InvalidInput(f"there are no partitions for {count} keys in {partition_count}")
    starts = memoryview(offsets).cast("B")
    if len(starts) < 4 * (count + 1) or (validity is not None and len(validity) < (count + 7) // 8):
        raise InvalidInput("a column is shorter than its count says")
    starts = starts[: 4 * (count + 1)].cast("i")
    keys = memoryview(data).cast("B")
    partitions = array("i", bytes(4 * count))
    without_key = 0
    for row in range(count):
        start, end = starts[row], starts[row + 1]
        if not 0 <= start <= end <= len(keys):
            raise InvalidInput(f"the column has no key at row {row}")
        if validity is not None and not validity[row >> 3] >> (row & 7) & 1:
            partitions[row] = (first + without_key // run_rows) % partition_count
            without_key += 1
        else:
            partitions[row] = partition_for_key(bytes(keys[start:end]), partition_count)
    return partitions.tobytes()
