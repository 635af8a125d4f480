"""Headers of record batches: what they say, what a broker refuses, and what may be changed in them."""

from __future__ import annotations

import pytest
from crc32c import crc32c

from format_samples.batches import batch
from streamhouse.format.batch import (
    HEADER_BYTES,
    check_produced,
    first_batch_at,
    iter_headers,
    place,
    read_header,
    recompress,
    stamp_append_time,
    whole_batches,
)
from streamhouse.format.compression import Codec
from streamhouse.format.records import Record, decode_records, encode_records
from streamhouse.model.errors import CorruptBatch, InvalidRecords, Unsupported

# One record (key "k", value "v", timestamp 5), written out by hand from Kafka's protocol guide.
GOLDEN = bytes.fromhex(
    "0000000000000000" "0000003a" "00000000" "02" "00000000" "0000" "00000000"
    "0000000000000005" "0000000000000005" "ffffffffffffffff" "ffff" "ffffffff" "00000001"
    "10" "00" "00" "00" "02" "6b" "02" "76" "00"
)  # fmt: skip


def golden() -> bytes:
    sealed = bytearray(GOLDEN)
    sealed[17:21] = crc32c(sealed[21:]).to_bytes(4, "big")
    return bytes(sealed)


def test_a_header_is_read_field_by_field() -> None:
    header = read_header(batch(7, count=3, timestamp_ms=11, max_timestamp_ms=13, producer=(99, 4, 21)))
    assert (header.base_offset, header.end_offset, header.last_offset_delta, header.record_count) == (7, 10, 2, 3)
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (11, 13)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (99, 4, 21, 23)
    assert header.size_bytes == HEADER_BYTES + 7


def test_the_bytes_are_kafkas() -> None:
    assert len(GOLDEN) == 12 + 0x3A
    assert check_produced(memoryview(golden())).record_count == 1
    assert encode_records([Record(0, 5, b"k", b"v")])[16:] == golden()[16:]


def test_sequences_wrap_after_the_largest_int32() -> None:
    header = read_header(batch(count=3, producer=(1, 0, 2**31 - 2)))
    assert header.last_sequence == 0
    assert read_header(batch(count=3)).last_sequence == -1


@pytest.mark.parametrize("size", [0, 1, 16, 60])
def test_a_header_cut_short_is_corrupt(size: int) -> None:
    with pytest.raises(CorruptBatch):
        read_header(batch()[:size])
    with pytest.raises(CorruptBatch):
        read_header(batch(), 8)


def test_a_good_batch_is_accepted_with_every_codec() -> None:
    for codec in Codec:
        sent = encode_records([Record(0, 5, b"k", b"v")], codec=codec)
        assert check_produced(memoryview(sent)).codec == codec


def test_an_idempotent_producers_batch_is_accepted() -> None:
    sent = batch(producer=(7, 0, 0))
    assert check_produced(memoryview(sent)).producer_id == 7


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (batch(magic=3), "magic"),
        (batch()[:-1], "says it has"),
        (batch() + b"\0", "says it has"),
        (batch() + batch()[:-1], "says it has"),
        (batch() + batch(magic=3), "says it has"),
        (batch() + bytes(HEADER_BYTES), "says it has"),
        (batch()[:-1] + b"\1", "CRC"),
        (batch(attributes=0x20)[:-1] + b"\1", "CRC"),
        (b"", "smaller"),
        (batch()[:60], "smaller"),
    ],
)
def test_what_may_have_been_damaged_on_its_way_is_corrupt_and_may_be_sent_again(sent: bytes, why: str) -> None:
    with pytest.raises(CorruptBatch, match=why):
        check_produced(memoryview(sent))


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (batch(count=0), "0 records"),
        (batch(count=-5), "-5 records"),
        (batch(count=1, last_offset_delta=1), "last offset delta"),
        (batch(count=2, records=bytes(13)), "do not fit"),
        (batch(count=2**31 - 1), "do not fit"),
        (batch(attributes=5), "attributes"),
        (batch(attributes=0x08), "attributes"),
        (batch(attributes=0x40), "attributes"),
        (batch(attributes=-1), "control"),
        (batch(attributes=-(2**15)), "attributes"),
        (batch(attributes=0x20), "control"),
        (batch(attributes=0x30), "control"),
        (batch(producer=(7, -1, 0)), "producer"),
        (batch(producer=(7, 0, -1)), "producer"),
        (batch(producer=(-2, 0, 0)), "producer"),
        (batch() + batch(), "more than one"),
        (batch() + batch() + batch()[:-1], "more than one"),
        (batch(magic=0), "v0"),
        (batch(magic=1), "v1"),
        (batch(magic=1)[:30], "v1"),
    ],
)
def test_a_batch_that_was_made_wrong_is_refused_for_good(sent: bytes, why: str) -> None:
    with pytest.raises(InvalidRecords, match=why):
        check_produced(memoryview(sent))


