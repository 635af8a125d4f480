"""The local WAL on real files: what it acknowledged is found again, what it refused was never acknowledged."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import shutil
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pytest

from log_parts.leaders import Partition
from log_parts.waiting import until
from log_parts.wals import OpenWal, Owner, replay
from streamhouse.format.wal_entry import FILE_HEADER_BYTES
from streamhouse.log.wal_ends import missing_end
from streamhouse.log.wal_files import WalFile, WalFiles, wal_paths
from streamhouse.model.errors import CorruptData, NotLeader, StorageUnavailable
from streamhouse.runtime.clock import SystemClock

EVERYTHING = 2**63 - 1


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "wal"


def inodes_in(directory: Path) -> set[int]:
    with os.scandir(directory) as entries:
        return {entry.inode() for entry in entries}


def names_in(directory: Path) -> list[str]:
    """Of the WAL's files and those that are kept for reuse."""
    return sorted(path.name for path in directory.iterdir() if path.name != "ends")


READ_ONLY = OSError(errno.EROFS, "Read-only file system")


def remove(directory: Path) -> None:
    shutil.rmtree(directory)


# --- writing ---


async def test_what_is_durable_is_found_again_byte_for_byte(directory: Path) -> None:
    owner = Owner()
    async with OpenWal(directory) as opened:
        await opened.append(owner, 100, 61, 200)

        assert replay(await opened.image()) == {0: owner.acknowledged}
    assert len(owner.acknowledged) == 3


