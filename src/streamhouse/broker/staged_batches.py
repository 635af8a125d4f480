"""Reading what a sink has staged: the record batches of one partition, in order, out of objects that hold many."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress

from streamhouse.format.batch import HEADER_BYTES, check_crc, read_header
from streamhouse.format.staging import StagedObject, StagedRun
from streamhouse.model.errors import CorruptBatch, CorruptData
from streamhouse.objects.store import ObjectStore

# Objects up to this size are read whole, since others of their runs are asked for soon.
_WHOLE_BYTES = 2 * 2**20
_CHUNK_BYTES = 2 * 2**20
_CACHE_BYTES = 64 * 2**20


class StagedBatches:
    """The staged objects of one batch of a sink."""

    def __init__(self, objects: ObjectStore, staged: Iterable[StagedObject]) -> None:
        self._objects = objects
        self._sizes = {item.key: max((run.end_byte for run in item.runs), default=0) for item in staged}
        self._whole: OrderedDict[str, bytes] = OrderedDict()
        self._whole_bytes = 0
        self._reading: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def read(self, key: str, run: StagedRun) -> AsyncIterator[memoryview]:
        """The run's batches, each checked against its CRC."""
        position = run.start_byte
        chunk_bytes = _CHUNK_BYTES
        while position < run.end_byte:
            end = min(run.end_byte, position + chunk_bytes)
            chunk = await self._read_range(key, position, end)
            at = 0
            while (size_bytes := _batch_bytes(chunk, at)) and at + size_bytes <= len(chunk):
                batch = chunk[at : at + size_bytes]
                check_crc(batch, read_header(batch))
                yield batch
                at += size_bytes
            if at == 0:
                if end == run.end_byte:
                    raise CorruptData(f"{key!r} ends in the middle of a record batch")
                chunk_bytes = max(size_bytes, 2 * chunk_bytes)
            position += at

    async def _read_range(self, key: str, start: int, end: int) -> memoryview:
        whole_bytes = self._sizes[key]
        if whole_bytes > _WHOLE_BYTES:
            return memoryview(await self._objects.get_range(key, start, end))
        async with self._reading[key]:  # many partitions ask for it at once
            content = self._whole.get(key)
            if content is None:
                content = await self._objects.get_range(key, 0, whole_bytes)
                self._remember(key, content)
        return memoryview(content)[start:end]

    def _remember(self, key: str, content: bytes) -> None:
        self._whole[key] = content
        self._whole_bytes += len(content)
        while self._whole_bytes > _CACHE_BYTES:
            _, oldest = self._whole.popitem(last=False)
            self._whole_bytes -= len(oldest)


def _batch_bytes(chunk: memoryview, at: int) -> int:
    """What the batch there says it has; 0 if not even its header is there."""
    if len(chunk) - at < HEADER_BYTES:
        return 0
    with suppress(CorruptBatch):
        size_bytes = read_header(chunk, at).size_bytes
        if size_bytes >= HEADER_BYTES:
            return size_bytes
    raise CorruptData("a staged object holds something else than record batches")
