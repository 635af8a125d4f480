"""An orderly end leaves everything in the object store; a second process on the same directory is refused."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from faults.workload import Workload, create_topic
from node.process import Node, NodeDied
from node.raw import RawConnection, build_batch, produce_request
from node.storage import Storage, assert_rows_and_objects_agree, committed_records

IN_WAL = ("--segment-age", "10m", "--wal-file-bytes", "1MiB")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_drained_node_has_everything_in_the_object_store(
    storage: Storage, data_dir: Path, how: signal.Signals
) -> None:
    """Even without its WAL, every acknowledged record is there."""
    with Node(data_dir, *IN_WAL, *storage.options) as node:
        workload = Workload(node.bootstrap)
        workload.create_topic()
        workload.send(300)
        workload.settle()
        assert committed_records(storage, workload.topic) == 0, "the test wants a full WAL"
        os.kill(node.pid, how)
        assert node.wait_exit() == 0
        assert committed_records(storage, workload.topic) == 300
        shutil.rmtree(data_dir / "wal")
        node.start()
        workload.assert_holds()
        assert_rows_and_objects_agree(storage)


@pytest.mark.long_form("sqlite+local")
def test_a_node_drained_under_traffic_loses_nothing(storage: Storage, data_dir: Path) -> None:
    with Node(data_dir, *IN_WAL, *storage.options) as node:
        workload = Workload(node.bootstrap)
        workload.create_topic()
        for _ in range(3):
            workload.send_in_flight(500, acknowledged=20)
            assert node.terminate() == 0
            shutil.rmtree(data_dir / "wal")
            node.start()
        workload.settle()
        workload.assert_holds()
        assert_rows_and_objects_agree(storage)


def test_what_was_received_before_the_end_is_answered(data_dir: Path) -> None:
    with Node(data_dir, *IN_WAL) as node:
        create_topic(node.bootstrap, "last", 1)
        with RawConnection(node.address) as raw:
            assert raw.produce("last", build_batch(b"first")).error_code == 0
            for number in range(20):
                raw.send(produce_request("last", build_batch(f"{number}".encode())))
            os.kill(node.pid, signal.SIGTERM)
            answers = 0
            while not_closed(raw):
                answers += 1
        assert node.wait_exit() == 0
        node.start()
        with RawConnection(node.address) as raw:
            end = raw.list_offset("last", -1).offset
        # What was not received is not there either; each record that is there was answered.
        assert end == answers + 1


def not_closed(raw: RawConnection) -> bool:
    try:
        raw.receive_frame()
    except (AssertionError, OSError):
        return False
    return True


def test_an_idle_node_with_open_connections_ends_at_once(data_dir: Path) -> None:
    with Node(data_dir) as node, RawConnection(node.address) as raw:
        assert raw.metadata().brokers
        assert node.terminate() == 0
        assert raw.is_closed_by_node()


def test_a_node_ends_orderly_again_and_again(data_dir: Path) -> None:
    """Each start and stop by itself: nothing is left open, nothing is closed twice."""
    node = Node(data_dir)
    with node:
        for _ in range(5):
            assert node.terminate() == 0
            assert "bug" not in node.stderr()
            node.start()


def test_a_second_process_on_the_same_directory_is_refused(data_dir: Path) -> None:
    with Node(data_dir) as first:
        with pytest.raises(NodeDied) as death, Node(data_dir):
            pass
        assert death.value.exit_code not in (0, None)
        assert str(data_dir) in death.value.stderr
        assert "Traceback" not in death.value.stderr
        with RawConnection(first.address) as raw:
            assert raw.metadata().brokers
    # The lock dies with its holder.
    with Node(data_dir) as third:
        assert third.running


def test_a_port_that_is_taken_is_told(data_dir: Path, tmp_path: Path) -> None:
    with Node(data_dir) as first:
        with pytest.raises(NodeDied) as death, Node(tmp_path / "other", port=first.port):
            pass
        assert death.value.exit_code == 1
        assert str(first.port) in death.value.stderr
        assert "Traceback" not in death.value.stderr
