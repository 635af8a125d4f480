"""Kafka's codecs and framings, which never allocate past a given limit, whatever the bytes declare."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from enum import IntEnum
from struct import Struct

import cramjam
import lz4.frame
import zstandard

from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import CorruptBatch

# Far above any batch that a sane producer sends, far below what would hurt a node.
DEFAULT_LIMIT_BYTES = 128 * 1024 * 1024

_GZIP_WINDOW_BITS = 31
# A gzip member's unused tail is copied by zlib, so a run of tiny members must not drag the whole input along.
_GZIP_SLICE_BYTES = 16 * 1024

_LZ4_MIN_ROOM_BYTES = 64 * 1024

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES = 32 * 1024
_INT32 = Struct(">i")
# Snappy's densest element is a copy: three bytes for sixty-four.
_SNAPPY_MAX_RATIO = 22

_ZSTD_MAX_BLOCK_BYTES = 128 * 1024
# RFC 8878 asks every decoder to take windows of this size.
_ZSTD_MIN_WINDOW_LIMIT_BYTES = 8 * 1024 * 1024


class InflatesTooFar(CorruptBatch):
    """More than is allowed comes out of it, whether or not it is damaged."""


class Codec(IntEnum):
    """The low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: Codec, data: Buffer) -> bytes:
    """The data in the framing that Kafka's own producers use."""
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            return zlib.compress(data, wbits=_GZIP_WINDOW_BITS)
        case Codec.SNAPPY:
            return _compress_xerial(memoryview(data))
        case Codec.LZ4:
            # Independent blocks: some clients refuse linked ones.
            framed: bytes = lz4.frame.compress(data, block_linked=False, store_size=False)
            return framed
        case Codec.ZSTD:
            return zstandard.ZstdCompressor().compress(data)


def decompress(codec: int, data: Buffer, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Buffer:
    """The data without its codec; CorruptBatch if it is damaged or cut short, InflatesTooFar if it is larger than
    `limit_bytes`."""
    if codec == Codec.NONE:
        if len(data) > limit_bytes:
            raise _too_large(limit_bytes)
        return data
    decompress_framed = _DECOMPRESSORS.get(codec)
    if decompress_framed is None:
        raise CorruptBatch(f"compression codec {codec} is unknown")
    try:
        return decompress_framed(memoryview(data), limit_bytes)
    except (zlib.error, RuntimeError, cramjam.DecompressionError, zstandard.ZstdError) as problem:
        raise CorruptBatch(f"the {Codec(codec).name.lower()} data is damaged: {problem}") from None


def _too_large(limit_bytes: int) -> InflatesTooFar:
    return InflatesTooFar(f"the records take more than {limit_bytes} bytes when decompressed")


def _cut_short(codec: Codec) -> CorruptBatch:
    return CorruptBatch(f"the {codec.name.lower()} data is cut short")


def _decompress_gzip(data: memoryview, limit_bytes: int) -> bytes:
    pieces: list[bytes] = []
    room = limit_bytes
    pos = 0
    member = zlib.decompressobj(_GZIP_WINDOW_BITS)
    while pos < len(data):
        if member.eof:
            member = zlib.decompressobj(_GZIP_WINDOW_BITS)
        chunk = data[pos : pos + _GZIP_SLICE_BYTES]
        piece = member.decompress(chunk, room + 1)
        if len(piece) > room:
            raise _too_large(limit_bytes)
        room -= len(piece)
        pieces.append(piece)
        pos += len(chunk) - len(member.unused_data)
    if not member.eof:
        raise _cut_short(Codec.GZIP)
    return b"".join(pieces)


def _decompress_lz4(data: memoryview, limit_bytes: int) -> bytes:
    """One frame, as Kafka's own reader takes; a second one would be ignored there, so it is refused here."""
    pieces: list[bytes] = []
    room = limit_bytes
    step = max(_LZ4_MIN_ROOM_BYTES, 4 * len(data))
    frame = lz4.frame.LZ4FrameDecompressor()
    rest: Buffer = data
    while not frame.eof:
        piece = frame.decompress(rest, max_length=min(step, room + 1))
        if len(piece) > room:
            raise _too_large(limit_bytes)
        if not piece and not frame.eof:
            raise _cut_short(Codec.LZ4)
        room -= len(piece)
        pieces.append(piece)
        rest = b""
    if frame.unused_data:
        raise CorruptBatch("bytes follow the lz4 frame")
    return b"".join(pieces)


def _compress_xerial(data: memoryview) -> bytes:
    framed = bytearray(_XERIAL_HEADER)
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES])
        framed += _INT32.pack(len(block))
        framed += block
    return bytes(framed)


