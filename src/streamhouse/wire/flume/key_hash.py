"""Which partition a key belongs to for Flume: its FNV-1a of 32 bits, as a signed number, modulo the partitions.

The document names the hash, and its example session shows the rest: `user-123` is in partition 1 of 3 and `user-456` in
2, which is what the remainder of the signed hash gives when it is made non-negative by adding the count."""

from __future__ import annotations

from streamhouse.wire.flume.produce_scan import fnv1a_32

_SIGN_BIT = 0x80000000


def partition_for_key(key: bytes, partition_count: int) -> int:
    return partition_for_hash(fnv1a_32(key), partition_count)


def partition_for_hash(digest: int, partition_count: int) -> int:
    """Python's remainder has the divisor's sign, so nothing needs to be added."""
    return ((digest ^ _SIGN_BIT) - _SIGN_BIT) % partition_count
