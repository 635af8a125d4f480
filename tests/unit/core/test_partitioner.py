"""Keys go where Kafka's own clients send them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as murmur2_of_kafka_python

from streamhouse.core.partitioner import murmur2, partition_for_key


def signed(value: int) -> int:
    return value - 2**32 if value >= 2**31 else value


# The vectors of Kafka's own UtilsTest, as signed numbers of Java.
@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
        (b"", 275646681),
    ],
)
def test_murmur2_gives_what_kafka_gives(key: bytes, expected: int) -> None:
    assert signed(murmur2(key)) == expected


@given(st.binary(max_size=100))
def test_murmur2_agrees_with_kafka_python(key: bytes) -> None:
    assert murmur2(key) == murmur2_of_kafka_python(key) % 2**32


@given(st.binary(max_size=40), st.integers(min_value=1, max_value=10_000))
def test_a_key_always_goes_to_a_partition_that_exists(key: bytes, partition_count: int) -> None:
    assert partition_for_key(key, partition_count) in range(partition_count)


def test_a_key_with_a_negative_hash_is_made_positive_by_clearing_the_sign_bit() -> None:
    assert partition_for_key(b"21", 1000) == (-973932308 & 0x7FFFFFFF) % 1000
