"""Nodes for Spark to read and write: one on its own disk, one on PostgreSQL and S3, each with an HTTP port."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from node.process import Node
from node.storage import EmbeddedStorage, ServiceStorage, Storage, committed_records
from node.wait import eventually
from services.postgres import PostgresServer
from services.seaweed import SeaweedServer

# So small and young that a few records cross every step. Samples have timestamps of their own, so that retention
# would delete them as old.
OPTIONS = ("--segment-bytes", "64KiB", "--segment-age", "300ms", "--retention-interval", "24h")

_numbers = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkNode:
    """A node, what it keeps, and topics on it."""

    node: Node
    storage: Storage

    @property
    def endpoint(self) -> str:
        """What the option `endpoint` of the data source takes, as of the node's last start."""
        return self.node.http

    @property
    def bootstrap(self) -> str:
        return self.node.bootstrap

    def new_topic(self, partitions: int = 1, *, prefix: str = "topic", **config: str) -> str:
        """Creates one and returns its name; `cleanup_policy="compact"` sets cleanup.policy."""
        name = f"{prefix}-{next(_numbers)}-{uuid.uuid4().hex[:8]}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
        admin = AdminClient({"bootstrap.servers": self.bootstrap})  # held: its futures fail when it is gone
        admin.create_topics([topic])[name].result()
        return name

    def wait_in_segments(self, topic: str, count: int) -> None:
        """Until so many of its records are in the object store."""
        eventually(
            lambda: committed_records(self.storage, topic) >= count, f"{count} of {topic} in segments", pause=0.1
        )


@contextmanager
def embedded(directory: Path, *options: str) -> Iterator[SparkNode]:
    with Node(directory, *OPTIONS, *options) as node:
        yield SparkNode(node=node, storage=EmbeddedStorage(directory))


@contextmanager
def on_services(directory: Path, postgres: PostgresServer, store: SeaweedServer, *options: str) -> Iterator[SparkNode]:
    dsn = postgres.create_database()
    bucket = store.create_bucket()
    storage = ServiceStorage(dsn, bucket)
    try:
        with Node(directory, *storage.options, *OPTIONS, *options) as node:
            yield SparkNode(node=node, storage=storage)
    finally:
        store.delete_bucket(bucket)
        postgres.drop_database(dsn)


@pytest.fixture(scope="module")
def embedded_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkNode]:
    with embedded(tmp_path_factory.mktemp("node")) as node:
        yield node


@pytest.fixture(scope="module")
def service_node(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer, s3_server: SeaweedServer
) -> Iterator[SparkNode]:
    with on_services(tmp_path_factory.mktemp("node"), postgres_server, s3_server) as node:
        yield node


@pytest.fixture(scope="module", params=["embedded", "services"])
def any_node(request: pytest.FixtureRequest) -> SparkNode:
    """Each test of the module on both kinds of node."""
    name = "embedded_node" if request.param == "embedded" else "service_node"
    node: SparkNode = request.getfixturevalue(name)
    return node
