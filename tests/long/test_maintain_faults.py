"""Workers and the driver of a compaction are killed in the middle: nothing is lost or doubled, the next run ends it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from maintain_parts.logs import SMALL_TAIL, connection_to, create_topic, keyed_records, latest_values
from maintain_parts.workers import kill9_workers
from node.storage import assert_rows_and_objects_agree, segments_of
from spark_parts.driver import Driver, Hold
from spark_parts.nodes import embedded
from spark_parts.rows import consume, produce
from streamhouse.spark.jobs.compact import Compaction, compact

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMAND = """
    import sys
    from streamhouse.cli.main import run
    sys.exit(run(sys.argv[1:]))
"""
# A worker has stored a segment; the driver has had the first answer of two.
STORED = Hold(name="stored", module="streamhouse.spark.jobs.rewrite", function="_store", is_after=True)
SWAPPED = Hold(name="swapped", module="streamhouse.client.planning", function="PlanningClient.replace", is_after=True)


def test_a_compaction_goes_on_without_its_workers_and_is_finished_without_its_driver(
    spark: SparkSession, tmp_path: Path
) -> None:
    with embedded(tmp_path / "node", *SMALL_TAIL) as node:
        # Tombstones stay, so that what is compacted has nothing more to lose.
        topic = create_topic(node, 2, cleanup_policy="compact", delete_retention_ms=str(2**60))
        produce(node.bootstrap, topic, keyed_records(400, keys=20))
        node.wait_in_segments(topic, 400)
        before = consume(node.bootstrap, topic)
        command = ("maintain", "compact", topic, "--endpoint", node.endpoint, "--master", "local[2]", "--json")

        with Driver(tmp_path, COMMAND, *command, holds=[STORED, SWAPPED]) as driver:
            driver.wait_at("stored")
            assert kill9_workers() > 0
            driver.wait_at("swapped")
            driver.kill9()
        half_way = segments_of(node.storage, topic)

        (swap,) = compact(spark, Compaction(connection=connection_to(node), topics=[topic]))

        done = segments_of(node.storage, topic)
        assert [each for each in done if each.partition != swap.partition] == [
            each for each in half_way if each.partition != swap.partition
        ]
        assert_rows_and_objects_agree(node.storage)
        # A new process has nothing in memory: what it reads is in the segments.
        assert node.node.terminate() == 0
        node.node.start()
        after = consume(node.bootstrap, topic)
        assert set(after) < set(before)
        assert latest_values(after) == latest_values(before)
