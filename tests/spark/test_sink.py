"""Writing DataFrames to topics with real Spark: rows arrive once, whole, and where every other door would put them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat.record import CODECS, Record
from node.wait import HUNG_SECONDS, eventually
from sink_parts.staged import staged_keys
from spark_parts.nodes import SparkNode
from spark_parts.rows import consume, produce, varied_records

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

HEADERS = "array<struct<key:string,value:binary>>"
SCHEMA = f"key binary, value binary, headers {HEADERS}, timestamp timestamp"


def frame_of(spark: SparkSession, records: list[Record], *, tasks: int = 3) -> DataFrame:
    rows = [
        (record.key, record.value, list(record.headers) or None, (record.timestamp_ms or 0) / 1000)
        for record in records
    ]
    frame = spark.createDataFrame(rows, SCHEMA.replace("timestamp timestamp", "seconds double"))
    return frame.selectExpr(
        "key", "value", "headers", "timestamp_millis(cast(round(seconds * 1000) as bigint)) as timestamp"
    ).repartition(tasks)


def write(frame: DataFrame, node: SparkNode, **options: str) -> None:
    named = {name.replace("_", "."): value for name, value in options.items()}
    frame.write.format("streamhouse").mode("append").option("endpoint", node.endpoint).options(**named).save()


def test_a_kafka_client_reads_what_was_written_with_every_codec(spark: SparkSession, any_node: SparkNode) -> None:
    records = varied_records(60)
    expected = Counter((record.timestamp_ms, record.key, record.value, record.headers) for record in records)
    frame = frame_of(spark, records).cache()
    for codec in CODECS:
        topic = any_node.new_topic(4)
        write(frame, any_node, topic=topic, compression_type=codec)
        rows = consume(any_node.bootstrap, topic)
        assert Counter((row.timestamp_ms, row.key, row.value, row.headers) for row in rows) == expected, codec
    eventually(lambda: not staged_keys(any_node.endpoint), "what was staged is removed")


def test_workers_that_are_killed_when_they_have_staged_cost_neither_rows_nor_doubles(
    spark: SparkSession, any_node: SparkNode, tmp_path: Path
) -> None:
    """What a dead worker staged is not adopted, and is removed."""
    from spark_parts.dying_sink import DyingSink

    spark.dataSource.register(DyingSink)
    records = varied_records(90)
    topic = any_node.new_topic(4)
    frame = frame_of(spark, records, tasks=3)
    options = {"endpoint": any_node.endpoint, "topic": topic, "deaths": str(tmp_path)}
    frame.write.format("dying-sink").mode("append").options(**options).save()
    rows = consume(any_node.bootstrap, topic)
    assert Counter((row.key, row.value) for row in rows) == Counter((one.key, one.value) for one in records)
    assert len(list(tmp_path.iterdir())) == 3


def test_keys_go_to_the_partitions_that_kafka_clients_choose(spark: SparkSession, embedded_node: SparkNode) -> None:
    records = [Record(key=f"key-{number}".encode(), value=b"v", timestamp_ms=1) for number in range(300)]
    records += [Record(key=bytes([number]) * (number % 7), value=b"v", timestamp_ms=1) for number in range(100)]
    by_client, by_spark = embedded_node.new_topic(7), embedded_node.new_topic(7)
    produce(embedded_node.bootstrap, by_client, records)
    write(frame_of(spark, records), embedded_node, topic=by_spark)

    def placed(topic: str) -> Counter[tuple[bytes | None, int]]:
        return Counter((row.key, row.partition) for row in consume(embedded_node.bootstrap, topic))

    assert placed(by_spark) == placed(by_client)


def test_rows_without_a_key_fill_partitions_evenly(spark: SparkSession, embedded_node: SparkNode) -> None:
    topic = embedded_node.new_topic(4)
    write(spark.range(0, 40_000, 1, 2).selectExpr("cast(id as string) as value"), embedded_node, topic=topic)
    rows = consume(embedded_node.bootstrap, topic)
    assert {row.value for row in rows} == {str(number).encode() for number in range(40_000)}
    assert set(Counter(row.partition for row in rows).values()) == {10_000}


def test_rows_choose_topic_and_partition_by_columns(spark: SparkSession, embedded_node: SparkNode) -> None:
    one, two = embedded_node.new_topic(3), embedded_node.new_topic(2)
    frame = spark.sql(
        f"""
        SELECT if(id % 2 = 0, '{one}', '{two}') AS topic, concat('k', id) AS key, concat('v', id) AS value,
            if(id % 3 = 0, 1, cast(null AS int)) AS partition, 'passed over' AS other
        FROM range(0, 60, 1, 2)
        """
    )
    write(frame, embedded_node)
    first, second = (consume(embedded_node.bootstrap, topic) for topic in (one, two))
    assert {row.value for row in first} == {f"v{number}".encode() for number in range(0, 60, 2)}
    assert {row.value for row in second} == {f"v{number}".encode() for number in range(1, 60, 2)}
    for row in (*first, *second):
        assert row.key is not None
        assert int(row.key[1:]) % 3 or row.partition == 1

    write(frame.limit(5), embedded_node, topic=two)  # the option has the last word
    assert len(consume(embedded_node.bootstrap, two)) == 35


def test_a_write_with_a_name_happens_once(spark: SparkSession, any_node: SparkNode) -> None:
    topic = any_node.new_topic(2)
    frame = spark.range(100).selectExpr("cast(id as string) as value")
    for batch_id in ("7", "7", "8", "7"):
        write(frame, any_node, topic=topic, sinkId="daily-report", batchId=batch_id)
    assert Counter(row.value for row in consume(any_node.bootstrap, topic)) == {
        str(number).encode(): 2 for number in range(100)
    }


def test_executors_without_keys_write_to_presigned_urls(spark: SparkSession, any_node: SparkNode) -> None:
    topic = any_node.new_topic(2)
    useless_keys = {"s3.access_key_id": "nobody", "s3.secret_access_key": "nothing"}
    frame = spark.range(1000).selectExpr("cast(id as string) as value")
    frame.write.format("streamhouse").mode("append").options(
        endpoint=any_node.endpoint, topic=topic, presign="true", **useless_keys
    ).save()
    assert len(consume(any_node.bootstrap, topic)) == 1000


def test_a_stream_goes_on_where_it_stopped(spark: SparkSession, any_node: SparkNode, tmp_path: Path) -> None:
    topic = any_node.new_topic(2)
    files = tmp_path / "in"
    files.mkdir()
    for number in range(4):
        (files / f"{number}.txt").write_text("".join(f"{number}-{line}\n" for line in range(50)))
        if number % 2:
            query = (
                spark.readStream.option("maxFilesPerTrigger", 1)
                .text(str(files))
                .writeStream.format("streamhouse")
                .options(endpoint=any_node.endpoint, topic=topic, checkpointLocation=str(tmp_path / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
    expected = {f"{number}-{line}".encode() for number in range(4) for line in range(50)}
    assert Counter(row.value for row in consume(any_node.bootstrap, topic)) == dict.fromkeys(expected, 1)


def test_each_batch_of_a_stream_can_be_written_by_hand(
    spark: SparkSession, embedded_node: SparkNode, tmp_path: Path
) -> None:
    topic = embedded_node.new_topic(2)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.txt").write_text("one\ntwo\n")

    def write_twice(frame: DataFrame, batch_id: int) -> None:
        for _ in range(2):
            write(frame, embedded_node, topic=topic, sinkId="by-hand", batchId=str(batch_id))

    stream = spark.readStream.text(str(tmp_path / "in")).writeStream.foreachBatch(write_twice)
    stream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start().awaitTermination()
    assert sorted(row.value or b"" for row in consume(embedded_node.bootstrap, topic)) == [b"one", b"two"]


def test_a_task_that_fails_and_is_tried_again_adds_nothing(spark: SparkSession, embedded_node: SparkNode) -> None:
    topic = embedded_node.new_topic(1)
    # More than one staged object holds, so that the first try leaves one behind.
    frame = spark.range(0, 60, 1, 1).mapInArrow(_large_values_that_fail_once, "key binary, value binary")
    write(frame, embedded_node, topic=topic, compression_type="none")
    keys = Counter(row.key for row in consume(embedded_node.bootstrap, topic))
    assert keys == {str(number).encode(): 1 for number in range(60)}
    eventually(lambda: not staged_keys(embedded_node.endpoint), "what the first try staged is removed")


def _large_values_that_fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    from pyspark import TaskContext

    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield pa.RecordBatch.from_pydict({"key": [str(number).encode()], "value": [os.urandom(700_000)]})
    context = TaskContext.get()
    assert context is not None
    if context.attemptNumber() == 0:
        raise OSError("the first try fails at its end")


def test_a_job_that_fails_leaves_nothing_in_the_topic(spark: SparkSession, embedded_node: SparkNode) -> None:
    from pyspark.errors import PySparkException

    topic = embedded_node.new_topic(1)
    frame = spark.range(0, 10, 1, 2).selectExpr("cast(id as string) as value", "if(id = 9, 5, 0) as partition")
    with pytest.raises(PySparkException, match="column 'partition' says 5"):
        write(frame, embedded_node, topic=topic)
    assert consume(embedded_node.bootstrap, topic) == []
    eventually(lambda: not staged_keys(embedded_node.endpoint), "what the other task staged is removed")


def test_a_topic_that_a_row_names_and_that_is_missing_fails_the_job(
    spark: SparkSession, embedded_node: SparkNode
) -> None:
    from pyspark.errors import PySparkException

    topic = embedded_node.new_topic(1)
    frame = spark.range(0, 10, 1, 1).selectExpr("'v' AS value", f"if(id = 9, 'not-there', '{topic}') AS topic")
    with pytest.raises(PySparkException, match="there is no topic 'not-there'"):
        write(frame, embedded_node)
    assert consume(embedded_node.bootstrap, topic) == []


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("'k' AS key", {}, "there is no column 'value'"),
        ("1 AS value", {}, "column 'value' cannot be int"),
        ("'v' AS value, 1L AS partition", {}, "column 'partition' cannot be bigint"),
        ("'v' AS value, array('h') AS headers", {}, "column 'headers' cannot be array<string>"),
        ("'v' AS value", {"topic": ""}, "no topic is given"),
        ("'v' AS value", {"topic": "not-there"}, "there is no topic 'not-there'"),
        ("'v' AS value", {"compression.type": "brotli"}, "option 'compression.type' cannot be 'brotli'"),
        ("'v' AS value", {"sinkId": "mine"}, "'batchId'"),
        ("'v' AS value", {"sinkId": "a/b", "batchId": "1"}, "'a/b' is not a sink id"),
        ("'v' AS value", {"sinkId": "mine", "batchId": "x"}, "option 'batchId' cannot be 'x'"),
        ("'v' AS value", {"topics": "x"}, "there is no option 'topics'"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_runs(
    spark: SparkSession, embedded_node: SparkNode, columns: str, options: dict[str, str], message: str
) -> None:
    from pyspark.errors import AnalysisException

    topic = embedded_node.new_topic()
    frame = spark.sql(f"SELECT {columns}")
    writer = frame.write.format("streamhouse").mode("append").option("endpoint", embedded_node.endpoint)
    with pytest.raises(AnalysisException) as raised:
        writer.options(**{"topic": topic, **options}).save()
    assert message in str(raised.value)


def test_a_record_that_is_too_large_for_its_topic_is_named(spark: SparkSession, embedded_node: SparkNode) -> None:
    from pyspark.errors import PySparkException

    topic = embedded_node.new_topic(1, max_message_bytes="1000")
    small = spark.range(500).selectExpr("cast(id as string) as value")
    write(small, embedded_node, topic=topic)
    assert len(consume(embedded_node.bootstrap, topic)) == 500
    with pytest.raises(PySparkException, match=r"larger than .* max\.message\.bytes, 1000"):
        write(spark.sql("SELECT base64(randstr(3000)) AS value"), embedded_node, topic=topic)


def test_a_stream_into_a_missing_topic_ends_before_any_task_runs(
    spark: SparkSession, embedded_node: SparkNode, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    source = embedded_node.new_topic()
    produce(embedded_node.bootstrap, source, varied_records(3))
    started = tmp_path / "started"
    started.mkdir()

    def note_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        (started / str(os.getpid())).touch()
        yield from batches

    stream = (
        spark.readStream.format("streamhouse")
        .options(endpoint=embedded_node.endpoint, subscribe=source, startingOffsets="earliest")
        .load()
    )
    writing = (
        stream.mapInArrow(note_task, stream.schema)
        .writeStream.format("streamhouse")
        .options(endpoint=embedded_node.endpoint, topic="missing", checkpointLocation=f"{tmp_path}/checkpoint")
    )
    with pytest.raises(StreamingQueryException, match="there is no topic 'missing'"):
        writing.trigger(availableNow=True).start().awaitTermination(HUNG_SECONDS)

    assert not list(started.iterdir())
