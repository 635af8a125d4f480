"""The driver of an export is killed with -9 at each of its steps: the next run ends with every record once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from maintain_parts.commands import kill9_at
from maintain_parts.exports import Place
from maintain_parts.logs import SMALL_TAIL, create_topic, keyed_records, watermarks
from node.storage import segments_of
from spark_parts.driver import Hold
from spark_parts.nodes import SparkNode, embedded
from spark_parts.rows import consume, produce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOBS = "streamhouse.spark.jobs.export"
PARTITIONS = 2
RECORDS = 30

# The first of two files is there; all are, and nothing says so; all is said, and the driver does not know.
ONE_FILE = Hold(name="one-file", module=f"{JOBS}.file_task", function="write_file", is_after=True)
PLANNED = Hold(name="planned", module=f"{JOBS}.parquet", function="ParquetTarget.begin", is_after=True)
# Between what is looked up in the table and what is written to it.
DELTA_LOOKED_UP = Hold(name="looked-up", module=f"{JOBS}.delta", function="add_action")
ICEBERG_LOOKED_UP = Hold(name="looked-up", module="pyiceberg.table", function="Transaction.commit_transaction")


def written(module: str, target: str) -> Hold:
    return Hold(name="written", module=f"{JOBS}.{module}", function=f"{target}.commit")


def recorded(module: str, target: str) -> Hold:
    return Hold(name="recorded", module=f"{JOBS}.{module}", function=f"{target}.commit", is_after=True)


STEPS = {
    "parquet": [PLANNED, ONE_FILE, written("parquet", "ParquetTarget"), recorded("parquet", "ParquetTarget")],
    "delta": [ONE_FILE, written("delta", "DeltaTarget"), DELTA_LOOKED_UP, recorded("delta", "DeltaTarget")],
    "iceberg": [ONE_FILE, written("iceberg", "IcebergTarget"), ICEBERG_LOOKED_UP, recorded("iceberg", "IcebergTarget")],
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkNode]:
    with embedded(tmp_path_factory.mktemp("node"), *SMALL_TAIL) as made:
        yield made


def produce_some(node: SparkNode, topic: str, seed: int) -> None:
    """To every partition, so that a run has several files to write."""
    for partition in range(PARTITIONS):
        produce(node.bootstrap, topic, keyed_records(RECORDS, keys=9, seed=seed), partition=partition)


@pytest.mark.parametrize("format_name", STEPS)
def test_a_killed_export_is_finished_by_the_next(
    spark: SparkSession, node: SparkNode, tmp_path: Path, format_name: str
) -> None:
    topic = create_topic(node, PARTITIONS, retention_ms="-1")
    place = Place(spark, node, topic, format_name, tmp_path / "lake")
    command = ("export", topic, "--format", format_name, "--to", str(place.directory), "--endpoint", node.endpoint)
    for seed, hold in enumerate(STEPS[format_name]):
        produce_some(node, topic, seed)
        node.wait_in_segments(topic, PARTITIONS * RECORDS * (2 * seed + 1))
        log = consume(node.bootstrap, topic), watermarks(node.bootstrap, topic), segments_of(node.storage, topic)

        kill9_at(hold, tmp_path, *command)
        is_recorded = hold.name == "recorded"
        assert not is_recorded or place.read() == log[0]

        assert place.export().rows == (0 if is_recorded else PARTITIONS * RECORDS), hold.name
        assert place.read() == log[0], hold.name
        after = consume(node.bootstrap, topic), watermarks(node.bootstrap, topic), segments_of(node.storage, topic)
        assert after == log

        # What comes later is added to it, once.
        produce_some(node, topic, seed)
        assert place.export().rows == PARTITIONS * RECORDS
        assert place.read() == consume(node.bootstrap, topic), hold.name
