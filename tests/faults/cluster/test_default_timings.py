"""The timings that everybody has who sets none: a lease of 30 s, a heartbeat that is believed for 60 s."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.cluster.test_groups import commit, committed
from faults.cluster.watch import Held, Key, Watch
from faults.workload import Workload
from node.cluster import Agent, Cluster
from node.lateness import Lateness
from node.wait import eventually
from services.seaweed import S3Bucket

LEASE_SECONDS = 30.0
WATCHED_SECONDS = LEASE_SECONDS + 14
"""Beyond the moment at which survivors have everything, within that in which the dead agent's heartbeat is young."""
GROUPS = 40
PARTITIONS = 9


@pytest.fixture
def cluster(tmp_path: Path, postgres_dsn: str, s3_bucket: S3Bucket) -> Iterator[Cluster]:
    with Cluster(3, tmp_path, postgres_dsn, s3_bucket, durability="object", timings=()) as cluster:
        yield cluster


def test_after_a_kill_everything_changes_hands_once_and_is_served_when_the_lease_is_over(cluster: Cluster) -> None:
    objects = Workload(cluster.bootstrap, "objects", partitions=PARTITIONS)
    objects.create_topic()
    walled = Workload(cluster.bootstrap, "walled", partitions=PARTITIONS)
    walled.create_topic(**{"streamhouse.durability": "wal"})
    groups = [f"group-{number}" for number in range(GROUPS)]
    for group in groups[::8]:
        commit(cluster, group, "objects", 7)
    watch = Watch(cluster)
    before = watch.wait_settled()
    victim = cluster.leader_of("objects", 0)
    lost = {key for key, held in before.items() if held.agent == victim.name}
    moving = {key for key in lost if key[0] != "walled"}
    waiting = lost - moving
    assert waiting, "the ring gives each agent some of nine partitions"
    assert any(topic == "" for topic, _ in moving), "and some of sixteen shards"

    with objects.tail(), walled.tail(), watch.going_on():
        objects.send_in_flight(180, acknowledged=90)
        walled.send_in_flight(180, acknowledged=90)
        with Lateness() as lateness:
            victim.kill9()
            killed = time.monotonic()
            objects.send(90)
            eventually(lambda: objects.settled, "every producer to be served", timeout=120)
            for group in groups:
                committed(cluster, group, "objects")
            took = time.monotonic() - killed
        assert took < lateness.limit(LEASE_SECONDS + 2), f"served after {took:.1f} s on {lateness}"
        assert agent_states(cluster)[victim.name] == "silent"
        eventually(lambda: time.monotonic() - killed > WATCHED_SECONDS, "the time in which its heartbeat is young")
        assert agent_states(cluster)[victim.name] == "silent"
        assert_changed_hands_once(watch, before, moving, victim)
        victim.start()
        objects.settle()
        walled.settle()
    objects.assert_holds()
    walled.assert_holds()


def assert_changed_hands_once(watch: Watch, before: dict[Key, Held], moving: set[Key], victim: Agent) -> None:
    now = watch.look()
    for key, held in before.items():
        seen = watch.history[key]
        if key not in moving:
            assert seen == [(held.agent, held.epoch)], f"{key} of {held.agent} changed hands: {seen}"
            continue
        assert now[key].is_live, f"{key} is nobody's: {seen}"
        epochs = [epoch for _, epoch in seen]
        assert epochs == [held.epoch, held.epoch + 1], f"{key} did not change hands exactly once: {seen}"
        assert seen[1][0] != victim.name


def agent_states(cluster: Cluster) -> dict[str, str]:
    return {agent["agent_id"]: agent["state"] for agent in cluster.run_json("agent", "list")}
