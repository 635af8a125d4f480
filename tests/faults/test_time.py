"""A node that stood still for longer than its lease, and clocks that jump: no loss, and nothing deleted too early."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from faults.sweep import BRISK
from faults.workload import Workload, create_topic
from node.faketime import Clock
from node.process import Node
from node.raw import RawConnection, build_batch, read_values
from node.storage import EmbeddedStorage, Storage, assert_rows_and_objects_agree, committed_records, segments_of
from node.wait import eventually

SHORT_LEASE = ("--lease-ttl", "1500ms", "--lease-renewal", "500ms")
LEASE = ("--lease-ttl", "5s", "--lease-renewal", "1s")
HOUR_MS = 3_600_000
NOT_LEADER = 6


def leases_expired(storage: Storage) -> bool:
    (expiry,) = storage.query("SELECT max(lease_expires_at) FROM partition_leases")[0]
    return bool(expiry < time.time() * 1000)


@pytest.mark.long_form("sqlite+local")
def test_stopped_for_longer_than_its_lease_it_goes_on_safely(storage: Storage, data_dir: Path) -> None:
    with Node(data_dir, *BRISK, *SHORT_LEASE, *storage.options) as node:
        workload = Workload(node.bootstrap)
        workload.create_topic()
        with workload.tail():
            for _ in range(2):
                workload.send_in_flight(200, acknowledged=5)
                node.pause()
                eventually(lambda: leases_expired(storage), "the lease to run out")
                node.resume()
            workload.settle()
        eventually(lambda: committed_records(storage, workload.topic) == workload.acknowledged, "all committed")
        workload.assert_holds()
        assert_rows_and_objects_agree(storage)
        assert node.terminate() == 0


def test_an_epoch_never_goes_back(embedded: EmbeddedStorage, data_dir: Path) -> None:
    with Node(data_dir, *BRISK) as node:
        create_topic(node.bootstrap, "epochs", 1)
        for number in range(4):
            with RawConnection(node.address) as raw:
                assert raw.produce("epochs", build_batch(f"{number}".encode())).error_code == 0
            node.kill9()
            node.start()
        eventually(lambda: committed_records(embedded, "epochs") == 4, "all committed")
        assert node.terminate() == 0
    epochs = [segment.epoch for segment in segments_of(embedded, "epochs")]
    assert epochs == sorted(epochs)


# -- clocks ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path)


def produce(node: Node, topic: str, batch: bytes) -> Any:
    """Again until it leads: with SQLite the lease ends by the clock that jumps, and is then taken again."""

    def accepted() -> Any:
        with RawConnection(node.address) as raw:
            answer = raw.produce(topic, batch)
        assert answer.error_code in (0, NOT_LEADER)
        return answer if answer.error_code == 0 else None

    return eventually(accepted, f"a lease of {topic}")


def wait_for_jump(node: Node, seconds: int) -> int:
    """Until the node stamps a record with that clock; its time."""

    def jumped() -> int:
        stamp = int(produce(node, "stamped", build_batch(b"x")).log_append_time_ms)
        return stamp if abs(stamp - (time.time() + seconds) * 1000) < 60_000 else 0

    return eventually(jumped, f"the node's clock to be off by {seconds} s")


@pytest.mark.long_form("sqlite+local")
def test_a_clock_that_jumps_by_an_hour_either_way_loses_nothing(storage: Storage, data_dir: Path, clock: Clock) -> None:
    with Node(data_dir, *BRISK, *LEASE, *storage.options, env=clock.env) as node:
        create_topic(node.bootstrap, "stamped", 1, message_timestamp_type="LogAppendTime")
        workload = Workload(node.bootstrap)
        workload.create_topic()
        for jump in (0, 3600, 0, -3600, 3600):
            clock.jump(jump)
            wait_for_jump(node, jump)
            workload.send(100)
            workload.settle()
        node.kill9()
        # An S3 server refuses requests signed by a clock that is so wrong: what waits is uploaded when it is right.
        clock.jump(-3600 if isinstance(storage, EmbeddedStorage) else 0)
        node.start()
        workload.send(100)
        workload.settle()
        eventually(lambda: committed_records(storage, workload.topic) == workload.acknowledged, "all committed")
        workload.assert_holds()
        assert_rows_and_objects_agree(storage)
        assert node.terminate() == 0


def test_fresh_records_survive_a_clock_that_jumps_back(embedded: EmbeddedStorage, data_dir: Path, clock: Clock) -> None:
    """With a retention of an hour and a half, neither half of a jump to and fro makes a record old."""
    busy = ("--retention-interval", "200ms", "--garbage-interval", "200ms", "--garbage-grace", "300ms")
    with Node(data_dir, *BRISK, *LEASE, *busy, env=clock.env) as node:
        create_topic(node.bootstrap, "fresh", 1, retention_ms=str(HOUR_MS * 3 // 2))
        create_topic(node.bootstrap, "old", 1, retention_ms="1000")
        create_topic(node.bootstrap, "stamped", 1, message_timestamp_type="LogAppendTime")
        for number, jump in enumerate((0, 3600, 0, -3600, 0)):
            clock.jump(jump)
            now = wait_for_jump(node, jump)
            produce(node, "fresh", build_batch(f"{number}".encode(), timestamp=now))
            produce(node, "old", build_batch(b"x", timestamp=now - HOUR_MS * 24))
            eventually(lambda: committed_records(embedded, "fresh") == number + 1, "its segment")  # noqa: B023
            # Retention has run at this hour when it has deleted what is old at every hour.
            eventually(lambda: start_of(node, "old") == number + 1, "retention to run")  # noqa: B023
        with RawConnection(node.address) as raw:
            assert list(read_values(raw.fetch("fresh", 0).records).values()) == [b"0", b"1", b"2", b"3", b"4"]
        assert_rows_and_objects_agree(embedded)


def start_of(node: Node, topic: str) -> int:
    with RawConnection(node.address) as raw:
        return int(raw.list_offset(topic, -2).offset)
