"""kill -9 at every step of the write path: nothing acknowledged is lost, repeated or changed, on either storage."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from faults.sweep import BRISK, spread, sweep_seed, sweep_size
from faults.workload import Workload
from node.process import Node, NodeDied
from node.storage import Storage, assert_rows_and_objects_agree
from node.strace import Point, kill_at, read_points, record
from node.wait import eventually

RECORDS = 60
_recorded: dict[str, list[Point]] = {}


def started_or_killed(node: Node, wrapper: list[str]) -> bool:
    """Start under a wrapper that may kill it at any moment, also before it is ready."""
    try:
        node.start(wrapper=wrapper)
    except NodeDied as death:
        if death.exit_code != -signal.SIGKILL:
            raise
        return False
    return True


def stopped_or_killed(node: Node) -> None:
    if node.running:
        assert node.terminate() in (0, -signal.SIGKILL), node.stderr()


def run_traffic(node: Node, workload: Workload) -> None:
    """Send until all is acknowledged, by this process or, if it was killed, by its successor."""
    workload.send(RECORDS)
    eventually(lambda: workload.settled or not node.running, "acknowledgements, or the end of the node")
    if not node.running:
        node.start(wrapper=())
    workload.settle()


def moments(storage: Storage, kind: str, directory: Path) -> list[Point]:
    """Every system call that a run without faults makes on the write path, from its start to its orderly end."""
    if kind not in _recorded:
        log = directory / "calls"
        node = Node(directory / "recorded", *BRISK, *storage.options, wrapper=record(log))
        with node:
            workload = Workload(node.bootstrap, "recorded")
            workload.create_topic()
            run_traffic(node, workload)
            assert node.terminate() == 0
        _recorded[kind] = read_points(log)
    return _recorded[kind]


@pytest.mark.long_form("sqlite+local")
def test_killed_at_any_system_call_it_loses_nothing(
    storage: Storage, data_dir: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kind = request.node.callspec.params["storage"]
    points = spread(moments(storage, kind, tmp_path), sweep_size(4), sweep_seed())
    for index, point in enumerate(points):
        with noted(f"killed at {point}"):
            kill_and_check(point, index, storage, data_dir)


def kill_and_check(point: Point, index: int, storage: Storage, data_dir: Path) -> None:
    node = Node(data_dir, *BRISK, *storage.options)
    try:
        if not started_or_killed(node, kill_at(point)):
            node.start(wrapper=())
        workload = Workload(node.bootstrap, f"history-{index}")
        try:
            workload.create_topic()
        except KafkaException:
            # Killed while the topic was made: the client cannot know if it is there, and asks again.
            eventually(lambda: not node.running, "the end of the node, as it did not make the topic")
            node.start(wrapper=())
            workload.create_topic(exist_ok=True)
        run_traffic(node, workload)
        stopped_or_killed(node)
        node.start(wrapper=())
        workload.assert_holds()
        assert_rows_and_objects_agree(storage)
        assert node.terminate() == 0
    finally:
        node.close()


@pytest.mark.long_form("postgres+s3")
def test_killed_again_while_it_recovers_it_recovers(
    storage: Storage, data_dir: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kind = request.node.callspec.params["storage"]
    # The slow roll leaves everything to recovery, which then writes segments as it starts.
    slow = ("--segment-bytes", "1MiB", "--segment-age", "10m", "--wal-file-bytes", "1MiB", *storage.options)
    points = spread(moments(storage, kind, tmp_path)[:200], sweep_size(3), sweep_seed())
    with Node(data_dir, *slow) as node:
        workload = Workload(node.bootstrap)
        workload.create_topic()
        for point in points:
            workload.send(RECORDS)
            workload.settle()
            node.kill9()
            started_or_killed(node, kill_at(point))
            node.kill9()
            node.start("--segment-bytes", "4KiB", "--segment-age", "50ms", wrapper=())
            with noted(f"killed in recovery at {point}"):
                workload.assert_holds()
            node.kill9()
            node.start(wrapper=())
        workload.assert_holds()
        assert_rows_and_objects_agree(storage)


@pytest.mark.long_form("sqlite+local")
def test_killed_at_random_moments_under_traffic_it_loses_nothing(storage: Storage, data_dir: Path) -> None:
    source = random.Random(sweep_seed())
    with Node(data_dir, *BRISK, *storage.options) as node:
        workload = Workload(node.bootstrap, partitions=3)
        workload.create_topic()
        with workload.tail() as tail:
            for _ in range(sweep_size(5)):
                workload.send_in_flight(400, acknowledged=source.randrange(1, 300))
                node.kill9()
                node.start()
            workload.settle()
            everything = workload.acknowledged
            eventually(lambda: tail.seen >= everything, "the tailing reader to come to the end")
        workload.assert_holds()
        assert_rows_and_objects_agree(storage)
        assert node.terminate() == 0
        assert_rows_and_objects_agree(storage)


@contextmanager
def noted(note: str) -> Iterator[None]:
    try:
        yield
    except BaseException as problem:
        problem.add_note(note)
        raise
