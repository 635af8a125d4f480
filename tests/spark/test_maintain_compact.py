"""Compaction and merging of logs that are in use: readers find what a model says, and nothing else has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from maintain_parts.logs import (
    SMALL_TAIL,
    connection_to,
    create_topic,
    keyed_records,
    latest_values,
    running_producer,
)
from node.storage import assert_rows_and_objects_agree, segments_of
from rest_parts.caller import RestCaller
from services.postgres import PostgresServer
from services.seaweed import SeaweedServer
from spark_parts.nodes import SparkNode, embedded, on_services
from spark_parts.rows import consume, produce, produce_with_every_codec
from streamhouse.model.errors import CorruptData, InvalidConfig, NotFound
from streamhouse.spark.jobs.compact import Compaction, compact
from streamhouse.spark.jobs.merge import Merging, merge
from streamhouse.spark.jobs.swap import Swap

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = 1500
KEYS = 40


@pytest.fixture(scope="module", params=["embedded", "services"])
def node(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    postgres_server: PostgresServer,
    s3_server: SeaweedServer,
) -> Iterator[SparkNode]:
    directory = tmp_path_factory.mktemp("node")
    kind = (
        embedded(directory, *SMALL_TAIL)
        if request.param == "embedded"
        else on_services(directory, postgres_server, s3_server, *SMALL_TAIL)
    )
    with kind as made:
        yield made


def run_compact(spark: SparkSession, node: SparkNode, topic: str, **options: bool) -> list[Swap]:
    return compact(spark, Compaction(connection=connection_to(node), topics=[topic], **options))


def test_a_compacted_log_is_what_the_model_says_while_a_producer_writes(spark: SparkSession, node: SparkNode) -> None:
    topic = create_topic(node, 2, cleanup_policy="compact", delete_retention_ms="0")
    produce_with_every_codec(node.bootstrap, topic, keyed_records(COUNT, keys=KEYS))
    node.wait_in_segments(topic, COUNT)
    before = consume(node.bootstrap, topic)

    with running_producer(node, topic, keys=KEYS) as producer:
        swaps = run_compact(spark, node, topic)

    expected = sorted(before + producer.rows)
    after = consume(node.bootstrap, topic)
    assert set(after) <= set(expected)
    assert latest_values(after) == latest_values(expected)
    assert sum(swap.records_before - swap.records_after for swap in swaps) == len(expected) - len(after) > COUNT // 2
    for swap in swaps:
        # The last record of what was compacted is kept, also if a later one has its key.
        inside = [row for row in after if row.partition == swap.partition and row.offset < swap.end_offset - 1]
        assert max(Counter(row.key for row in inside).values()) == 1
    assert_rows_and_objects_agree(node.storage)

    # Tombstones were kept while there was something to delete, and go now.
    node.wait_in_segments(topic, len(after))
    run_compact(spark, node, topic)
    run_compact(spark, node, topic)
    rest = consume(node.bootstrap, topic)
    assert latest_values(rest) == latest_values(expected)
    ends = {row.partition: row for row in rest}.values()
    assert all(row.value is not None for row in rest if row not in ends)


def test_a_dry_run_counts_and_changes_nothing(spark: SparkSession, node: SparkNode) -> None:
    topic = create_topic(node, cleanup_policy="compact,delete")
    produce(node.bootstrap, topic, keyed_records(200, keys=7))
    node.wait_in_segments(topic, 200)
    before = segments_of(node.storage, topic)

    (swap,) = run_compact(spark, node, topic, dry_run=True)

    assert (swap.records_before, swap.records_after, swap.bytes_after) == (200, 7, None)
    assert segments_of(node.storage, topic) == before


def test_records_that_are_too_young_and_topics_without_the_policy_are_left_alone(
    spark: SparkSession, node: SparkNode
) -> None:
    young = create_topic(node, cleanup_policy="compact", min_compaction_lag_ms=str(2**60))
    produce(node.bootstrap, young, keyed_records(100, keys=3))
    node.wait_in_segments(young, 100)

    assert run_compact(spark, node, young) == []
    with pytest.raises(InvalidConfig, match=r"cleanup\.policy=delete"):
        run_compact(spark, node, create_topic(node))
    with pytest.raises(NotFound, match="there is no topic 'nobody'"):
        run_compact(spark, node, "nobody")


def test_a_damaged_segment_is_not_taken_for_the_truth(spark: SparkSession, node: SparkNode) -> None:
    topic = create_topic(node, cleanup_policy="compact")
    produce(node.bootstrap, topic, keyed_records(50, keys=3))
    node.wait_in_segments(topic, 50)
    (segment, *_) = before = segments_of(node.storage, topic)
    content = node.storage.read_object(segment.object_key)
    node.storage.write_object(segment.object_key, content[:90] + bytes([content[90] ^ 1]) + content[91:])

    with pytest.raises(CorruptData, match="does not match its CRC"):
        run_compact(spark, node, topic)

    assert segments_of(node.storage, topic) == before
    node.storage.write_object(segment.object_key, content)


def test_merged_segments_hold_the_same_records_while_a_producer_writes(spark: SparkSession, node: SparkNode) -> None:
    topic = create_topic(node, retention_ms="-1")
    rows = 0
    for _ in range(5):
        rows += 60
        produce_with_every_codec(node.bootstrap, topic, keyed_records(60, keys=KEYS), run_records=20)
        node.wait_in_segments(topic, rows)
    before = consume(node.bootstrap, topic)
    many = len(segments_of(node.storage, topic))

    with running_producer(node, topic, keys=KEYS) as producer:
        swaps = merge(spark, Merging(connection=connection_to(node), topics=[topic]))

    assert sum(swap.segments_before for swap in swaps) >= 5
    assert all(swap.records_before == swap.records_after for swap in swaps)
    assert many >= 5
    assert [swap.segments_after for swap in swaps] == [1]
    assert consume(node.bootstrap, topic) == sorted(before + producer.rows)
    assert_rows_and_objects_agree(node.storage)


def rest_offsets(node: SparkNode, topic: str) -> list[int]:
    rest = RestCaller(node.endpoint)
    partitions = rest.get(f"topics/{topic}/partitions")["partitions"]
    pages = [rest.get(f"topics/{topic}/partitions/{each['partition']}/records") for each in partitions]
    return sorted(record["offset"] for page in pages for record in page["records"])


def test_consumers_see_what_compaction_left_without_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    """Also where the leader has all that was written in memory."""
    with embedded(tmp_path / "node") as node:
        topic = create_topic(node, cleanup_policy="compact")
        produce(node.bootstrap, topic, keyed_records(200, keys=7))
        node.wait_in_segments(topic, 200)
        assert len(consume(node.bootstrap, topic)) == 200

        (swap,) = run_compact(spark, node, topic)

        after = consume(node.bootstrap, topic)
        assert len(after) == swap.records_after < 20
        table = spark.read.format("streamhouse").option("endpoint", node.endpoint).option("subscribe", topic).load()
        assert sorted(row.offset for row in table.select("offset").collect()) == [row.offset for row in after]
        assert rest_offsets(node, topic) == [row.offset for row in after]
        produce(node.bootstrap, topic, keyed_records(10, keys=7, seed=2))
        assert len(consume(node.bootstrap, topic)) == len(after) + 10