async def test_an_owner_that_fails_when_it_is_told_keeps_nobody_else_from_being_told(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, other = Owner(0), Owner(1)

    def fail(end_offset: int) -> None:
        raise AssertionError("it cannot even be told")

    monkeypatch.setattr(broken, "durable", fail)
    async with OpenWal(directory) as opened:
        broken.append(opened.wal)
        other.append(opened.wal)
        opened.wal.kick()

        await until(lambda: other.durable_end == 1, "the other one is told")


async def test_nothing_is_written_before_the_kick(directory: Path) -> None:
    owner = Owner()
    async with OpenWal(directory) as opened:
        owner.append(opened.wal)

        assert replay(await opened.image()) == {}
        opened.wal.kick()
        await until(lambda: owner.durable_end == 1, "it is durable")


async def test_partitions_share_a_file_and_each_gets_its_own_back(directory: Path) -> None:
    owners = [Owner(partition) for partition in range(3)]
    async with OpenWal(directory) as opened:
        for _ in range(4):
            for owner in owners:
                owner.append(opened.wal)
            opened.wal.kick()
        await until(lambda: all(owner.durable_end == 4 for owner in owners), "all are durable")

        assert replay(await opened.image()) == {owner.partition: owner.acknowledged for owner in owners}


async def test_closing_finishes_what_was_appended(directory: Path) -> None:
    owner = Owner()
    async with OpenWal(directory) as opened:
        owner.append(opened.wal)

    assert owner.durable_end == 1
    assert replay(directory) == {0: owner.acknowledged}


async def test_a_wal_goes_on_behind_what_it_recovered_again_and_again(directory: Path) -> None:
    owner = Owner()
    for round_number in range(4):
        async with OpenWal(directory) as opened:
            assert [batch for _, batch in opened.recovered] == owner.acknowledged
            await opened.append(owner, 100, 300)
            directory = await opened.image(f"round-{round_number}")

    assert replay(directory) == {0: owner.acknowledged}
    assert len(owner.acknowledged) == 8


async def test_recovery_changes_nothing_so_that_it_can_be_killed_and_tried_again(directory: Path) -> None:
    owner = Owner()
    async with OpenWal(directory) as opened:
        await opened.append(owner, *[700] * 12)
        image = await opened.image()

    def contents() -> dict[str, bytes]:
        """Of the files in use; a file made ahead may go."""
        files = {path.name: path.read_bytes() for path in image.iterdir()}
        return {name: content for name, content in files.items() if any(content[:FILE_HEADER_BYTES])}

    before = contents()
    assert [replay(image) for _ in range(3)] == [{0: owner.acknowledged}] * 3
    assert contents() == before


# --- files ---


async def test_a_full_file_is_followed_by_another(directory: Path) -> None:
    owner = Owner()
    async with OpenWal(directory, file_bytes=4096) as opened:
        for _ in range(30):
            await opened.append(owner, 700)

        assert opened.live_files > 4
        assert replay(await opened.image()) == {0: owner.acknowledged}


async def test_a_burst_larger_than_several_files_is_written_in_order(directory: Path) -> None:
    owner = Owner()
    async with OpenWal(directory, file_bytes=4096) as opened:
        await opened.append(owner, *[1500] * 40)

        assert replay(await opened.image()) == {0: owner.acknowledged}


async def test_an_entry_larger_than_a_file_gets_one_of_its_size(directory: Path) -> None:
    owner = Owner()
    async with OpenWal(directory, file_bytes=4096) as opened:
        await opened.append(owner, 100, 50_000, 100, 4096, 4000, 100)

        assert replay(await opened.image()) == {0: owner.acknowledged}


async def test_with_many_files_those_who_hold_the_oldest_are_asked_to_upload(directory: Path) -> None:
    slow, busy = Owner(0), Owner(1)
    async with OpenWal(directory, file_bytes=4096) as opened:
        await opened.append(slow, 100)
        while not opened.relieved:
            await opened.append(busy, 1500)

        assert slow in opened.relieved[0]


async def test_a_file_stays_until_everything_in_it_is_covered(directory: Path) -> None:
    slow, busy = Owner(0), Owner(1)
    async with OpenWal(directory, file_bytes=4096) as opened:
        await opened.append(slow, 100)
        for _ in range(20):
            await opened.append(busy, 1500)
            opened.wal.covered(busy, busy.durable_end)
        image = await opened.image()

        found = replay(image)
        assert found[0] == slow.acknowledged
        opened.wal.covered(slow, 1)
        await until(lambda: opened.live_files == 1, "nobody needs the old files")


async def test_half_of_an_owners_entries_covered_keep_the_files_of_the_other_half(directory: Path) -> None:
    owner = Owner()
    async with OpenWal(directory, file_bytes=4096) as opened:
        for _ in range(20):
            await opened.append(owner, 1500)
        opened.wal.covered(owner, 10)

        found = replay(await opened.image())[0]

    assert found[-10:] == owner.acknowledged[-10:]


async def test_the_newest_file_is_never_given_away(directory: Path) -> None:
    owner = Owner()
    async with OpenWal(directory) as opened:
        await opened.append(owner, 100)
        opened.wal.covered(owner, 1)
        await opened.append(owner, 100)

        assert replay(await opened.image())[0][-1] == owner.acknowledged[-1]


async def test_files_are_used_again_and_their_old_bytes_mean_nothing(directory: Path) -> None:
    owner = Owner()
    inodes: list[set[int]] = []
    async with OpenWal(directory, file_bytes=4096) as opened:
        for _ in range(60):
            await opened.append(owner, 1000)
            opened.wal.covered(owner, owner.durable_end - 1)
            inodes.append(inodes_in(directory))
            found = replay(await opened.image())[0]
            assert found == owner.acknowledged[-len(found) :]

    assert len(inodes[-1]) < 10
    assert inodes[-1] & set.union(*inodes[10:20]), "a file of long ago is in use again"


async def test_a_kill_after_several_files_were_covered_at_once_is_recovered(directory: Path) -> None:
    """Files kept for reuse still have their old names and entries: holes between them are no damage."""
    owner = Owner()
    async with OpenWal(directory, file_bytes=4096) as opened:
        for _ in range(20):
            await opened.append(owner, 1500)
        opened.wal.covered(owner, owner.durable_end - 1)

        found = replay(await opened.image())[0]

    assert found[-1] == owner.acknowledged[-1]


async def test_a_kill_after_one_of_two_kept_files_was_used_again_is_recovered(directory: Path) -> None:
    owner = Owner()
    async with OpenWal(directory, file_bytes=4096) as opened:
        while opened.live_files < 4:
            await opened.append(owner, 1500)
        opened.wal.covered(owner, owner.durable_end - 1)
        for _ in range(4):
            await opened.append(owner, 1500)
            found = replay(await opened.image())[0]
            assert found[-1] == owner.acknowledged[-1]


async def test_a_batch_that_waits_for_a_file_does_not_hold_it_after_its_partition_is_gone(directory: Path) -> None:
    partition, other = Partition(), Owner(1)
    async with OpenWal(directory, file_bytes=4096) as opened:
        await opened.append(other, 1500, 1500)
        opened.wal.append(partition.leader, other.append(opened.wal, 3000), 1)
        partition.leader._wal = opened.wal
        partition.leader.remove(NotLeader("the topic was deleted"))
        opened.wal.kick()
        for _ in range(10):
            await opened.append(other, 1500)
        opened.wal.covered(other, other.durable_end)

        await until(lambda: opened.live_files == 1, "nobody needs the old files")


# --- failures ---


async def test_when_a_write_fails_all_on_its_way_fails_and_appends_are_refused(directory: Path) -> None:
    owner, other = Owner(0), Owner(1)
    async with OpenWal(directory) as opened:
        await opened.append(owner, 100)
        opened.break_disk_under(opened.current)
        for _ in range(3):
            owner.append(opened.wal)
        other.append(opened.wal)
        with patch.object(WalFiles, "create", side_effect=OSError(28, "No space left on device")):
            opened.wal.kick()
            await until(lambda: owner.problems and other.problems, "both hear of it")

            assert owner.durable_end == 1
            assert other.durable_end == 0
            assert [type(problem) for problem in owner.problems] == [StorageUnavailable]
            with pytest.raises(StorageUnavailable):
                opened.wal.check_writable()


async def test_who_is_refused_while_the_disk_is_full_is_not_remembered(directory: Path) -> None:
    """An exception holds on to the frames that it passed, and so to the requests in them: nobody counts those."""

    class Request:
        pass

    def refused() -> weakref.ref[Request]:
        request = Request()
        with pytest.raises(StorageUnavailable):
            opened.wal.check_writable()
        return weakref.ref(request)

    owner = Owner()
    async with OpenWal(directory) as opened:
        opened.break_disk_under(opened.current)
        owner.append(opened.wal)
        with patch.object(WalFiles, "create", side_effect=OSError(28, "No space left on device")):
            opened.wal.kick()
            await until(lambda: owner.problems, "it hears of it")
            requests = [refused() for _ in range(3)]
            gc.collect()

            assert [request() for request in requests] == [None] * 3


async def test_after_a_failure_a_new_file_is_used_and_only_what_was_acknowledged_is_found(directory: Path) -> None:
    owner = Owner()
    async with OpenWal(directory) as opened:
        await opened.append(owner, 100, 100)
        opened.break_disk_under(opened.current)
        owner.append(opened.wal)
        opened.wal.kick()
        await until(lambda: owner.problems, "the failure is heard")
        await until(lambda: opened.wal._problem is None, "a new file works")
        opened.wal.check_writable()
        await opened.append(owner, 120, 130)

        assert replay(await opened.image()) == {0: owner.acknowledged}
    assert len(owner.acknowledged) == 4


async def test_a_failure_just_before_a_change_of_files_fails_what_is_behind_the_change_too(directory: Path) -> None:
    """Else an owner would be told that its later batches are durable, and take the lost ones for durable as well."""
    owner = Owner()
    async with OpenWal(directory, file_bytes=4096) as opened:
        await opened.append(owner, 1500, 800)
        await opened.until_spare()
        opened.break_disk_under(opened.current)
        owner.append(opened.wal, 1000)
        owner.append(opened.wal, 1000)  # in the next file
        assert opened.live_files == 2
        opened.wal.kick()
        await until(lambda: opened.wal._problem is None and not opened.wal._in_flight, "a new file works")
        await opened.append(owner, 200)

        assert owner.problems
        assert replay(await opened.image()) == {0: owner.acknowledged}


class LateWriter:
    """Of whose work nothing is heard until one group is done and the next has failed."""

    def add(self, prefix: bytes, batch: memoryview) -> None: ...

    def kick(self) -> None: ...

    def completed(self) -> list[tuple[int, int]]:
        return [(3, 0), (2, errno.EIO)]


async def test_what_is_durable_is_told_before_what_is_lost_when_both_are_heard_of_at_once(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = Owner()
    async with OpenWal(directory) as opened:
        await until(lambda: not opened.wal._in_flight, "the first file is in use")
        with monkeypatch.context() as busy_loop:
            busy_loop.setattr(opened.wal, "_writer", LateWriter())
            for _ in range(5):
                owner.append(opened.wal)
            opened.wal._on_completions()

        assert owner.problems
        assert (owner.durable_end, len(owner.appended)) == (3, 3), "what was durable was not taken back"


async def test_batches_that_were_lost_keep_no_file_though_nobody_writes_to_their_partition_again(
    directory: Path,
) -> None:
    gone, busy = Owner(1), Owner(2)
    async with OpenWal(directory, file_bytes=4096) as opened:
        await opened.append(gone, 100)
        gone.committed_end = 1
        opened.wal.covered(gone, 1)
        opened.break_disk_under(opened.current)
        gone.append(opened.wal)
        opened.wal.kick()
        await until(lambda: gone.problems, "the failure is heard")
        await until(lambda: opened.wal._problem is None, "a new file works")
        for _ in range(20):
            await opened.append(busy, 1500)
            busy.committed_end = busy.durable_end
            opened.wal.covered(busy, busy.durable_end)
            assert opened.live_files <= 3


async def test_batches_before_a_lost_one_keep_their_file_until_they_are_covered(directory: Path) -> None:
    owner = Owner()
    async with OpenWal(directory, file_bytes=4096) as opened:
        await opened.append(owner, 100)
        first = opened.current
        opened.break_disk_under(first)
        owner.append(opened.wal)
        opened.wal.kick()
        await until(lambda: owner.problems, "the failure is heard")
        await until(lambda: opened.wal._problem is None, "a new file works")

        assert opened.wal._live[0] is first
        assert replay(await opened.image()) == {0: owner.acknowledged}
        opened.wal.covered(owner, 1)
        assert opened.wal._live[0] is not first


async def test_the_file_that_the_writer_is_at_is_not_closed_though_nothing_in_it_is_needed(directory: Path) -> None:
    gone, other = Owner(1), Owner(2)
    async with OpenWal(directory, file_bytes=4096) as opened:
        await opened.append(gone, 1500, 800)
        await opened.until_spare()
        first = opened.current
        gone.append(opened.wal, 1000)
        other.append(opened.wal, 1000)  # in the next file
        assert opened.live_files == 2
        opened.wal.forget(gone)  # its topic was deleted; the writer has not begun with the next file
        assert opened.wal._live[0] is first
        opened.wal.kick()
        await until(lambda: other.durable_end == 1, "the other's batch is durable")
        await until(lambda: opened.wal._live[0] is not first, "the first file is taken back")


async def test_a_spare_file_from_before_a_failure_does_not_put_files_out_of_order(directory: Path) -> None:
    owner = Owner()
    async with OpenWal(directory, file_bytes=4096) as opened:
        await opened.append(owner, 1500, 800)
        await opened.until_spare()
        opened.break_disk_under(opened.current)
        owner.append(opened.wal, 100)
        opened.wal.kick()
        await until(lambda: owner.problems, "the failure is heard")
        await until(lambda: opened.wal._problem is None, "a new file works")
        for _ in range(8):
            await opened.append(owner, 1500)

        assert replay(await opened.image()) == {0: owner.acknowledged}


@pytest.mark.parametrize("behind_it", [100, 3000])
async def test_a_file_that_could_not_be_synced_is_never_used_again(directory: Path, behind_it: int) -> None:
    """Also when the file behind it was in use already when the failure was heard of."""
    owner = Owner()
    async with OpenWal(directory, file_bytes=4096) as opened:
        while opened.live_files < 2:
            await opened.append(owner, 1500)
        await opened.append(owner, 500)
        broken = opened.current
        os.link(broken.path, directory.parent / "kept")  # so that its number is given to no other file
        inode = os.fstat(broken.fd).st_ino
        await opened.until_spare()
        opened.break_disk_under(broken)
        owner.append(opened.wal, 100)
        owner.append(opened.wal, behind_it)
        opened.wal.kick()
        await until(lambda: owner.problems, "the failure is heard")
        await until(lambda: opened.wal._problem is None, "a new file works")
        for _ in range(20):
            await opened.append(owner, 1500)
            opened.wal.covered(owner, owner.durable_end)

        await until(
            lambda: inode not in inodes_in(directory),
            "the broken file is gone",
        )


async def test_a_disk_without_room_for_the_next_file_fails_what_waits_for_it_and_later_heals(directory: Path) -> None:
    owner = Owner()
    async with OpenWal(directory, file_bytes=4096) as opened:
        with patch.object(WalFiles, "create", side_effect=OSError(28, "No space left on device")):
            await opened.append(owner, 1500, 1500)
            owner.append(opened.wal, 3000)
            opened.wal.kick()
            await until(lambda: owner.problems, "there is no room")
            with pytest.raises(StorageUnavailable):
                opened.wal.check_writable()
        await until(lambda: opened.wal._problem is None, "there is room again")
        await opened.append(owner, 3000, 100)

        assert replay(await opened.image()) == {0: owner.acknowledged}


@pytest.mark.parametrize("has_backlog", [True, False])
async def test_a_file_that_could_not_be_made_for_a_reason_nobody_expected_is_tried_again(
    directory: Path, has_backlog: bool
) -> None:
    owner = Owner()
    async with OpenWal(directory, file_bytes=4096) as opened:
        with patch.object(WalFiles, "create", side_effect=RuntimeError("a bug")) as create:
            await opened.append(owner, 1500, 1500)
            if has_backlog:
                owner.append(opened.wal, 3000)
                opened.wal.kick()
                await until(lambda: owner.problems, "there is no file for it")
            await until(lambda: create.call_count > 1, "it is tried again")
        if has_backlog:
            await until(lambda: opened.wal._problem is None, "a file can be made again")
        await opened.append(owner, 3000, 100)

        assert replay(await opened.image()) == {0: owner.acknowledged}


async def test_a_spare_file_that_cannot_be_removed_does_not_keep_owners_from_hearing_of_a_failure(
    directory: Path,
) -> None:
    owner = Owner()
    async with OpenWal(directory, file_bytes=4096) as opened:
        await opened.append(owner, 1500, 800)
        await opened.until_spare()
        opened.break_disk_under(opened.current)
        owner.append(opened.wal, 100)
        with patch.object(Path, "unlink", side_effect=READ_ONLY):
            opened.wal.kick()
            await until(lambda: owner.problems, "the failure is heard")
            assert opened.wal._problem is not None
        await until(lambda: opened.wal._problem is None, "a new file works")
        await opened.append(owner, 1500, 1500)

        assert replay(await opened.image()) == {0: owner.acknowledged}


async def test_a_spare_file_that_is_too_small_and_cannot_be_removed_fails_only_what_waits_for_a_larger_one(
    directory: Path,
) -> None:
    owner = Owner()
    async with OpenWal(directory, file_bytes=4096) as opened:
        await opened.append(owner, 1500, 800)
        await opened.until_spare()
        with patch.object(Path, "unlink", side_effect=READ_ONLY):
            owner.append(opened.wal, 50_000)
            await until(lambda: owner.problems, "there is no file for it")
        await until(lambda: opened.wal._problem is None, "a new file works")
        await opened.append(owner, 50_000, 1500)

        assert len(owner.acknowledged) == 4
        assert replay(await opened.image()) == {0: owner.acknowledged}


async def test_a_file_that_cannot_even_be_looked_at_counts_as_removed(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one is of which a file server knows nothing any more."""
    owner = Owner()
    async with OpenWal(directory) as opened:
        await opened.append(owner, 100)
        stale, fstat = opened.current, os.fstat

        def look(fd: int) -> os.stat_result:
            if fd == stale.fd:
                raise OSError(errno.ESTALE, "Stale file handle")
            return fstat(fd)

        with monkeypatch.context() as file_server:
            file_server.setattr(os, "fstat", look)
            assert opened.wal.lost_file == stale.path
            owner.append(opened.wal)
            opened.wal.kick()
            await until(lambda: owner.problems, "the failure is heard")

        assert owner.durable_end == 1


async def test_what_was_handed_over_before_the_disk_had_no_more_room_is_still_durable(directory: Path) -> None:
    """Only what waited for the next file is lost; an owner hears of that after all that came before it."""
    owner = Owner()
    async with OpenWal(directory, file_bytes=4096) as opened:
        with patch.object(WalFiles, "create", side_effect=OSError(28, "No space left on device")):
            for size_bytes in (1500, 1500, 3000):
                owner.append(opened.wal, size_bytes)
            await until(lambda: opened.wal._problem is not None, "there is no room")
            opened.wal.kick()
            await until(lambda: owner.problems, "the last one is lost")
        await until(lambda: opened.wal._problem is None, "there is room again")

        assert len(owner.acknowledged) == 2
        assert replay(await opened.image()) == {0: owner.acknowledged}


async def test_a_change_of_files_that_is_heard_of_after_a_failure_does_not_mend_it(directory: Path) -> None:
    """What waited for a file would never be told: the writer is at the old one, and that has no room."""
    owner, loop = Owner(), asyncio.get_running_loop()
    async with OpenWal(directory, file_bytes=4096) as opened:
        loop.remove_reader(opened.wal._notify_fd)  # nothing was heard of the first file yet
        with patch.object(WalFiles, "create", side_effect=OSError(28, "No space left on device")):
            for size_bytes in (1500, 1500, 3000):
                owner.append(opened.wal, size_bytes)
            await until(lambda: opened.wal._problem is not None, "there is no room")
            loop.add_reader(opened.wal._notify_fd, opened.wal._on_completions)
            opened.wal.kick()
            await until(lambda: owner.problems, "the last one is lost")
        await until(lambda: opened.wal._problem is None, "there is room again")

        assert len(owner.acknowledged) == 2


async def test_a_wal_that_fails_again_and_again_comes_back_when_the_disk_does(directory: Path) -> None:
    owner = Owner()
    async with OpenWal(directory) as opened:
        for _ in range(3):
            await opened.append(owner, 100)
            opened.break_disk_under(opened.current)
            owner.append(opened.wal)
            opened.wal.kick()
            heard = len(owner.problems) + 1
            await until(lambda heard=heard: len(owner.problems) == heard, "the failure is heard")
            await until(lambda: opened.wal._problem is None, "a new file works")
        await opened.append(owner, 100)

        assert replay(await opened.image()) == {0: owner.acknowledged}
    assert len(owner.acknowledged) == 4


async def test_a_failure_soon_after_another_is_not_mended_by_two_at_once(directory: Path) -> None:
    """Each would make a file, and the older of them could be used after the newer."""
    owner = Owner()
    async with OpenWal(directory) as opened:
        opened.wal._clock = SystemClock()  # with it the first is still waiting when the second comes
        for failures in (1, 2):
            opened.break_disk_under(opened.current)
            owner.append(opened.wal)
            opened.wal.kick()
            await until(lambda heard=failures: len(owner.problems) == heard, "the failure is heard")
            assert sum("reopen" in task.get_name() for task in asyncio.all_tasks()) == 1
            await until(lambda: opened.wal._problem is None, "a new file works")


async def test_files_that_are_not_in_the_order_of_their_names_are_no_wal(directory: Path) -> None:
    owner = Owner()
    async with OpenWal(directory, file_bytes=4096) as opened:
        for _ in range(3):
            await opened.append(owner, 3000)
        image = await opened.image()
    (_, first), (_, second), *_ = wal_paths(image)
    kept = first.rename(first.with_suffix(".kept"))
    second.rename(first)
    kept.rename(second)

    with pytest.raises(CorruptData, match="starts before"):
        replay(image)


async def test_closing_a_wal_whose_disk_is_broken_reports_the_failure_and_ends(directory: Path) -> None:
    owner = Owner()
    async with OpenWal(directory) as opened:
        opened.break_disk_under(opened.current)
        owner.append(opened.wal)

    assert owner.durable_end == 0
    assert [type(problem) for problem in owner.problems] == [StorageUnavailable]
    assert len(opened.wal._tasks) == 0, "nobody tries again after the end"


async def test_a_wal_that_was_closed_misses_no_file(directory: Path) -> None:
    """Whoever watches it may look once more, when its descriptors are nobody's or another file's."""
    async with OpenWal(directory) as opened:
        await opened.append(Owner(), 100)
        assert opened.wal.lost_file is None

    assert opened.wal.lost_file is None


async def test_a_wal_can_be_closed_though_nothing_can_be_removed(directory: Path) -> None:
    """What it leaves is removed by the next one."""
    owner = Owner()
    with ExitStack() as until_closed:
        async with OpenWal(directory, file_bytes=4096) as opened:
            while opened.live_files < 3:
                await opened.append(owner, 1500)
            opened.wal.covered(owner, owner.durable_end - 1)
            await until(lambda: not opened.wal._tasks, "no file is being made")
            live = list(opened.wal._live)
            until_closed.enter_context(patch.object(Path, "unlink", side_effect=READ_ONLY))

    for file in live:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(file.fd)
    left = set(names_in(directory)) - {file.path.name for file in live}
    assert left
    async with OpenWal(directory, file_bytes=4096) as opened:
        assert opened.recovered[-1][1] == owner.acknowledged[-1]
        assert left.isdisjoint(names_in(directory))


async def test_a_directory_that_cannot_be_used_is_a_storage_error_and_not_a_crash(directory: Path) -> None:
    opened = OpenWal(directory)
    remove(directory)

    with pytest.raises(StorageUnavailable):
        await opened.wal.open([], 0)
    await opened.wal.close()


# --- files by themselves ---


def test_files_are_listed_oldest_first_and_other_files_are_left_alone(tmp_path: Path) -> None:
    for name in ("10.wal", "00000000000000000009.wal", "x.wal", "7.txt"):
        (tmp_path / name).touch()

    assert [sequence for sequence, _ in wal_paths(tmp_path)] == [9, 10]


def test_a_new_file_is_written_through_and_has_a_new_number(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000041.wal").touch()
    files = WalFiles(tmp_path, 5_000_000)

    first, second = files.create_first(), files.create(7_000_000)

    assert (first.sequence, second.sequence) == (42, 43)
    assert second.path.stat().st_size == second.size_bytes == 7_000_000
    assert second.path.stat().st_blocks * 512 >= 7_000_000, "no holes: a sync has no extents to note"
    for file in (first, second):
        files.remove(file)
    files.close()
    assert not first.path.exists()


def test_a_file_that_could_not_be_made_leaves_nothing_behind(tmp_path: Path) -> None:
    files = WalFiles(tmp_path, 4096)

    with patch("os.fsync", side_effect=OSError(5, "Input/output error")), pytest.raises(OSError, match="Input/output"):
        files.create()

    assert names_in(tmp_path) == []


@pytest.mark.parametrize("step", ["_sync_directory", "_reuse"])
def test_a_file_that_could_not_be_reused_is_given_up(tmp_path: Path, step: str) -> None:
    """Else every further try would leave another file, and its descriptor, behind."""
    files = WalFiles(tmp_path, 4096)
    old = files.create()
    files.retire(old)

    with patch.object(WalFiles, step, side_effect=READ_ONLY), pytest.raises(OSError, match="Read-only"):
        files.create()

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(old.fd)
    new = files.create()
    assert names_in(tmp_path) == [new.path.name]


def test_a_reused_file_has_no_header_and_a_new_number(tmp_path: Path) -> None:
    files = WalFiles(tmp_path, 4096)
    old = files.create()
    os.pwrite(old.fd, b"x" * 4096, 0)
    old_path = old.path
    files.retire(old)
    assert wal_paths(tmp_path) == [], "what is kept for reuse is no part of the WAL"

    new = files.create()

    assert os.pread(new.fd, FILE_HEADER_BYTES, 0) == bytes(FILE_HEADER_BYTES)
    assert new.sequence == old.sequence + 1
    assert not old_path.exists()
    assert [sequence for sequence, _ in wal_paths(tmp_path)] == [new.sequence]
    files.remove(new)


def test_more_files_than_are_kept_for_reuse_are_removed(tmp_path: Path) -> None:
    files = WalFiles(tmp_path, 4096)

    for file in [files.create() for _ in range(6)]:
        files.retire(file)

    files.create()
    assert len(names_in(tmp_path)) == 2, "one was used again, one is kept"
    files.close()
    assert len(names_in(tmp_path)) == 1


@pytest.mark.parametrize("file_bytes", [4096, 8 * 1024 * 1024])
def test_two_threads_that_make_files_at_once_do_not_take_the_same_one_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_bytes: int
) -> None:
    """The one that is out of use by then is there for one of them to reuse, or too small and to be removed."""
    files = WalFiles(tmp_path, file_bytes)
    first = files.create_first()
    files.use(first)
    files.use(files.create())
    files.retire(first)
    both, sync = threading.Barrier(2), files._ends.sync

    def sync_together() -> None:
        sync()
        both.wait(60)

    monkeypatch.setattr(files._ends, "sync", sync_together)
    with ThreadPoolExecutor(2) as threads:
        made = [making.result() for making in [threads.submit(files.create) for _ in range(2)]]

    assert names_in(tmp_path) == sorted(["00000000000000000002.wal", *(file.path.name for file in made)])


def test_what_could_not_be_removed_is_removed_later(tmp_path: Path) -> None:
    files = WalFiles(tmp_path, 4096)
    made = [files.create() for _ in range(6)]
    for file in made[:5]:
        files.retire(file)
    with patch.object(Path, "unlink", side_effect=READ_ONLY):
        files.remove(made[5])
        with pytest.raises(OSError, match="Read-only"):
            files.create()
    assert len(names_in(tmp_path)) == 6

    last = files.create()

    assert last.path.name in names_in(tmp_path)
    assert len(names_in(tmp_path)) == 2, "one was used again, one is kept"


def test_files_that_a_killed_process_kept_for_reuse_are_removed(tmp_path: Path) -> None:
    files = WalFiles(tmp_path, 4096)
    for file in [files.create() for _ in range(2)]:
        files.retire(file)

    successor = WalFiles(tmp_path, 4096)
    assert missing_end(tmp_path) is None
    first = successor.create_first()

    assert names_in(tmp_path) == [first.path.name]


# --- the oldest and the newest ---


def in_use(files: WalFiles, count: int) -> list[WalFile]:
    made = [files.create() for _ in range(count)]
    for file in made:
        files.use(file)
    return made


def test_a_file_that_is_gone_from_either_end_is_missed(tmp_path: Path) -> None:
    files = WalFiles(tmp_path, 4096)
    made = in_use(files, 4)
    files.create()
    files.retire(made[0])
    assert missing_end(tmp_path) is None

    for end in (made[1], made[3]):
        content = end.path.read_bytes()
        end.path.unlink()
        assert missing_end(tmp_path) == end.path.name
        end.path.write_bytes(content)
    assert missing_end(tmp_path) is None


def test_a_file_that_was_never_used_is_not_missed(tmp_path: Path) -> None:
    files = WalFiles(tmp_path, 4096)
    (first,) = in_use(files, 1)
    files.remove(files.create())
    assert missing_end(tmp_path) is None

    files.close()
    assert (missing_end(tmp_path), names_in(tmp_path)) == (None, [first.path.name])


async def test_a_file_without_an_entry_is_put_aside_and_not_missed(directory: Path) -> None:
    """A process may die between taking a file into use and writing to it, and again during recovery."""
    OpenWal(directory)
    in_use(WalFiles(directory, 4096), 1)

    for _ in range(2):
        assert replay(directory) == {}
        assert missing_end(directory) is None
    async with OpenWal(directory) as opened:
        await opened.append(Owner(), 100)
        assert missing_end(await opened.image()) is None


def test_what_is_out_of_use_keeps_a_name_until_that_is_noted_for_good(tmp_path: Path) -> None:
    """A machine that dies may keep the rename of a file and lose the note that was written before it."""
    files = WalFiles(tmp_path, 4096)
    for _ in range(4):
        made = in_use(files, 3)
        note = (tmp_path / "ends").read_bytes()
        for file in made:
            files.retire(file)
        later = (tmp_path / "ends").read_bytes()
        (tmp_path / "ends").write_bytes(note)
        assert missing_end(tmp_path) is None
        (tmp_path / "ends").write_bytes(later)


@pytest.mark.parametrize("cut", [0, 10, 36, 500, 530, 548])
def test_a_note_that_was_cut_short_leaves_the_one_before(tmp_path: Path, cut: int) -> None:
    in_use(WalFiles(tmp_path, 4096), 2)
    note = (tmp_path / "ends").read_bytes()
    (tmp_path / "ends").write_bytes(note[:cut])

    assert missing_end(tmp_path) is None
    WalFiles(tmp_path, 4096).create_first()


def test_a_wal_of_a_version_without_the_note_is_taken_as_it_is(tmp_path: Path) -> None:
    assert missing_end(tmp_path) is None
