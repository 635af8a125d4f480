"""Every kind of damage that an object can have is found, and a sound one has none."""

from __future__ import annotations

from collections.abc import Callable
from struct import pack_into
from uuid import UUID

import msgspec
import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from format_samples.strategies import damaged
from maintain_parts.segments import TOPIC_ID, batch_of, segment_of
from streamhouse.format.batch import HEADER_BYTES, build, read_header
from streamhouse.format.object_keys import segment_key
from streamhouse.format.records import Record
from streamhouse.format.segment import BLOCK_HEADER_BYTES, decode_footer, decode_index
from streamhouse.format.segment_index import FOOTER_BYTES, BlockEntry, encode_footer, encode_index
from streamhouse.format.wal_object import BatchRun, encode_wal_object
from streamhouse.model.names import TopicPartition
from streamhouse.spark.jobs.audit import against_row, audit_segment, audit_wal_object
from streamhouse.wire.http.planning import SegmentInfo


def records(first: int, count: int = 3) -> list[Record]:
    return [Record(first + number, 1000 + first + number, b"k", b"value-%d" % number) for number in range(count)]


BATCHES = [batch_of(records(0)), batch_of(records(3), epoch=2), batch_of(records(6), epoch=2)]
SOUND = segment_of(BATCHES, epoch=2, block_bytes=1)
ROW = SegmentInfo(
    base_offset=0,
    end_offset=9,
    record_count=9,
    size_bytes=len(SOUND),
    min_timestamp_ms=1000,
    max_timestamp_ms=1008,
    epoch=2,
    object_key=segment_key(TOPIC_ID, 0, 0, 2, UUID(int=1)),
    checksum=crc32c(SOUND),
)


def with_footer(data: bytes, **changes: int) -> bytes:
    footer = decode_footer(data, len(data))
    return data[:-FOOTER_BYTES] + encode_footer(footer._replace(**changes))


def with_index(data: bytes, block: int, **changes: int) -> bytes:
    """The index with one line changed, and everything that depends on it."""
    footer = decode_footer(data, len(data))
    index = decode_index(data[footer.index_position : footer.index_end], footer)
    entries = [
        BlockEntry(
            index.first_offsets[number],
            index.max_timestamps[number],
            index.record_counts[number],
            index.positions[number + 1] - index.positions[number],
        )
        for number in range(index.block_count)
    ]
    entries[block] = entries[block]._replace(**changes)
    encoded = encode_index(entries, footer.base_offset)
    changed = footer._replace(index_bytes=len(encoded))
    return data[: footer.index_position] + encoded + encode_footer(changed)


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_a_sound_segment_has_no_problems_and_tells_its_epochs() -> None:
    audit = audit_segment(SOUND)

    assert audit.problems == []
    assert against_row(audit, ROW) == []
    assert audit.record_count == 9
    assert audit.epochs == [(1, 0), (2, 3)]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "does not start like a STRM segment"),
        (flipped(SOUND, 0), "does not start like a STRM segment"),
        (SOUND[:-1], "does not end like a STRM segment"),
        (flipped(SOUND, len(SOUND) - 40), "footer does not match its CRC"),
        (flipped(SOUND, 8 + BLOCK_HEADER_BYTES + 70), "block 0: block 0 does not match its CRC"),
        (with_index(SOUND, 1, record_count=4), "block 1 is not what the index says"),
        (with_index(SOUND, 1, max_timestamp_ms=7), "block 1 is not what the index says"),
        (with_index(SOUND, 1, first_offset=4), "block 1 is not the one that the index describes"),
        (with_footer(SOUND, record_count=8), "its blocks are not what the footer says"),
        (with_footer(SOUND, end_offset=10), "its blocks are not what the footer says"),
        (with_footer(SOUND, min_timestamp_ms=1), "its blocks are not what the footer says"),
        (with_footer(SOUND, raw_bytes=1), "its blocks are not what the footer says"),
    ],
)
def test_a_segment_that_does_not_fit_together_says_where(data: bytes, problem: str) -> None:
    assert any(problem in found for found in audit_segment(data).problems)


def damaged_batch(change: Callable[[bytearray], None]) -> bytes:
    """Inside a segment whose own checksums are all right."""
    batch = bytearray(BATCHES[1])
    change(batch)
    return segment_of([BATCHES[0], bytes(batch), BATCHES[2]], epoch=2, block_bytes=1)


def test_a_batch_that_does_not_match_its_crc_is_found() -> None:
    def change(batch: bytearray) -> None:
        batch[-1] ^= 1

    assert audit_segment(damaged_batch(change)).problems == [
        "block 1: the record batch at offset 3 does not match its CRC"
    ]


def test_a_batch_with_fewer_records_than_it_says_is_found() -> None:
    header = read_header(BATCHES[1])
    lying = build(header._replace(record_count=4, last_offset_delta=3), BATCHES[1][HEADER_BYTES:])
    problems = audit_segment(segment_of([BATCHES[0], lying], epoch=2, block_bytes=1)).problems

    assert problems == ["block 1: the records of the batch at offset 3 are not valid"]


def test_an_epoch_that_goes_back_is_found() -> None:
    def change(batch: bytearray) -> None:
        pack_into(">i", batch, 12, 0)

    assert audit_segment(damaged_batch(change)).problems == ["block 1: the epoch goes back at offset 3"]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (msgspec.structs.replace(ROW, size_bytes=1), "bytes instead of 1"),
        (msgspec.structs.replace(ROW, checksum=1), "does not match its checksum"),
        (msgspec.structs.replace(ROW, base_offset=1), "holds offsets 0 to 8"),
        (msgspec.structs.replace(ROW, end_offset=8), "holds offsets 0 to 8"),
        (msgspec.structs.replace(ROW, record_count=8), "holds 9 records instead of 8"),
        (msgspec.structs.replace(ROW, max_timestamp_ms=8), "holds other timestamps than it should"),
        (msgspec.structs.replace(ROW, epoch=3), "was written in epoch 2 instead of 3"),
        (
            msgspec.structs.replace(ROW, object_key=segment_key(TOPIC_ID, 0, 5, 2, UUID(int=1))),
            "has a key that says something else",
        ),
    ],
)
def test_a_sound_segment_that_is_another_than_its_row_says_is_found(row: SegmentInfo, problem: str) -> None:
    assert any(problem in found for found in against_row(audit_segment(SOUND), row))


@settings(database=None, deadline=None)
@given(st.data())
def test_no_damage_goes_unseen_and_none_is_an_accident(data: st.DataObject) -> None:
    changed = data.draw(damaged(SOUND))
    audit = audit_segment(changed)

    assert (changed == SOUND) == (not audit.problems and not against_row(audit, ROW))


def test_a_wal_object_is_checked_down_to_its_records() -> None:
    partition = TopicPartition(TOPIC_ID, 0)
    lying = bytearray(BATCHES[1])
    lying[-1] ^= 1
    whole = encode_wal_object([BatchRun(partition, 1, 0, 3, [BATCHES[0]])])
    broken = encode_wal_object([BatchRun(partition, 1, 3, 6, [bytes(lying)])])

    entries, problems = audit_wal_object(b"".join(map(bytes, whole.parts)))
    assert ([(entry.base_offset, entry.end_offset) for entry in entries], problems) == ([(0, 3)], [])
    _, problems = audit_wal_object(b"".join(map(bytes, broken.parts)))
    assert problems == [f"{partition} 3 to 5: the record batch at offset 3 does not match its CRC"]
    assert audit_wal_object(b"junk")[1] == ["the object does not start like a WAL object of this version"]
