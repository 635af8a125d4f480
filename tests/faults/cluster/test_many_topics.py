"""Many topics at once, on a cluster of their own: one that other tests use would have to keep them all led, with leases
of two seconds, and to move them whenever a test ends an agent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.cluster.steady import assert_unmoved, needs_steady_leases
from faults.cluster.test_first_leaders import PARTITIONS, create, leaderless
from faults.cluster.watch import metrics
from node.cluster import Cluster
from services.seaweed import S3Bucket

MANY = 200


@pytest.fixture
def cluster(tmp_path: Path, postgres_dsn: str, s3_bucket: S3Bucket) -> Iterator[Cluster]:
    with Cluster(3, tmp_path, postgres_dsn, s3_bucket, durability="object") as cluster:
        yield cluster


def rounds(cluster: Cluster) -> float:
    found = [
        float(line.rsplit(" ", 1)[1])
        for agent in cluster.agents.values()
        for line in metrics(agent)
        if re.match(r"streamhouse_rebalance_rounds_total\{", line)
    ]
    assert found
    return sum(found)


@needs_steady_leases
def test_many_topics_at_once_do_not_take_a_round_each(cluster: Cluster) -> None:
    before = rounds(cluster)
    topics = [cluster.new_topic() for _ in range(MANY)]
    create(cluster.bootstrap, *topics)
    assert rounds(cluster) - before < 3 * MANY / 2, "a round of an agent for each topic"
    missing = [topic for topic in topics if leaderless(cluster, topic, PARTITIONS)]
    assert_unmoved(not missing, f"{missing} have partitions without leaders")
