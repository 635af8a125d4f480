"""Batch queries in real Spark: the rows that a Kafka client reads, on every kind of node, whoever dies meanwhile."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition

from compat.record import Record
from node.wait import HUNG_SECONDS
from spark_parts.nodes import SparkNode
from spark_parts.rows import Row, consume, produce, produce_with_every_codec, rows_of, varied_records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(spark: SparkSession, node: SparkNode, topic: str, source: str = "streamhouse", **options: str) -> DataFrame:
    named = {"endpoint": node.endpoint, "subscribe": topic, **options}
    return spark.read.format(source).options(**named).load()


@contextmanager
def producing(node: SparkNode, topic: str) -> Iterator[None]:
    """Records keep coming, some of them at the same moment as the query is planned and read."""
    stopped = threading.Event()

    def run() -> None:
        number = 0
        while not stopped.is_set():
            produce(node.bootstrap, topic, varied_records(20, seed=number), codec="lz4")
            number += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def assert_is_a_snapshot(found: list[Row], everything: list[Row], at_least: int) -> None:
    """Of every partition all records up to some offset, exactly as they are."""
    ends: dict[int, int] = {}
    for row in found:
        ends[row.partition] = max(ends.get(row.partition, 0), row.offset + 1)
    assert found == [row for row in everything if row.offset < ends.get(row.partition, 0)]
    assert len(found) >= at_least


def test_spark_reads_what_a_kafka_client_reads_while_producers_run(spark: SparkSession, any_node: SparkNode) -> None:
    topic = any_node.new_topic(3)
    produce_with_every_codec(any_node.bootstrap, topic, varied_records(600))
    any_node.wait_in_segments(topic, 100)
    with producing(any_node, topic):
        mine = rows_of(read(spark, any_node, topic, includeHeaders="true"))
        frame = read(spark, any_node, topic, includeHeaders="true", presign="true")
        presigned = rows_of(frame)
        # The snapshot is the frame's: counted again, it has not grown.
        assert frame.count() == len(presigned)
    everything = consume(any_node.bootstrap, topic)
    assert_is_a_snapshot(mine, everything, 600)
    assert_is_a_snapshot(presigned, everything, len(mine))


def test_timestamps_of_the_broker_are_told_from_those_of_producers(
    spark: SparkSession, embedded_node: SparkNode
) -> None:
    stamped = embedded_node.new_topic(message_timestamp_type="LogAppendTime")
    plain = embedded_node.new_topic()
    for topic in (stamped, plain):
        produce(embedded_node.bootstrap, topic, [Record(key=b"k", value=b"v", timestamp_ms=1_700_000_000_000)])
    frame = read(spark, embedded_node, f"{stamped},{plain}")
    kinds = {row["topic"]: row["timestampType"] for row in frame.select("topic", "timestampType").collect()}
    assert kinds == {stamped: 1, plain: 0}
    assert rows_of(frame) == sorted(consume(embedded_node.bootstrap, stamped) + consume(embedded_node.bootstrap, plain))


def test_filters_give_the_same_rows_pushed_down_or_not(spark: SparkSession, embedded_node: SparkNode) -> None:
    topic = embedded_node.new_topic(2)
    produce_with_every_codec(embedded_node.bootstrap, topic, varied_records(200))
    embedded_node.wait_in_segments(topic, 200)
    everything = consume(embedded_node.bootstrap, topic)
    condition = (
        f"offset >= 20 and offset < 70 and partition = 1 and topic = '{topic}' "
        "and timestamp >= timestamp_millis(1700000030000)"
    )
    expected = [
        row
        for row in everything
        if 20 <= row.offset < 70 and row.partition == 1 and row.timestamp_ms >= 1_700_000_030_000
    ]
    assert expected
    for enabled in ("true", "false"):
        spark.conf.set("spark.sql.python.filterPushdown.enabled", enabled)
        try:
            assert rows_of(read(spark, embedded_node, topic, includeHeaders="true").where(condition)) == expected
        finally:
            spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


def test_a_skewed_topic_uses_all_cores(spark: SparkSession, embedded_node: SparkNode) -> None:
    from pyspark.sql.functions import spark_partition_id

    topic = embedded_node.new_topic(4)
    records = [Record(key=b"k", value=os.urandom(100_000), timestamp_ms=1) for _ in range(120)]
    produce(embedded_node.bootstrap, topic, records, partition=0)
    produce(embedded_node.bootstrap, topic, records[:1], partition=3)
    embedded_node.wait_in_segments(topic, 121)
    tasks = {
        row["id"]: row["count"]
        for row in read(spark, embedded_node, topic).groupBy(spark_partition_id().alias("id")).count().collect()
    }
    assert len(tasks) == min(os.cpu_count() or 1, 3)
    assert sum(tasks.values()) == 121
    finer = read(spark, embedded_node, topic, minPartitions="8").groupBy(spark_partition_id()).count().count()
    assert finer == 8


def test_workers_that_are_killed_while_they_read_cost_neither_rows_nor_doubles(
    spark: SparkSession, embedded_node: SparkNode, tmp_path: Path
) -> None:
    from spark_parts.dying_source import DyingSource

    spark.dataSource.register(DyingSource)
    topic = embedded_node.new_topic(2)
    produce_with_every_codec(embedded_node.bootstrap, topic, varied_records(400))
    embedded_node.wait_in_segments(topic, 200)
    frame = read(spark, embedded_node, topic, "dying", includeHeaders="true", minPartitions="4", deaths=str(tmp_path))
    assert rows_of(frame) == consume(embedded_node.bootstrap, topic)
    assert len(list(tmp_path.iterdir())) >= 2


def test_deleted_records_fail_a_query_or_not_as_told(spark: SparkSession, embedded_node: SparkNode) -> None:
    from pyspark.errors import PySparkException

    topic = embedded_node.new_topic()
    produce(embedded_node.bootstrap, topic, varied_records(50))
    delete_before(embedded_node, topic, 30)
    start = json.dumps({topic: {"0": 10}})
    with pytest.raises(PySparkException, match=r"records 10 to 29 of .* have been deleted.*failOnDataLoss"):
        read(spark, embedded_node, topic, startingOffsets=start).count()
    assert read(spark, embedded_node, topic, startingOffsets=start, failOnDataLoss="false").count() == 20


def delete_before(node: SparkNode, topic: str, offset: int) -> None:
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    for done in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        done.result(HUNG_SECONDS)


def test_wrong_options_say_what_to_do(spark: SparkSession, embedded_node: SparkNode) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="did you mean 'startingOffsets'"):
        read(spark, embedded_node, "orders", startingOffset="earliest")
    with pytest.raises(PySparkException, match="no topic 'nowhere'"):
        read(spark, embedded_node, "nowhere").count()


def test_json_values_become_columns_in_one_call(spark: SparkSession, embedded_node: SparkNode) -> None:
    from streamhouse.spark.decoding import from_json_value

    topic = embedded_node.new_topic()
    values = [b'{"id": 1, "region": "eu"}', b"not json", b'{"id": 2, "region": "us", "more": true}']
    produce(embedded_node.bootstrap, topic, [Record(key=None, value=value, timestamp_ms=1) for value in values])
    parsed = from_json_value(read(spark, embedded_node, topic), "id LONG, region STRING").orderBy("offset")
    assert [tuple(row) for row in parsed.select("value.id", "value.region", "offset").collect()] == [
        (1, "eu", 0),
        (None, None, 1),
        (2, "us", 2),
    ]
