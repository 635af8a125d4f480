"""Agents in network namespaces of their own whose links go down: packets are lost, and nobody is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.workload import Workload
from node.cluster import Cluster, Cut
from node.network import Way, network
from services.seaweed import S3Bucket


@pytest.fixture
def cluster(tmp_path: Path, postgres_dsn: str, s3_bucket: S3Bucket, durability: str) -> Iterator[Cluster]:
    with (
        network() as net,
        Cluster(3, tmp_path, postgres_dsn, s3_bucket, durability=durability, network=net) as cluster,
    ):
        yield cluster
        cluster.heal()
        cluster.assert_sound()
        cluster.assert_verified()


@pytest.mark.long_form("wal")
def test_a_network_that_is_cut_anywhere_loses_nothing(cluster: Cluster, workload: Workload) -> None:
    """From the database, from the store, from clients and other agents, and from everything, one after the other."""
    with workload.tail():
        for ways in ((Way.DATABASE,), (Way.STORE,), (Way.PEERS,), tuple(Way)):
            victim = cluster.leader_of(workload.topic, 0)
            workload.send_in_flight(200, acknowledged=20)
            for way in ways:
                victim.cut(way, Cut.SILENT)
            if Way.DATABASE in ways:
                cluster.wait_lease_lost(victim)
            workload.send_in_flight(100, acknowledged=10)  # what others lead goes on
            victim.mend()
            workload.settle()
            cluster.wait_led(workload.topic)
    workload.assert_holds()
