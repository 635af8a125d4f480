"""The planning API of nodes that do not lead what they are asked about, over real processes, PostgreSQL and S3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from log_parts.kafka import Kafka
from node.admin import create_topic
from node.cluster import Cluster
from node.process import Node
from node.storage import committed_records, service_options
from node.wait import HUNG_SECONDS, eventually
from planning_parts.reading import plan, read_plan
from services.postgres import PostgresServer
from services.seaweed import SeaweedServer
from streamhouse.client.planning import PlanningClient
from streamhouse.wire.http import planning as api

PARTITIONS = 4
RECORDS = 400
SEGMENT_BYTES = 16_384


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer, s3_server: SeaweedServer
) -> Iterator[Cluster]:
    dsn = postgres_server.create_database()
    bucket = s3_server.create_bucket()
    with Cluster(2, tmp_path_factory.mktemp("cluster"), dsn, bucket, durability="object") as cluster:
        yield cluster
    postgres_server.drop_database(dsn)
    s3_server.delete_bucket(bucket)


@pytest.fixture(scope="module")
def topic(cluster: Cluster) -> str:
    """Partitions led by both agents, all with a segment and a tail."""
    name = cluster.new_topic()
    make_topic(cluster, name, PARTITIONS)
    cluster.wait_led(name)
    # Before there is a tail, which would be uploaded when its partition is handed over.
    wait_led_by_both(cluster, name)
    produce(cluster, name, count=RECORDS, size_bytes=500)
    # Each of these is a segment's worth alone, so that nothing before the tail is left to be uploaded together with it.
    produce(cluster, name, count=PARTITIONS, size_bytes=SEGMENT_BYTES)
    eventually(
        lambda: committed_records(cluster.storage, name) == RECORDS + PARTITIONS,
        "segments with everything",
        pause=0.1,
    )
    produce(cluster, name, count=PARTITIONS, size_bytes=10)
    return name


def wait_led_by_both(cluster: Cluster, topic: str) -> None:
    eventually(
        lambda: {cluster.leader_of(topic, partition).name for partition in range(PARTITIONS)} == {"a1", "a2"},
        "partitions led by both agents",
        pause=0.1,
    )


def make_topic(cluster: Cluster, name: str, partitions: int) -> None:
    config = {"segment.bytes": str(SEGMENT_BYTES), "segment.ms": "3600000"}
    create_topic(cluster.bootstrap, name, partitions, config)


def produce(cluster: Cluster, topic: str, *, count: int, size_bytes: int) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap, "batch.size": 4_000})
    for number in range(count):
        producer.produce(topic, f"{number}".encode().ljust(size_bytes, b"."), partition=number % PARTITIONS)
    assert producer.flush(HUNG_SECONDS) == 0


def assert_plans_are_complete(cluster: Cluster, client: PlanningClient, topic: str) -> list[api.RangeAnswer]:
    answers = [plan(client, topic, partition, piece_bytes=8_192) for partition in range(PARTITIONS)]
    for partition, answer in enumerate(answers):
        with Kafka(cluster.leader_of(topic, partition).bootstrap) as kafka:
            assert read_plan(client, topic, answer, partition) == kafka.read(topic, partition=partition)
    return answers


def test_every_agent_answers_for_all_partitions(cluster: Cluster, topic: str) -> None:
    wait_led_by_both(cluster, topic)
    for agent in cluster.agents.values():
        with PlanningClient(agent.http) as client:
            latest = client.offsets(
                [
                    api.OffsetQuestion(topic=topic, partition=partition, timestamp_ms=api.LATEST)
                    for partition in range(PARTITIONS)
                ]
            )
            answers = assert_plans_are_complete(cluster, client, topic)

        assert latest == [answer.high_watermark for answer in answers]
        assert all(answer.pieces for answer in answers), "of segments"
        assert all(answer.tail_start < answer.tail_end for answer in answers), "and of a tail"


def test_a_server_without_an_agent_answers_too(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    options = service_options(cluster._dsn, cluster._bucket, cluster._bucket.endpoint)
    with (
        Node(tmp_path, *options, env={"DISABLE_EMBEDDED_AGENT": "1"}) as server,
        PlanningClient(server.http) as client,
    ):
        eventually(
            lambda: sorted(client.cluster().kafka) == sorted(agent.bootstrap for agent in cluster.agents.values()),
            "the addresses of both agents",
            pause=0.1,
        )
        assert_plans_are_complete(cluster, client, topic)


def test_a_topic_that_was_made_a_moment_ago_is_there_at_once_on_every_agent(cluster: Cluster) -> None:
    name = cluster.new_topic()
    make_topic(cluster, name, 1)

    for agent in cluster.agents.values():
        with PlanningClient(agent.http) as client:
            assert name in [topic.name for topic in client.topics()]
            assert client.offsets([api.OffsetQuestion(topic=name, partition=0, timestamp_ms=api.LATEST)]) == [0]


def test_when_a_leader_dies_its_successor_is_asked(cluster: Cluster, topic: str) -> None:
    victim = cluster.leader_of(topic, 0)
    (survivor,) = cluster.others(victim)
    with PlanningClient(f"{victim.http},{survivor.http}", timeout_seconds=HUNG_SECONDS) as client:
        before = plan(client, topic, 0)
        victim.kill9()

        eventually(lambda: cluster.leader_of(topic, 0) is survivor, "the survivor to lead")
        assert plan(client, topic, 0).high_watermark == before.high_watermark
        assert_plans_are_complete(cluster, client, topic)
    cluster.heal()
