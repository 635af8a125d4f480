"""STRM segments: what a range reader gets, and damage that it must not be served."""

from __future__ import annotations

import os

import pytest
from crc32c import crc32c

from format_samples.batches import batch
from format_samples.kernels import Kernel, both_kernels, using
from streamhouse.format.batch import stamp_append_time
from streamhouse.format.segment import (
    BLOCK_HEADER_BYTES,
    FOOTER_BYTES,
    SUFFIX_HINT_BYTES,
    EncodedSegment,
    Lineage,
    decode_block,
    decode_footer,
    decode_index,
    decode_segment,
    encode_segment,
    index_in,
    iter_blocks,
)
from streamhouse.format.segment_index import LINEAGE_BYTES, encode_footer
from streamhouse.model.errors import CorruptBatch, CorruptData, Unsupported


def log(count: int = 20, *, size: int = 500, base_offset: int = 100) -> list[bytes]:
    return [
        batch(
            base_offset + 10 * index,
            count=10,
            records=bytes([index % 256]) * size,
            timestamp_ms=1_000 * index,
            max_timestamp_ms=1_000 * index + 9,
        )
        for index in range(count)
    ]


def joined(segment: EncodedSegment) -> bytes:
    return b"".join(segment.parts)


@both_kernels
def test_a_segment_knows_what_it_holds(chosen: Kernel) -> None:
    with using(chosen):
        segment = encode_segment(log(), epoch=7, block_bytes=2_000)
    content = joined(segment)
    assert (segment.base_offset, segment.end_offset, segment.record_count) == (100, 300, 200)
    assert (segment.min_timestamp_ms, segment.max_timestamp_ms) == (0, 19_009)
    assert (segment.size_bytes, segment.checksum) == (len(content), crc32c(content))
    footer, blocks = decode_segment(content)
    assert (footer.base_offset, footer.end_offset, footer.record_count, footer.epoch) == (100, 300, 200, 7)
    assert (footer.min_timestamp_ms, footer.max_timestamp_ms) == (0, 19_009)
    assert footer.raw_bytes == sum(map(len, log()))
    assert b"".join(blocks) == b"".join(log())


def test_the_ends_of_a_segment_have_the_documented_bytes() -> None:
    content = joined(encode_segment(log(1), epoch=3))
    assert content[:8] == b"STRM\0\1\0\0"
    footer = content[-FOOTER_BYTES:]
    assert FOOTER_BYTES == 80
    assert footer[:16] == (100).to_bytes(8, "big") + (110).to_bytes(8, "big")
    assert footer[-4:] == b"STRM"
    assert footer[-8:-4] == crc32c(footer[:-8]).to_bytes(4, "big")
    block = content[8 : 8 + BLOCK_HEADER_BYTES]
    assert block[:8] == (100).to_bytes(8, "big")
    assert int.from_bytes(block[8:12], "big") == len(log(1)[0])
    assert block[20:24] == crc32c(block[:20] + content[32 : 32 + int.from_bytes(block[12:16], "big")]).to_bytes(
        4, "big"
    )


def test_one_suffix_read_and_one_range_read_serve_a_fetch() -> None:
    content = joined(encode_segment(log(1_000, size=3_000), epoch=1, block_bytes=32 * 1024))
    suffix = content[-SUFFIX_HINT_BYTES:]
    footer = decode_footer(suffix, len(content))
    data = index_in(suffix, footer)
    assert data is not None
    index = decode_index(data, footer)
    wanted = index.blocks_for(5_000, 10_000)
    read = content[wanted.start : wanted.end]
    assert len(read) <= 10_000
    runs = [
        decode_block(
            read[index.positions[block] - wanted.start : index.positions[block + 1] - wanted.start], index, block
        )
        for block in range(wanted.first_block, wanted.last_block + 1)
    ]
    whole = b"".join(log(1_000, size=3_000))
    assert log(1_000, size=3_000)[490] in runs[0]
    assert whole.find(b"".join(runs)) >= 0


def test_an_index_outside_the_suffix_takes_another_read() -> None:
    content = joined(encode_segment(log(50), epoch=1, block_bytes=100))
    suffix = content[-FOOTER_BYTES - 10 :]
    footer = decode_footer(suffix, len(content))
    assert index_in(suffix, footer) is None
    assert decode_index(content[footer.index_position : footer.index_end], footer).block_count == 50


def test_blocks_hold_whole_batches_up_to_their_size_and_a_large_batch_alone() -> None:
    batches = [*log(3), batch(200, count=10, records=os.urandom(5_000)), batch(300, count=10, records=bytes(500))]
    _, blocks = decode_segment(joined(encode_segment(batches, epoch=1, block_bytes=1_200)))
    assert list(map(bytes, blocks)) == [batches[0] + batches[1], batches[2], batches[3], batches[4]]


def test_how_the_log_is_cut_into_buffers_does_not_matter() -> None:
    batches = log(30)
    whole = b"".join(batches)
    one = joined(encode_segment([whole], epoch=1, block_bytes=2_000))
    assert joined(encode_segment(batches, epoch=1, block_bytes=2_000)) == one
    cut = sum(map(len, batches[:13]))
    view = memoryview(whole)
    assert joined(encode_segment([view[:cut], bytearray(), view[cut:]], epoch=1, block_bytes=2_000)) == one


