"""A WAL file's scan finds what was written, and tells a torn tail from damage wherever it happens."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from format_samples.kernels import COMPILED, TWIN, Kernel, both_kernels, using
from format_samples.strategies import damaged, runs
from streamhouse.format.wal_entry import (
    FILE_HEADER_BYTES,
    decode_file_header,
    encode_entry_header,
    encode_file_header,
    encode_mark,
    entry_prefix,
    scan_file,
)
from streamhouse.model.errors import CorruptData

positions = st.integers(0, 2**62)


@st.composite
def wal_files(draw: st.DrawFn) -> tuple[int, bytes, list[tuple[int, bytes]], int]:
    """First position, bytes, (end, batch) of each entry, and where the last mark ends."""
    first_position = draw(positions)
    content = bytearray(encode_file_header(first_position))
    entries = []
    synced = 0
    for batch, _ in draw(runs()):
        if draw(st.booleans()):
            content += encode_mark(first_position + len(content))
            synced = len(content)
        prefix = entry_prefix(draw(st.uuids()), draw(st.integers(0, 2**31 - 1)))
        content += encode_entry_header(first_position + len(content), prefix, batch) + prefix + batch
        entries.append((len(content), batch))
    return first_position, bytes(content), entries, synced


@both_kernels
@given(wal=wal_files(), leftover=st.binary(max_size=200))
def test_a_scan_finds_what_was_written(
    chosen: Kernel, wal: tuple[int, bytes, list[tuple[int, bytes]], int], leftover: bytes
) -> None:
    first_position, content, entries, _ = wal
    with using(chosen):
        result = scan_file(content + leftover, first_position)
    assert [(entry.end, content[entry.start : entry.end]) for entry in result.entries] == entries
    assert (result.end, result.end_position, result.damaged) == (len(content), first_position + len(content), False)


@both_kernels
@given(wal=wal_files(), data=st.data())
def test_damage_is_told_from_a_torn_tail(
    chosen: Kernel, wal: tuple[int, bytes, list[tuple[int, bytes]], int], data: st.DataObject
) -> None:
    first_position, content, entries, synced = wal
    at = data.draw(st.integers(FILE_HEADER_BYTES, len(content) - 1))
    flipped = bytearray(content)
    flipped[at] ^= 1 << data.draw(st.integers(0, 7))
    with using(chosen):
        result = scan_file(flipped, first_position)
    assert [entry.end for entry in result.entries] == [end for end, _ in entries if end <= at]
    # A flip inside the last mark itself cannot be told from a tear.
    assert result.damaged == (at < synced - 24)


@given(wal=wal_files(), data=st.data())
def test_both_kernels_see_the_same_in_any_bytes(
    wal: tuple[int, bytes, list[tuple[int, bytes]], int], data: st.DataObject
) -> None:
    first_position, content, _, _ = wal
    broken = data.draw(damaged(content) | st.just(content))
    position = data.draw(st.sampled_from([first_position, first_position + 1, 0]))
    assert COMPILED.scan_entries(broken, position) == TWIN.scan_entries(broken, position)


@given(position=st.integers(0, 2**64 - 1), data=st.data())
def test_a_file_header_is_read_back_or_refused(position: int, data: st.DataObject) -> None:
    header = encode_file_header(position)
    assert decode_file_header(header) == position
    broken = data.draw(damaged(header))
    try:
        assert decode_file_header(broken) == position
        assert broken[:FILE_HEADER_BYTES] == header
    except CorruptData:
        pass


@given(topic_id=st.uuids(), partition=st.integers(0, 2**31 - 1))
def test_a_prefix_holds_its_topic_and_partition(topic_id: UUID, partition: int) -> None:
    prefix = entry_prefix(topic_id, partition)
    assert (UUID(bytes=prefix[1:17]), int.from_bytes(prefix[17:], "big")) == (topic_id, partition)
