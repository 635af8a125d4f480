"""The database is lost, the bucket is not: every acknowledged record reads back from what was rebuilt."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from maintain_parts.logs import SMALL_TAIL, configure, connection_to, create_topic, keyed_records, latest_values
from node.storage import ServiceStorage, assert_rows_and_objects_agree, segments_of
from node.wait import HUNG_SECONDS, eventually
from services.postgres import PostgresServer
from services.seaweed import S3Bucket
from spark_parts.nodes import OPTIONS, SparkNode, embedded
from spark_parts.rows import consume, produce, produce_with_every_codec
from streamhouse.cli.maintain_rebuild import run_rebuild
from streamhouse.model.errors import AlreadyExists, InvalidConfig
from streamhouse.model.settings import Settings
from streamhouse.spark.jobs.compact import Compaction, compact
from streamhouse.spark.jobs.merge import Merging, merge
from streamhouse.spark.jobs.progress import no_bars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_it(spark: SparkSession, settings: Settings, *, dry_run: bool = False, accept_gaps: bool = False) -> int:
    return run_rebuild(
        settings,
        lambda: nullcontext(spark),
        wal_agent=None,
        accept_gaps=accept_gaps,
        dry_run=dry_run,
        as_json=True,
        bars=no_bars,
    )


def test_an_embedded_node_comes_back_with_its_segments_and_its_local_wal(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "node"
    settings = Settings(data_dir=str(directory))
    with embedded(directory, *SMALL_TAIL, "--segment-age", "1h", "--segment-bytes", "8KiB") as node:
        topic = create_topic(node, 2, retention_ms="-1", max_message_bytes="500000")
        produce_with_every_codec(node.bootstrap, topic, keyed_records(1000, keys=20))
        node.wait_in_segments(topic, 500)
        # The last records stay in the WAL: segments are uploaded by size alone, and none becomes as large from now on.
        configure(node, topic, "segment.bytes", str(2**30))
        produce(node.bootstrap, topic, keyed_records(20, keys=20))
        before = consume(node.bootstrap, topic)
        with pytest.raises(InvalidConfig, match="another process is using the data directory"):
            run_it(spark, settings)
        node.node.kill9()
        in_segments = sum(each.end_offset - each.base_offset for each in segments_of(node.storage, topic))
        assert 500 <= in_segments < 1020

        for file in directory.glob("metadata.db*"):
            file.unlink()
        assert run_it(spark, settings, dry_run=True) == 0
        shown = json.loads(capsys.readouterr().out)
        assert [(each["name"], len(each["partitions"])) for each in shown["topics"]] == [(topic, 2)]
        assert not (directory / "metadata.db").exists()
        assert run_it(spark, settings) == 0
        with pytest.raises(AlreadyExists, match=topic):
            run_it(spark, settings)

        node.node.start()
        assert consume(node.bootstrap, topic) == before
        produce(node.bootstrap, topic, keyed_records(100, keys=20, seed=2))
        after = consume(node.bootstrap, topic)
        assert set(before) < set(after)
        assert len(after) == 1120
        assert_rows_and_objects_agree(node.storage)


def test_a_node_on_services_comes_back_with_wal_objects_compacted_and_merged_segments(
    spark: SparkSession, tmp_path: Path, postgres_server: PostgresServer, s3_bucket: S3Bucket
) -> None:
    from spark_parts.nodes import Node

    lost, empty = postgres_server.create_database(), postgres_server.create_database()
    options = (*OPTIONS, *SMALL_TAIL, "--durability", "object")
    storage = ServiceStorage(lost, s3_bucket)
    try:
        with Node(tmp_path / "first", *storage.options, *options) as process:
            node = SparkNode(node=process, storage=storage)
            compacted = create_topic(node, cleanup_policy="compact")
            merged = create_topic(node, retention_ms="-1")
            for seed in range(3):
                for topic in (compacted, merged):
                    produce(node.bootstrap, topic, keyed_records(100, keys=10, seed=seed))
                    node.wait_in_segments(topic, 100 * (seed + 1))
            compact(spark, Compaction(connection=connection_to(node), topics=[compacted]))
            merge(spark, Merging(connection=connection_to(node), topics=[merged]))
            # Acknowledged, and killed before they can be in a segment.
            waiting = create_topic(node, segment_ms="3600000", retention_ms="-1")
            produce(node.bootstrap, waiting, keyed_records(50, keys=10))
            before = {topic: consume(node.bootstrap, topic) for topic in (compacted, merged, waiting)}
            assert segments_of(storage, waiting) == []
            process.kill9()

        settings = Settings(
            data_dir=str(tmp_path / "second"),
            metadata=empty,
            objects=f"s3://{s3_bucket.name}/log",
            s3_endpoint=s3_bucket.endpoint,
            s3_access_key_id=s3_bucket.access_key_id,
            s3_secret_access_key=s3_bucket.secret_access_key,
            s3_region=s3_bucket.region,
        )
        assert run_it(spark, settings) == 0

        found = ServiceStorage(empty, s3_bucket)
        with Node(tmp_path / "second", *found.options, *options) as process:
            node = SparkNode(node=process, storage=found)
            assert consume(node.bootstrap, merged) == before[merged]
            assert consume(node.bootstrap, waiting) == before[waiting]
            assert consume(node.bootstrap, compacted) == before[compacted]
            assert len(before[compacted]) < 300
            produce(node.bootstrap, waiting, keyed_records(10, keys=10, seed=9))
            assert len(consume(node.bootstrap, waiting)) == 60
            assert_rows_and_objects_agree(found)
    finally:
        postgres_server.drop_database(lost)
        postgres_server.drop_database(empty)


def test_keys_whose_tombstones_were_compacted_away_stay_deleted(spark: SparkSession, tmp_path: Path) -> None:
    """The objects of every generation are still there: each compaction left its predecessors for an hour."""
    directory = tmp_path / "node"
    with embedded(directory, *SMALL_TAIL) as node:
        topic = create_topic(node, 2, cleanup_policy="compact", delete_retention_ms="0")
        job = Compaction(connection=connection_to(node), topics=[topic])
        for seed in range(3):
            produce(node.bootstrap, topic, keyed_records(300, keys=60, seed=seed))
            node.wait_in_segments(topic, 300 * (seed + 1))
            compact(spark, job)
        compact(spark, job)
        compact(spark, job)
        node.node.kill9()
        node.node.start()
        before = consume(node.bootstrap, topic)
        node.node.kill9()
        for file in directory.glob("metadata.db*"):
            file.unlink()

        assert run_it(spark, Settings(data_dir=str(directory))) == 0

        node.node.start()
        assert consume(node.bootstrap, topic) == before
        # And the log can be compacted on, with generations above all that the bucket has.
        produce(node.bootstrap, topic, keyed_records(100, keys=60, seed=9))
        node.wait_in_segments(topic, 1000)
        expected = latest_values(consume(node.bootstrap, topic))
        assert compact(spark, job)
        node.node.kill9()
        node.node.start()
        assert latest_values(consume(node.bootstrap, topic)) == expected


def test_a_log_with_a_hole_is_restored_only_when_told(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "node"
    with embedded(directory, *SMALL_TAIL) as node:
        topic = create_topic(node, retention_ms="-1")
        for number in range(3):
            produce(node.bootstrap, topic, keyed_records(50, keys=5))
            node.wait_in_segments(topic, 50 * (number + 1))
        segments = segments_of(node.storage, topic)
        before = consume(node.bootstrap, topic)
        node.node.kill9()
        (directory / "objects" / segments[1].object_key).write_bytes(b"damaged")
        for file in directory.glob("metadata.db*"):
            file.unlink()

        assert run_it(spark, Settings(data_dir=str(directory))) == 1
        shown = json.loads(capsys.readouterr().out)
        start, end = segments[1].base_offset, segments[1].end_offset
        assert shown["missing"] == [{"topic": topic, "partition": 0, "start": start, "end": end}]
        assert [each["key"] for each in shown["damaged"]] == [segments[1].object_key]

        assert run_it(spark, Settings(data_dir=str(directory)), accept_gaps=True) == 0
        node.node.start()
        assert consume(node.bootstrap, topic) == [row for row in before if row.offset >= end]


def test_a_topic_that_grew_and_was_not_described_again_comes_back_with_all_its_partitions(
    spark: SparkSession, tmp_path: Path
) -> None:
    directory = tmp_path / "node"
    with embedded(directory, *SMALL_TAIL, "--segment-age", "300ms") as node:
        topic = create_topic(node, 2)
        descriptors = directory / "objects" / "topics"
        files = eventually(
            lambda: [path for path in descriptors.rglob("*") if path.is_file()], "the topic to be described"
        )
        described = {path: path.read_bytes() for path in files}
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        admin.create_partitions([NewPartitions(topic, 5)])[topic].result(HUNG_SECONDS)
        produce_with_every_codec(node.bootstrap, topic, keyed_records(100, keys=50))
        node.wait_in_segments(topic, 100)
        before = consume(node.bootstrap, topic)
        node.node.kill9()
        for path in [path for path in descriptors.rglob("*") if path.is_file()]:
            path.unlink()
        for path, content in described.items():
            path.write_bytes(content)
        for file in directory.glob("metadata.db*"):
            file.unlink()

        assert run_it(spark, Settings(data_dir=str(directory))) == 0

        node.node.start()
        assert consume(node.bootstrap, topic) == before
        partitions = AdminClient({"bootstrap.servers": node.bootstrap}).list_topics(topic).topics[topic].partitions
        assert sorted(partitions) == list(range(max(row.partition for row in before) + 1))
        assert len(partitions) > 2
