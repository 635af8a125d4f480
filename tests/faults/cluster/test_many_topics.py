"""Many topics at once, on a cluster of their own: one that other tests use would have to keep them all led, with leases
of two seconds, and to move them whenever a test ends an agent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from faults.cluster.test_first_leaders import all_led_at_the_end, create, leaderless
from faults.cluster.watch import metrics
from node.cluster import Cluster
from services.seaweed import S3Bucket

MANY = 200


@pytest.fixture
def cluster(tmp_path: Path, postgres_dsn: str, s3_bucket: S3Bucket) -> Iterator[Cluster]:
    timings = ("--lease-ttl", "2m", "--liveness", "2m", "--rebalance", "1s")
    with Cluster(3, tmp_path, postgres_dsn, s3_bucket, durability="object", timings=timings) as cluster:
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


def test_many_topics_at_once_do_not_take_a_round_each(cluster: Cluster) -> None:
    before = rounds(cluster)
    topics = [cluster.new_topic() for _ in range(MANY)]
    with all_led_at_the_end(partial(leaderless, cluster, topics), "many topics"):
        create(cluster.bootstrap, *topics)
    assert rounds(cluster) - before < 3 * MANY / 2, "a round of an agent for each topic"
    cluster.wait_led()