def test_blocks_are_compressed_only_where_that_pays() -> None:
    plain = encode_segment([batch(0, records=bytes(10_000))], epoch=1)
    assert plain.size_bytes < 1_000
    noise = batch(0, records=os.urandom(10_000))
    assert encode_segment([noise], epoch=1).size_bytes >= len(noise)
    already = batch(0, records=bytes(10_000), attributes=3)
    assert encode_segment([already], epoch=1).size_bytes >= len(already)


def test_bytes_that_are_not_compressed_are_not_copied() -> None:
    noise = bytearray(batch(0, records=os.urandom(10_000)))
    parts = encode_segment([noise], epoch=1).parts
    assert any(isinstance(part, memoryview) and part.obj is noise for part in parts)


def test_an_append_time_batch_counts_with_its_append_time() -> None:
    stamped = stamp_append_time(batch(0, timestamp_ms=5), 50_000)
    segment = encode_segment([stamped], epoch=1)
    assert (segment.min_timestamp_ms, segment.max_timestamp_ms) == (50_000, 50_000)


def test_offsets_may_have_gaps() -> None:
    segment = encode_segment([batch(5), batch(100), batch(10**12)], epoch=1, block_bytes=1)
    assert (segment.base_offset, segment.end_offset, segment.record_count) == (5, 10**12 + 1, 3)
    assert decode_segment(joined(segment))[0].block_count == 3


@both_kernels
@pytest.mark.parametrize("block_bytes", [1, 10_000])
def test_offsets_that_come_again_are_our_bug_and_are_refused(chosen: Kernel, block_bytes: int) -> None:
    first, second = batch(5, count=10, records=bytes(70)), batch(14)
    with using(chosen):
        for buffers in ([first, second], [first + second]):
            with pytest.raises(CorruptBatch, match=r"came before|comes again"):
                encode_segment(buffers, epoch=1, block_bytes=block_bytes)


@both_kernels
@pytest.mark.parametrize("buffers", [[], [b""], [batch()[:-1]], [batch() + b"x"], [b"short"], [batch(2**63 - 1)]])
def test_what_is_not_a_run_of_whole_batches_is_refused(chosen: Kernel, buffers: list[bytes]) -> None:
    with using(chosen), pytest.raises(CorruptBatch):
        encode_segment(buffers, epoch=1)


