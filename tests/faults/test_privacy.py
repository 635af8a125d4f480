"""What a node keeps on disk is for its own user alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from faults.workload import create_topic
from node.process import Node
from node.raw import RawConnection, build_batch
from node.storage import EmbeddedStorage, committed_records
from node.wait import eventually


def open_to_others(directory: Path) -> list[str]:
    found = [directory, *directory.rglob("*")]
    return [f"{path} {path.stat().st_mode:o}" for path in found if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)]


def test_nobody_else_can_read_what_a_node_stores(data_dir: Path) -> None:
    before = os.umask(0)
    try:
        with Node(data_dir, "--segment-age", "100ms") as node:
            create_topic(node.bootstrap, "private", 1)
            with RawConnection(node.address) as raw:
                assert raw.produce("private", build_batch(b"mine")).error_code == 0
            eventually(lambda: committed_records(EmbeddedStorage(data_dir), "private") == 1, "a segment")
            eventually(lambda: list(data_dir.glob("objects/topics/*/*")), "the topic's description")
            assert open_to_others(data_dir) == []
            assert node.terminate() == 0
            assert "open to other users" not in node.stderr()
    finally:
        os.umask(before)


def test_a_directory_that_others_can_read_is_complained_of_and_left_as_it_is(data_dir: Path) -> None:
    data_dir.mkdir(mode=0o755)
    data_dir.chmod(0o755)
    with Node(data_dir) as node:
        assert f"{data_dir} is open to other users of this machine (mode 755)" in node.stderr()
        assert stat.S_IMODE(data_dir.stat().st_mode) == 0o755
