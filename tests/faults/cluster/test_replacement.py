"""Segments replaced in a cluster: through any agent, and done once though the leader dies at that moment."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import confluent_kafka
import pytest

from faults.cluster.values import produce
from node.admin import create_topic
from node.cluster import Agent, Cluster
from node.storage import Storage
from node.wait import HUNG_SECONDS, eventually
from planning_parts.compaction import prepare
from streamhouse.client.planning import PlanningClient
from streamhouse.model.buffer import Buffer
from streamhouse.wire.http.planning import RangeQuestion

BATCH, BATCHES = 10, 6
END = BATCH * BATCHES


class StoredObjects:
    """The bucket, past the agents."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def get(self, key: str) -> bytes:
        return self._storage.read_object(key)

    def create(self, key: str, parts: Sequence[Buffer]) -> None:
        self._storage.write_object(key, b"".join(parts))


def filled_topic(cluster: Cluster) -> str:
    topic = cluster.new_topic()
    create_topic(cluster.bootstrap, topic, 1, {"segment.ms": "50"})
    cluster.wait_led(topic)
    with planning(*cluster.agents.values()) as client:
        for start in range(0, END, BATCH):
            produce(cluster, topic, *(b"%d" % offset for offset in range(start, start + BATCH)))
            eventually(lambda: client.segments(topic, 0).committed_end == start + BATCH, "a segment")  # noqa: B023
    return topic


def planning(*agents: Agent) -> PlanningClient:
    return PlanningClient(",".join(agent.http for agent in agents), timeout_seconds=HUNG_SECONDS)


def planned(client: PlanningClient, topic: str) -> list[str]:
    """The objects that hold the log."""
    question = RangeQuestion(topic=topic, partition=0, start=0, end=END)
    (answer,) = client.ranges([question], piece_bytes=2**30)
    return [piece.key for piece in answer.pieces]


def consumed(cluster: Cluster, topic: str, count: int) -> list[int]:
    """The offsets of so many records, each of which must have its offset as its value."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader"})
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        offsets: list[int] = []
        while len(offsets) < count:
            message = consumer.poll(HUNG_SECONDS)
            assert message is not None, f"only {offsets} came"
            if message.error() is None:
                assert message.value() == b"%d" % message.offset()
                offsets.append(message.offset())
        return offsets
    finally:
        consumer.close()


@pytest.mark.long_form("wal")
def test_what_agents_knew_of_a_log_before_a_replacement_is_not_what_they_say_after_it(cluster: Cluster) -> None:
    """Spark's plans go by it, also of a partition that another agent leads."""
    topic = filled_topic(cluster)
    leader = cluster.leader_of(topic, 0)
    objects = StoredObjects(cluster.storage)
    everyone = [planning(agent) for agent in cluster.agents.values()]
    try:
        old = [each.object_key for each in everyone[0].segments(topic, 0).segments]
        assert [planned(client, topic) for client in everyone] == [old] * len(everyone)
        with planning(*cluster.others(leader)) as client:
            replacement = prepare(
                client, topic, client.segments(topic, 0).segments[:4], range(9, 40, 10), objects=objects
            )
            client.replace(replacement)

        new = [*(each.object_key for each in replacement.added), *old[4:]]
        assert [planned(client, topic) for client in everyone] == [new] * len(everyone)
    finally:
        for client in everyone:
            client.close()
    cluster.assert_sound()


@pytest.mark.long_form("wal")
def test_any_agent_takes_a_replacement_and_it_outlives_its_leader(cluster: Cluster) -> None:
    topic = filled_topic(cluster)
    leader = cluster.leader_of(topic, 0)
    objects = StoredObjects(cluster.storage)
    left = sorted([*range(9, 40, 10), *range(40, 45), 59])
    with planning(*cluster.others(leader)) as client:
        old = client.segments(topic, 0).segments
        first = prepare(client, topic, old[:4], left, objects=objects)
        client.replace(first)
        second = prepare(client, topic, old[4:], left, objects=objects)
        with ThreadPoolExecutor(1) as thread:
            replacing = thread.submit(client.replace, second)
            leader.kill9()
            leader.start()
            replacing.result()
        client.replace(first)
        client.replace(second)
        cluster.wait_led(topic)

        current = client.segments(topic, 0)
        assert [each.object_key for each in current.segments] == [
            each.object_key for each in (*first.added, *second.added)
        ]
    assert consumed(cluster, topic, len(left)) == left
    cluster.assert_sound()
