"""A disk that is full or fails: a storage error for the client, no acknowledgement, reads go on, nothing is lost."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from node.process import Node
from node.raw import RawConnection, build_batch, read_values
from node.storage import EmbeddedStorage, assert_rows_and_objects_agree
from node.strace import fail_from
from node.wait import eventually

from faults.sweep import BRISK, sweep_size
from faults.workload import Workload, create_topic

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


FAILURES = [
    (call, error, number)
    for number in range(4, 4 + 4 * sweep_size(1), 4)
    for call, error in (("fdatasync", "EIO"), ("fdatasync", "ENOSPC"), ("pwrite64", "ENOSPC"), ("pwritev", "EIO"))
]


@pytest.mark.parametrize(("call", "error", "number"), FAILURES)
def test_a_disk_that_fails_gets_no_acknowledgement_and_loses_nothing(
    data_dir: Path, call: str, error: str, number: int
) -> None:
    """From the n-th call on, every one fails, in whichever thread: the WAL, the database or the objects."""
    with Node(data_dir, *BRISK) as node:
        workload = Workload(node.bootstrap)
        workload.create_topic()
        workload.send(20)
        workload.settle()
        node.kill9()
        node.start(wrapper=fail_from(call, error, number))
        workload.send(100)
        eventually(lambda: workload.settled or failed(node), "the disk's failure")
        if node.running:
            # It may live on to serve what it has: then it must.
            with RawConnection(node.address) as raw:
                assert raw.fetch("history", 0).error_code == 0
        node.kill9()
        node.start(wrapper=())
        workload.settle()
        workload.assert_holds()
        assert node.terminate() == 0
        assert_rows_and_objects_agree(EmbeddedStorage(data_dir))


def failed(node: Node) -> bool:
    """It has ended, or refuses a write."""
    if not node.running:
        return True
    try:
        with RawConnection(node.address) as raw:
            return bool(raw.produce("probe", build_batch(b"probe")).error_code not in (0, 3))
    except (AssertionError, OSError):
        return True


def test_a_failed_sync_is_never_tried_again(data_dir: Path) -> None:
    """The kernel forgets a failed write-back: a second sync that succeeds would acknowledge what is not on disk."""
    with Node(data_dir, "--segment-age", "10m") as node:
        create_topic(node.bootstrap, "probe", 1)
        node.kill9()
        node.start(wrapper=fail_once("fdatasync", "EIO", 3))
        codes: list[int] = []
        with RawConnection(node.address) as raw:
            try:
                codes.extend(int(raw.produce("probe", build_batch(b"x")).error_code) for _ in range(20))
            except AssertionError:
                pass  # the node has stopped, as it should
        if STORAGE_ERROR in codes:
            assert set(codes[codes.index(STORAGE_ERROR) :]) == {STORAGE_ERROR}, "acknowledged after a failed sync"


def fail_once(call: str, error: str, number: int) -> list[str]:
    wrapper = fail_from(call, error, number)
    return [part.removesuffix("+") for part in wrapper]