def _decompress_snappy(data: memoryview, limit_bytes: int) -> bytes:
    """Java and librdkafka's users send xerial frames, some other clients a bare block."""
    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _decompress_snappy_block(data, limit_bytes, limit_bytes)
    pieces: list[bytes] = []
    room = limit_bytes
    pos = len(_XERIAL_HEADER)
    if len(data) < pos:
        raise _cut_short(Codec.SNAPPY)
    while pos < len(data):
        if len(data) - pos < _INT32.size:
            raise _cut_short(Codec.SNAPPY)
        size = _INT32.unpack_from(data, pos)[0]
        pos += _INT32.size
        if not 0 <= size <= len(data) - pos:
            raise _cut_short(Codec.SNAPPY)
        piece = _decompress_snappy_block(data[pos : pos + size], room, limit_bytes)
        room -= len(piece)
        pieces.append(piece)
        pos += size
    return b"".join(pieces)


def _decompress_snappy_block(block: memoryview, room: int, limit_bytes: int) -> bytes:
    declared = 0
    for index, byte in enumerate(block[:5]):
        declared |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            break
    else:
        raise CorruptBatch("a snappy block has no length")
    if declared > room:
        raise _too_large(limit_bytes)
    if declared > _SNAPPY_MAX_RATIO * len(block):
        raise CorruptBatch(f"a snappy block of {len(block)} bytes cannot hold the {declared} that it declares")
    return bytes(cramjam.snappy.decompress_raw(block))


def _decompress_zstd(data: memoryview, limit_bytes: int) -> bytes:
    """Frame by frame, each into a buffer no larger than its blocks could fill."""
    decompressor = zstandard.ZstdDecompressor(max_window_size=max(limit_bytes, _ZSTD_MIN_WINDOW_LIMIT_BYTES))
    pieces: list[bytes] = []
    room = limit_bytes
    pos = 0
    while pos < len(data):
        end, most_bytes = _zstd_frame(data, pos)
        frame = data[pos:end]
        declared = zstandard.frame_content_size(frame)
        if declared > room:
            raise _too_large(limit_bytes)
        if declared > most_bytes:
            raise CorruptBatch(f"a zstd frame cannot hold the {declared} bytes that it declares")
        # A zero content size is real for zstd but means "unknown" to its Python binding, and has nothing to give.
        if most_bytes:
            piece = decompressor.decompress(frame, max_output_size=min(most_bytes, room + 1))
            if len(piece) > room:
                raise _too_large(limit_bytes)
            room -= len(piece)
            pieces.append(piece)
        pos = end
    return b"".join(pieces)


def _zstd_frame(data: memoryview, start: int) -> tuple[int, int]:
    """Where the frame at `start` ends, and the most bytes that its blocks could become (RFC 8878, section 3.1.1)."""
    parameters = zstandard.get_frame_parameters(data[start:])
    pos = start + zstandard.frame_header_size(data[start:])
    most_bytes = 0
    last = False
    while not last:
        header = data[pos : pos + 3]
        if len(header) < 3:
            raise _cut_short(Codec.ZSTD)
        fields = int.from_bytes(header, "little")
        last, kind, size = bool(fields & 1), fields >> 1 & 3, fields >> 3
        if size > _ZSTD_MAX_BLOCK_BYTES or kind == 3:
            raise CorruptBatch("a zstd block is not valid")
        stored = 1 if kind == 1 else size
        most_bytes += _ZSTD_MAX_BLOCK_BYTES if kind == 2 else size
        pos += 3 + stored
    pos += 4 if parameters.has_checksum else 0
    if pos > len(data):
        raise _cut_short(Codec.ZSTD)
    return pos, most_bytes


_DECOMPRESSORS: dict[int, Callable[[memoryview, int], bytes]] = {
    Codec.GZIP: _decompress_gzip,
    Codec.SNAPPY: _decompress_snappy,
    Codec.LZ4: _decompress_lz4,
    Codec.ZSTD: _decompress_zstd,
}
