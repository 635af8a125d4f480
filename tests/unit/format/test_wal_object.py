"""WAL objects: what a reader without a database gets, and damage that it must not be served."""

from __future__ import annotations

from uuid import UUID

import pytest
from crc32c import crc32c

from format_samples.batches import batch
from streamhouse.format.batch import LENGTH_OVERHEAD_BYTES
from streamhouse.format.wal_object import (
    ENTRY_BYTES,
    FOOTER_BYTES,
    HEADER_BYTES,
    BatchRun,
    EncodedWalObject,
    Footer,
    RangeEntry,
    decode_directory,
    decode_footer,
    decode_range,
    decode_wal_object,
    encode_wal_object,
)
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import CorruptData, Unsupported
from streamhouse.model.names import TopicPartition

TOPIC = UUID("6e1f6f3c-8d6a-4c0e-9a51-0d4b1f6f7a10")
FIRST, SECOND = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 7)


def run(partition: TopicPartition, base_offset: int, count: int, *, epoch: int = 3) -> BatchRun:
    """Batches of ten records each."""
    batches: list[Buffer] = [
        batch(base_offset + 10 * index, count=10, records=bytes([index]) * 80) for index in range(count)
    ]
    return BatchRun(partition, epoch, base_offset, base_offset + 10 * count, batches)


RUNS = [run(FIRST, 100, 2), run(SECOND, 0, 1, epoch=9), run(FIRST, 120, 3, epoch=4)]


def joined(encoded: EncodedWalObject) -> bytes:
    return b"".join(encoded.parts)


def test_an_object_is_read_back_without_anything_else() -> None:
    encoded = encode_wal_object(RUNS)
    content = joined(encoded)
    assert encoded.size_bytes == len(content)

    decoded = decode_wal_object(content)

    assert [entry for entry, _ in decoded] == encoded.entries
    assert [(*entry[:4], batches) for entry, batches in decoded] == [tuple(run) for run in RUNS]
    for entry in encoded.entries:
        stored = content[entry.position : entry.end]
        assert (len(stored), crc32c(stored)) == (entry.size_bytes, entry.checksum)


def test_an_object_has_the_documented_bytes() -> None:
    content = joined(encode_wal_object(RUNS[:1]))
    body = b"".join(RUNS[0].batches)
    directory = (
        TOPIC.bytes
        + (0).to_bytes(4, "big")
        + (3).to_bytes(4, "big")
        + (100).to_bytes(8, "big")
        + (120).to_bytes(8, "big")
        + (8).to_bytes(8, "big")
        + len(body).to_bytes(4, "big")
        + crc32c(body).to_bytes(4, "big")
    )
    footer = (8 + len(body)).to_bytes(8, "big") + (1).to_bytes(4, "big") + crc32c(directory).to_bytes(4, "big")
    footer += b"\0\1\0\0"
    assert content == b"SHWO\0\1\0\0" + body + directory + footer + crc32c(footer).to_bytes(4, "big") + b"SHWO"
    assert (HEADER_BYTES, ENTRY_BYTES, FOOTER_BYTES) == (8, 56, 28)


def test_batches_are_not_copied() -> None:
    own = bytearray(batch())
    encoded = encode_wal_object([BatchRun(FIRST, 1, 0, 1, [memoryview(own)])])
    assert any(isinstance(part, memoryview) and part.obj is own for part in encoded.parts)


def test_the_tail_tells_an_object_from_one_with_other_batches_of_the_same_sizes() -> None:
    one, other = (encode_wal_object([BatchRun(FIRST, 1, 0, 1, [batch(records=fill * 80)])]) for fill in (b"a", b"b"))
    assert one.size_bytes == other.size_bytes
    assert one.tail != other.tail
    assert joined(one).endswith(one.tail)


def test_the_directory_is_read_from_the_end_of_an_object() -> None:
    encoded = encode_wal_object(RUNS)
    suffix = joined(encoded)[-FOOTER_BYTES - len(RUNS) * ENTRY_BYTES :]
    footer = decode_footer(suffix, encoded.size_bytes)
    assert decode_directory(suffix[:-FOOTER_BYTES], footer) == encoded.entries


