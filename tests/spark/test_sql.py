"""Topics in Spark's SQL: temporary views of them, and why there are no tables of the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_parts.nodes import SparkNode
from spark_parts.rows import produce, varied_records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEW_WORKS = r"CREATE TEMPORARY VIEW orders USING streamhouse OPTIONS \(endpoint"


def options(node: SparkNode, topic: str) -> str:
    return f"endpoint '{node.endpoint}', subscribe '{topic}'"


def test_a_temporary_view_is_a_topic(spark: SparkSession, embedded_node: SparkNode) -> None:
    topic = embedded_node.new_topic()
    produce(embedded_node.bootstrap, topic, varied_records(10))
    spark.sql(f"CREATE TEMPORARY VIEW seen USING streamhouse OPTIONS ({options(embedded_node, topic)})")
    try:
        (row,) = spark.sql("SELECT count(*) AS records, min(topic) AS topic FROM seen").collect()
    finally:
        spark.catalog.dropTempView("seen")

    assert (row["records"], row["topic"]) == (10, topic)


@pytest.mark.parametrize("given_as", ["OPTIONS", "TBLPROPERTIES"])
def test_create_table_says_that_a_view_works(spark: SparkSession, embedded_node: SparkNode, given_as: str) -> None:
    from pyspark.errors import AnalysisException

    statement = f"CREATE TABLE refused USING streamhouse {given_as} ({options(embedded_node, 'orders')})"
    with pytest.raises(AnalysisException, match=VIEW_WORKS) as caught:
        spark.sql(statement)

    assert "cannot be a table of Spark's catalog" in str(caught.value)
    assert "'provider'" not in str(caught.value)
    assert not spark.catalog.tableExists("refused")


def test_a_table_that_spark_made_by_itself_says_why_it_cannot_be_read_or_written(
    spark: SparkSession, embedded_node: SparkNode
) -> None:
    """With columns in the statement Spark does not ask the source before it makes the table."""
    from pyspark.errors import AnalysisException

    spark.sql(f"CREATE TABLE made (value BINARY) USING streamhouse OPTIONS ({options(embedded_node, 'orders')})")
    try:
        for statement in ("SELECT * FROM made", "INSERT INTO made VALUES (X'00')"):
            with pytest.raises(AnalysisException, match=VIEW_WORKS):
                spark.sql(statement).collect()
    finally:
        spark.sql("DROP TABLE made")


def test_a_pattern_of_java_says_that_patterns_are_pythons(spark: SparkSession, embedded_node: SparkNode) -> None:
    from pyspark.errors import AnalysisException

    reader = spark.read.format("streamhouse").option("endpoint", embedded_node.endpoint)
    with pytest.raises(AnalysisException, match="one of Python's, not of Java's"):
        reader.option("subscribePattern", "(?<name>orders)").load()