def test_what_is_valid_but_not_ours_to_do_is_unsupported() -> None:
    with pytest.raises(Unsupported):
        check_produced(memoryview(batch(attributes=0x10)))


def test_every_flipped_bit_from_the_magic_on_is_noticed() -> None:
    """One of them makes it a message of format v0."""
    sent = bytearray(golden())
    for bit in range(8 * 16, 8 * len(sent)):
        sent[bit // 8] ^= 1 << bit % 8
        with pytest.raises((CorruptBatch, InvalidRecords)):
            check_produced(memoryview(sent))
        sent[bit // 8] ^= 1 << bit % 8


def test_placing_a_batch_changes_only_what_the_crc_does_not_cover() -> None:
    chunk = bytearray(b"before" + golden() + b"after")
    place(chunk, 6, 2**40, 9)
    header = read_header(chunk, 6)
    assert (header.base_offset, header.leader_epoch) == (2**40, 9)
    assert check_produced(memoryview(chunk)[6:-5]) == header
    unplaced = bytearray(chunk)
    place(unplaced, 6, 0, 0)
    assert unplaced == b"before" + golden() + b"after"


def test_append_time_is_stamped_into_the_header_alone() -> None:
    stamped = stamp_append_time(encode_records([Record(0, 5, b"k", b"v"), Record(1, 6, None, None)]), 777)
    header = read_header(stamped)
    assert header.is_log_append_time
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (5, 777)
    assert [record.timestamp_ms for record in decode_records(stamped)] == [777, 777]


@pytest.mark.parametrize("before", list(Codec))
@pytest.mark.parametrize("after", list(Codec))
def test_recompressing_keeps_the_records(before: Codec, after: Codec) -> None:
    records = [Record(index, index, b"key", b"value" * 50, (("h", None),)) for index in range(20)]
    sent = encode_records(records, codec=before, producer_id=5, producer_epoch=1, base_sequence=3)
    again = recompress(sent, after)
    header = check_produced(memoryview(again))
    assert header.codec == after
    assert (header.producer_id, header.base_sequence, header.record_count) == (5, 3, 20)
    assert decode_records(again) == records


def test_recompressing_a_bomb_is_refused() -> None:
    bomb = encode_records([Record(0, 0, None, bytes(1_000_000))], codec=Codec.ZSTD)
    with pytest.raises(CorruptBatch, match="more than 1000 bytes"):
        recompress(bomb, Codec.LZ4, limit_bytes=1_000)


def three_batches() -> tuple[bytes, int]:
    one = batch(10, count=5, records=bytes(35))
    return one + batch(15, count=5, records=bytes(35)) + batch(30, count=5, records=bytes(35)), len(one)


def test_a_run_is_walked_batch_by_batch() -> None:
    run, size = three_batches()
    assert [(pos, header.base_offset) for pos, header in iter_headers(run)] == [(0, 10), (size, 15), (2 * size, 30)]


@pytest.mark.parametrize(
    ("offset", "index"), [(0, 0), (10, 0), (14, 0), (15, 1), (19, 1), (20, 2), (29, 2), (34, 2), (35, 3)]
)
def test_an_offset_is_found_in_the_batch_that_holds_it_or_the_next(offset: int, index: int) -> None:
    run, size = three_batches()
    assert first_batch_at(run, offset) == index * size


def test_whole_batches_stop_at_the_limit_but_never_before_the_first() -> None:
    run, size = three_batches()
    assert whole_batches(run, 0, 0) == size
    assert whole_batches(run, 0, size - 1) == size
    assert whole_batches(run, 0, 2 * size - 1) == size
    assert whole_batches(run, 0, 2 * size) == 2 * size
    assert whole_batches(run, size, 10**9) == 3 * size
    assert whole_batches(run, 3 * size, 10) == 3 * size


@pytest.mark.parametrize("walk", [lambda run: list(iter_headers(run)), lambda run: first_batch_at(run, 99)])
def test_a_run_that_is_cut_or_lies_about_a_size_is_corrupt(walk) -> None:
    run, size = three_batches()
    for broken in (run[:-1], run[: size + 5], run[:8] + b"\xff" * 4 + run[12:], run[:8] + bytes(4) + run[12:]):
        with pytest.raises(CorruptBatch):
            walk(broken)
