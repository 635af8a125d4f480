"""Partitions on the move: rolling restarts, drains, new agents, an operator's choice; clients notice a short pause."""

from __future__ import annotations

import itertools
import threading
import time
from types import TracebackType
from typing import Self

import pytest

from faults.cluster.steady import assert_unmoved, assert_unmoved_but_for, decisions, needs_steady_leases
from faults.cluster.values import produce, read_from_leader
from faults.workload import Workload, create_topic
from node.cluster import Agent, Cluster
from node.wait import HUNG_SECONDS, eventually

PACE_SECONDS = 0.01


class Traffic:
    """One record after the other, at a pace that leaves the agents idle, until the block ends."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._stopped.set()
        self._thread.join(HUNG_SECONDS)

    def _run(self) -> None:
        while not self._stopped.wait(PACE_SECONDS):
            self._workload.send(1)


def wait_registered(cluster: Cluster, agent: Agent, registered: bool) -> None:
    rows = f"SELECT 1 FROM agents WHERE agent_id = '{agent.name}'"
    eventually(lambda: bool(cluster.storage.query(rows)) is registered, f"{agent.name} registered: {registered}")


@pytest.mark.long_form("wal")
def test_a_rolling_restart_under_traffic_loses_nothing_and_nobody_waits_long(
    cluster: Cluster, workload: Workload
) -> None:
    with workload.tail(), Traffic(workload):
        for agent in cluster.agents.values():
            assert agent.terminate() == 0
            # It handed everything over and said goodbye: nothing waits for it or for a lease to run out.
            assert not cluster.led_by(agent)
            wait_registered(cluster, agent, False)
            cluster.wait_led()
            agent.start()
            cluster.wait_led()
    workload.settle()
    print(f"rolling restart, {cluster.durability}: the slowest acknowledgement took {workload.slowest_seconds:.3f} s")
    workload.assert_holds()


@needs_steady_leases
def test_a_drain_hands_over_without_a_gap_in_leadership(cluster: Cluster, workload: Workload) -> None:
    """By the database's clock every partition has a live lease at every moment, while one agent goes."""
    victim = cluster.leader_of(workload.topic, 0)
    gaps: list[str] = []
    with workload.tail(), Traffic(workload):
        leaving = threading.Thread(target=victim.terminate)
        leaving.start()
        while leaving.is_alive():
            gaps += [f"{one.topic}/{one.partition}" for one in cluster.leases(workload.topic) if not one.is_live]
        leaving.join()
        assert victim.wait_exit() == 0
        goal = workload.acknowledged + 50
        workload.wait_acknowledged(goal)
    workload.settle()
    print(f"drain, {cluster.durability}: the slowest acknowledgement took {workload.slowest_seconds:.3f} s")
    workload.assert_holds()
    assert_unmoved(not gaps, f"without a leader for a moment: {gaps}")


@pytest.mark.long_form("object")
def test_an_operator_drains_an_agent_that_keeps_running(cluster: Cluster, workload: Workload) -> None:
    victim = cluster.leader_of(workload.topic, 0)
    with workload.tail(), Traffic(workload):
        cluster.run("agent", "drain", victim.name)
        eventually(lambda: not cluster.led_by(victim), "the agent to lead nothing", pause=0.1)
        listed = {row["agent_id"]: row for row in cluster.run_json("agent", "list")}
        assert victim.name in listed
        assert victim.running
        cluster.wait_led()
        # A restart ends the drain.
        assert victim.terminate() == 0
        victim.start()
        eventually(lambda: cluster.led_by(victim), "the agent to lead again", pause=0.1)
    workload.settle()
    workload.assert_holds()


@pytest.mark.long_form("object")
@needs_steady_leases
def test_an_operator_moves_a_partition_and_the_records_stay_where_they_are(cluster: Cluster) -> None:
    topic = cluster.new_topic()
    create_topic(cluster.bootstrap, topic, 1)
    values: dict[int, bytes | None] = {}
    first = cluster.leader_of(topic, 0)
    agents = itertools.cycle([*cluster.others(first), first])
    for number, agent in zip(range(5), agents, strict=False):
        value = f"before move {number}".encode()
        values[produce(cluster, topic, value)] = value
        epoch = cluster.lease(topic, 0).epoch
        cluster.run("partition", "move", topic, "0", "--to", agent.name)
        eventually(lambda: cluster.leader_of(topic, 0) is agent, "the partition to move", pause=0.05)  # noqa: B023
        assert read_from_leader(cluster, topic) == values
        assert_unmoved(cluster.lease(topic, 0).epoch == epoch + 1, f"more than one epoch after {epoch}")
    assert list(values) == list(range(5))
    listed = {(row["topic"], row["partition"]): row for row in cluster.run_json("partition", "list")}
    assert listed[topic, 0]["leader"] == cluster.leader_of(topic, 0).name
    assert listed[topic, 0]["epoch"] == cluster.lease(topic, 0).epoch
    assert listed[topic, 0]["high_watermark"] == 5
    refused = cluster.command("partition", "move", topic, "0", "--to", "nobody")
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("durability", ["object"])
@needs_steady_leases
def test_a_new_agent_gets_its_share_and_gives_it_back(cluster: Cluster, workload: Workload) -> None:
    topic = cluster.new_topic()
    create_topic(cluster.bootstrap, topic, 24)
    wait_settled(cluster, topic)
    before = {lease.partition: lease.agent for lease in cluster.leases(topic)}
    since = decisions(cluster)
    with workload.tail(), Traffic(workload):
        newcomer = cluster.add("a4", "z1")
        try:
            eventually(lambda: cluster.led_by(newcomer, topic), "the new agent to lead something", pause=0.1)
            wait_settled(cluster, topic)
            after = {lease.partition: lease.agent for lease in cluster.leases(topic)}
        finally:
            cluster.remove(newcomer)
        cluster.wait_led()
        back = {lease.partition: lease.agent for lease in cluster.leases(topic)}
    workload.settle()
    workload.assert_holds()
    moved = {number for number in before if before[number] != after[number]}
    others = moved.symmetric_difference(number for number in after if after[number] == newcomer.name)
    assert_unmoved_but_for(cluster, since, 2, not others, f"{others} moved as well")
    assert_unmoved_but_for(cluster, since, 2, len(moved) < 16, "far more than its share moved")
    assert_unmoved_but_for(cluster, since, 2, back == before, f"{before} is {back} after it went")


def wait_settled(cluster: Cluster, topic: str) -> None:
    """Until leadership has not changed for three rebalances."""
    seen: list[tuple[float, list[object]]] = []

    def settled() -> bool:
        leaders: list[object] = [(lease.partition, lease.agent, lease.epoch) for lease in cluster.leases(topic)]
        if not seen or seen[-1][1] != leaders:
            seen.append((time.monotonic(), leaders))
        return time.monotonic() - seen[-1][0] > 3

    eventually(settled, "leadership to settle", pause=0.1)
    cluster.wait_led(topic)
