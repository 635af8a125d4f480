"""A group's shard never changes: other processes, and other versions, look for it there."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamhouse.core.placement.shards import SHARD_COUNT, shard_of


@pytest.mark.parametrize(
    ("group_id", "checksum"),
    [
        ("", 0x00000000),
        ("123456789", 0xE3069283),  # the check value that every description of CRC-32C gives
        ("a", 0xC1D04330),
        ("\0" * 32, 0x8A9136AA),  # RFC 3720, B.4
        ("The quick brown fox jumps over the lazy dog", 0x22620404),
    ],
)
def test_the_shard_is_the_crc_32c_of_the_id_modulo_sixteen(group_id: str, checksum: int) -> None:
    assert SHARD_COUNT == 16
    assert shard_of(group_id) == checksum % 16


@pytest.mark.parametrize(
    ("group_id", "shard"),
    [("g", 8), ("orders-service", 1), ("console-consumer-12345", 2), ("größe-日本", 10), ("o'; DROP TABLE x; --", 6)],
)
def test_the_shards_of_these_groups_are_stored_in_databases(group_id: str, shard: int) -> None:
    assert shard_of(group_id) == shard


@given(st.text())
def test_every_text_has_a_shard(group_id: str) -> None:
    assert 0 <= shard_of(group_id) < SHARD_COUNT


def test_a_text_that_utf_8_cannot_say_has_one_too() -> None:
    assert 0 <= shard_of("\ud800") < SHARD_COUNT


@pytest.mark.parametrize("pattern", ["group-{}", "{}", "orders-{:06d}-consumer"])
def test_names_that_are_counted_up_spread_over_all_shards(pattern: str) -> None:
    counts = Counter(shard_of(pattern.format(number)) for number in range(1600))
    assert min(counts[shard] for shard in range(SHARD_COUNT)) > 70
    assert max(counts.values()) < 130
