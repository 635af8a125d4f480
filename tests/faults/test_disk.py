"""A disk that is full or fails: a storage error for the client, no acknowledgement, reads go on, nothing is lost."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.sweep import BRISK, sweep_size
from faults.workload import Workload, create_topic
from node.process import Node, NodeDied
from node.raw import Closed, RawConnection, build_batch, read_values
from node.storage import EmbeddedStorage, ServiceStorage, Storage, assert_rows_and_objects_agree
from node.strace import fail_from, fail_once
from node.wait import eventually
from services.seaweed import S3Bucket

MIB = 2**20
STORAGE_ERROR = 56


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(disk: Path) -> Path:
    """Take all the space that is left."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return ballast


def test_a_full_disk_refuses_writes_serves_reads_and_heals(small_disk: Path) -> None:
    data_dir = small_disk / "data"
    settings = ("--segment-bytes", "1MiB", "--segment-age", "100ms", "--wal-file-bytes", "1MiB")
    accepted: dict[int, bytes] = {}
    with Node(data_dir, *settings) as node:
        create_topic(node.bootstrap, "full", 1)

        def produce(number: int) -> int:
            value = number.to_bytes(2, "big") * 50_000
            with RawConnection(node.address) as raw:
                answer = raw.produce("full", build_batch(value))
            if answer.error_code == 0:
                accepted[answer.base_offset] = value
            return int(answer.error_code)

        assert produce(0) == 0
        ballast = fill(small_disk)
        codes = [produce(number) for number in range(1, 200)]
        refused = {code for code in codes if code != 0}
        assert refused == {STORAGE_ERROR}, "a full disk must be told as a storage error"
        assert codes[-1] == STORAGE_ERROR, "writes go on although nothing can be stored"
        assert read_all(node, "full") == accepted, "reads stopped, or an unacknowledged record is visible"
        ballast.unlink()
        eventually(lambda: produce(300) == 0, "writes after space returned")
        assert read_all(node, "full") == accepted
        node.kill9()
        node.start()
        assert read_all(node, "full") == accepted
        assert node.terminate() == 0
        assert_rows_and_objects_agree(EmbeddedStorage(data_dir))


def read_all(node: Node, topic: str) -> dict[int, bytes | None]:
    values: dict[int, bytes | None] = {}
    with RawConnection(node.address) as raw:
        end = raw.list_offset(topic, -1).offset
        while len(values) < end:
            answer = raw.fetch(topic, len(values))
            assert answer.error_code == 0, f"fetch answered with {answer.error_code}"
            values.update(read_values(answer.records))
    return values


CALLS = [("fdatasync", "EIO"), ("fdatasync", "ENOSPC"), ("pwrite64", "ENOSPC"), ("pwritev", "EIO")]


@pytest.mark.long_form("postgres+s3")
@pytest.mark.parametrize(("call", "error"), CALLS)
def test_a_disk_that_fails_gets_no_acknowledgement_and_loses_nothing(
    storage: Storage, data_dir: Path, call: str, error: str
) -> None:
    """From the n-th call on, every one fails, in whichever thread: the WAL, the database or the objects."""
    with Node(data_dir, *BRISK, *storage.options) as node:
        workload = Workload(node.bootstrap)
        workload.create_topic()
        create_topic(node.bootstrap, "probe", 1)
        # SQLite's own calls come first: a start takes about a dozen of them.
        first = 15 if isinstance(storage, EmbeddedStorage) else 3
        for number in range(first, first + 4 * sweep_size(1), 4):
            workload.send(20)
            workload.settle()
            node.kill9()
            run_on_failing_disk(node, fail_from(call, error, number), workload)
            node.kill9()
            node.start(wrapper=())
            workload.settle()
            workload.assert_holds()
        assert node.terminate() == 0
        assert_rows_and_objects_agree(storage)


def run_on_failing_disk(node: Node, wrapper: list[str], workload: Workload) -> None:
    try:
        node.start(wrapper=wrapper)
    except NodeDied as death:
        if death.exit_code <= 0:
            raise  # a disk that fails at the start is a reason to stop, not to crash
        return
    workload.send(100)
    eventually(lambda: workload.settled or refuses_writes(node), "the disk's failure")
    if node.running:
        # It may live on to serve what it has: then it must.
        with RawConnection(node.address) as raw:
            assert raw.fetch(workload.topic, 0).error_code == 0


def refuses_writes(node: Node) -> bool:
    """It has ended, or answers a write with an error."""
    if not node.running:
        return True
    try:
        with RawConnection(node.address) as raw:
            return bool(raw.produce("probe", build_batch(b"probe")).error_code)
    except (Closed, OSError):
        return True


def test_what_a_failed_sync_left_open_is_never_acknowledged(
    data_dir: Path, postgres_dsn: str, s3_bucket: S3Bucket
) -> None:
    """The kernel forgets a failed write-back: a second sync that succeeds would acknowledge what is not on disk.

    Database and objects are elsewhere, so that each sync is the WAL's."""
    storage = ServiceStorage(postgres_dsn, s3_bucket)
    accepted: dict[int, bytes] = {}
    refused: list[bytes] = []
    with Node(data_dir, "--segment-age", "10m", *storage.options) as node:
        create_topic(node.bootstrap, "probe", 1)
        node.kill9()
        node.start(wrapper=fail_once("fdatasync", "EIO", 5))
        try:
            for number in range(20):
                value = f"value-{number}".encode()
                with RawConnection(node.address) as raw:
                    answer = raw.produce("probe", build_batch(value))
                if answer.error_code == 0:
                    assert answer.base_offset not in accepted, "one offset was acknowledged twice"
                    accepted[answer.base_offset] = value
                else:
                    assert answer.error_code == STORAGE_ERROR
                    refused.append(value)
        except (Closed, OSError):
            eventually(lambda: not node.running, "the end of the node that answers no more")
        assert refused or not node.running, "a sync failed, and nobody was told"
        node.kill9()
        node.start(wrapper=())
        after = read_all(node, "probe")
        assert {offset: after.get(offset) for offset in accepted} == accepted
        assert set(after.values()) <= {*accepted.values(), *refused}
        assert len(set(after.values())) == len(after)
