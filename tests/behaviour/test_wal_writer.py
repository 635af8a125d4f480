"""One suite over the WAL's writer thread, compiled and in Python: the same bytes, the same completions."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from log_parts.batches import placed
from log_parts.leaders import TOPIC_ID
from node.wait import eventually
from streamhouse.format.wal_entry import (
    FILE_HEADER_BYTES,
    MARK_BYTES,
    encode_entry_header,
    encode_file_header,
    encode_mark,
    entry_prefix,
    scan_file,
)
from streamhouse.log import _wal_writer, wal_writer, wal_writer_twin
from streamhouse.wire.kafka import produce_scan

PREFIX = entry_prefix(TOPIC_ID, 5)


class Thread:
    """A writer, its eventfd, and what it has completed."""

    def __init__(self, make: Callable[[int], Any]) -> None:
        self.notify_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.writer = make(self.notify_fd)
        self.completed: list[tuple[int, int]] = []
        self.batches: list[memoryview] = []
        self._fds: list[int] = []

    def open(self, path: Path, size_bytes: int = 1 << 16) -> int:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.pwrite(fd, bytes(size_bytes), 0)
        self._fds.append(fd)
        return fd

    def add(self, size_bytes: int = 100, *, offset: int = 0) -> memoryview:
        batch = placed(offset, size_bytes)
        self.batches.append(batch)  # it must stay where it is until it is completed
        self.writer.add(PREFIX, batch)
        return batch

    def commit(self) -> None:
        """Hand over what was gathered."""
        self.writer.kick()

    def wait(self, entries: int) -> list[tuple[int, int]]:
        """Until so many entries were completed in all."""

        def enough() -> bool:
            self.completed += self.writer.completed()
            return sum(count for count, _ in self.completed) >= entries

        eventually(enough, f"{entries} entries are completed")
        return self.completed

    def end(self) -> None:
        self.writer.close()
        self.completed += self.writer.completed()
        for fd in self._fds:
            os.close(fd)
        os.close(self.notify_fd)


@pytest.fixture(
    params=[
        pytest.param(_wal_writer.WalWriter, id="compiled"),
        pytest.param(wal_writer_twin.WalWriter, id="twin"),
    ]
)
def thread(request: pytest.FixtureRequest) -> Iterator[Thread]:
    thread = Thread(request.param)
    yield thread
    thread.end()


def expected_file(first_position: int, *groups: list[memoryview]) -> bytes:
    """The bytes of a file with these groups, and the mark behind the last one."""
    content = bytearray(encode_file_header(first_position))
    for group in groups:
        content += encode_mark(first_position + len(content))
        for batch in group:
            content += encode_entry_header(first_position + len(content), PREFIX, batch) + PREFIX + batch
    return bytes(content) + encode_mark(first_position + len(content))


def test_the_compiled_kernels_were_built() -> None:
    assert wal_writer.COMPILED
    assert wal_writer.WalWriter is _wal_writer.WalWriter
    assert produce_scan.COMPILED


def test_a_file_starts_with_its_header_and_each_group_with_a_mark(thread: Thread, tmp_path: Path) -> None:
    path = tmp_path / "a.wal"
    thread.writer.switch(thread.open(path), 7_000)
    thread.commit()
    thread.wait(1)
    first = [thread.add(100), thread.add(20_000)]
    thread.commit()
    thread.wait(3)
    second = [thread.add(61)]
    thread.commit()
    thread.wait(4)
    thread.writer.close()

    expected = expected_file(7_000, first, second)
    content = path.read_bytes()
    assert content[: len(expected)] == expected
    assert not any(content[len(expected) :])


def test_entries_handed_over_together_are_one_group(thread: Thread, tmp_path: Path) -> None:
    thread.writer.switch(thread.open(tmp_path / "a.wal"), 0)
    for offset in range(10):
        thread.add(offset=offset)
    thread.commit()

    assert thread.wait(11) == [(1, 0), (10, 0)]


def test_what_was_gathered_is_not_written_before_it_is_handed_over(thread: Thread, tmp_path: Path) -> None:
    path = tmp_path / "a.wal"
    thread.writer.switch(thread.open(path), 0)
    thread.commit()
    thread.wait(1)
    thread.add()

    assert thread.writer.completed() == []
    assert path.read_bytes()[FILE_HEADER_BYTES + MARK_BYTES :].strip(b"\0") == b""


def test_every_completion_rings(thread: Thread, tmp_path: Path) -> None:
    thread.writer.switch(thread.open(tmp_path / "a.wal"), 0)
    thread.add()
    thread.commit()
    thread.wait(2)

    rung = eventually(lambda: _read_eventfd(thread.notify_fd), "the eventfd is rung")
    assert rung >= 1


def _read_eventfd(fd: int) -> int:
    try:
        return os.eventfd_read(fd)
    except BlockingIOError:
        return 0


def test_a_kick_without_entries_does_nothing(thread: Thread) -> None:
    thread.commit()

    assert thread.writer.completed() == []


def test_completions_come_in_the_order_of_the_entries_and_once(thread: Thread, tmp_path: Path) -> None:
    thread.writer.switch(thread.open(tmp_path / "a.wal", 1 << 20), 0)
    handed_over = 1
    for number in range(200):
        for _ in range(number % 3 + 1):
            thread.add(offset=handed_over)
            handed_over += 1
        thread.commit()

    completed = thread.wait(handed_over)

    assert sum(count for count, _ in completed) == handed_over
    assert all(error == 0 for _, error in completed)
    content = (tmp_path / "a.wal").read_bytes()
    assert [entry.base_offset for entry in scan_file(content, 0).entries] == list(range(1, handed_over))


def test_a_mark_behind_the_last_group_says_that_it_is_synced(thread: Thread, tmp_path: Path) -> None:
    path = tmp_path / "a.wal"
    thread.writer.switch(thread.open(path), 0)
    batch = thread.add()
    thread.commit()
    thread.wait(2)

    expected = expected_file(0, [batch])
    eventually(lambda: path.read_bytes()[: len(expected)] == expected, "the mark is written")


def test_a_group_of_many_large_batches_needs_several_writes_and_is_whole(thread: Thread, tmp_path: Path) -> None:
    """More pieces than one system call takes."""
    path = tmp_path / "a.wal"
    thread.writer.switch(thread.open(path, 16 << 20), 0)
    thread.commit()
    thread.wait(1)
    batches = [thread.add(16_384 if number % 3 else 61, offset=number) for number in range(900)]
    thread.commit()
    assert thread.wait(901)[-1] == (900, 0)
    thread.writer.close()

    expected = expected_file(0, batches)
    assert path.read_bytes()[: len(expected)] == expected


def test_a_switch_goes_on_at_the_position_where_the_last_group_ended(thread: Thread, tmp_path: Path) -> None:
    first_path, second_path = tmp_path / "1.wal", tmp_path / "2.wal"
    thread.writer.switch(thread.open(first_path), 1_000)
    first = [thread.add()]
    thread.commit()
    thread.wait(2)
    thread.writer.switch(thread.open(second_path), 0)
    second = [thread.add(200)]
    thread.commit()
    thread.wait(4)
    thread.writer.close()

    expected_first = expected_file(1_000, first)[:-MARK_BYTES]
    expected_second = expected_file(1_000 + len(expected_first), second)
    assert first_path.read_bytes()[: len(expected_first)] == expected_first
    assert second_path.read_bytes()[: len(expected_second)] == expected_second


def test_entries_before_and_after_a_switch_handed_over_together_go_to_their_own_files(
    thread: Thread, tmp_path: Path
) -> None:
    thread.writer.switch(thread.open(tmp_path / "1.wal"), 0)
    thread.add(offset=1)
    thread.add(offset=2)
    thread.writer.switch(thread.open(tmp_path / "2.wal"), 0)
    thread.add(offset=3)
    thread.commit()

    assert thread.wait(5) == [(1, 0), (2, 0), (1, 0), (1, 0)]
    first = scan_file((tmp_path / "1.wal").read_bytes(), 0)
    assert [entry.base_offset for entry in first.entries] == [1, 2]
    second = scan_file((tmp_path / "2.wal").read_bytes(), first.end_position)
    assert [entry.base_offset for entry in second.entries] == [3]


def test_without_a_file_entries_fail(thread: Thread) -> None:
    thread.add()
    thread.commit()

    assert thread.wait(1) == [(1, errno.EIO)]


def test_a_bad_file_fails_every_entry_until_the_next_switch(thread: Thread, tmp_path: Path) -> None:
    path = tmp_path / "a.wal"
    thread.writer.switch(thread.open(path), 0)
    thread.commit()
    thread.wait(1)
    read_only = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    thread.writer.switch(read_only, 0)
    thread.add()
    thread.add()
    thread.commit()
    thread.wait(4)
    thread.add()
    thread.commit()
    assert thread.wait(5)[1:] == [(1, errno.EBADF), (2, errno.EBADF), (1, errno.EBADF)]

    thread.writer.switch(thread.open(tmp_path / "b.wal"), 0)
    thread.add()
    thread.commit()

    assert thread.wait(7)[-2:] == [(1, 0), (1, 0)]
    os.close(read_only)


def test_a_full_disk_fails_the_group_and_the_next_file_goes_on_where_the_good_ones_ended(
    thread: Thread, tmp_path: Path
) -> None:
    fd = thread.open(tmp_path / "a.wal")
    thread.writer.switch(fd, 0)
    good = [thread.add(offset=0)]
    thread.commit()
    thread.wait(2)
    full = os.open("/dev/full", os.O_RDWR | os.O_CLOEXEC)
    os.dup2(full, fd, inheritable=False)
    os.close(full)
    thread.add(offset=1)
    thread.commit()
    assert thread.wait(3)[-1] == (1, errno.ENOSPC)

    thread.writer.switch(thread.open(tmp_path / "b.wal"), 0)
    again = [thread.add(offset=1)]
    thread.commit()
    assert thread.wait(5)[-2:] == [(1, 0), (1, 0)]
    thread.writer.close()

    first_position = len(expected_file(0, good)) - MARK_BYTES
    expected = expected_file(first_position, again)
    assert (tmp_path / "b.wal").read_bytes()[: len(expected)] == expected


def test_a_failed_sync_is_a_failure_although_the_write_succeeded(thread: Thread, tmp_path: Path) -> None:
    """A device that takes bytes but cannot be synced."""
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    thread.writer.switch(null, 0)
    thread.add()
    thread.commit()

    assert thread.wait(2) == [(1, 0), (1, errno.EINVAL)]
    os.close(null)


def test_a_file_that_may_not_grow_fails_the_group(thread: Thread, tmp_path: Path) -> None:
    fd = thread.open(tmp_path / "a.wal", 500)
    thread.writer.switch(fd, 0)
    thread.commit()
    thread.wait(1)
    assert signal.getsignal(signal.SIGXFSZ) is signal.SIG_IGN
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
    try:
        thread.add(400)
        thread.add(400)
        thread.commit()
        completed = thread.wait(3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert completed[-1] == (2, errno.EFBIG)


def test_close_finishes_what_was_gathered(thread: Thread, tmp_path: Path) -> None:
    path = tmp_path / "a.wal"
    thread.writer.switch(thread.open(path), 0)
    batch = thread.add()

    thread.writer.close()

    assert sum(count for count, _ in thread.writer.completed()) == 2
    expected = expected_file(0, [batch])
    assert path.read_bytes()[: len(expected)] == expected


def test_closing_twice_is_closing_once(thread: Thread) -> None:
    thread.writer.close()
    thread.writer.close()


@pytest.mark.parametrize(
    ("prefix", "batch"),
    [(PREFIX[:-1], placed(0)), (PREFIX + b"x", placed(0)), (PREFIX, memoryview(bytes(20)))],
    ids=["short prefix", "long prefix", "short batch"],
)
def test_what_could_not_be_an_entry_is_our_own_bug_and_refused(
    thread: Thread, prefix: bytes, batch: memoryview
) -> None:
    with pytest.raises(ValueError, match=r"a prefix|a batch"):
        thread.writer.add(prefix, batch)
