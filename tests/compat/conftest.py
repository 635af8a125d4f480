"""One node per test module, and topics that no other test has."""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from node.process import Node
from node.raw import RawConnection
from node.wait import eventually


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """Where the clients go. Not more than an address, so that these tests also judge other brokers."""

    bootstrap: str

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.bootstrap.rpartition(":")
        return host, int(port)


NewTopicName = Callable[..., str]
_numbers = itertools.count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A node with segments so small and young that reads come from memory and from the object store alike.

    `KAFKA_BOOTSTRAP` puts another broker in its place: Apache Kafka passes these tests, which tests the tests."""
    elsewhere = os.environ.get("KAFKA_BOOTSTRAP")
    if elsewhere:
        yield Broker(bootstrap=elsewhere)
        return
    directory = tmp_path_factory.mktemp("node")
    # Samples have timestamps of their own, so that retention would delete them as old.
    settings = ("--segment-bytes", "256KiB", "--segment-age", "300ms", "--retention-interval", "24h")
    with Node(directory, *settings) as node:
        yield Broker(bootstrap=node.bootstrap)


@pytest.fixture(scope="module")
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture(scope="module")
def new_topic(broker: Broker, admin: AdminClient) -> NewTopicName:
    """Creates a topic, waits until it can be used (Apache Kafka elects its leaders later) and returns its name."""

    def create(partitions: int = 1, **config: str) -> str:
        name = unused_name()
        settings = {key.replace("_", "."): value for key, value in config.items()}
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
        admin.create_topics([topic])[name].result()
        with RawConnection(broker.address) as raw:
            for partition in range(partitions):
                eventually(partial(_has_leader, raw, name, partition), f"a leader of {name}/{partition}")
        return name

    return create


def _has_leader(raw: RawConnection, topic: str, partition: int) -> bool:
    return bool(raw.list_offset(topic, -1, partition).error_code == 0)


def unused_name() -> str:
    return f"topic-{next(_numbers)}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def raw(broker: Broker) -> Iterator[RawConnection]:
    with RawConnection(broker.address) as connection:
        yield connection
