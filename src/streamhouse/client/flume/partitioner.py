"""Which partition a message goes to, where the producer decides."""

from __future__ import annotations

from itertools import count
from typing import Protocol

from streamhouse.model.errors import InvalidInput
from streamhouse.wire.flume.key_hash import partition_for_key


class Partitioner(Protocol):
    def partition(self, key: bytes | None, partition_count: int) -> int: ...


class HashPartitioner:
    """By the key's FNV-1a, as the broker does it: the same key, the same partition. Without a key, partition 0."""

    def partition(self, key: bytes | None, partition_count: int) -> int:
        _check_count(partition_count)
        return partition_for_key(key, partition_count) if key else 0


class RoundRobinPartitioner:
    """One partition after the other: evenly, and without an order among messages of one key."""

    def __init__(self) -> None:
        self._turns = count()

    def partition(self, key: bytes | None, partition_count: int) -> int:
        _check_count(partition_count)
        return next(self._turns) % partition_count


def _check_count(partition_count: int) -> None:
    if partition_count < 1:
        raise InvalidInput(f"{partition_count} is not a number of partitions")