def test_every_flipped_bit_of_an_object_is_noticed() -> None:
    content = bytearray(joined(encode_wal_object([run(FIRST, 0, 1), run(SECOND, 5, 2)])))
    for bit in range(8 * len(content)):
        content[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptData):
            decode_wal_object(content)
        content[bit // 8] ^= 1 << bit % 8
    decode_wal_object(content)


def test_an_object_cut_anywhere_is_noticed() -> None:
    content = joined(encode_wal_object(RUNS))
    for size in range(len(content)):
        with pytest.raises(CorruptData):
            decode_wal_object(content[:size])
        with pytest.raises(CorruptData):
            decode_wal_object(content[len(content) - size :])


def resealed(content: bytes, entries: list[RangeEntry] | None = None, **footer_changes: int) -> bytes:
    """The object with another directory and footer whose CRCs are right: what only a sanity check can refuse."""
    footer = decode_footer(content, len(content))
    if entries is None:
        entries = decode_directory(content[footer.directory_position : footer.directory_end], footer)
    directory = b"".join(
        entry.partition.topic_id.bytes
        + b"".join(
            value.to_bytes(size, "big")
            for value, size in zip((entry.partition.partition, *entry[1:]), (4, 4, 8, 8, 8, 4, 4), strict=True)
        )
        for entry in entries
    )
    sealed = Footer(footer.directory_position, len(entries), crc32c(directory))._replace(**footer_changes)
    fields = b"".join(value.to_bytes(size, "big") for value, size in zip(sealed, (8, 4, 4), strict=True)) + b"\0\1\0\0"
    return content[: footer.directory_position] + directory + fields + crc32c(fields).to_bytes(4, "big") + b"SHWO"


def test_resealing_changes_nothing_by_itself() -> None:
    content = joined(encode_wal_object(RUNS))
    assert resealed(content) == content


@pytest.mark.parametrize(
    "changes",
    [
        {"range_count": 0},
        {"range_count": 2},
        {"range_count": 2**32 - 1},
        {"directory_position": 0},
        {"directory_position": 2**63},
    ],
)
def test_a_footer_that_promises_what_is_not_there_is_refused(changes: dict[str, int]) -> None:
    content = joined(encode_wal_object(RUNS))
    with pytest.raises(CorruptData):
        decode_wal_object(resealed(content, **changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"position": 9},
        {"size_bytes": 2**32 - 1},
        {"size_bytes": 0},
        {"base_offset": 90},
        {"end_offset": 130},
        {"end_offset": 110},
        {"checksum": 0},
    ],
)
def test_a_directory_that_does_not_describe_the_batches_is_refused(changes: dict[str, int]) -> None:
    encoded = encode_wal_object(RUNS)
    entries = [encoded.entries[0]._replace(**changes), *encoded.entries[1:]]
    with pytest.raises(CorruptData):
        decode_wal_object(resealed(joined(encoded), entries))


def test_ranges_in_each_others_place_are_noticed() -> None:
    encoded = encode_wal_object([run(FIRST, 0, 1), run(SECOND, 50, 1)])
    first, second = encoded.entries
    swapped = [
        first._replace(checksum=second.checksum, position=first.position),
        second._replace(checksum=first.checksum),
    ]
    with pytest.raises(CorruptData):
        decode_wal_object(resealed(joined(encoded), swapped))


def test_a_newer_version_is_unsupported_and_not_called_corrupt() -> None:
    content = bytearray(joined(encode_wal_object(RUNS)))
    content[-12:-10] = b"\0\2"
    content[-8:-4] = crc32c(content[-FOOTER_BYTES:-8]).to_bytes(4, "big")
    with pytest.raises(Unsupported, match="version 2"):
        decode_footer(content, len(content))


@pytest.mark.parametrize(
    "stored",
    [
        b"",
        batch(0) + batch(2),
        batch(1),
        batch(0)[:-1],
        batch(0) + b"x",
        batch(0, last_offset_delta=-1),
        batch(0, last_offset_delta=-5) + batch(0, count=2, records=bytes(20)),
        bytes(LENGTH_OVERHEAD_BYTES),
    ],
)
def test_a_range_that_is_not_a_contiguous_run_of_whole_batches_is_refused(stored: bytes) -> None:
    with pytest.raises(CorruptData):
        decode_range(stored, base_offset=0, end_offset=2, checksum=crc32c(stored))


def test_a_sound_range_gives_its_batches() -> None:
    stored = batch(0) + batch(1)
    assert decode_range(stored, base_offset=0, end_offset=2, checksum=crc32c(stored)) == [batch(0), batch(1)]
