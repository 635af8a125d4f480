"""STRM segments, built for range reads: blocks of whole batches, an index of them, a footer that finds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import lz4.block
from crc32c import crc32c

from streamhouse.format import kernel
from streamhouse.format.block_header import BLOCK_CRC, BLOCK_FIELDS, BLOCK_HEADER_BYTES, BlockCodec
from streamhouse.format.run_summary import RunSummary
from streamhouse.format.segment_index import (
    FOOTER_BYTES,
    HEADER_BYTES,
    SUFFIX_HINT_BYTES,
    BlockEntry,
    BlockRange,
    Footer,
    Lineage,
    SegmentIndex,
    decode_footer,
    decode_header,
    decode_index,
    encode_footer,
    encode_header,
    encode_index,
    index_in,
)
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import CorruptBatch, CorruptData

__all__ = [
    "BLOCK_HEADER_BYTES",
    "DEFAULT_BLOCK_BYTES",
    "FOOTER_BYTES",
    "SUFFIX_HINT_BYTES",
    "BlockCodec",
    "BlockRange",
    "EncodedSegment",
    "Footer",
    "Lineage",
    "SegmentIndex",
    "StoredBlock",
    "decode_block",
    "decode_footer",
    "decode_index",
    "decode_segment",
    "encode_segment",
    "index_in",
    "iter_blocks",
    "open_segment",
]

DEFAULT_BLOCK_BYTES = 256 * 1024

# Decompressing costs every reader; it is worth it only for at least a twentieth.
_WORTHWHILE = 0.95
# Compression is most of what a produced byte costs here. This much haste takes a quarter of it, and 3 to 5 % more room.
_ACCELERATION = 8
# LZ4's densest sequence spends one byte on 255.
_LZ4_MAX_RATIO = 255
_LZ4_SLACK_BYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedSegment:
    """A segment ready to upload: `parts` in order are the object, `checksum` is its CRC-32C."""

    parts: list[Buffer]
    base_offset: int
    end_offset: int
    record_count: int
    min_timestamp_ms: int
    max_timestamp_ms: int
    size_bytes: int
    checksum: int
    epoch: int


class StoredBlock(NamedTuple):
    """A block of a segment: its run of batches, and the very bytes that it is stored as, header included."""

    run: bytes | memoryview
    stored: memoryview


class _Block(NamedTuple):
    """A run of batches on its way into a segment, in pieces of the buffers that it came from; `stored` if that is known
    already."""

    pieces: list[memoryview]
    runs: list[RunSummary]
    stored: memoryview | None = None

    @property
    def raw_bytes(self) -> int:
        return sum(map(len, self.pieces))

    @property
    def first_offset(self) -> int:
        return self.runs[0].base_offset

    @property
    def end_offset(self) -> int:
        return self.runs[-1].end_offset

    @property
    def record_count(self) -> int:
        return sum(run.record_count for run in self.runs)

    @property
    def min_timestamp_ms(self) -> int:
        return min(run.min_timestamp_ms for run in self.runs)

    @property
    def max_timestamp_ms(self) -> int:
        return max(run.max_timestamp_ms for run in self.runs)


def encode_segment(
    batches: Sequence[Buffer | StoredBlock],
    *,
    epoch: int,
    block_bytes: int = DEFAULT_BLOCK_BYTES,
    lineage: Lineage | None = None,
) -> EncodedSegment:
    """One object from buffers that each hold a run of whole batches, in offset order.

    Blocks of other segments are taken over as they are stored, unless they are small: compressing is most of what a
    segment costs. The parts may refer to the given buffers, which must not change until the segment has been uploaded.
    """
    blocks = list(_gather_blocks(batches, block_bytes))
    if not blocks:
        raise CorruptBatch("a segment needs at least one record batch")
    parts: list[Buffer] = [encode_header(lineage)]
    entries: list[BlockEntry] = []
    for block in blocks:
        stored = _store_block(block)
        parts += stored
        size_bytes = sum(map(len, stored))
        entries.append(BlockEntry(block.first_offset, block.max_timestamp_ms, block.record_count, size_bytes))
    index = encode_index(entries, blocks[0].first_offset)
    footer = Footer(
        base_offset=blocks[0].first_offset,
        end_offset=blocks[-1].end_offset,
        record_count=sum(block.record_count for block in blocks),
        min_timestamp_ms=min(block.min_timestamp_ms for block in blocks),
        max_timestamp_ms=max(block.max_timestamp_ms for block in blocks),
        raw_bytes=sum(block.raw_bytes for block in blocks),
        index_position=HEADER_BYTES + sum(entry.size_bytes for entry in entries),
        index_bytes=len(index),
        block_count=len(blocks),
        epoch=epoch,
        lineage=lineage,
    )
    parts += (index, encode_footer(footer))
    checksum = 0
    for part in parts:
        checksum = crc32c(part, checksum)
    return EncodedSegment(
        parts=parts,
        base_offset=footer.base_offset,
        end_offset=footer.end_offset,
        record_count=footer.record_count,
        min_timestamp_ms=footer.min_timestamp_ms,
        max_timestamp_ms=footer.max_timestamp_ms,
        size_bytes=footer.index_end + footer.size_bytes,
        checksum=checksum,
        epoch=epoch,
    )


def _gather_blocks(batches: Sequence[Buffer | StoredBlock], block_bytes: int) -> Iterator[_Block]:
    """Cut the runs into blocks of at most `block_bytes`; a batch larger than that is a block of its own."""
    block = _Block([], [])
    raw_bytes = 0
    end_offset: int | None = None
    for given in batches:
        view = memoryview(given.run if isinstance(given, StoredBlock) else given)
        start = 0
        if isinstance(given, StoredBlock) and len(view) >= block_bytes // 2:
            run = kernel.scan_run(view, 0, len(view))
            _check_order(run, end_offset)
            if block.pieces:
                yield block
                block = _Block([], [])
                raw_bytes = 0
            yield _Block([view], [run], given.stored)
            start, end_offset = len(view), run.end_offset
        while start < len(view):
            run = kernel.scan_run(view, start, block_bytes - raw_bytes)
            _check_order(run, end_offset)
            if block.pieces and raw_bytes + run.end - start > block_bytes:
                yield block
                block = _Block([], [])
                raw_bytes = 0
            block.pieces.append(view[start : run.end])
            block.runs.append(run)
            raw_bytes += run.end - start
            start, end_offset = run.end, run.end_offset
    if block.pieces:
        yield block


def _check_order(run: RunSummary, end_offset: int | None) -> None:
    if end_offset is not None and run.base_offset < end_offset:
        raise CorruptBatch(f"offset {run.base_offset} comes again: the batch before ends at {end_offset}")


def _store_block(block: _Block) -> list[Buffer]:
    """The block's header and then its bytes, compressed where that pays."""
    if block.stored is not None:
        return [block.stored]
    raw_bytes = block.raw_bytes
    codec, stored = BlockCodec.NONE, list[Buffer](block.pieces)
    # Batches that a producer compressed do not shrink again, so a block that is mostly those is not even tried.
    if 2 * sum(run.plain_bytes for run in block.runs) >= raw_bytes:
        raw = block.pieces[0] if len(block.pieces) == 1 else b"".join(block.pieces)
        compressed = lz4.block.compress(raw, mode="fast", acceleration=_ACCELERATION, store_size=False)
        if len(compressed) < _WORTHWHILE * raw_bytes:
            codec, stored = BlockCodec.LZ4, [compressed]
    fields = BLOCK_FIELDS.pack(block.first_offset, raw_bytes, sum(map(len, stored)), codec)
    crc = crc32c(fields)
    for part in stored:
        crc = crc32c(part, crc)
    return [fields + BLOCK_CRC.pack(crc), *stored]


