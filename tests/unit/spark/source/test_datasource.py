"""The data source as Spark finds it: by the name of its package, without being registered."""

from __future__ import annotations

import pickle
from pkgutil import iter_modules

from pyspark.sql.datasource import DataSource

from pyspark_streamhouse import DefaultSource
from streamhouse.spark.datasource import StreamHouseDataSource

OPTIONS = {"endpoint": "http://node:8080", "subscribe": "orders"}


def test_spark_finds_the_source_among_the_packages_that_start_with_pyspark() -> None:
    assert "pyspark_streamhouse" in {module.name for module in iter_modules()}
    assert issubclass(DefaultSource, DataSource)
    assert DefaultSource.name() == "streamhouse"


def test_the_source_is_known_to_workers_by_its_name_alone() -> None:
    assert pickle.loads(pickle.dumps(DefaultSource)) is DefaultSource
    assert pickle.loads(pickle.dumps(StreamHouseDataSource(OPTIONS))).options == OPTIONS


def test_headers_are_a_column_only_when_asked_for() -> None:
    assert "headers" not in StreamHouseDataSource(OPTIONS).schema().names
    assert StreamHouseDataSource({**OPTIONS, "includeHeaders": "true"}).schema().names[-1] == "headers"
