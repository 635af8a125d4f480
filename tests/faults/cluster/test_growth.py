"""A topic grows on a cluster: every agent knows, nothing is lost, whoever dies or grows it as well meanwhile."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions

from faults.cluster.steady import assert_unmoved, needs_steady_leases
from faults.cluster.values import produce, read_from_leader
from faults.cluster.workloads import PARTITIONS
from faults.workload import Workload, create_topic
from node.admin import grow_topic
from node.cluster import Agent, Cluster
from node.raw import Closed, RawConnection
from node.wait import HUNG_SECONDS, eventually

GROWN = 9


def grow(bootstrap: str, topic: str, count: int, *, timeout: float = HUNG_SECONDS) -> int:
    """The code that was answered, 0 if it grew."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    try:
        admin.create_partitions([NewPartitions(topic, count)], request_timeout=timeout)[topic].result()
    except KafkaException as problem:
        return int(problem.args[0].code())
    return 0


def counts(cluster: Cluster, topic: str) -> set[int]:
    """As each agent that answers tells it."""
    found = set()
    for agent in cluster.agents.values():
        if agent.answers:
            with RawConnection(agent.address) as raw:
                (known,) = raw.metadata(topic).topics
                found.add(len(known.partitions))
    return found


def rows(cluster: Cluster, topic: str) -> list[int]:
    asked = f"SELECT partition_id FROM partitions WHERE topic = '{topic}' ORDER BY partition_id"
    return [number for (number,) in cluster.storage.query(asked)]


@needs_steady_leases
def test_a_topic_grows_under_traffic_and_every_agent_leads_its_share(cluster: Cluster, workload: Workload) -> None:
    before = {lease.partition: lease.epoch for lease in cluster.leases(workload.topic)}
    with workload.tail():
        workload.send(50)
        for agent, count in zip(cluster.agents.values(), (6, 7, GROWN), strict=True):
            grow_topic(agent.bootstrap, workload.topic, count)
            workload.send(50)
        cluster.wait_led(workload.topic)
    workload.settle()
    workload.assert_holds()
    assert counts(cluster, workload.topic) == {GROWN}
    leases = {lease.partition: lease for lease in cluster.leases(workload.topic)}
    epochs = {number: leases[number].epoch for number in before}
    assert_unmoved(epochs == before, f"what was led is not led on: {before}, then {epochs}")
    for partition in range(PARTITIONS, GROWN):
        assert produce(cluster, workload.topic, b"new", partition=partition) == 0
        assert read_from_leader(cluster, workload.topic, partition=partition) == {0: b"new"}


def test_of_many_admins_at_once_the_largest_wins_and_nobody_is_told_otherwise(cluster: Cluster) -> None:
    topic = cluster.new_topic()
    create_topic(cluster.bootstrap, topic, 1)
    wanted = [4, 6, 6, 8, 8, 5]
    agents = list(cluster.agents.values())
    ready = threading.Barrier(len(wanted))

    def ask(number: int) -> int:
        ready.wait(HUNG_SECONDS)
        return grow(agents[number % len(agents)].bootstrap, topic, wanted[number])

    with ThreadPoolExecutor(len(wanted)) as threads:
        codes = list(threads.map(ask, range(len(wanted))))

    assert set(codes) <= {0, KafkaError.INVALID_PARTITIONS}
    assert 0 in (codes[3], codes[4])
    assert rows(cluster, topic) == list(range(8))
    cluster.wait_led(topic)
    assert counts(cluster, topic) == {8}


@pytest.mark.parametrize("moment", ["before it asks", "while it asks"])
def test_an_agent_that_dies_while_it_grows_a_topic_leaves_it_whole(
    cluster: Cluster, workload: Workload, moment: str
) -> None:
    """Its count and its rows are one transaction: either none of the new partitions is there, or all are, and led."""
    asked, *others = cluster.agents.values()
    asking = threading.Thread(target=grow, args=(asked.bootstrap, workload.topic, GROWN), kwargs={"timeout": 5})
    if moment == "while it asks":
        asking.start()
        eventually(lambda: rows(cluster, workload.topic) != list(range(PARTITIONS)), "the growth", pause=0)
        asked.kill9()
    else:
        asked.pause()
        asking.start()
        asked.kill9()
    asking.join(HUNG_SECONDS)
    workload.send(100)

    assert len(rows(cluster, workload.topic)) in (PARTITIONS, GROWN)
    if moment == "while it asks":
        assert len(rows(cluster, workload.topic)) == GROWN
    eventually(lambda: _has_grown(others[0], workload.topic), "the topic to be grown, by this call or before")
    asked.start()
    cluster.wait_led(workload.topic)
    assert rows(cluster, workload.topic) == list(range(GROWN))
    assert counts(cluster, workload.topic) == {GROWN}
    workload.settle()
    workload.assert_holds()


def _has_grown(agent: Agent, topic: str) -> bool:
    """The client asks the controller, which may be the dead one for as long as nobody has noticed."""
    return grow(agent.bootstrap, topic, GROWN, timeout=2) in (0, KafkaError.INVALID_PARTITIONS)


@pytest.mark.parametrize("durability", ["object"])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_whose_coordinator_is_another_agent_is_given_the_new_partitions(
    cluster: Cluster, protocol: str
) -> None:
    topic = cluster.new_topic()
    create_topic(cluster.bootstrap, topic, 1)
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    often = {"topic.metadata.refresh.interval.ms": 200} if protocol == "classic" else {}
    consumer = confluent_kafka.Consumer({**settings, "group.protocol": protocol, **often})
    consumer.subscribe([topic])
    try:
        eventually(lambda: consumer.poll(0.1) or consumer.assignment(), "the first assignment", pause=0)
        grow_topic(next(iter(cluster.agents.values())).bootstrap, topic, 4)
        for partition in range(4):
            produce(cluster, topic, b"new", partition=partition)
        read: set[int] = set()

        def has_all() -> bool:
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                read.add(message.partition())
            return read == set(range(4))

        eventually(has_all, "a record of every partition", pause=0)
    finally:
        consumer.close()


def test_a_partition_that_was_added_survives_the_death_of_its_leader(cluster: Cluster) -> None:
    topic = cluster.new_topic()
    create_topic(cluster.bootstrap, topic, 1)
    grow_topic(cluster.bootstrap, topic, 3)
    produce(cluster, topic, b"before", partition=2)
    leader = cluster.leader_of(topic, 2)

    leader.kill9()
    leader.start()

    def goes_on() -> bool:
        try:
            return read_from_leader(cluster, topic, partition=2)[0] == b"before"
        except (OSError, Closed):
            return False

    eventually(goes_on, "the record to be read again", pause=0.1)
    assert produce(cluster, topic, b"after", partition=2) == 1
