"""Which partition a key belongs to: Kafka's murmur2, so that one key goes to one partition whatever the door."""

from __future__ import annotations

import struct

_MULTIPLIER = 0x5BD1E995
_SEED = 0x9747B28C
_UINT32 = 0xFFFFFFFF
_INT31 = 0x7FFFFFFF


def murmur2(key: bytes) -> int:
    """The 32-bit murmur2 of Kafka's Java client, as an unsigned number."""
    size = len(key)
    whole = size & ~3
    digest = _SEED ^ size
    for (word,) in struct.iter_unpack("<I", memoryview(key)[:whole]):
        word = (word * _MULTIPLIER) & _UINT32
        word ^= word >> 24
        word = (word * _MULTIPLIER) & _UINT32
        digest = ((digest * _MULTIPLIER) & _UINT32) ^ word
    if whole < size:
        digest ^= int.from_bytes(key[whole:], "little")
        digest = (digest * _MULTIPLIER) & _UINT32
    digest ^= digest >> 13
    digest = (digest * _MULTIPLIER) & _UINT32
    return digest ^ (digest >> 15)


def partition_for_key(key: bytes, partition_count: int) -> int:
    """Kafka clears the sign bit instead of taking the absolute value; so must we."""
    return (murmur2(key) & _INT31) % partition_count
