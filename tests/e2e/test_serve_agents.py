"""`streamhouse serve --agents N`: an agent per process on one machine, one of which dies and comes back."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import confluent_kafka
import psutil
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from node.admin import create_topic
from node.process import Node
from node.wait import HUNG_SECONDS, eventually

PARTITIONS = 4
RECORDS = 40
TIMINGS = ("--lease-ttl", "3s", "--lease-renewal", "1s", "--heartbeat", "1s", "--liveness", "4s", "--rebalance", "1s")


def agent_processes(parent: int) -> list[psutil.Process]:
    return [child for child in psutil.Process(parent).children() if is_agent(child)]


def is_agent(child: psutil.Process) -> bool:
    try:
        return bool(child.cmdline()[1:4] == ["-m", "streamhouse", "agent"])
    except psutil.Error:  # it has just ended
        return False


def brokers(bootstrap: str) -> set[str]:
    metadata = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=HUNG_SECONDS)
    return {f"{broker.host}:{broker.port}" for broker in metadata.brokers.values()}


def produce(bootstrap: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(RECORDS):
        producer.produce("orders", f"{number}", partition=number % PARTITIONS)
    assert producer.flush(60) == 0


def count_records(bootstrap: str) -> int:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "counting", "enable.partition.eof": True}
    )
    try:
        consumer.assign([TopicPartition("orders", number, 0) for number in range(PARTITIONS)])
        count = ended = 0
        while ended < PARTITIONS:
            message = eventually(lambda: consumer.poll(1), "a record or the end of a partition")
            if message.error() is None:
                count += 1
            else:
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, message.error()
                ended += 1
        return count
    finally:
        consumer.close()


def test_two_agents_share_the_work_and_one_that_dies_comes_back(tmp_path: Path, postgres_dsn: str) -> None:
    stores = ("--metadata", postgres_dsn, "--objects", f"file://{tmp_path / 'objects'}")
    with Node(tmp_path / "data", *stores, *TIMINGS, "--agents", "2", "--grpc-port", "0", port=0) as node:
        eventually(lambda: len(brokers(node.bootstrap)) == 2, "both agents in the metadata")
        create_topic(node.bootstrap, "orders", PARTITIONS)
        produce(node.bootstrap)
        children = agent_processes(node.pid)
        assert len(children) == 2

        killed = children[1]
        os.kill(killed.pid, signal.SIGKILL)
        eventually(
            lambda: len(agent_processes(node.pid)) == 2 and killed not in agent_processes(node.pid), "a new process"
        )
        produce(node.bootstrap)

        assert count_records(node.bootstrap) == 2 * RECORDS
        children = agent_processes(node.pid)
        assert node.terminate() == 0
        assert not any(child.is_running() for child in children)


def test_agents_do_not_outlive_the_process_that_started_them(tmp_path: Path, postgres_dsn: str) -> None:
    stores = ("--metadata", postgres_dsn, "--objects", f"file://{tmp_path / 'objects'}")
    with Node(tmp_path / "data", *stores, *TIMINGS, "--agents", "2", "--grpc-port", "0", port=0) as node:
        children = agent_processes(node.pid)
        node.kill9()
        eventually(lambda: not any(child.is_running() for child in children), "the end of the agents")
