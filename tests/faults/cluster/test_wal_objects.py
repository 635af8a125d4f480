"""Objects of the object WAL: they go when segments cover what is in them, and never before."""

from __future__ import annotations

from pathlib import Path

from faults.workload import Workload
from node.cluster import Cluster
from node.wait import eventually
from services.seaweed import S3Bucket

QUICK_CLEANING = ("--garbage-grace", "3s", "--garbage-interval", "500ms")


def wal_objects(cluster: Cluster) -> set[str]:
    return {key for key in cluster.storage.object_sizes() if not key.endswith(".strm")}


def test_they_are_removed_when_segments_cover_them_and_nothing_is_lost(
    tmp_path: Path, postgres_dsn: str, s3_bucket: S3Bucket
) -> None:
    with Cluster(1, tmp_path, postgres_dsn, s3_bucket, *QUICK_CLEANING, durability="object") as cluster:
        workload = Workload(cluster.bootstrap)
        workload.create_topic()
        (agent,) = cluster.agents.values()
        with workload.tail():
            for _ in range(2):
                workload.send_in_flight(200, acknowledged=50)
                assert wal_objects(cluster), "acknowledged, and nothing is stored"
                agent.kill9()
                agent.start()
                workload.settle()
            eventually(lambda: not wal_objects(cluster), "all WAL objects to go", pause=0.2)
        workload.assert_holds()
        cluster.assert_sound()
        cluster.assert_verified()
