"""The database that all agents share restarts, and the store that they share fails and lies: nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.cluster.values import NOT_LEADER
from faults.workload import Workload, create_topic
from node.cluster import Cluster
from node.proxy import Fault, S3Proxy
from node.raw import RawConnection, build_batch
from node.wait import eventually
from services.postgres import OwnPostgresServer
from services.seaweed import S3Bucket

LEASE_SECONDS = 2
PROBES = 6


@pytest.fixture
def store(s3_bucket: S3Bucket) -> Iterator[S3Proxy]:
    """Before the store of all agents."""
    with S3Proxy(s3_bucket.endpoint) as proxy:
        yield proxy


@pytest.fixture
def cluster(
    tmp_path: Path, stoppable_postgres: OwnPostgresServer, s3_bucket: S3Bucket, store: S3Proxy, durability: str
) -> Iterator[Cluster]:
    dsn = stoppable_postgres.create_database()
    with Cluster(3, tmp_path, dsn, s3_bucket, durability=durability, endpoint=store.endpoint) as cluster:
        yield cluster
        cluster.heal()
        cluster.assert_sound()
        cluster.assert_verified()


@pytest.mark.long_form("wal")
def test_a_database_that_restarts_and_a_store_that_fails_lose_nothing(
    cluster: Cluster, workload: Workload, stoppable_postgres: OwnPostgresServer, store: S3Proxy
) -> None:
    with workload.tail():
        restart_database(cluster, workload, stoppable_postgres)
        for fault in (Fault.REFUSED_503, Fault.LOST_ANSWER, Fault.WRONG_ANSWER, Fault.CUT_UPLOAD):
            failed = len(store.faults)
            store.fail_next(fault, count=6)
            workload.send(100)
            eventually(lambda: len(store.faults) >= failed + 6, f"uploads that meet {fault.name}")  # noqa: B023
            workload.settle()
    workload.assert_holds()


def restart_database(cluster: Cluster, workload: Workload, database: OwnPostgresServer) -> None:
    """At once, and after longer than a lease: then nobody leads anything by its clock."""
    create_topic(cluster.bootstrap, "probe", PROBES)
    cluster.wait_led("probe")
    workload.send_in_flight(300, acknowledged=30)
    database.crash()
    database.start()
    workload.settle()
    workload.send_in_flight(300, acknowledged=30)
    database.stop()
    stopped = time.monotonic()
    workload.send(100)
    eventually(lambda: time.monotonic() > stopped + 2 * LEASE_SECONDS, "the leases to run out")
    if cluster.durability == "wal":
        assert_nobody_writes(cluster)
    database.start()
    eventually(lambda: somebody_is_named(cluster) and workload.settled, "every record's outcome")
    workload.settle()
    cluster.wait_led()


def somebody_is_named(cluster: Cluster) -> bool:
    """By every agent, also when it has not heard of any for longer than agents are taken to live: a client that is told
    of no node has none left to ask."""
    for agent in cluster.agents.values():
        with RawConnection(agent.address) as raw:
            assert raw.metadata().brokers, f"{agent.name} names nobody"
    return True


def assert_nobody_writes(cluster: Cluster) -> None:
    """Every agent stops by its own clock, although its disk would take more."""
    for agent in cluster.agents.values():
        with RawConnection(agent.address) as raw:
            codes = {raw.produce("probe", build_batch(b"x"), partition=number).error_code for number in range(PROBES)}
        assert codes == {NOT_LEADER}, f"{agent.name} answers {codes} without a lease"
