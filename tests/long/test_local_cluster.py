"""Driver and executors as processes of their own, on PostgreSQL and S3: nothing depends on sharing one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from maintain_parts.logs import keyed_records, latest_values
from spark_parts.driver import Driver
from spark_parts.nodes import SparkNode
from spark_parts.rows import consume, produce, produce_with_every_codec, rows_of, varied_records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ON_A_CLUSTER = """
    import sys
    from spark_parts.session import session_conf
    from spark_parts.streams import run_to_end
    from streamhouse.objects.s3 import S3Options
    from streamhouse.spark.jobs.compact import Compaction, compact
    from streamhouse.spark.options import Connection
    from streamhouse.spark.session import open_session

    endpoint, topic, copy, compacted, directory = sys.argv[1:]
    conf = {**session_conf(f"{directory}/warehouse"), "spark.executor.memory": "512m"}
    spark = open_session("cluster", master="local-cluster[2,1,1024]", conf=conf)
    options = {"endpoint": endpoint, "subscribe": topic, "includeHeaders": "true", "startingOffsets": "earliest"}
    found = spark.read.format("streamhouse").options(minPartitions="4", **options).load()
    found.write.parquet(f"{directory}/batch")
    stream = spark.readStream.format("streamhouse").options(maxOffsetsPerTrigger="400", **options).load()
    writing = stream.drop("topic").writeStream.format("streamhouse").options(endpoint=endpoint, topic=copy)
    writing = writing.option("checkpointLocation", f"{directory}/checkpoint")
    run_to_end(writing)
    connection = Connection(endpoint=endpoint, s3=S3Options(region=""))
    assert compact(spark, Compaction(connection=connection, topics=[compacted]))
    kept = spark.read.format("streamhouse").options(**{**options, "subscribe": compacted}).load()
    kept.write.parquet(f"{directory}/compacted")
    spark.stop()
"""


def test_nothing_depends_on_sharing_a_process(spark: SparkSession, service_node: SparkNode, tmp_path: Path) -> None:
    """A batch read, a stream from a topic to a topic, a compaction."""
    node = service_node
    topic, copy, compacted = node.new_topic(3), node.new_topic(3), node.new_topic(2, cleanup_policy="compact")
    produce_with_every_codec(node.bootstrap, topic, varied_records(600))
    produce(node.bootstrap, compacted, keyed_records(600, keys=20))
    node.wait_in_segments(topic, 300)
    node.wait_in_segments(compacted, 600)
    before = consume(node.bootstrap, compacted)
    with Driver(tmp_path, ON_A_CLUSTER, node.endpoint, topic, copy, compacted, str(tmp_path)) as driver:
        driver.finish()
    everything = consume(node.bootstrap, topic)
    assert rows_of(spark.read.parquet(f"{tmp_path}/batch")) == everything
    copied = Counter(row._replace(topic=topic, offset=0) for row in consume(node.bootstrap, copy))
    assert copied == Counter(row._replace(offset=0) for row in everything)
    after = rows_of(spark.read.parquet(f"{tmp_path}/compacted"))  # from segments; the node has the old ones in memory
    assert latest_values(after) == latest_values(before)
    assert set(after) < set(before)
