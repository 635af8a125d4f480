"""A node that starts while a store of its is silent: it asks again for a while, and says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from faults.workload import Workload
from node.process import Node
from node.proxy import TcpProxy
from node.storage import ServiceStorage
from node.wait import eventually
from services.seaweed import SECRET_ACCESS_KEY, S3Bucket


@contextmanager
def frozen_before(url: str) -> Iterator[tuple[TcpProxy, str]]:
    """A proxy to the server of a URL that lets nothing through, and the URL that leads there."""
    target = urlsplit(url)
    with TcpProxy((target.hostname or "", target.port or 0)) as proxy:
        proxy.freeze(True)
        user, at, _ = target.netloc.rpartition("@")
        yield proxy, target._replace(netloc=f"{user}{at}127.0.0.1:{proxy.port}").geturl()


@contextmanager
def waiting(data_dir: Path, storage: ServiceStorage) -> Iterator[Node]:
    """A node whose first try to start was in vain."""
    node = Node(data_dir, *storage.options)
    try:
        node.start(wait=False)
        eventually(lambda: "trying again" in node.stderr() or not node.running, "a try to start that was in vain")
        assert node.running, node.stderr()
        yield node
    finally:
        node.close()


def assert_it_starts_and_serves(node: Node) -> None:
    node.wait_ready()
    workload = Workload(node.bootstrap)
    workload.create_topic()
    workload.send(10)
    workload.settle()
    assert node.terminate() == 0


def test_a_node_waits_for_an_object_store_that_is_silent(
    data_dir: Path, postgres_dsn: str, s3_bucket: S3Bucket
) -> None:
    with frozen_before(s3_bucket.endpoint) as (proxy, endpoint):
        storage = ServiceStorage(postgres_dsn, s3_bucket, node_endpoint=endpoint)
        with waiting(data_dir, storage) as node:
            assert SECRET_ACCESS_KEY not in node.stderr()
            proxy.freeze(False)
            assert_it_starts_and_serves(node)


def test_a_node_waits_for_a_database_that_is_silent_and_can_be_stopped_meanwhile(
    data_dir: Path, postgres_dsn: str, s3_bucket: S3Bucket
) -> None:
    with frozen_before(postgres_dsn) as (proxy, dsn):
        storage = ServiceStorage(postgres_dsn, s3_bucket, node_dsn=dsn)
        with waiting(data_dir, storage) as node:
            assert (urlsplit(dsn).password or "no password") not in node.stderr()
            assert node.terminate() == 1
        with waiting(data_dir, storage) as node:
            proxy.freeze(False)
            assert_it_starts_and_serves(node)
