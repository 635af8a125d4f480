"""Rows sorted into partitions: all of them, in order, and evenly where the key does not decide."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamhouse.core.partitioner import partition_for_key
from streamhouse.model.errors import InvalidInput
from streamhouse.spark.sink.partitioning import PartitionedRows, Partitioner

Row = tuple[bytes | None, int | None]


def rows_of(rows: list[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([key for key, _ in rows], pa.binary()),
            pa.array([partition for _, partition in rows], pa.int32()),
            pa.array([b"%d" % number for number in range(len(rows))], pa.binary()),
        ],
        names=["key", "partition", "value"],
    )


def placed(partitioned: PartitionedRows) -> list[tuple[int, int]]:
    """Partition and number of each row, in the order in which they are written."""
    numbers = [int(value) for value in partitioned.rows.column("value").to_pylist()]
    return [(partition, numbers[row]) for partition, rows in partitioned.ranges for row in rows]


@settings(deadline=None)  # the first one imports Arrow's functions
@given(
    st.lists(st.tuples(st.none() | st.binary(max_size=5), st.none() | st.integers(0, 4)), min_size=1, max_size=60),
    st.integers(0, 10),
)
def test_every_row_is_in_its_partition_in_the_order_in_which_it_came(rows: list[Row], first: int) -> None:
    result = placed(Partitioner("topic", 5, first).partition(rows_of(rows)))
    assert sorted(number for _, number in result) == list(range(len(rows)))
    assert result == sorted(result)
    for partition, number in result:
        key, asked = rows[number]
        if asked is not None:
            assert partition == asked
        elif key is not None:
            assert partition == partition_for_key(key, 5)


@pytest.mark.parametrize("wrong", [-1, 5])
def test_a_partition_that_the_topic_does_not_have_is_refused(wrong: int) -> None:
    with pytest.raises(InvalidInput, match=f"says {wrong}, and topic has 5 partitions"):
        Partitioner("topic", 5, 0).partition(rows_of([(b"k", 0), (b"k", wrong)]))


@pytest.mark.parametrize("has_key_column", [False, True])
def test_many_rows_without_a_key_go_around_once(has_key_column: bool) -> None:
    rows = rows_of([(None, None)] * 10_000).select(["key", "value"] if has_key_column else ["value"])
    result = placed(Partitioner("topic", 4, 2).partition(rows))
    assert Counter(partition for partition, _ in result) == dict.fromkeys(range(4), 2500)


@pytest.mark.parametrize("has_key_column", [False, True])
def test_few_rows_without_a_key_stay_together_and_the_next_ones_go_elsewhere(has_key_column: bool) -> None:
    partitioner = Partitioner("topic", 4, 6)
    rows = rows_of([(None, None)] * 10).select(["key", "value"] if has_key_column else ["value"])
    assert [{partition for partition, _ in placed(partitioner.partition(rows))} for _ in range(5)] == [
        {2},
        {3},
        {0},
        {1},
        {2},
    ]


def test_a_slice_of_a_longer_batch_is_partitioned_alone() -> None:
    rows = rows_of([(b"%d" % number if number % 3 else None, None) for number in range(40)]).slice(5, 20)
    result = placed(Partitioner("topic", 3, 0).partition(rows))
    assert sorted(number for _, number in result) == list(range(5, 25))
    assert all(partition == partition_for_key(b"%d" % number, 3) for partition, number in result if number % 3)
