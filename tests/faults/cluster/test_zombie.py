"""SIGSTOP for longer than the lease, then SIGCONT: the one that comes late changes nothing and says that it is late."""

from __future__ import annotations

import pytest
from kafka.protocol.consumer import FetchResponse
from kafka.protocol.producer import ProduceResponse

from faults.cluster.values import NOT_LEADER, produce, read, read_from_leader
from faults.workload import Workload, create_topic
from node.cluster import Cluster
from node.raw import FETCH_VERSION, PRODUCE_VERSION, RawConnection, build_batch, fetch_request, produce_request
from node.wait import eventually


@pytest.mark.long_form("wal")
def test_paused_for_longer_than_its_lease_it_goes_on_safely(cluster: Cluster, workload: Workload) -> None:
    with workload.tail():
        for number in range(2):
            paused = cluster.leader_of(workload.topic, number)
            workload.send_in_flight(300, acknowledged=30)
            paused.pause()
            cluster.wait_lease_lost(paused)
            workload.send(50)
            if cluster.durability == "object":
                assert cluster.leader_of(workload.topic, number) is not paused
            paused.resume()
        workload.settle()
    workload.assert_holds()


@pytest.mark.parametrize("durability", ["object"])
def test_a_zombie_answers_that_it_does_not_lead_and_its_successors_records_stand(cluster: Cluster) -> None:
    """The request waits in the zombie's socket, from a time at which it still led."""
    topic = cluster.new_topic()
    create_topic(cluster.bootstrap, topic, 1)
    zombie = cluster.leader_of(topic, 0)
    assert produce(cluster, topic, b"before") == 0
    with RawConnection(zombie.address) as raw:
        assert raw.produce(topic, build_batch(b"by the same connection")).base_offset == 1
        zombie.pause()
        for number in range(5):
            raw.send(produce_request(topic, build_batch(f"too late {number}".encode())))
        cluster.wait_lease_lost(zombie)
        successor = cluster.leader_of(topic, 0)
        assert successor is not zombie
        assert produce(cluster, topic, b"successor") == 2
        zombie.resume()
        answers = [raw.receive(ProduceResponse, PRODUCE_VERSION) for _ in range(5)]
    codes = [answer.responses[0].partition_responses[0].error_code for answer in answers]
    assert set(codes) == {NOT_LEADER}
    assert produce(cluster, topic, b"last") == 3
    values = {0: b"before", 1: b"by the same connection", 2: b"successor", 3: b"last"}
    assert read_from_leader(cluster, topic) == values


@pytest.mark.parametrize("durability", ["object"])
def test_a_zombie_does_not_tell_readers_that_they_are_past_the_end(cluster: Cluster) -> None:
    """They read from its successor what it does not know of. "Out of range" would send them to the beginning, or
    past what they have not read; it must send them on."""
    topic = cluster.new_topic()
    create_topic(cluster.bootstrap, topic, 1)
    zombie = cluster.leader_of(topic, 0)
    assert produce(cluster, topic, b"before") == 0
    with RawConnection(zombie.address) as raw:
        assert raw.fetch(topic, 0).error_code == 0
        zombie.pause()
        cluster.wait_lease_lost(zombie)
        assert produce(cluster, topic, b"successor") == 1
        raw.send(fetch_request(topic, 2))
        zombie.resume()
        answer = raw.receive(FetchResponse, FETCH_VERSION).responses[0].partitions[0]
        for _ in range(50):
            assert answer.error_code in (0, NOT_LEADER), f"fetch answered with {answer.error_code}"
            # It may lead again by then, with all that its successor wrote.
            assert answer.error_code == NOT_LEADER or answer.high_watermark == 2
            answer = raw.fetch(topic, 2)


@pytest.mark.parametrize("durability", ["object"])
def test_a_zombie_does_not_tell_an_old_end_as_the_latest(cluster: Cluster) -> None:
    topic = cluster.new_topic()
    create_topic(cluster.bootstrap, topic, 1)
    zombie = cluster.leader_of(topic, 0)
    assert produce(cluster, topic, b"before") == 0
    zombie.pause()
    cluster.wait_lease_lost(zombie)
    assert produce(cluster, topic, b"successor") == 1
    zombie.resume()
    for _ in range(50):
        assert read(zombie, topic) in (None, {0: b"before", 1: b"successor"})


@pytest.mark.long_form("wal")
def test_all_agents_paused_at_once_go_on_safely(cluster: Cluster, workload: Workload) -> None:
    with workload.tail():
        workload.send_in_flight(300, acknowledged=30)
        for agent in cluster.agents.values():
            agent.pause()
        eventually(lambda: not any(lease.is_live for lease in cluster.leases()), "all leases to run out", pause=0.05)
        for agent in cluster.agents.values():
            agent.resume()
        workload.settle()
    workload.assert_holds()
