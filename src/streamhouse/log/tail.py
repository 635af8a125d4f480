"""The newest batches of a partition in memory, contiguous, so that a fetch is a few slices and no copy.

Batches are laid one behind the other into chunks. A chunk's filled part never changes once it may have been handed to
a reader, so slices of it can be written to sockets as they are."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

from streamhouse.format.batch import place
from streamhouse.runtime.memory import unfilled

SMALLEST_CHUNK_BYTES = 16 * 1024
LARGEST_CHUNK_BYTES = 1024 * 1024


class Chunk:
    """A run of whole batches in one piece of memory, with the first offset and the position of each."""

    __slots__ = ("base_offset", "base_offsets", "capacity", "end_offset", "filled", "memory", "positions")

    def __init__(self, memory: memoryview, base_offset: int) -> None:
        self.memory = memory
        self.capacity = len(memory)
        self.filled = 0
        self.base_offset = base_offset
        self.end_offset = base_offset
        self.base_offsets = array("q")
        self.positions = array("q")

    def add(self, size_bytes: int, base_offset: int, end_offset: int) -> memoryview:
        """Index the next batch and return its place."""
        position = self.filled
        self.base_offsets.append(base_offset)
        self.positions.append(position)
        self.filled = position + size_bytes
        self.end_offset = end_offset
        return self.memory[position : self.filled]

    def position_of(self, offset: int) -> int:
        """Where the batch that holds this offset starts."""
        return self.positions[max(0, bisect_right(self.base_offsets, offset) - 1)]

    def position_after(self, end_offset: int) -> int:
        """Where the batches below an offset, which must be a batch's border, end."""
        if end_offset >= self.end_offset:
            return self.filled
        return self.positions[bisect_left(self.base_offsets, end_offset)]

    def whole_batches_end(self, start: int, stop: int, max_bytes: int) -> int:
        """The last batch border in (start, stop] that is within max_bytes of start; start if there is none."""
        if stop - start <= max_bytes:
            return stop
        border = self.positions[bisect_right(self.positions, start + max_bytes) - 1]
        return max(start, border)

    def first_batch_end(self, start: int) -> int:
        following = bisect_right(self.positions, start)
        return self.positions[following] if following < len(self.positions) else self.filled

    def truncate(self, end_offset: int) -> None:
        self.filled = self.position_after(end_offset)
        kept = bisect_left(self.base_offsets, end_offset)
        del self.base_offsets[kept:]
        del self.positions[kept:]
        self.end_offset = max(self.base_offset, end_offset)


class Tail:
    """The chunks of one partition, oldest first: they have [start_offset, end_offset) of its log."""

    __slots__ = ("_bases", "_chunks", "_next_chunk_bytes", "end_offset", "size_bytes", "start_offset")

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.size_bytes = 0
        self._chunks: list[Chunk] = []
        self._bases = array("q")
        self._next_chunk_bytes = SMALLEST_CHUNK_BYTES

    def append(self, batch: memoryview, end_offset: int, leader_epoch: int, *, owned: bool = False) -> memoryview:
        """Copy a batch to the end, give it its offset and epoch, and return where it now is.

        An `owned` batch is memory that nobody else will write: a large one becomes a chunk as it is."""
        size_bytes = len(batch)
        chunk = self._chunks[-1] if self._chunks else None
        if chunk is None or chunk.capacity - chunk.filled < size_bytes:
            adopted = owned and size_bytes * 8 >= LARGEST_CHUNK_BYTES
            chunk = self._add_chunk(batch if adopted else memoryview(unfilled(self._chunk_bytes_for(size_bytes))))
            placed = chunk.add(size_bytes, self.end_offset, end_offset)
            if not adopted:
                placed[:] = batch
        else:
            placed = chunk.add(size_bytes, self.end_offset, end_offset)
            placed[:] = batch
        place(placed, 0, self.end_offset, leader_epoch)
        self.end_offset = end_offset
        return placed

    def read(self, offset: int, end_offset: int, max_bytes: int) -> list[memoryview]:
        """Whole batches from the one that holds `offset` up to `end_offset`, at least one, else within max_bytes."""
        parts: list[memoryview] = []
        max_bytes = max(0, max_bytes)
        if offset >= end_offset:
            return parts
        index = bisect_right(self._bases, offset) - 1
        while index < len(self._chunks):
            chunk = self._chunks[index]
            if chunk.base_offset >= end_offset:
                break
            start = 0 if parts else chunk.position_of(offset)
            stop = chunk.position_after(end_offset)
            end = chunk.whole_batches_end(start, stop, max_bytes)
            if end == start and not parts:
                end = chunk.first_batch_end(start)
            if end > start:
                parts.append(chunk.memory[start:end])
            max_bytes -= end - start
            if end < stop or max_bytes <= 0:
                break
            index += 1
        return parts

    def truncate(self, end_offset: int) -> None:
        """Forget batches at and after an offset: they never became durable, so nobody has seen them."""
        while self._chunks and self._chunks[-1].base_offset >= end_offset:
            self.size_bytes -= self._chunks.pop().capacity
            self._bases.pop()
        if self._chunks:
            self._chunks[-1].truncate(end_offset)
        self.end_offset = end_offset

    def evictable(self, end_offset: int) -> bool:
        """Whether the oldest chunk is complete and lies wholly below an offset."""
        return len(self._chunks) > 1 and self._chunks[0].end_offset <= end_offset

    def evict(self) -> int:
        """Drop the oldest chunk and return how much memory that frees (as soon as no reader holds it)."""
        chunk = self._chunks.pop(0)
        self._bases.pop(0)
        following = self._chunks[0].base_offset if self._chunks else self.end_offset
        self.start_offset = max(self.start_offset, following)
        self.size_bytes -= chunk.capacity
        return chunk.capacity

    def pass_over(self, end_offset: int) -> int:
        """Serve nothing below an offset, a batch's border, any more; returns how much memory that frees."""
        self.start_offset = max(self.start_offset, min(end_offset, self.end_offset))
        freed = 0
        while self.evictable(self.start_offset):
            freed += self.evict()
        return freed

    def _add_chunk(self, memory: memoryview) -> Chunk:
        chunk = Chunk(memory, self.end_offset)
        self._chunks.append(chunk)
        self._bases.append(self.end_offset)
        self.size_bytes += chunk.capacity
        return chunk

    def _chunk_bytes_for(self, size_bytes: int) -> int:
        """Chunks start small, since most partitions are quiet, and double while a partition is busy."""
        chunk_bytes = max(size_bytes, self._next_chunk_bytes)
        self._next_chunk_bytes = min(self._next_chunk_bytes * 2, LARGEST_CHUNK_BYTES)
        return chunk_bytes
