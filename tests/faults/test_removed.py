"""The data directory is taken away under a running node: nothing is acknowledged any more, what can be saved is, and
the node ends with an error, without anything new in the old one's place."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from faults.workload import create_topic
from node.process import Node
from node.raw import Closed, RawConnection, build_batch, read_values
from node.storage import EmbeddedStorage, Storage, assert_rows_and_objects_agree, committed_records

IN_WAL = ("--segment-age", "10m", "--wal-file-bytes", "1MiB")
VALUES = {number: b"%d" % number for number in range(5)}


def fill(node: Node) -> None:
    create_topic(node.bootstrap, "kept", 1)
    with RawConnection(node.address) as raw:
        for value in VALUES.values():
            assert raw.produce("kept", build_batch(value)).error_code == 0


def assert_refuses_and_ends(node: Node, take_away: Callable[[], None]) -> str:
    """What it says about that; the first record that is sent afterwards is not acknowledged, nor is any other."""
    with RawConnection(node.address) as raw:
        take_away()
        for _ in range(100):
            try:
                assert raw.produce("kept", build_batch(b"too late")).error_code != 0, "nobody will find it"
            except (ConnectionError, Closed):
                break
    assert node.wait_exit() not in (0, None)
    assert "is gone" in node.stderr()
    return node.stderr()


def remove_at_once(directory: Path) -> None:
    """In one step for the node, which otherwise might still put something into what is being removed."""
    renamed = directory.with_name("removed")
    directory.rename(renamed)
    shutil.rmtree(renamed)


def test_a_node_whose_data_directory_is_removed_ends_with_an_error(data_dir: Path) -> None:
    with Node(data_dir, *IN_WAL) as node:
        fill(node)
        said = assert_refuses_and_ends(node, lambda: remove_at_once(data_dir))
        assert "5 acknowledged records of 1 partitions could not be uploaded, and their WAL is gone: kept/0" in said
    assert not data_dir.exists(), "made again by a node that had lost it"


@pytest.mark.parametrize("what", ["the directory", "the files in it"])
def test_what_a_node_has_in_memory_is_uploaded_when_its_wal_is_removed(
    storage: Storage, data_dir: Path, what: str
) -> None:
    def take_away() -> None:
        if what == "the directory":
            remove_at_once(data_dir / "wal")
        else:
            for file in (data_dir / "wal").iterdir():
                file.unlink()

    with Node(data_dir, *IN_WAL, *storage.options) as node:
        fill(node)
        assert committed_records(storage, "kept") == 0, "the test wants a full WAL"
        assert_refuses_and_ends(node, take_away)
        assert committed_records(storage, "kept") == 5
        assert not list(data_dir.glob("wal/*.wal"))
        node.start()
        with RawConnection(node.address) as raw:
            assert read_values(raw.fetch("kept", 0).records) == VALUES
            assert raw.produce("kept", build_batch(b"goes on")).base_offset == 5
        assert node.terminate() == 0
    assert_rows_and_objects_agree(storage)


def test_a_directory_that_was_put_in_the_place_of_the_old_one_is_left_alone(data_dir: Path) -> None:
    def replace() -> None:
        data_dir.rename(data_dir.with_name("old"))
        data_dir.mkdir()

    with Node(data_dir, *IN_WAL) as node:
        fill(node)
        replace()
        assert node.wait_exit() not in (0, None)
        assert list(data_dir.iterdir()) == []
        data_dir.rmdir()
        data_dir.with_name("old").rename(data_dir)
        node.start()
        with RawConnection(node.address) as raw:
            assert list(read_values(raw.fetch("kept", 0).records).items())[:5] == list(VALUES.items())


def test_a_node_whose_database_is_removed_commits_nothing_to_it(data_dir: Path) -> None:
    """What was acknowledged is still in the WAL, for whoever restores the database."""

    def take_away() -> None:
        for file in data_dir.glob("metadata.db*"):
            file.rename(file.with_name(f"kept-{file.name}"))

    with Node(data_dir, *IN_WAL) as node:
        fill(node)
        take_away()
        assert node.wait_exit() not in (0, None)
        assert not (data_dir / "metadata.db").exists()
        for file in data_dir.glob("kept-*"):
            file.rename(file.with_name(file.name.removeprefix("kept-")))
        assert committed_records(EmbeddedStorage(data_dir), "kept") == 0
        node.start()
        with RawConnection(node.address) as raw:
            assert list(read_values(raw.fetch("kept", 0).records).items())[:5] == list(VALUES.items())
