"""Filters that spare reading, and those of them that Spark must still look at."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from streamhouse.spark.source.pushdown import ScanFilter, push_down

NOON = datetime(2026, 11, 1, 12, 0, 0, 1_500, tzinfo=UTC)
NOON_MS = 1_793_534_400_001


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        (EqualTo(("topic",), "a"), ScanFilter(topics=frozenset({"a"}))),
        (EqualNullSafe(("topic",), "a"), ScanFilter(topics=frozenset({"a"}))),
        (In(("topic",), ("a", None, "b")), ScanFilter(topics=frozenset({"a", "b"}))),
        (EqualTo(("partition",), 3), ScanFilter(partitions=frozenset({3}))),
        (In(("partition",), (3, 4)), ScanFilter(partitions=frozenset({3, 4}))),
        (EqualTo(("offset",), 5), ScanFilter(start=5, end=6)),
        (GreaterThan(("offset",), 5), ScanFilter(start=6)),
        (GreaterThanOrEqual(("offset",), 5), ScanFilter(start=5)),
        (LessThan(("offset",), 5), ScanFilter(end=5)),
        (LessThanOrEqual(("offset",), 5), ScanFilter(end=6)),
        (IsNotNull(("timestamp",)), ScanFilter()),
    ],
)
def test_what_is_exact_is_left_to_the_source(used: Filter, expected: ScanFilter) -> None:
    assert push_down([used]) == (expected, [])


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        (GreaterThan(("timestamp",), NOON), ScanFilter(min_timestamp_ms=NOON_MS)),
        (GreaterThanOrEqual(("timestamp",), NOON), ScanFilter(min_timestamp_ms=NOON_MS)),
        (LessThan(("timestamp",), NOON), ScanFilter(max_timestamp_ms=NOON_MS)),
        (LessThanOrEqual(("timestamp",), NOON), ScanFilter(max_timestamp_ms=NOON_MS)),
        (EqualTo(("timestamp",), NOON), ScanFilter(min_timestamp_ms=NOON_MS, max_timestamp_ms=NOON_MS)),
        (In(("offset",), (5, 9)), ScanFilter(start=5, end=10)),
    ],
)
def test_what_only_leaves_out_blocks_is_looked_at_again(used: Filter, expected: ScanFilter) -> None:
    assert push_down([used]) == (expected, [used])


def test_less_than_a_whole_millisecond_does_not_reach_it() -> None:
    pushed, _ = push_down([LessThan(("timestamp",), NOON.replace(microsecond=2_000))])
    assert pushed.max_timestamp_ms == NOON_MS


@pytest.mark.parametrize(
    "unused",
    [
        EqualTo(("value",), b"x"),
        EqualTo(("topic", "deeper"), "a"),
        EqualTo(("topic",), None),
        EqualTo(("partition",), "3"),
        IsNull(("offset",)),
        IsNotNull(("key",)),
        Not(EqualTo(("offset",), 5)),
        StringStartsWith(("topic",), "a"),
        GreaterThan(("timestamp",), NOON.replace(tzinfo=None)),
        GreaterThan(("partition",), 3),
        In(("offset",), ()),
    ],
)
def test_what_says_nothing_useful_is_left_to_spark(unused: Filter) -> None:
    assert push_down([unused]) == (ScanFilter(), [unused])


def test_filters_narrow_one_another() -> None:
    pushed, left = push_down(
        [
            GreaterThanOrEqual(("offset",), 5),
            GreaterThan(("offset",), 7),
            LessThan(("offset",), 20),
            LessThan(("offset",), 30),
            In(("topic",), ("a", "b")),
            EqualTo(("topic",), "b"),
        ]
    )
    assert pushed == ScanFilter(start=8, end=20, topics=frozenset({"b"}))
    assert left == []
    assert pushed.keeps("b", 7)
    assert not pushed.keeps("a", 7)
    assert (pushed.cut(0, 100), pushed.cut(10, 15), pushed.cut(25, 100)) == ((8, 20), (10, 15), (25, 25))
