"""Partitions that were just made have leaders, whichever door and whichever node was asked for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
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
LONGEST_WAIT_SECONDS = 5.0
"""By then whoever makes partitions is answered, also if they have no leaders yet."""


def leaderless(cluster: Cluster, topics: Sequence[str], count: int = PARTITIONS) -> set[tuple[str, int]]:
    led = {(lease.topic, lease.partition) for lease in cluster.leases() if lease.is_live}
    return {(topic, number) for topic in topics for number in range(count)} - led


def listed_leaderless(rest: RestCaller, topic: str) -> set[int]:
    """As the command line and the console list them."""
    return {each["partition"] for each in rest.get(f"topics/{topic}/partitions")["partitions"] if not each["leader"]}


@contextmanager
def all_led_at_the_end(missing: Callable[[], Collection[object]], what: str) -> Iterator[None]:
    """What is made within has leaders then, unless a busy machine took longer than anybody waits for that."""
    begun = time.monotonic()
    yield
    is_answered_late = time.monotonic() - begun >= LONGEST_WAIT_SECONDS
    without = missing()
    assert_unmoved(is_answered_late or not without, f"{what}: {len(without)} without leaders")


def create(bootstrap: str, *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    asked = admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics], request_timeout=HUNG_SECONDS)
    for answer in asked.values():
        answer.result()


def create_over_rest(rest: RestCaller, topic: str) -> None:
    rest.post("topics", {"name": topic, "partition_count": PARTITIONS}, status=201)


@pytest.mark.parametrize("durability", ["object"])
@needs_steady_leases
def test_partitions_that_were_just_made_are_led(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> None:
    for agent in cluster.agents.values():
        topic = cluster.new_topic()
        with all_led_at_the_end(partial(leaderless, cluster, [topic]), "made over Kafka"):
            create(agent.bootstrap, topic)
        with all_led_at_the_end(partial(leaderless, cluster, [topic], 2 * PARTITIONS), "grown over Kafka"):
            grow_topic(agent.bootstrap, topic, 2 * PARTITIONS)
        topic = cluster.new_topic()
        with all_led_at_the_end(partial(leaderless, cluster, [topic]), "made over REST"):
            create_over_rest(RestCaller(agent.http), topic)
    with Node(
        Path(tmp_path_factory.mktemp("server")), *cluster.storage.options, env={"DISABLE_EMBEDDED_AGENT": "1"}
    ) as server:
        topic = cluster.new_topic()
        with all_led_at_the_end(partial(leaderless, cluster, [topic]), "made over Kafka by a server without an agent"):
            create(server.bootstrap, topic)
        topic, rest = cluster.new_topic(), RestCaller(server.http)
        with all_led_at_the_end(partial(listed_leaderless, rest, topic), "made over REST, as that server lists it"):
            create_over_rest(rest, topic)
