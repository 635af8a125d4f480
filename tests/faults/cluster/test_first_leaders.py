"""Partitions that were just made have leaders, whichever door and whichever node was asked for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from faults.cluster.steady import assert_unmoved, needs_steady_leases
from node.admin import grow_topic
from node.cluster import Cluster
from node.process import Node
from node.wait import HUNG_SECONDS
from rest_parts.caller import RestCaller

PARTITIONS = 9


def leaderless(cluster: Cluster, topic: str, count: int) -> set[int]:
    led = {lease.partition for lease in cluster.leases(topic) if lease.is_live}
    return set(range(count)) - led


def create(bootstrap: str, *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    asked = admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics], request_timeout=HUNG_SECONDS)
    for answer in asked.values():
        answer.result()


@pytest.mark.parametrize("durability", ["object"])
@needs_steady_leases
def test_partitions_that_were_just_made_are_led(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> None:
    for agent in cluster.agents.values():
        create(agent.bootstrap, topic := cluster.new_topic())
        assert_unmoved(not leaderless(cluster, topic, PARTITIONS), f"{topic} by Kafka")
        grow_topic(agent.bootstrap, topic, 2 * PARTITIONS)
        assert_unmoved(not leaderless(cluster, topic, 2 * PARTITIONS), f"{topic} that grew")
        rest = RestCaller(agent.http)
        rest.post("topics", {"name": (topic := cluster.new_topic()), "partition_count": PARTITIONS}, status=201)
        assert_unmoved(not leaderless(cluster, topic, PARTITIONS), f"{topic} by REST")
    with Node(
        Path(tmp_path_factory.mktemp("server")), *cluster.storage.options, env={"DISABLE_EMBEDDED_AGENT": "1"}
    ) as server:
        create(server.bootstrap, topic := cluster.new_topic())
        assert_unmoved(not leaderless(cluster, topic, PARTITIONS), f"{topic} by a server without an agent")
        rest = RestCaller(server.http)
        rest.post("topics", {"name": (topic := cluster.new_topic()), "partition_count": PARTITIONS}, status=201)
        assert_unmoved(
            all(partition["leader"] for partition in rest.get(f"topics/{topic}/partitions")["partitions"]),
            f"{topic} as that server lists it right after",
        )