def decode_block(data: Buffer, index: SegmentIndex, block: int) -> bytes | memoryview:
    """The run of batches from a block's exact bytes, [index.positions[block], index.positions[block + 1])."""
    if len(data) != index.positions[block + 1] - index.positions[block] or len(data) < BLOCK_HEADER_BYTES:
        raise CorruptData(f"block {block} has {len(data)} bytes, which is not what the index says")
    view = memoryview(data)
    first_offset, _, stored_bytes, _ = BLOCK_FIELDS.unpack_from(view)
    if stored_bytes != len(view) - BLOCK_HEADER_BYTES or first_offset != index.first_offsets[block]:
        raise CorruptData(f"block {block} is not the one that the index describes")
    return _open_block(view, f"block {block}")


def iter_blocks(data: Buffer) -> Iterator[bytes | memoryview]:
    """The runs of batches in bytes that hold whole blocks, one after the other; blocks say themselves where they end,
    so that whoever was told such a range of an object needs no index."""
    view = memoryview(data)
    start = 0
    while start < len(view):
        if len(view) - start < BLOCK_HEADER_BYTES:
            raise CorruptData(f"{len(view) - start} bytes at {start} are too few for a block")
        stored_bytes = BLOCK_FIELDS.unpack_from(view, start)[2]
        end = start + BLOCK_HEADER_BYTES + stored_bytes
        if end > len(view):
            raise CorruptData(f"the block at {start} ends at {end}, beyond the {len(view)} bytes that were read")
        yield _open_block(view[start:end], f"the block at {start}")
        start = end


