"""Python workers import what is compiled: what Spark brings along for them is not, and slow to import."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from streamhouse.spark.home import home_without_archives

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def package_of_workers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow
    import pyspark

    for _ in batches:
        yield pyarrow.RecordBatch.from_pydict({"file": [pyspark.__file__], "compiled": [pyspark.__cached__]})


def test_workers_import_the_installed_package_and_not_the_archive(spark: SparkSession) -> None:
    (row,) = spark.range(1, numPartitions=1).mapInArrow(package_of_workers, "file string, compiled string").collect()

    assert row["file"] == pyspark.__file__
    assert Path(row["compiled"]).is_file()
    assert "SPARK_HOME" not in os.environ, "only Java was told"


def test_a_home_that_was_chosen_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")

    with home_without_archives():
        assert os.environ["SPARK_HOME"] == "/opt/spark"
    assert os.environ["SPARK_HOME"] == "/opt/spark"


def test_another_python_for_the_workers_gets_its_package_from_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/another-python")

    with home_without_archives():
        assert "SPARK_HOME" not in os.environ
