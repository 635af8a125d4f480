"""Streaming queries in real Spark: every record once, in the order of micro-batches, whoever dies meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from node.wait import HUNG_SECONDS
from spark_parts.driver import Driver, Hold
from spark_parts.nodes import SparkNode
from spark_parts.rows import consume, produce, produce_with_every_codec, rows_of, varied_records
from spark_parts.streams import run_to_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery


def run_once(
    spark: SparkSession, node: SparkNode, topic: str, directory: Path, source: str = "streamhouse", **options: str
) -> StreamingQuery:
    """What is there, to Parquet, from where the checkpoint in the directory is."""
    named = {"endpoint": node.endpoint, "subscribe": topic, "includeHeaders": "true", "startingOffsets": "earliest"}
    stream = spark.readStream.format(source).options(**named, **options).load()
    writing = stream.writeStream.format("parquet").option("checkpointLocation", f"{directory}/checkpoint")
    return run_to_end(writing, f"{directory}/rows")


def batch_sizes(query: StreamingQuery) -> list[int]:
    progress: list[Any] = list(query.recentProgress)
    return [each["numInputRows"] for each in progress if each["numInputRows"]]


def committed(node: SparkNode, group: str, topic: str, partitions: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": group})
    try:
        asked = [TopicPartition(topic, partition) for partition in range(partitions)]
        return [each.offset for each in consumer.committed(asked, timeout=HUNG_SECONDS)]
    finally:
        consumer.close()


def test_limited_micro_batches_read_every_record_once_and_go_on_from_the_checkpoint(
    spark: SparkSession, any_node: SparkNode, tmp_path: Path
) -> None:
    topic = any_node.new_topic(2)
    produce_with_every_codec(any_node.bootstrap, topic, varied_records(300))
    any_node.wait_in_segments(topic, 100)
    options = {"maxOffsetsPerTrigger": "200", "commitGroup": f"group-of-{topic}"}
    assert batch_sizes(run_once(spark, any_node, topic, tmp_path, **options)) == [200, 100]
    produce(any_node.bootstrap, topic, varied_records(50, seed=2))
    assert batch_sizes(run_once(spark, any_node, topic, tmp_path, **options)) == [50]
    everything = consume(any_node.bootstrap, topic)
    assert rows_of(spark.read.parquet(f"{tmp_path}/rows")) == everything
    # The group has no lag, though Spark tells of a finished micro-batch only when the next one has begun.
    ends = [sum(row.partition == partition for row in everything) for partition in range(2)]
    assert committed(any_node, f"group-of-{topic}", topic, 2) == ends


def test_workers_that_are_killed_in_a_micro_batch_cost_neither_rows_nor_doubles(
    spark: SparkSession, embedded_node: SparkNode, tmp_path: Path
) -> None:
    from spark_parts.dying_source import DyingSource

    spark.dataSource.register(DyingSource)
    topic = embedded_node.new_topic(2)
    produce_with_every_codec(embedded_node.bootstrap, topic, varied_records(300))
    embedded_node.wait_in_segments(topic, 200)
    deaths = tmp_path / "deaths"
    deaths.mkdir()
    query = run_once(spark, embedded_node, topic, tmp_path, "dying", maxOffsetsPerTrigger="200", deaths=str(deaths))
    assert sum(batch_sizes(query)) >= 300
    assert rows_of(spark.read.parquet(f"{tmp_path}/rows")) == consume(embedded_node.bootstrap, topic)
    assert len(list(deaths.iterdir())) >= 2


def batches(directory: Path, kind: str) -> set[int]:
    """Of a checkpoint: those that were begun are in `offsets`, those that were done in `commits`."""
    return {int(file.name) for file in (directory / "checkpoint" / kind).iterdir() if file.name.isdecimal()}


STREAM_TO_PARQUET = """
    import sys
    from spark_parts.session import MASTER, session_conf
    from spark_parts.streams import run_to_end
    from streamhouse.spark.session import open_session

    endpoint, topic, directory = sys.argv[1:]
    spark = open_session("doomed", master=MASTER, conf=session_conf(f"{directory}/warehouse"))
    options = {"endpoint": endpoint, "subscribe": topic, "includeHeaders": "true", "startingOffsets": "earliest"}
    stream = spark.readStream.format("streamhouse").options(maxOffsetsPerTrigger="100", **options).load()
    writing = stream.writeStream.format("parquet").option("checkpointLocation", f"{directory}/checkpoint")
    run_to_end(writing, f"{directory}/rows")
"""


def test_a_driver_that_is_killed_in_a_micro_batch_goes_on_from_its_checkpoint(
    spark: SparkSession, embedded_node: SparkNode, tmp_path: Path
) -> None:
    topic = embedded_node.new_topic(2)
    produce_with_every_codec(embedded_node.bootstrap, topic, varied_records(400))
    embedded_node.wait_in_segments(topic, 400)
    # The first micro-batch passes; an executor of a later one has its task and no bytes yet.
    reading = Hold(
        name="reading", module="streamhouse.objects.blocking", function="BlockingStore.get_range", is_after=True, skip=6
    )
    with Driver(tmp_path, STREAM_TO_PARQUET, embedded_node.endpoint, topic, str(tmp_path), holds=[reading]) as driver:
        driver.wait_at("reading")
        driver.kill9()
    assert batches(tmp_path, "offsets") - batches(tmp_path, "commits"), "no micro-batch was under way"
    assert batches(tmp_path, "commits"), "no micro-batch was done"
    produce(embedded_node.bootstrap, topic, varied_records(30, seed=3))
    run_once(spark, embedded_node, topic, tmp_path, maxOffsetsPerTrigger="100")
    assert rows_of(spark.read.parquet(f"{tmp_path}/rows")) == consume(embedded_node.bootstrap, topic)


def test_records_that_are_gone_fail_a_stream_unless_told_otherwise(
    spark: SparkSession, embedded_node: SparkNode, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    topic = embedded_node.new_topic()
    produce(embedded_node.bootstrap, topic, varied_records(10))
    run_once(spark, embedded_node, topic, tmp_path)
    produce(embedded_node.bootstrap, topic, varied_records(40, seed=2))
    admin = AdminClient({"bootstrap.servers": embedded_node.bootstrap})
    for done in admin.delete_records([TopicPartition(topic, 0, 30)]).values():
        done.result(HUNG_SECONDS)
    with pytest.raises(StreamingQueryException, match=r"records 10 to 29 of .* have been deleted"):
        run_once(spark, embedded_node, topic, tmp_path)
    assert batch_sizes(run_once(spark, embedded_node, topic, tmp_path, failOnDataLoss="false")) == [20]