def _open_block(view: memoryview, name: str) -> bytes | memoryview:
    """The run of batches of one whole block, checked against its CRC."""
    fields, stored = view[: BLOCK_FIELDS.size], view[BLOCK_HEADER_BYTES:]
    if BLOCK_CRC.pack(crc32c(stored, crc32c(fields))) != view[BLOCK_FIELDS.size : BLOCK_HEADER_BYTES]:
        raise CorruptData(f"{name} does not match its CRC")
    _, raw_bytes, stored_bytes, codec = BLOCK_FIELDS.unpack(fields)
    if codec == BlockCodec.NONE and raw_bytes == stored_bytes:
        return stored
    if codec != BlockCodec.LZ4 or raw_bytes > _LZ4_MAX_RATIO * stored_bytes + _LZ4_SLACK_BYTES:
        raise CorruptData(f"{name} cannot hold the {raw_bytes} bytes that it declares")
    try:
        raw: bytes = lz4.block.decompress(stored, uncompressed_size=raw_bytes)
    except (lz4.block.LZ4BlockError, ValueError, OverflowError, MemoryError) as problem:
        raise CorruptData(f"{name} does not decompress: {problem}") from None
    if len(raw) != raw_bytes:
        raise CorruptData(f"{name} decompresses to {len(raw)} bytes, not {raw_bytes}")
    return raw


def decode_segment(data: Buffer) -> tuple[Footer, list[bytes | memoryview]]:
    """A whole object: its footer and each block's run of batches, everything checked."""
    footer, blocks = open_segment(data)
    return footer, [block.run for block in blocks]


def open_segment(data: Buffer) -> tuple[Footer, Iterator[StoredBlock]]:
    """The same, but a block is decompressed and checked when its turn comes: whoever wants them one after the other
    need not hold them all, and finds each in the processor's caches."""
    decode_header(data)
    footer = decode_footer(data, len(data))
    view = memoryview(data)
    index = decode_index(view[footer.index_position : footer.index_end], footer)
    return footer, _iter_stored(view, index)


def _iter_stored(view: memoryview, index: SegmentIndex) -> Iterator[StoredBlock]:
    for block in range(index.block_count):
        stored = view[index.positions[block] : index.positions[block + 1]]
        yield StoredBlock(decode_block(stored, index, block), stored)
