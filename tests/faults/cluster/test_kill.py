"""kill -9: others lead what is in the object store, a disk of its own waits for its agent, and nothing is lost."""

from __future__ import annotations

import re

import pytest

from faults.cluster.values import produce, read_from_leader
from faults.workload import Workload, create_topic
from node.cluster import Cluster
from node.network import Way
from node.raw import RawConnection, build_batch
from node.wait import eventually

OUT_OF_ORDER_SEQUENCE = 45


@pytest.mark.parametrize("durability", ["object"])
def test_others_lead_what_a_killed_agent_led_and_have_all_that_it_acknowledged(
    cluster: Cluster, workload: Workload
) -> None:
    victim = cluster.leader_of(workload.topic, 0)
    with workload.tail():
        workload.send_in_flight(400, acknowledged=50)
        victim.kill9()
        workload.send(100)
        workload.settle()
        assert victim.name not in cluster.leaders(workload.topic).values()
        workload.assert_holds()
        victim.start()
        workload.send_in_flight(400, acknowledged=50)
        # The next one dies as soon as the first is back, with the hand-over under way.
        cluster.leader_of(workload.topic, 1).kill9()
        workload.settle()
    workload.assert_holds()


@pytest.mark.parametrize("durability", ["wal"])
def test_what_only_the_disk_of_a_killed_agent_may_hold_waits_for_it(cluster: Cluster, workload: Workload) -> None:
    victim = cluster.leader_of(workload.topic, 0)
    with workload.tail():
        workload.send_in_flight(400, acknowledged=50)
        victim.kill9()
        cluster.wait_dead(victim)
        held = {lease for lease in cluster.leases(workload.topic) if lease.agent == victim.name}
        mine = {lease.partition for lease in held}
        assert mine, "it led partitions"
        # Neither its lease nor its heartbeat is live: a ring without it would give its partitions away now.
        assert not {one.partition for one in cluster.leases(workload.topic) if one.is_live} & mine
        eventually(lambda: not set(cluster.leaders(workload.topic)) & mine, "Metadata to name no leader")
        told = cluster.run("topic", "describe", workload.topic)
        assert re.search(rf"wait\w*\b.*\b{victim.name}\b", told), f"describe does not say whom it waits for:\n{told}"
        workload.send_in_flight(100, acknowledged=20)  # what others lead goes on
        # Nobody took them up. Once it is back and has uploaded, they may be handed over like any others.
        assert held <= set(cluster.leases(workload.topic))
        victim.start()
        workload.settle()
    workload.assert_holds()


@pytest.mark.parametrize("durability", ["wal"])
def test_a_killed_agent_comes_back_with_all_that_it_acknowledged(cluster: Cluster, workload: Workload) -> None:
    """The store is out of its reach before: what it acknowledges is nowhere but on its own disk."""
    victim = cluster.leader_of(workload.topic, 0)
    with workload.tail():
        victim.cut(Way.STORE)
        workload.send(200)
        workload.settle()
        for _ in range(2):
            victim.kill9()
            cluster.wait_lease_lost(victim)
            victim.mend()
            victim.start()
            workload.send_in_flight(200, acknowledged=20)
        workload.settle()
    workload.assert_holds()


@pytest.mark.parametrize("durability", ["wal"])
def test_an_unclean_election_gives_up_a_dead_disk_for_good(cluster: Cluster) -> None:
    """What the old leader still has on its disk may not come back at offsets that mean something else by then."""
    topic = cluster.new_topic()
    create_topic(cluster.bootstrap, topic, 1)
    victim = cluster.leader_of(topic, 0)
    stored = [f"stored {number}".encode() for number in range(5)]
    produce(cluster, topic, *stored)
    eventually(lambda: committed_end(cluster, topic) == 5, "the first records to be in a segment")
    victim.cut(Way.STORE)
    assert produce(cluster, topic, b"on disk 5", b"on disk 6", b"on disk 7") == 5
    old_epoch = cluster.lease(topic, 0).epoch

    refused = cluster.command("partition", "elect", topic, "0", "--unclean", "--yes")
    assert refused.returncode == 1, "its leader lives: there is nothing to elect"
    victim.kill9()
    cluster.wait_lease_lost(victim)
    cluster.run("partition", "elect", topic, "0", "--unclean", "--yes")
    successor = cluster.leader_of(topic, 0)
    assert successor is not victim
    assert produce(cluster, topic, b"after 5", b"after 6") == 5
    values = dict(enumerate([*stored, b"after 5", b"after 6"]))
    assert read_from_leader(cluster, topic) == values
    assert cluster.lease(topic, 0).epoch > old_epoch

    # Whoever read what is gone learns where its epoch ended (KIP-320).
    with RawConnection(cluster.leader_of(topic, 0).address) as raw:
        answer = raw.fetch(topic, 8, last_fetched_epoch=old_epoch)
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (old_epoch, 5)

    victim.mend()
    victim.start()
    cluster.wait_led(topic)
    assert read_from_leader(cluster, topic) == values
    cluster.run("partition", "move", topic, "0", "--to", victim.name)
    eventually(lambda: cluster.leader_of(topic, 0) is victim, "the old leader to lead again", pause=0.1)
    assert read_from_leader(cluster, topic) == values
    assert produce(cluster, topic, b"after 7") == 7
    assert read_from_leader(cluster, topic) == {**values, 7: b"after 7"}


def committed_end(cluster: Cluster, topic: str) -> int:
    ((end,),) = cluster.storage.query(f"SELECT coalesce(max(end_offset), 0) FROM segments WHERE topic = '{topic}'")
    return int(end)


@pytest.mark.long_form("wal")
def test_all_agents_killed_at_once_come_back_with_everything(cluster: Cluster, workload: Workload) -> None:
    with workload.tail():
        for _ in range(2):
            workload.send_in_flight(300, acknowledged=30)
            for agent in cluster.agents.values():
                agent.kill9()
            cluster.start()
        workload.settle()
    workload.assert_holds()


@pytest.mark.parametrize("durability", ["object"])
def test_a_duplicate_after_a_fail_over_gets_its_original_offset(cluster: Cluster) -> None:
    topic = cluster.new_topic()
    create_topic(cluster.bootstrap, topic, 1)
    first = cluster.leader_of(topic, 0)
    with RawConnection(first.address) as raw:
        identity = raw.init_producer_id()
    assert identity.error_code == 0

    def send(sequence: int, *values: bytes) -> int:
        named = {"producer_id": identity.producer_id, "producer_epoch": identity.producer_epoch, "sequence": sequence}
        return produce(cluster, topic, *values, **named)

    assert send(0, b"a", b"b") == 0
    assert send(2, b"c") == 2
    first.kill9()
    assert send(2, b"c") == 2, "the successor took the same batch again"
    assert send(0, b"a", b"b") == 0
    assert cluster.leader_of(topic, 0) is not first
    assert send(3, b"d") == 3
    assert read_from_leader(cluster, topic) == {0: b"a", 1: b"b", 2: b"c", 3: b"d"}
    with RawConnection(cluster.leader_of(topic, 0).address) as raw:
        skipped = {"producer_id": identity.producer_id, "producer_epoch": identity.producer_epoch, "sequence": 9}
        assert raw.produce(topic, build_batch(b"x", **skipped)).error_code == OUT_OF_ORDER_SEQUENCE
