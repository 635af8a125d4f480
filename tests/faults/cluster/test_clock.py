"""Clocks of agents that jump by an hour, either way, apart from one another: there are never two writers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.cluster.values import NOT_LEADER
from faults.workload import Workload, create_topic
from node.cluster import Agent, Cluster
from node.faketime import Clock
from node.raw import RawConnection, build_batch
from node.wait import eventually
from services.seaweed import S3Bucket


@pytest.fixture
def clocks(tmp_path: Path) -> list[Clock]:
    directories = [tmp_path / name for name in ("early", "late")]
    for directory in directories:
        directory.mkdir()
    return [Clock(directory) for directory in directories]


@pytest.fixture
def cluster(
    tmp_path: Path, postgres_dsn: str, s3_bucket: S3Bucket, durability: str, clocks: list[Clock]
) -> Iterator[Cluster]:
    """Two agents, each with a clock of its own."""
    with Cluster(0, tmp_path, postgres_dsn, s3_bucket, durability=durability) as cluster:
        for number, clock in enumerate(clocks, start=1):
            cluster.add(f"a{number}", f"z{number}", start=False, env=clock.env)
        cluster.start()
        yield cluster
        cluster.heal()
        cluster.assert_sound()
        cluster.assert_verified()


@pytest.mark.long_form("wal")
def test_clocks_that_jump_apart_make_no_second_writer(
    cluster: Cluster, workload: Workload, clocks: list[Clock]
) -> None:
    # The store refuses requests signed by such a clock, so what shows the clock must not need the store.
    stamped = {"message_timestamp_type": "LogAppendTime", "streamhouse_durability": "wal"}
    create_topic(cluster.bootstrap, "stamped", 8, **stamped)
    cluster.wait_led()
    with workload.tail():
        for jumps in ((3600, -3600), (-3600, 3600)):
            workload.send_in_flight(100, acknowledged=10)
            before = leaders(cluster)
            for agent, clock, seconds in zip(cluster.agents.values(), clocks, jumps, strict=True):
                clock.jump(seconds)
                wait_for_jump(cluster, agent, seconds)
            workload.send(50)
            if cluster.durability == "wal":
                workload.settle()
                assert leaders(cluster) == before, "a lease was lost by a clock that says nothing about it"
            for clock in clocks:
                clock.jump(0)
            workload.settle()
    workload.assert_holds()


def leaders(cluster: Cluster) -> set[tuple[str, int, str, int]]:
    return {(lease.topic, lease.partition, lease.agent, lease.epoch) for lease in cluster.leases()}


def wait_for_jump(cluster: Cluster, agent: Agent, seconds: int) -> None:
    """Until the agent stamps a record with that clock: libfaketime looks at its file once a second."""

    def jumped() -> bool:
        held = cluster.led_by(agent, "stamped")
        if not held:  # they ran out on a busy machine, and are taken again
            return False
        lease = held[0]
        with RawConnection(agent.address) as raw:
            answer = raw.produce("stamped", build_batch(b"x"), partition=lease.partition)
        assert answer.error_code in (0, NOT_LEADER), "a lease that is renewed late on a busy machine is no error"
        off_ms = answer.log_append_time_ms - (time.time() + seconds) * 1000
        return answer.error_code == 0 and abs(off_ms) < 60_000

    eventually(jumped, f"the clock of {agent.name} to be off by {seconds} s", pause=0.1)
