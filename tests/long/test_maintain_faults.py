"""Compactions, merges and verifications are killed in the middle: nothing is lost or doubled, the next run ends it.

Exports and rebuilds have files of their own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from maintain_parts.commands import kill9_at, maintain
from maintain_parts.logs import SMALL_TAIL, connection_to, create_topic, keyed_records, latest_values, watermarks
from maintain_parts.merging import ONE_OF_TWO_SWAPPED, assert_a_killed_merge_is_finished_by_the_next
from maintain_parts.metadata import facts
from maintain_parts.workers import kill9_workers
from node.storage import assert_rows_and_objects_agree, segments_of
from spark_parts.driver import Hold
from spark_parts.nodes import embedded
from spark_parts.rows import consume, produce
from streamhouse.spark.jobs.compact import Compaction, compact
from streamhouse.spark.jobs.verify import Verification, verify

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A worker has stored a segment; the driver has had the first answer of two.
STORED = Hold(name="stored", module="streamhouse.spark.jobs.rewrite", function="_store", is_after=True)
SWAPPED = Hold(name="swapped", module="streamhouse.client.planning", function="PlanningClient.replace", is_after=True)
NONE_SWAPPED = Hold(name="none-swapped", module="streamhouse.client.planning", function="PlanningClient.replace")
ALL_SWAPPED = Hold(
    name="all-swapped", module="streamhouse.client.planning", function="PlanningClient.replace", is_after=True, skip=1
)
AUDITING = Hold(
    name="auditing", module="streamhouse.spark.jobs.verify", function="_audit_segment", is_after=True, skip=1
)
REPORTING = Hold(name="reporting", module="streamhouse.cli.maintain_report", function="print_verification")


def test_a_compaction_goes_on_without_its_workers_and_is_finished_without_its_driver(
    spark: SparkSession, tmp_path: Path
) -> None:
    with embedded(tmp_path / "node", *SMALL_TAIL) as node:
        # Tombstones stay, so that what is compacted has nothing more to lose.
        topic = create_topic(node, 2, cleanup_policy="compact", delete_retention_ms=str(2**60))
        produce(node.bootstrap, topic, keyed_records(400, keys=20))
        node.wait_in_segments(topic, 400)
        before = consume(node.bootstrap, topic)

        with maintain(tmp_path, "compact", topic, "--endpoint", node.endpoint, holds=[STORED, SWAPPED]) as driver:
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


@pytest.mark.parametrize(
    ("hold", "swapped"),
    [(STORED, 0), (NONE_SWAPPED, 0), (ONE_OF_TWO_SWAPPED, 1), (ALL_SWAPPED, 2)],
    ids=lambda value: value.name if isinstance(value, Hold) else "",
)
def test_a_killed_merge_is_finished_by_the_next(spark: SparkSession, tmp_path: Path, hold: Hold, swapped: int) -> None:
    assert_a_killed_merge_is_finished_by_the_next(spark, tmp_path, hold, swapped=swapped)


def test_a_killed_verification_has_changed_nothing_and_the_next_finds_the_same(
    spark: SparkSession, tmp_path: Path
) -> None:
    with embedded(tmp_path / "node", *SMALL_TAIL) as node:
        topic = create_topic(node, 2, retention_ms="-1")
        for number in range(3):
            produce(node.bootstrap, topic, keyed_records(60, keys=20, seed=number))
            node.wait_in_segments(topic, 60 * (number + 1))
        rows, offsets = consume(node.bootstrap, topic), watermarks(node.bootstrap, topic)
        damaged = segments_of(node.storage, topic)[0].object_key
        content = node.storage.read_object(damaged)
        node.storage.write_object(damaged, content[:90] + bytes([content[90] ^ 1]) + content[91:])
        job = Verification(connection=connection_to(node), settling_ms=0)
        report = verify(spark, job)
        assert any(damaged in finding.message for finding in report.violations)
        metadata = facts(node.storage)
        objects = {key: node.storage.read_object(key) for key in node.storage.object_sizes()}

        for hold in (AUDITING, REPORTING):
            kill9_at(hold, tmp_path, "verify", "--settling", "0s", "--endpoint", node.endpoint)

            assert facts(node.storage) == metadata
            assert {key: node.storage.read_object(key) for key in node.storage.object_sizes()} == objects
            assert verify(spark, job) == report

        node.storage.write_object(damaged, content)
        assert consume(node.bootstrap, topic) == rows
        assert watermarks(node.bootstrap, topic) == offsets
