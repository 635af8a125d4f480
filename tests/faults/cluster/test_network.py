"""Agents cut off, by proxies before the database and the store: safe while it lasts, whole when it ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka.protocol.producer import ProduceResponse

from faults.cluster.steady import assert_unmoved, needs_steady_leases
from faults.cluster.values import NOT_LEADER, produce, read_from_leader
from faults.cluster.workloads import PARTITIONS
from faults.workload import Workload, create_topic
from node.cluster import Cluster, Cut
from node.lateness import Lateness
from node.network import Way
from node.raw import PRODUCE_VERSION, RawConnection, build_batch, produce_request
from node.wait import eventually
from services.seaweed import S3Bucket

REQUEST_TIMED_OUT = 7
HEALED_SECONDS = 10
"""How long an acknowledgement may take when connections to the store died without a word."""
DEFAULT_TIMINGS = (
    "--lease-ttl", "30s", "--lease-renewal", "10s", "--heartbeat", "15s", "--liveness", "60s", "--rebalance", "30s",
)  # fmt: skip


@pytest.mark.parametrize("how", list(Cut), ids=lambda how: how.name.lower())
def test_an_agent_without_its_database_stops_leading_and_comes_back(
    cluster: Cluster, workload: Workload, how: Cut
) -> None:
    victim = cluster.leader_of(workload.topic, 0)
    mine = {lease.partition for lease in cluster.led_by(victim, workload.topic)}
    with workload.tail():
        workload.send_in_flight(300, acknowledged=30)
        victim.cut(Way.DATABASE, how)
        cluster.wait_lease_lost(victim)
        workload.send(100)
        if cluster.durability == "object":
            successors = {cluster.leader_of(workload.topic, number) for number in mine}
            assert victim not in successors
            # It may not renew, so it may not write: its clients are sent on while it is still cut off.
            workload.settle()
        victim.mend()
        workload.settle()
    workload.assert_holds()


@pytest.mark.parametrize("how", list(Cut), ids=lambda how: how.name.lower())
@pytest.mark.parametrize("durability", ["object"])
def test_a_producer_that_waits_at_an_agent_without_its_database_is_sent_on(cluster: Cluster, how: Cut) -> None:
    """Its commit hangs, and another agent leads by then: whoever waits for the old one must hear of it."""
    topic = cluster.new_topic()
    create_topic(cluster.bootstrap, topic, 1)
    assert produce(cluster, topic, b"before") == 0
    victim = cluster.leader_of(topic, 0)
    with RawConnection(victim.address) as raw:
        victim.cut(Way.DATABASE, how)
        raw.send(produce_request(topic, build_batch(b"in between")))
        cluster.wait_lease_lost(victim)
        assert cluster.leader_of(topic, 0) is not victim
        answer = raw.receive(ProduceResponse, PRODUCE_VERSION).responses[0].partition_responses[0]
        assert answer.error_code in (NOT_LEADER, REQUEST_TIMED_OUT)
        assert raw.produce(topic, build_batch(b"too late")).error_code == NOT_LEADER
    assert produce(cluster, topic, b"after") == 1
    victim.mend()
    cluster.wait_led(topic)
    assert read_from_leader(cluster, topic) == {0: b"before", 1: b"after"}


@pytest.mark.parametrize("how", list(Cut), ids=lambda how: how.name.lower())
def test_an_agent_without_its_store_acknowledges_only_what_is_safe(
    cluster: Cluster, workload: Workload, how: Cut
) -> None:
    """With a WAL of its own it goes on; with the object WAL nothing of it is acknowledged until it has its store."""
    victim = cluster.leader_of(workload.topic, 0)
    with workload.tail():
        workload.send_in_flight(300, acknowledged=30)
        victim.cut(Way.STORE, how)
        workload.send(100)
        if cluster.durability == "wal":
            workload.settle()
        else:
            workload.send_in_flight(100, acknowledged=10)
        victim.mend()
        workload.settle()
    workload.assert_holds()


@pytest.mark.parametrize("durability", ["object"])
def test_connections_to_the_store_that_died_without_a_word_are_left_behind(
    cluster: Cluster, workload: Workload
) -> None:
    """New ones work, so nobody has to lead instead, and nobody waits as long as a large segment may take."""
    before = {lease.partition: lease.epoch for lease in cluster.leases(workload.topic)}
    with workload.tail(), Lateness() as lateness:
        hold_twice(cluster, workload, Way.STORE)
    assert_healed(workload, lateness)
    assert {lease.partition: lease.epoch for lease in cluster.leases(workload.topic)} == before
    workload.assert_holds()


@pytest.mark.parametrize("how", list(Cut), ids=lambda how: how.name.lower())
@pytest.mark.parametrize("durability", ["object"])
def test_an_agent_without_its_store_gives_its_partitions_to_those_that_have_it(
    cluster: Cluster, workload: Workload, how: Cut
) -> None:
    """Though it renews its leases all along. What it had not made durable is sent again, and stored once."""
    victim = cluster.leader_of(workload.topic, 0)
    mine = {lease.partition for lease in cluster.led_by(victim, workload.topic)}
    with workload.tail(), Lateness() as lateness:
        workload.send_in_flight(300, acknowledged=30)
        victim.cut(Way.STORE, how)
        workload.send(100)
        workload.settle()
        assert not mine & {lease.partition for lease in cluster.led_by(victim, workload.topic)}
        workload.send(100)
        workload.settle()
    assert_healed(workload, lateness)
    victim.mend()
    eventually(
        lambda: mine <= {lease.partition for lease in cluster.led_by(victim, workload.topic)},
        "everything to be where it was",
    )
    workload.assert_holds()


def hold_twice(cluster: Cluster, workload: Workload, way: Way) -> None:
    """Connections of every agent die without a word, with records on their way; and those that were made instead."""
    for _ in range(2):
        workload.send_in_flight(300, acknowledged=30)
        for agent in cluster.agents.values():
            agent.hold(way)
        workload.send(100)
        workload.settle()


def assert_healed(workload: Workload, lateness: Lateness) -> None:
    took = workload.slowest_seconds
    assert took < lateness.limit(HEALED_SECONDS), f"an acknowledgement took {took:.1f} s on {lateness}"


def test_connections_to_the_database_that_died_without_a_word_are_left_behind(
    tmp_path: Path, postgres_dsn: str, s3_bucket: S3Bucket
) -> None:
    with Cluster(2, tmp_path, postgres_dsn, s3_bucket, *DEFAULT_TIMINGS, durability="object") as cluster:
        workload = Workload(cluster.bootstrap, cluster.new_topic(), partitions=PARTITIONS)
        workload.create_topic()
        cluster.wait_led(workload.topic)
        before = cluster.leases(workload.topic)
        with Lateness() as lateness:
            hold_twice(cluster, workload, Way.DATABASE)
        took = workload.slowest_seconds
        assert took < lateness.limit(20), f"dead connections were waited for one by one: {took:.1f} s on {lateness}"
        assert cluster.leases(workload.topic) == before
        workload.assert_holds()


def test_with_default_timings_nobody_waits_for_a_lease_to_run_out(
    tmp_path: Path, postgres_dsn: str, s3_bucket: S3Bucket
) -> None:
    with Cluster(3, tmp_path, postgres_dsn, s3_bucket, *DEFAULT_TIMINGS, durability="object") as cluster:
        workload = Workload(cluster.bootstrap, cluster.new_topic(), partitions=PARTITIONS)
        workload.create_topic()
        cluster.wait_led(workload.topic)
        workload.send_in_flight(300, acknowledged=30)
        victim = cluster.leader_of(workload.topic, 0)
        with Lateness() as lateness:
            victim.cut(Way.STORE, Cut.SILENT)
            workload.send(100)
            workload.settle()
        assert_healed(workload, lateness)
        victim.mend()
        workload.assert_holds()
        cluster.assert_sound()


@pytest.mark.parametrize("durability", ["object"])
@needs_steady_leases
def test_while_nobody_has_the_store_nobody_moves(cluster: Cluster, workload: Workload) -> None:
    before = {lease.partition: (lease.agent, lease.epoch) for lease in cluster.leases(workload.topic)}
    with workload.tail():
        workload.send_in_flight(300, acknowledged=30)
        for agent in cluster.agents.values():
            agent.cut(Way.STORE)
        workload.send(100)
        leading = {agent for agent, _ in before.values()}
        eventually(
            lambda: all(cluster.store_access()[name] == "stalled" for name in leading),
            "all that lead to say that they are stalled",
            pause=0.1,
        )
        cluster.wait_heartbeats(3)
        after = {lease.partition: (lease.agent, lease.epoch) for lease in cluster.leases(workload.topic)}
        for agent in cluster.agents.values():
            agent.mend()
        workload.settle()
    workload.assert_holds()
    assert_unmoved(after == before, f"{before}, then {after}")


@pytest.mark.long_form("object")
def test_an_agent_killed_while_it_is_cut_off_loses_nothing(cluster: Cluster, workload: Workload) -> None:
    """Database and store go first, then the process, with requests under way: half of each step is done."""
    with workload.tail():
        for way in (Way.DATABASE, Way.STORE):
            victim = cluster.leader_of(workload.topic, 0)
            workload.send_in_flight(300, acknowledged=30)
            victim.cut(way)
            workload.send(60)
            victim.kill9()
            victim.mend()
            cluster.wait_lease_lost(victim)
            victim.start()
            workload.settle()
    workload.assert_holds()


def test_a_commit_whose_answer_was_lost_is_made_once(cluster: Cluster, workload: Workload) -> None:
    """The proxy lets COMMIT reach the database and ends the connection when the answer comes."""
    proxies = [agent.proxies[Way.DATABASE] for agent in cluster.agents.values()]
    with workload.tail():
        for _ in range(2):
            lost = sum(proxy.lost_answers for proxy in proxies)
            for proxy in proxies:
                proxy.lose_answers_to(b"COMMIT", 2)
            workload.send(100)
            workload.settle()
            eventually(lambda: sum(proxy.lost_answers for proxy in proxies) >= lost + 2, "lost answers")  # noqa: B023
    workload.assert_holds()
