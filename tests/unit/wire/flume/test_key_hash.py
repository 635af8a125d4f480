"""Where Flume puts a key."""

from __future__ import annotations

from types import ModuleType

import pytest

from streamhouse.wire.flume import _produce_scan, produce_scan_twin
from streamhouse.wire.flume.key_hash import partition_for_key


# From the list of test vectors by the hash's authors.
@pytest.mark.parametrize(
    ("key", "digest"),
    [(b"", 0x811C9DC5), (b"a", 0xE40C292C), (b"b", 0xE70C2DE5), (b"foobar", 0xBF9CF968)],
)
@pytest.mark.parametrize("kernel", [_produce_scan, produce_scan_twin])
def test_the_hash_is_fnv1a_of_32_bits(kernel: ModuleType, key: bytes, digest: int) -> None:
    assert kernel.fnv1a_32(key) == digest


def test_the_documents_keys_are_where_its_example_session_says() -> None:
    assert partition_for_key(b"user-123", 3) == 1
    assert partition_for_key(b"user-456", 3) == 2


def test_every_key_has_a_partition_and_all_partitions_have_keys() -> None:
    placed = {partition_for_key(b"key-%d" % number, 7) for number in range(1000)}
    assert placed == set(range(7))
