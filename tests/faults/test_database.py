"""A database that stops, comes back, and loses its answers: exactly one commit, no seams, and it heals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from faults.sweep import BRISK, sweep_size
from faults.workload import Workload
from node.process import Node, NodeDied
from node.proxy import TcpProxy
from node.raw import RawConnection, read_values
from node.storage import ServiceStorage, assert_rows_and_objects_agree, committed_records
from node.wait import eventually
from services.postgres import OwnPostgresServer
from services.seaweed import S3Bucket

SHORT_LEASE = ("--lease-ttl", "3s", "--lease-renewal", "1s")


@pytest.fixture
def proxy(postgres_dsn: str) -> Iterator[TcpProxy]:
    target = urlsplit(postgres_dsn)
    with TcpProxy((target.hostname or "", target.port or 5432)) as proxy:
        yield proxy


@pytest.fixture
def storage(proxy: TcpProxy, postgres_dsn: str, s3_bucket: S3Bucket) -> ServiceStorage:
    target = urlsplit(postgres_dsn)
    through = target._replace(netloc=f"{target.username}:{target.password}@127.0.0.1:{proxy.port}").geturl()
    return ServiceStorage(postgres_dsn, s3_bucket, node_dsn=through)


def assert_all_committed(storage: ServiceStorage, workload: Workload) -> None:
    eventually(lambda: committed_records(storage, workload.topic) >= workload.acknowledged, "all records committed")
    assert committed_records(storage, workload.topic) == workload.acknowledged
    assert_rows_and_objects_agree(storage)


def test_a_commit_whose_answer_was_lost_is_made_once(data_dir: Path, proxy: TcpProxy, storage: ServiceStorage) -> None:
    """The proxy lets COMMIT reach the database and ends the connection when the answer comes."""
    with Node(data_dir, *BRISK, *storage.options) as node:
        workload = Workload(node.bootstrap)
        workload.create_topic()
        for _ in range(sweep_size(4)):
            lost = proxy.lost_answers
            proxy.lose_answers_to(b"COMMIT", 2)
            workload.send(60)
            workload.settle()
            eventually(lambda: proxy.lost_answers >= lost + 2, "answers that were lost")  # noqa: B023
            assert_all_committed(storage, workload)
        workload.assert_holds()
        assert node.terminate() == 0
        assert_rows_and_objects_agree(storage)


def test_connections_that_are_cut_again_and_again_lose_nothing(
    data_dir: Path, proxy: TcpProxy, storage: ServiceStorage
) -> None:
    with Node(data_dir, *BRISK, *storage.options) as node:
        workload = Workload(node.bootstrap)
        workload.create_topic()
        with workload.tail():
            for _ in range(sweep_size(6)):
                workload.send_in_flight(100, acknowledged=10)
                proxy.cut()
            workload.settle()
        assert_all_committed(storage, workload)
        workload.assert_holds()


def test_a_database_out_of_reach_for_longer_than_the_lease_loses_nothing(
    data_dir: Path, proxy: TcpProxy, storage: ServiceStorage
) -> None:
    """Without its lease the node may not write; when it has one again, producers go on by themselves."""
    with Node(data_dir, *BRISK, *SHORT_LEASE, *storage.options) as node:
        workload = Workload(node.bootstrap)
        workload.create_topic()
        workload.send(100)
        workload.settle()
        proxy.refuse(True)
        proxy.cut()
        eventually(lambda: leases_expired(storage), "the lease to run out")
        workload.send(100)
        proxy.refuse(False)
        workload.settle()
        assert_all_committed(storage, workload)
        workload.assert_holds()
        assert node.terminate() == 0


def leases_expired(storage: ServiceStorage) -> bool:
    live = "SELECT count(*) FROM partition_leases WHERE lease_expires_at > extract(epoch FROM now()) * 1000"
    return storage.query(live) == [(0,)]


@pytest.mark.parametrize("how", ["stop", "crash"])
def test_a_database_that_restarts_under_traffic_loses_nothing(
    data_dir: Path, stoppable_postgres: OwnPostgresServer, s3_bucket: S3Bucket, how: str
) -> None:
    storage = ServiceStorage(stoppable_postgres.create_database(), s3_bucket)
    with Node(data_dir, *BRISK, *storage.options) as node:
        workload = Workload(node.bootstrap)
        workload.create_topic()
        workload.send(200)
        workload.settle()
        getattr(stoppable_postgres, how)()
        # What is in memory or cached needs no database.
        with RawConnection(node.address) as raw:
            answer = raw.fetch(workload.topic, 0)
            assert answer.error_code == 0
            assert 0 in read_values(answer.records)
        workload.send(200)
        stoppable_postgres.start()
        workload.settle()
        assert_all_committed(storage, workload)
        workload.assert_holds()
        assert node.terminate() == 0
        assert_rows_and_objects_agree(storage)


def test_a_node_killed_while_the_database_is_down_recovers_when_it_is_back(
    data_dir: Path, stoppable_postgres: OwnPostgresServer, s3_bucket: S3Bucket
) -> None:
    storage = ServiceStorage(stoppable_postgres.create_database(), s3_bucket)
    with Node(data_dir, *BRISK, *storage.options) as node:
        workload = Workload(node.bootstrap)
        workload.create_topic()
        workload.send(100)
        workload.settle()
        stoppable_postgres.crash()
        workload.send_in_flight(100, acknowledged=1)
        node.kill9()
        stoppable_postgres.start()
        node.start()
        workload.settle()
        assert_all_committed(storage, workload)
        workload.assert_holds()


def test_a_node_without_its_database_does_not_start_and_says_why(data_dir: Path, s3_bucket: S3Bucket) -> None:
    dsn = "postgresql://nobody:secret-word@127.0.0.1:9/none"
    with (
        pytest.raises(NodeDied) as death,
        Node(data_dir, "--metadata", dsn, *ServiceStorage(dsn, s3_bucket).options[2:]),
    ):
        pass
    assert death.value.exit_code == 1
    assert "secret-word" not in death.value.stderr, "a password was printed"
    assert "Traceback" not in death.value.stderr