def test_every_flipped_bit_of_a_segment_is_noticed() -> None:
    content = bytearray(joined(encode_segment([*log(2), batch(500, records=os.urandom(60))], epoch=1, block_bytes=100)))
    for bit in range(8 * len(content)):
        content[bit // 8] ^= 1 << bit % 8
        with pytest.raises((CorruptData, Unsupported)):
            decode_segment(content)
        content[bit // 8] ^= 1 << bit % 8
    decode_segment(content)


def test_a_segment_cut_anywhere_is_noticed() -> None:
    content = joined(encode_segment(log(3), epoch=1, block_bytes=100))
    for size in range(len(content)):
        with pytest.raises(CorruptData):
            decode_segment(content[:size])


def test_a_block_in_anothers_place_is_noticed() -> None:
    # Noise is stored as it is, so that both blocks have one size.
    batches = [batch(offset, records=os.urandom(5_000)) for offset in (0, 5)]
    content = joined(encode_segment(batches, epoch=1, block_bytes=1))
    footer = decode_footer(content, len(content))
    index = decode_index(content[footer.index_position : footer.index_end], footer)
    first, second = (content[index.positions[block] : index.positions[block + 1]] for block in range(2))
    assert decode_block(first, index, 0) == batches[0]
    with pytest.raises(CorruptData, match="not the one"):
        decode_block(second, index, 0)


def test_an_offset_is_found_in_its_block() -> None:
    content = joined(encode_segment(log(5), epoch=1, block_bytes=1))
    footer = decode_footer(content, len(content))
    index = decode_index(content[footer.index_position : footer.index_end], footer)
    found = [index.block_of(offset) for offset in (0, 100, 109, 110, 119, 120, 140, 149, 999)]
    assert found == [0, 0, 0, 1, 1, 2, 4, 4, 4]
    assert index.blocks_for(120, 0)[:2] == (2, 2)
    assert index.blocks_for(120, 10**9)[:2] == (2, 4)
    assert index.blocks_for(0, index.positions[2] - index.positions[0])[:2] == (0, 1)


def test_a_timestamp_is_found_in_the_first_block_that_reaches_it() -> None:
    batches = [
        batch(offset, timestamp_ms=timestamp_ms) for offset, timestamp_ms in enumerate([10, 50, 20, 60], start=1)
    ]
    content = joined(encode_segment(batches, epoch=1, block_bytes=1))
    footer = decode_footer(content, len(content))
    index = decode_index(content[footer.index_position : footer.index_end], footer)
    assert [index.block_for_timestamp(time) for time in (-1, 10, 11, 50, 51, 60, 61)] == [0, 0, 1, 1, 3, 3, None]


def resealed_footer(content: bytes, **changes: int) -> bytes:
    """The segment with another footer whose CRC is right: what only a sanity check can refuse."""
    return content[:-FOOTER_BYTES] + encode_footer(decode_footer(content, len(content))._replace(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"block_count": 0},
        {"block_count": 2**32 - 1},
        {"block_count": 4},
        {"index_bytes": 2**32 - 1},
        {"index_position": 2**63},
        {"index_position": 0},
    ],
)
def test_a_footer_that_promises_what_is_not_there_is_refused(changes: dict[str, int]) -> None:
    content = joined(encode_segment(log(3), epoch=1, block_bytes=1))
    with pytest.raises(CorruptData):
        decode_segment(resealed_footer(content, **changes))


def test_a_newer_version_is_unsupported_and_not_called_corrupt() -> None:
    content = bytearray(joined(encode_segment(log(1), epoch=1)))
    content[-12:-10] = b"\0\3"
    content[-8:-4] = crc32c(content[-FOOTER_BYTES:-8]).to_bytes(4, "big")
    with pytest.raises(Unsupported, match="version 3"):
        decode_footer(content, len(content))


LINEAGE = Lineage(generation=7, base_offset=90, end_offset=400, log_start_offset=5)


def test_what_takes_the_place_of_others_says_so_before_its_footer() -> None:
    plain, content = (joined(encode_segment(log(3), epoch=3, lineage=lineage)) for lineage in (None, LINEAGE))

    at = len(content) - FOOTER_BYTES - LINEAGE_BYTES
    assert LINEAGE_BYTES == 36
    assert content[at : at + 32] == b"".join(number.to_bytes(8, "big") for number in LINEAGE)
    assert content[at + 32 : at + 36] == crc32c(content[at : at + 32]).to_bytes(4, "big")
    assert (content[4:6], content[-12:-10], plain[4:6], plain[-12:-10]) == (b"\0\2", b"\0\2", b"\0\1", b"\0\1")
    assert content[8:at] == plain[8:-FOOTER_BYTES]
    footer, blocks = decode_segment(content)
    assert footer == decode_segment(plain)[0]._replace(lineage=LINEAGE)
    assert blocks == decode_segment(plain)[1]
    suffix = content[-300:]
    assert index_in(suffix, decode_footer(suffix, len(content))) == content[footer.index_position : footer.index_end]


def test_a_damaged_lineage_is_noticed() -> None:
    content = bytearray(joined(encode_segment(log(3), epoch=3, lineage=LINEAGE)))
    for at in range(FOOTER_BYTES + 1, FOOTER_BYTES + LINEAGE_BYTES + 1):
        content[-at] ^= 1
        with pytest.raises(CorruptData, match="lineage"):
            decode_footer(content, len(content))
        content[-at] ^= 1
    with pytest.raises(CorruptData, match="lineage"):
        decode_footer(content[-FOOTER_BYTES:], len(content))
    with pytest.raises(CorruptData, match="does not fit"):
        decode_footer(content, len(content) - LINEAGE_BYTES)


def test_a_block_that_declares_a_huge_size_is_refused_before_it_is_decompressed() -> None:
    content = bytearray(joined(encode_segment(log(1), epoch=1)))
    footer = decode_footer(content, len(content))
    index = decode_index(content[footer.index_position : footer.index_end], footer)
    block = content[8 : index.positions[1]]
    block[8:12] = b"\xff\xff\xff\xff"
    block[20:24] = crc32c(block[:20] + block[24:]).to_bytes(4, "big")
    with pytest.raises(CorruptData, match="cannot hold"):
        decode_block(block, index, 0)


def test_blocks_are_walked_without_the_index() -> None:
    content = joined(encode_segment([*log(7), batch(500, records=os.urandom(900))], epoch=1, block_bytes=1_200))
    footer = decode_footer(content, len(content))
    index = decode_index(content[footer.index_position : footer.index_end], footer)
    every = content[index.positions[0] : index.positions[-1]]
    assert list(map(bytes, iter_blocks(every))) == list(map(bytes, decode_segment(content)[1]))
    some = content[index.positions[1] : index.positions[3]]
    assert list(map(bytes, iter_blocks(some))) == list(map(bytes, decode_segment(content)[1][1:3]))
    assert list(iter_blocks(b"")) == []


def test_walked_blocks_that_are_damaged_or_cut_short_are_noticed() -> None:
    content = joined(encode_segment([*log(2), batch(500, records=os.urandom(60))], epoch=1, block_bytes=600))
    footer = decode_footer(content, len(content))
    index = decode_index(content[footer.index_position : footer.index_end], footer)
    blocks = bytearray(content[index.positions[0] : index.positions[-1]])
    for size in range(len(blocks)):
        if size + index.positions[0] not in index.positions:
            with pytest.raises(CorruptData):
                list(iter_blocks(blocks[:size]))
    for bit in range(8 * len(blocks)):
        blocks[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptData):
            list(iter_blocks(blocks))
        blocks[bit // 8] ^= 1 << bit % 8
