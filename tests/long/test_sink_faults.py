"""The sink is exactly-once when its driver or node is killed, wherever that is: nothing is lost, nothing doubled."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pytest

from node.process import Node
from node.storage import EmbeddedStorage, ServiceStorage
from node.wait import eventually
from services.postgres import PostgresServer
from services.seaweed import SeaweedServer
from sink_parts.staged import staged_keys
from spark_parts.driver import START_SECONDS, Driver, Hold
from spark_parts.nodes import OPTIONS, SparkNode
from spark_parts.rows import consume
from spark_parts.session import TESTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

LINES = 200
IN_ADOPTION = Hold(
    name="in-adoption", module="streamhouse.broker.sequenced_append", function="SequencedAppend._stamp", skip=7
)
BEFORE_COMMIT = Hold(name="staged", module="streamhouse.client.planning", function="PlanningClient.adopt")
AFTER_COMMIT = Hold(
    name="adopted", module="streamhouse.client.planning", function="PlanningClient.adopt", is_after=True, skip=1
)
DRIVER = """
    import sys, tempfile
    from long.test_sink_faults import start_stream
    from spark_parts.session import MASTER, session_conf
    from streamhouse.spark.session import open_session

    spark = open_session("driver", master=MASTER, conf=session_conf(tempfile.mkdtemp()))
    start_stream(spark, *sys.argv[1:]).awaitTermination()
"""


def start_stream(spark: SparkSession, directory: str, endpoint: str, topic: str) -> StreamingQuery:
    """One micro-batch for each file of the directory, each of several tasks."""
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(f"{directory}/in")
    return (
        lines.selectExpr("value AS key", "value")
        .repartition(3)
        .writeStream.format("streamhouse")
        .options(endpoint=endpoint, topic=topic, checkpointLocation=f"{directory}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )


def write_files(directory: Path, count: int) -> Counter[bytes | None]:
    """What the topic must hold in the end."""
    (directory / "in").mkdir()
    lines = [[f"{number}-{line}" for line in range(LINES)] for number in range(count)]
    for number, content in enumerate(lines):
        (directory / "in" / f"{number}.txt").write_text("\n".join(content))
    return Counter(line.encode() for content in lines for line in content)


def values(node: SparkNode, topic: str) -> Counter[bytes | None]:
    return Counter(row.value for row in consume(node.bootstrap, topic))


@contextmanager
def held_node(
    kind: str, directory: Path, postgres: PostgresServer, store: SeaweedServer, *holds: Hold
) -> Iterator[SparkNode]:
    """A node that stops where it is told to, when it is first started."""
    storage = (
        EmbeddedStorage(directory / "node")
        if kind == "embedded"
        else ServiceStorage(postgres.create_database(), store.create_bucket())
    )
    node = Node(
        directory / "node",
        *storage.options,
        *OPTIONS,
        env={"PYTHONPATH": str(TESTS / "spark_parts" / "holding"), "HOLD_DIRECTORY": str(directory)},
    )
    node.start(env={"HOLD_POINTS": json.dumps([asdict(hold) for hold in holds])})
    try:
        yield SparkNode(node=node, storage=storage)
    finally:
        node.close()


def is_held(directory: Path, hold: Hold) -> bool:
    return (directory / f"{hold.name}.reached").exists()


@pytest.mark.parametrize("kind", ["embedded", "services"])
def test_a_node_that_is_killed_in_the_middle_of_an_adoption_finishes_it_when_it_is_back(
    kind: str, spark: SparkSession, tmp_path: Path, postgres_server: PostgresServer, s3_server: SeaweedServer
) -> None:
    with held_node(kind, tmp_path, postgres_server, s3_server, IN_ADOPTION) as node:
        topic = node.new_topic(4)
        frame = spark.range(0, 1000, 1, 4).selectExpr("cast(id AS string) AS key", "cast(id AS string) AS value")

        is_written = Event()

        def kill_when_held() -> None:
            eventually(
                lambda: is_held(tmp_path, IN_ADOPTION) or is_written.is_set(),
                "adoption",
                timeout=START_SECONDS,
                pause=0.05,
            )
            assert not is_written.is_set(), "the node was not stopped in the middle"
            node.node.kill9()
            node.node.start()

        with ThreadPoolExecutor(1) as thread:
            killing = thread.submit(kill_when_held)
            try:
                frame.write.format("streamhouse").mode("append").options(endpoint=node.endpoint, topic=topic).save()
            finally:
                is_written.set()
            killing.result()
        assert values(node, topic) == Counter(str(number).encode() for number in range(1000))
        eventually(lambda: not staged_keys(node.endpoint), "what was staged is removed")


def test_a_driver_that_is_killed_before_and_after_its_commit_repeats_nothing(
    spark: SparkSession, embedded_node: SparkNode, tmp_path: Path
) -> None:
    topic = embedded_node.new_topic(2)
    expected = write_files(tmp_path, 3)
    arguments = (str(tmp_path), embedded_node.endpoint, topic)
    with Driver(tmp_path, DRIVER, *arguments, holds=[BEFORE_COMMIT]) as driver:
        driver.wait_at(BEFORE_COMMIT.name)
        assert staged_keys(embedded_node.endpoint) != []
        assert consume(embedded_node.bootstrap, topic) == []
        driver.kill9()
    with Driver(tmp_path, DRIVER, *arguments, holds=[AFTER_COMMIT]) as driver:
        driver.wait_at(AFTER_COMMIT.name)  # of the second batch, which Spark has not yet noted as done
        assert values(embedded_node, topic).total() == 2 * LINES
        driver.kill9()
    start_stream(spark, *arguments).awaitTermination()
    assert values(embedded_node, topic) == expected
    eventually(lambda: not staged_keys(embedded_node.endpoint), "also what the dead drivers staged is removed")


def test_driver_and_node_that_are_killed_in_the_middle_of_an_adoption_store_everything_once(
    spark: SparkSession, tmp_path: Path, postgres_server: PostgresServer, s3_server: SeaweedServer
) -> None:
    with held_node("services", tmp_path, postgres_server, s3_server, IN_ADOPTION) as node:
        topic = node.new_topic(4)
        expected = write_files(tmp_path, 2)
        arguments = (str(tmp_path), node.endpoint, topic)
        with Driver(tmp_path, DRIVER, *arguments) as driver:
            eventually(lambda: is_held(tmp_path, IN_ADOPTION), "adoption", timeout=START_SECONDS, pause=0.05)
            node.node.kill9()
            driver.kill9()
        node.node.start()
        start_stream(spark, *arguments).awaitTermination()
        assert values(node, topic) == expected
