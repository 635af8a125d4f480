"""Recovery from damaged files: a torn tail is cut, damage before it stops the node, wrong data is never replayed."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path

import pytest

from log_parts.batches import placed
from log_parts.waiting import until
from log_parts.wals import OpenWal, Owner, replay
from streamhouse.format.wal_entry import (
    FILE_HEADER_BYTES,
    MARK_BYTES,
    encode_entry_header,
    encode_file_header,
    encode_mark,
)
from streamhouse.log.recovery import recover
from streamhouse.log.wal_files import wal_paths
from streamhouse.model.errors import CorruptData

FILE_BYTES = 4096


class Written:
    """A WAL of three groups in one file, and where the third one starts."""

    def __init__(self, directory: Path, acknowledged: list[bytes], third_group: int, end: int) -> None:
        self.directory = directory
        self.acknowledged = acknowledged
        self.third_group = third_group
        self.end = end
        ((_, self.path), *_) = wal_paths(directory)
        self.content = self.path.read_bytes()

    def recover_with(self, content: bytes) -> list[bytes]:
        self.path.write_bytes(content)
        return replay(self.directory).get(0, [])


@pytest.fixture
def written(tmp_path: Path, event_loop_runner: asyncio.Runner) -> Written:
    owner = Owner()

    async def write() -> Path:
        async with OpenWal(tmp_path / "wal", FILE_BYTES) as opened:
            await opened.append(owner, 80)
            await opened.append(owner, 90, 100)
            await opened.append(owner, 110, 61)
        return opened.directory

    directory = event_loop_runner.run(write())
    third = FILE_HEADER_BYTES + MARK_BYTES + (37 + 80) + MARK_BYTES + (37 + 90) + (37 + 100)
    end = third + MARK_BYTES + (37 + 110) + (37 + 61)
    found = Written(directory, owner.acknowledged, third, end)
    assert found.content[third : third + MARK_BYTES] == encode_mark(third)
    assert found.content[end : end + MARK_BYTES] == encode_mark(end)
    return found


def test_a_file_that_ends_anywhere_gives_all_entries_before_that(written: Written) -> None:
    borders = [0]
    at = FILE_HEADER_BYTES
    for count, sizes in ((1, [80]), (2, [90, 100]), (2, [110, 61])):
        assert len(sizes) == count
        at += MARK_BYTES
        for size in sizes:
            at += 37 + size
            borders.append(at)

    for cut in range(FILE_HEADER_BYTES, written.end + MARK_BYTES + 1):
        whole = sum(1 for border in borders[1:] if border <= cut)
        assert written.recover_with(written.content[:cut]) == written.acknowledged[:whole], cut


@pytest.mark.parametrize("cut", [0, 1, 31])
def test_a_file_without_a_whole_header_was_never_used(written: Written, cut: int) -> None:
    assert written.recover_with(written.content[:cut]) == []


@pytest.mark.parametrize("filler", [b"\0", b"\xff", b"\x5a"])
def test_a_tail_that_was_never_written_is_cut_whatever_is_there_instead(written: Written, filler: bytes) -> None:
    """As a crash during the third group leaves it; the file had been used before."""
    for cut in range(written.third_group, written.end + MARK_BYTES):
        torn = written.content[:cut] + filler * (FILE_BYTES - cut)
        found = written.recover_with(torn)
        assert found == written.acknowledged[: len(found)]
        assert len(found) >= 3


def test_a_sector_of_the_last_group_that_did_not_reach_the_disk_is_a_torn_tail(written: Written) -> None:
    """Sectors reach a disk in any order; the mark behind the group was not written yet."""
    content = bytearray(written.content)
    content[written.end : written.end + MARK_BYTES] = bytes(MARK_BYTES)
    for start in range(written.third_group, written.end - 20, 7):
        torn = bytearray(content)
        torn[start : start + 20] = bytes(20)
        found = written.recover_with(bytes(torn))
        assert found == written.acknowledged[: len(found)]
        assert len(found) >= 3


def _flip(bit: int) -> Callable[[int], int]:
    return lambda byte: byte ^ (1 << bit)


@pytest.mark.parametrize("change", [_flip(0), _flip(7), lambda _: 0x00, lambda _: 0xFF], ids=["low", "high", "0", "ff"])
def test_a_changed_byte_before_the_last_mark_stops_recovery(written: Written, change: Callable[[int], int]) -> None:
    for at in range(written.end):
        content = bytearray(written.content)
        content[at] = change(content[at])
        if content == written.content:
            continue
        with pytest.raises(CorruptData, match=r"streamhouse wal show"):
            written.recover_with(bytes(content))


def test_a_changed_byte_in_or_after_the_last_mark_loses_nothing(written: Written) -> None:
    for at in range(written.end, written.end + 2 * MARK_BYTES):
        for bit in range(8):
            content = bytearray(written.content)
            content[at] ^= 1 << bit
            assert written.recover_with(bytes(content)) == written.acknowledged


def test_entries_of_an_earlier_life_of_the_file_are_not_read_as_new_ones(written: Written) -> None:
    """The file is used again from a later position: everything in it after the first group is old."""
    first_group_end = FILE_HEADER_BYTES + MARK_BYTES + 37 + 80
    later = 10 * FILE_BYTES
    content = bytearray(written.content)
    content[:FILE_HEADER_BYTES] = encode_file_header(later)
    assert written.recover_with(bytes(content)) == []

    content[FILE_HEADER_BYTES : FILE_HEADER_BYTES + MARK_BYTES] = encode_mark(later + FILE_HEADER_BYTES)
    assert first_group_end < written.third_group
    assert written.recover_with(bytes(content)) == []


def test_a_header_that_is_not_one_of_ours_stops_recovery(written: Written) -> None:
    for header in (b"JUNK" * 8, b"SHWAL\0\0\2" + written.content[8:32]):
        with pytest.raises(CorruptData, match=written.path.name):
            written.recover_with(header + written.content[32:])


@pytest.mark.parametrize("at", [0, FILE_HEADER_BYTES + MARK_BYTES], ids=["header", "entry"])
def test_a_recovery_that_stops_leaves_no_file_open(written: Written, at: int) -> None:
    damaged = bytearray(written.content)
    damaged[at] ^= 0xFF
    with pytest.raises(CorruptData):
        written.recover_with(bytes(damaged))
    gc.collect()  # the error's frames had the file's memory
    # A descriptor may be closed by others while we look.
    assert written.path not in [fd.readlink() for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]


def test_a_missing_file_in_the_middle_stops_recovery(tmp_path: Path, event_loop_runner: asyncio.Runner) -> None:
    async def write() -> Path:
        owner = Owner()
        async with OpenWal(tmp_path / "wal", FILE_BYTES) as opened:
            await opened.append(owner, *[1500] * 8)
            return await opened.image()

    image = event_loop_runner.run(write())
    wal_paths(image)[1][1].unlink()

    with pytest.raises(CorruptData):
        replay(image)


def test_damage_in_a_file_that_is_not_the_last_stops_recovery_wherever_it_is(
    tmp_path: Path, event_loop_runner: asyncio.Runner
) -> None:
    async def write() -> Path:
        owner = Owner()
        async with OpenWal(tmp_path / "wal", FILE_BYTES) as opened:
            await opened.append(owner, *[1500] * 4)
            return await opened.image()

    image = event_loop_runner.run(write())
    path = wal_paths(image)[0][1]
    content = path.read_bytes()
    for at in range(0, 3000, 97):
        changed = bytearray(content)
        changed[at] ^= 0x10
        path.write_bytes(changed)
        with pytest.raises(CorruptData):
            replay(image)


def test_entries_whose_sync_failed_are_not_replayed_although_they_reached_the_disk(
    tmp_path: Path, event_loop_runner: asyncio.Runner
) -> None:
    """The file was given up and the next one goes on at the position of the failed group, with other batches."""
    owner = Owner()

    async def write() -> Path:
        async with OpenWal(tmp_path / "wal", FILE_BYTES) as opened:
            await opened.append(owner, 100)
            opened.break_disk_under(opened.current)
            owner.append(opened.wal)
            opened.wal.kick()
            await until(lambda: owner.problems, "the failure is heard")
            await until(lambda: opened.wal._problem is None, "a new file works")
            await opened.append(owner, 120)
            return await opened.image()

    image = event_loop_runner.run(write())
    path = wal_paths(image)[0][1]
    end = FILE_HEADER_BYTES + MARK_BYTES + 37 + 100
    failed = placed(1, 110, fill=b"failed")
    group = encode_mark(end)
    group += encode_entry_header(end + len(group), owner.wal_prefix, failed) + owner.wal_prefix + failed
    content = path.read_bytes()
    path.write_bytes(content[:end] + group + content[end + len(group) :])

    assert replay(image) == {0: owner.acknowledged}
    assert len(owner.acknowledged) == 2


def test_an_empty_directory_starts_at_the_beginning(tmp_path: Path) -> None:
    found = recover(tmp_path, lambda *_: pytest.fail("there is nothing"))

    assert (found.files, found.end_position) == ([], 0)


def test_a_file_that_was_made_but_never_used_is_removed(written: Written) -> None:
    spare = written.directory / "00000000000000000099.wal"
    spare.write_bytes(bytes(FILE_BYTES))

    assert replay(written.directory) == {0: written.acknowledged}
    assert not spare.exists()
