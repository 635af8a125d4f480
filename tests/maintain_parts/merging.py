"""A merge whose driver is killed, and what must be so after it was run again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from maintain_parts.commands import kill9_at
from maintain_parts.logs import SMALL_TAIL, connection_to, create_topic, keyed_records, watermarks
from node.storage import assert_rows_and_objects_agree, segments_of
from spark_parts.driver import Hold
from spark_parts.nodes import embedded
from spark_parts.rows import consume, produce
from streamhouse.spark.jobs.merge import Merging, merge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 2
ROUNDS = 3
ROUND_RECORDS = 40

ONE_OF_TWO_SWAPPED = Hold(
    name="one-of-two-swapped", module="streamhouse.client.planning", function="PlanningClient.replace", skip=1
)
"""The segments of both partitions are stored, and those of one are registered."""


def assert_a_killed_merge_is_finished_by_the_next(
    spark: SparkSession, directory: Path, hold: Hold, *, swapped: int
) -> None:
    """`swapped`: of how many partitions the killed run had replaced the segments."""
    with embedded(directory / "node", *SMALL_TAIL) as node:
        topic = create_topic(node, PARTITIONS, retention_ms="-1")
        for number in range(ROUNDS):
            for partition in range(PARTITIONS):
                produce(node.bootstrap, topic, keyed_records(ROUND_RECORDS, keys=7, seed=number), partition=partition)
            node.wait_in_segments(topic, PARTITIONS * ROUND_RECORDS * (number + 1))
        before = segments_of(node.storage, topic)
        rows, offsets = consume(node.bootstrap, topic), watermarks(node.bootstrap, topic)

        kill9_at(hold, directory, "merge", topic, "--endpoint", node.endpoint)

        half_way = segments_of(node.storage, topic)
        untouched = {each.partition for each in half_way if each in before}
        assert len(untouched) == PARTITIONS - swapped
        assert_rows_and_objects_agree(node.storage)
        assert consume(node.bootstrap, topic) == rows

        swaps = merge(spark, Merging(connection=connection_to(node), topics=[topic]))

        # What was swapped in by the killed run is left as it is.
        assert {swap.partition for swap in swaps} == untouched
        after = segments_of(node.storage, topic)
        assert [each.partition for each in after] == list(range(PARTITIONS))
        assert {each for each in half_way if each.partition not in untouched} <= set(after)
        assert merge(spark, Merging(connection=connection_to(node), topics=[topic])) == []
        assert_rows_and_objects_agree(node.storage)
        # A new process has nothing in memory: what it reads is in the segments.
        assert node.node.terminate() == 0
        node.node.start()
        assert consume(node.bootstrap, topic) == rows
        assert watermarks(node.bootstrap, topic) == offsets
