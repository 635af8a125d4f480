"""Topics through Spark Connect, with the server that pip installs, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from confluent_kafka import Producer

from node.process import Node, clean_environment
from node.wait import HUNG_SECONDS

PROGRAM = """
import sys
from pyspark.sql import SparkSession

endpoint = sys.argv[1]
spark = SparkSession.builder.remote("local[2]").getOrCreate()
orders = spark.read.format("streamhouse").options(endpoint=endpoint, subscribe="orders").load()
copies = orders.select("key", "value").write.format("streamhouse").mode("append")
copies.options(endpoint=endpoint, topic="copies").save()
spark.sql(
    f"CREATE TEMPORARY VIEW copies USING streamhouse OPTIONS (endpoint '{endpoint}', subscribe 'copies')"
)
print([row["text"] for row in spark.sql("SELECT CAST(value AS STRING) AS text FROM copies ORDER BY offset").collect()])
spark.stop()
"""


def test_a_session_of_connect_reads_writes_and_has_views_of_topics(tmp_path: Path) -> None:
    with Node(tmp_path, "--default-partitions", "1") as node:
        producer = Producer({"bootstrap.servers": node.bootstrap})
        for value in ("one", "two", "three"):
            producer.produce("orders", value)
        producer.produce("copies", "zero")
        assert producer.flush(HUNG_SECONDS) == 0
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, node.http],
            capture_output=True,
            text=True,
            timeout=240,
            env={**clean_environment(), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        )

    assert done.stdout.splitlines()[-1:] == ["['zero', 'one', 'two', 'three']"], done.stderr[-4000:]
