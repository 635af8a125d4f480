"""A column of keys goes where each key would go alone, compiled or not."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamhouse.core import _key_partitions, key_partitions, key_partitions_twin
from streamhouse.core.partitioner import partition_for_key
from streamhouse.model.errors import InvalidInput

Kernel = Callable[..., bytes]
both = pytest.mark.parametrize(
    "kernel",
    [
        pytest.param(_key_partitions.key_partitions, id="compiled"),
        pytest.param(key_partitions_twin.key_partitions, id="twin"),
    ],
)


def column(keys: Sequence[bytes | None]) -> tuple[bytes, bytes, bytes | None]:
    offsets = array("i", [0])
    validity = bytearray((len(keys) + 7) // 8)
    for row, key in enumerate(keys):
        offsets.append(offsets[-1] + len(key or b""))
        validity[row >> 3] |= (key is not None) << (row & 7)
    data = b"".join(key or b"" for key in keys)
    return offsets.tobytes(), data, bytes(validity) if None in keys else None


def test_the_kernel_in_use_is_the_compiled_one() -> None:
    assert key_partitions.COMPILED


@both
@given(
    keys=st.lists(st.none() | st.binary(max_size=30), max_size=40),
    partition_count=st.integers(1, 50),
    first=st.integers(0, 100),
    run_rows=st.integers(1, 5),
)
def test_keys_go_where_each_would_alone_and_rows_without_one_take_turns(
    kernel: Kernel, keys: list[bytes | None], partition_count: int, first: int, run_rows: int
) -> None:
    chosen = array("i", kernel(*column(keys), len(keys), partition_count, first, run_rows))
    turn = 0
    for key, partition in zip(keys, chosen, strict=True):
        if key is None:
            assert partition == (first + turn // run_rows) % partition_count
            turn += 1
        else:
            assert partition == partition_for_key(key, partition_count)


@both
@pytest.mark.parametrize(
    ("offsets", "data", "validity", "count", "partition_count"),
    [
        ([0, 1], b"a", None, 2, 4),
        ([0, 5], b"a", None, 1, 4),
        ([1, 0], b"a", None, 1, 4),
        ([-1, 0], b"a", None, 1, 4),
        ([0] * 10, b"", b"\xff", 9, 4),
        ([0, 1], b"a", None, -1, 4),
        ([0, 1], b"a", None, 1, 0),
        ([0, 1], b"a", None, 1, 2**31),
    ],
)
def test_what_is_no_column_is_refused(
    kernel: Kernel, offsets: list[int], data: bytes, validity: bytes | None, count: int, partition_count: int
) -> None:
    with pytest.raises(InvalidInput):
        kernel(array("i", offsets).tobytes(), data, validity, count, partition_count, 0, 1)
