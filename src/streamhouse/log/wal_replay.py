"""What WAL objects hold of a partition, read back by the agent that takes it over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Protocol

from streamhouse.format.batch import read_header
from streamhouse.format.wal_object import decode_range
from streamhouse.metadata.wal_objects import WalRange
from streamhouse.model.errors import CorruptData, NotFound
from streamhouse.model.names import TopicPartition

_CONCURRENT_READS = 4


Range = tuple[str, int]
"""An object's key and a position in it."""


class Objects(Protocol):
    """As much of an object store as is needed here."""

    async def get_range(self, key: str, start: int, end: int) -> bytes: ...


class PartitionReads:
    """The batches of those ranges of one partition that were read; `size_bytes` of them are kept."""

    __slots__ = ("_room", "_seen", "size_bytes", "used_at_ms")

    def __init__(self, room: Callable[[], int], used_at_ms: int) -> None:
        self._room = room
        self._seen: dict[Range, list[memoryview]] = {}
        self.size_bytes = 0
        self.used_at_ms = used_at_ms

    def find(self, wanted: WalRange) -> list[memoryview] | None:
        return self._seen.get((wanted.object_key, wanted.position))

    def keep(self, wanted: WalRange, batches: list[memoryview]) -> None:
        if wanted.size_bytes <= self._room():
            self._seen[wanted.object_key, wanted.position] = batches
            self.size_bytes += wanted.size_bytes


class RememberedReads:
    """What replays have read that have not come to their end: the next try goes on there.

    Objects never change, so what was read of one is true under every epoch. It is kept within a limit, and not for
    long if nobody comes back to it."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._partitions: dict[TopicPartition, PartitionReads] = {}

    def of(self, partition: TopicPartition, now_ms: int) -> PartitionReads:
        reads = self._partitions.setdefault(partition, PartitionReads(self._room, now_ms))
        reads.used_at_ms = now_ms
        return reads

    def forget(self, partition: TopicPartition) -> None:
        self._partitions.pop(partition, None)

    def forget_unused(self, since_ms: int) -> None:
        for partition in [partition for partition, reads in self._partitions.items() if reads.used_at_ms < since_ms]:
            self.forget(partition)

    def _room(self) -> int:
        return self._limit_bytes - sum(reads.size_bytes for reads in self._partitions.values())


async def replay_wal_objects(
    objects: Objects, ranges: Sequence[WalRange], start_offset: int = 0, reads: PartitionReads | None = None
) -> AsyncIterator[list[memoryview]]:
    """The batches of one partition's ranges, which are in offset order, one after the other and without gaps; as many
    at once as one read gives.

    `start_offset` is where the segments end, which may be between two batches of the first range. `reads` has what was
    read before, and gets what is read. CorruptData names the object and the range of what is damaged or gone; nothing
    from there on is ever left out."""
    joined = list(_joined(ranges))
    for first in range(0, len(joined), _CONCURRENT_READS):
        several = joined[first : first + _CONCURRENT_READS]
        for batches in await asyncio.gather(*(_read(objects, neighbours, reads) for neighbours in several)):
            yield [batch for batch in batches if read_header(batch).base_offset >= start_offset]


def _joined(ranges: Sequence[WalRange]) -> Iterator[list[WalRange]]:
    """Ranges that lie side by side in one object are one read."""
    neighbours: list[WalRange] = []
    for wanted in ranges:
        if neighbours:
            last = neighbours[-1]
            if wanted.base_offset != last.end_offset:
                raise CorruptData(
                    f"the WAL of {wanted.partition} goes on at offset {wanted.base_offset}, not at {last.end_offset}",
                    hint=f"the range is in object {wanted.object_key}, the one before it in {last.object_key}",
                )
            if (wanted.object_key, wanted.position) != (last.object_key, last.position + last.size_bytes):
                yield neighbours
                neighbours = []
        neighbours.append(wanted)
    if neighbours:
        yield neighbours


async def _read(objects: Objects, neighbours: Sequence[WalRange], reads: PartitionReads | None) -> list[memoryview]:
    known = [reads.find(wanted) for wanted in neighbours] if reads is not None else [None]
    if None not in known:
        return [batch for batches in known if batches is not None for batch in batches]
    first, last = neighbours[0], neighbours[-1]
    try:
        content = await objects.get_range(first.object_key, first.position, last.position + last.size_bytes)
    except (NotFound, CorruptData) as problem:
        raise _unreadable(first, problem) from None
    view = memoryview(content)
    batches: list[memoryview] = []
    for wanted in neighbours:
        start = wanted.position - first.position
        try:
            decoded = decode_range(
                view[start : start + wanted.size_bytes],
                base_offset=wanted.base_offset,
                end_offset=wanted.end_offset,
                checksum=wanted.checksum,
            )
        except CorruptData as problem:
            raise _unreadable(wanted, problem) from None
        batches += decoded
        if reads is not None:
            reads.keep(wanted, decoded)
    return batches


def _unreadable(damaged: WalRange, problem: NotFound | CorruptData) -> CorruptData:
    return CorruptData(
        f"WAL object {damaged.object_key} does not give offsets [{damaged.base_offset}, {damaged.end_offset}) of "
        f"{damaged.partition}, bytes [{damaged.position}, {damaged.position + damaged.size_bytes}): {problem.message}",
        hint="these records were acknowledged: restore the object from a copy or from the bucket's versions",
    )
