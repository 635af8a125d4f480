"""Kafka's codecs: the framings that clients send, and data that lies about its size."""

from __future__ import annotations

import gzip
import subprocess
import sys
import textwrap
import zlib

import cramjam
import lz4.frame
import pytest
import zstandard

from streamhouse.format.compression import Codec, compress, decompress
from streamhouse.model.errors import CorruptBatch

DATA = b"the quick brown fox " * 5_000
compressed_codecs = pytest.mark.parametrize("codec", [codec for codec in Codec if codec])


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("data", [b"", b"x", DATA, bytes(range(256)) * 400])
def test_what_was_compressed_comes_back(codec: Codec, data: bytes) -> None:
    assert bytes(decompress(codec, compress(codec, data), len(data))) == data


@pytest.mark.parametrize("codec", list(Codec))
def test_a_limit_one_byte_too_small_is_refused(codec: Codec) -> None:
    with pytest.raises(CorruptBatch, match="more than"):
        decompress(codec, compress(codec, DATA), len(DATA) - 1)


@compressed_codecs
def test_data_cut_anywhere_never_comes_back_whole(codec: Codec) -> None:
    whole = compress(codec, DATA)
    for size in range(len(whole)):
        try:
            assert bytes(decompress(codec, whole[:size], len(DATA))) != DATA
        except CorruptBatch:
            continue


@compressed_codecs
def test_noise_is_corrupt(codec: Codec) -> None:
    with pytest.raises(CorruptBatch):
        decompress(codec, b"\xff" * 100, 10_000)


@pytest.mark.parametrize("codec", [5, 6, 7, -1, 99])
def test_an_unknown_codec_is_corrupt(codec: int) -> None:
    with pytest.raises(CorruptBatch, match="unknown"):
        decompress(codec, b"abc", 100)


def test_gzip_members_are_joined() -> None:
    assert decompress(Codec.GZIP, gzip.compress(b"one ") + gzip.compress(b"two"), 100) == b"one two"


def test_many_empty_gzip_members_take_no_room() -> None:
    assert decompress(Codec.GZIP, gzip.compress(b"") * 20_000, 10) == b""


def test_bytes_after_gzip_or_lz4_data_are_corrupt() -> None:
    for codec in (Codec.GZIP, Codec.LZ4):
        with pytest.raises(CorruptBatch):
            decompress(codec, compress(codec, DATA) + b"more", len(DATA))


def test_snappy_is_written_in_xerial_frames() -> None:
    framed = compress(Codec.SNAPPY, DATA)
    assert framed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    size = int.from_bytes(framed[16:20], "big")
    assert bytes(cramjam.snappy.decompress_raw(framed[20 : 20 + size])) == DATA[: 32 * 1024]


def test_a_bare_snappy_block_is_read_as_well() -> None:
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(DATA)), len(DATA)) == DATA


@pytest.mark.parametrize("size", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x00\x00"])
def test_a_xerial_block_that_promises_more_than_is_there_is_corrupt(size: bytes) -> None:
    with pytest.raises(CorruptBatch, match="cut short"):
        decompress(Codec.SNAPPY, compress(Codec.SNAPPY, b"")[:16] + size, 10**9)


@pytest.mark.parametrize("options", [{"block_linked": True}, {"store_size": True}, {"content_checksum": True}])
def test_every_kind_of_lz4_frame_is_read(options: dict[str, bool]) -> None:
    assert decompress(Codec.LZ4, lz4.frame.compress(DATA, **options), len(DATA)) == DATA


@pytest.mark.parametrize("options", [{}, {"write_content_size": False}, {"write_checksum": True}, {"level": 19}])
def test_every_kind_of_zstd_frame_is_read(options: dict[str, int]) -> None:
    frame = zstandard.ZstdCompressor(**options).compress(DATA)
    stream = zstandard.ZstdCompressor(**options).compressobj()
    streamed = stream.compress(DATA) + stream.flush()
    assert decompress(Codec.ZSTD, frame, len(DATA)) == DATA
    assert decompress(Codec.ZSTD, streamed, len(DATA)) == DATA
    assert decompress(Codec.ZSTD, frame + streamed, 2 * len(DATA)) == DATA + DATA


def test_a_zstd_frame_that_declares_more_than_its_blocks_can_hold_is_corrupt() -> None:
    # Magic, a descriptor with an 8-byte content size, 100 MiB declared, one raw block of one byte.
    frame = b"\x28\xb5\x2f\xfd" + b"\xe0" + (100 * 2**20).to_bytes(8, "little") + b"\x09\x00\x00" + b"x"
    with pytest.raises(CorruptBatch, match="declares"):
        decompress(Codec.ZSTD, frame, 10**9)


def test_a_snappy_block_that_declares_more_than_it_can_hold_is_corrupt() -> None:
    with pytest.raises(CorruptBatch, match="declares"):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x07" + bytes(20), 2**40)


def test_a_bomb_of_any_codec_is_refused_without_the_memory_that_it_asks_for() -> None:
    """In a process of its own, whose address space has no room for what the bombs would become."""
    script = textwrap.dedent(
        """
        import resource, sys, zlib
        import cramjam, lz4.frame, zstandard
        from streamhouse.format.compression import Codec, compress, decompress
        from streamhouse.model.errors import CorruptBatch

        piece, pieces = bytes(1 << 20), 96
        gzip = zlib.compressobj(9, wbits=31)
        zstd = zstandard.ZstdCompressor().compressobj()
        lz4f = lz4.frame.LZ4FrameCompressor(block_linked=False)
        raw = bytes(cramjam.snappy.compress_raw(piece))
        bombs = {
            Codec.GZIP: b"".join([*(gzip.compress(piece) for _ in range(pieces)), gzip.flush()]),
            Codec.ZSTD: b"".join([*(zstd.compress(piece) for _ in range(pieces)), zstd.flush()]),
            Codec.LZ4: b"".join([lz4f.begin(), *(lz4f.compress(piece) for _ in range(pieces)), lz4f.flush()]),
            Codec.SNAPPY: compress(Codec.SNAPPY, b"")[:16] + (len(raw).to_bytes(4, "big") + raw) * pieces,
        }
        sized = zstandard.ZstdCompressor().compress(bytes(96 << 20))
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (48 << 20),) * 2)
        for codec, bomb in [*bombs.items(), (Codec.ZSTD, sized), (Codec.SNAPPY, b"\\xff\\xff\\xff\\xff\\x0f" + raw)]:
            assert len(bomb) < 6 << 20, (codec, len(bomb))
            try:
                decompress(codec, bomb, 1 << 20)
            except CorruptBatch:
                print(codec.name, "refused")
        """
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        word for name in ("GZIP", "ZSTD", "LZ4", "SNAPPY", "ZSTD", "SNAPPY") for word in (name, "refused")
    ]


def test_an_lz4_frame_that_declares_a_huge_size_is_read_by_what_it_holds() -> None:
    honest = bytearray(lz4.frame.compress(b"x" * 100, store_size=True))
    assert decompress(Codec.LZ4, bytes(honest), 100) == b"x" * 100
    honest[6:14] = (2**60).to_bytes(8, "little")
    with pytest.raises(CorruptBatch):
        decompress(Codec.LZ4, bytes(honest), 100)


def test_gzip_is_checked_by_its_own_crc() -> None:
    damaged = bytearray(compress(Codec.GZIP, DATA))
    damaged[-6] ^= 1
    with pytest.raises(CorruptBatch):
        decompress(Codec.GZIP, bytes(damaged), len(DATA))
    assert zlib.decompress(compress(Codec.GZIP, DATA), wbits=31) == DATA
