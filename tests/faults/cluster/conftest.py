"""Clusters that tests share: each test hurts one, and it must be whole again before the next has it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from faults.cluster.workloads import new_workload
from faults.workload import Workload
from node.cluster import Cluster
from services.postgres import PostgresServer
from services.seaweed import SeaweedServer


class Pool:
    """Three agents for each durability, started when first asked for. A cluster that does not heal is replaced."""

    def __init__(self, postgres: PostgresServer, store: SeaweedServer) -> None:
        self._postgres = postgres
        self._store = store
        self._clusters: dict[str, tuple[Cluster, ExitStack]] = {}

    def take(self, durability: str) -> Cluster:
        if durability not in self._clusters:
            ending = ExitStack()
            with ending:
                directory = Path(tempfile.mkdtemp(prefix="cluster-"))
                ending.callback(shutil.rmtree, directory, ignore_errors=True)
                dsn = self._postgres.create_database()
                ending.callback(self._postgres.drop_database, dsn)
                bucket = self._store.create_bucket()
                ending.callback(self._store.delete_bucket, bucket)
                # So long that no test is too slow for it.
                delay = ("--auto-create-delay", "10m")
                cluster = ending.enter_context(Cluster(3, directory, dsn, bucket, *delay, durability=durability))
                self._clusters[durability] = cluster, ending.pop_all()
        return self._clusters[durability][0]

    def give_back(self, cluster: Cluster) -> None:
        """It heals by itself (I8), without seams (I3) and with all its objects (I7)."""
        try:
            cluster.heal()
            cluster.assert_sound()
        except BaseException as error:
            cluster.explain(error)
            self._clusters.pop(cluster.durability)[1].close()
            raise

    def close(self) -> None:
        with ExitStack() as closing:
            for cluster, ending in self._clusters.values():
                closing.callback(ending.close)
                closing.callback(cluster.assert_verified)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """What the agents said, and who led what, beside the error of a test that fails."""
    try:
        return (yield)
    except BaseException as error:
        cluster = getattr(item, "funcargs", {}).get("cluster")
        if isinstance(cluster, Cluster):
            cluster.explain(error)
        raise


@pytest.fixture(scope="package")
def pool(postgres_server: PostgresServer, s3_server: SeaweedServer) -> Iterator[Pool]:
    pool = Pool(postgres_server, s3_server)
    yield pool
    pool.close()


@pytest.fixture(params=["object", "wal"])
def durability(request: pytest.FixtureRequest) -> str:
    """A test that concerns only one of them parametrises `durability` itself."""
    return str(request.param)


@pytest.fixture
def cluster(pool: Pool, durability: str) -> Iterator[Cluster]:
    """Three agents, all of them whole, which other tests have used before."""
    cluster = pool.take(durability)
    yield cluster
    pool.give_back(cluster)


@pytest.fixture
def workload(cluster: Cluster) -> Workload:
    return new_workload(cluster)
