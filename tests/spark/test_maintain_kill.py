"""A maintenance job is killed with -9 in the middle and run again: the shortest case here, all others in tests/long."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from maintain_parts.merging import ONE_OF_TWO_SWAPPED, assert_a_killed_merge_is_finished_by_the_next

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_merge_that_is_killed_between_two_swaps_is_finished_by_the_next(spark: SparkSession, tmp_path: Path) -> None:
    assert_a_killed_merge_is_finished_by_the_next(spark, tmp_path, ONE_OF_TWO_SWAPPED, swapped=1)
