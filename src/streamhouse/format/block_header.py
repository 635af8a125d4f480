"""The header of a segment's block: what the block says of itself before its bytes."""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from streamhouse.format.segment_index import SegmentIndex
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import CorruptData

# First offset, raw size, stored size, codec; then the CRC of these and of the stored bytes.
BLOCK_FIELDS = Struct(">qIIB3x")
BLOCK_CRC = Struct(">I")
BLOCK_HEADER_BYTES = BLOCK_FIELDS.size + BLOCK_CRC.size


class BlockCodec(IntEnum):
    """How a block's run of batches is stored; the batches inside have codecs of their own."""

    NONE = 0
    LZ4 = 1


class BlockHeader(NamedTuple):
    raw_bytes: int
    codec: BlockCodec


def decode_block_header(data: Buffer, index: SegmentIndex, block: int) -> BlockHeader:
    """From a block's first bytes alone, so that only what the index knows too is checked: the CRC is also of the bytes
    behind them."""
    if len(data) < BLOCK_HEADER_BYTES:
        raise CorruptData(f"{len(data)} bytes are too few for the header of block {block}")
    first_offset, raw_bytes, stored_bytes, codec = BLOCK_FIELDS.unpack_from(data)
    size_bytes = index.positions[block + 1] - index.positions[block]
    if first_offset != index.first_offsets[block] or stored_bytes + BLOCK_HEADER_BYTES != size_bytes:
        raise CorruptData(f"block {block} is not the one that the index describes")
    if codec not in tuple(BlockCodec):
        raise CorruptData(f"block {block} is stored in a way that is not known: {codec}")
    return BlockHeader(raw_bytes, BlockCodec(codec))
