"""What WAL objects hold of a partition, read back by the agent that takes it over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence

from streamhouse.format.batch import read_header
from streamhouse.format.wal_object import decode_range
from streamhouse.metadata.wal_objects import WalRange
from streamhouse.model.errors import CorruptData, NotFound
from streamhouse.objects.store import ObjectStore

_CONCURRENT_READS = 4


async def replay_wal_objects(
    objects: ObjectStore, ranges: Sequence[WalRange], start_offset: int = 0
) -> AsyncIterator[memoryview]:
    """The batches of one partition's ranges, which are in offset order, one after the other and without gaps.

    `start_offset` is where the segments end, which may be between two batches of the first range. CorruptData names
    the object and the range of what is damaged or gone; nothing from there on is ever left out."""
    reads = list(_joined(ranges))
    for first in range(0, len(reads), _CONCURRENT_READS):
        several = reads[first : first + _CONCURRENT_READS]
        for batches in await asyncio.gather(*(_read(objects, neighbours) for neighbours in several)):
            for batch in batches:
                if read_header(batch).base_offset >= start_offset:
                    yield batch


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


async def _read(objects: ObjectStore, neighbours: Sequence[WalRange]) -> list[memoryview]:
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
            batches += decode_range(
                view[start : start + wanted.size_bytes],
                base_offset=wanted.base_offset,
                end_offset=wanted.end_offset,
                checksum=wanted.checksum,
            )
        except CorruptData as problem:
            raise _unreadable(wanted, problem) from None
    return batches


def _unreadable(damaged: WalRange, problem: NotFound | CorruptData) -> CorruptData:
    return CorruptData(
        f"WAL object {damaged.object_key} does not give offsets [{damaged.base_offset}, {damaged.end_offset}) of "
        f"{damaged.partition}, bytes [{damaged.position}, {damaged.position + damaged.size_bytes}): {problem.message}",
        hint="these records were acknowledged: restore the object from a copy or from the bucket's versions",
    )
