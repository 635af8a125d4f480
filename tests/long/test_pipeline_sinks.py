"""Sinks of pipelines, batch by batch: one that comes again changes nothing, nor does one from a driver thought dead."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest

from services.seaweed import S3Bucket
from spark_parts.session import S3_ENVIRONMENT
from streamhouse.model.errors import InvalidConfig
from streamhouse.spark.pipelines.model import DeltaSink, Guarantee, IcebergSink, OutputMode, PostgresSink
from streamhouse.spark.pipelines.sinks.writer import BatchId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COMMON: dict[str, Any] = {
    "name": "sink",
    "line": 1,
    "rows_of": "rows",
    "mode": OutputMode.APPEND,
    "mode_line": 1,
    "guarantee": Guarantee.EXACTLY_ONCE,
}


def batch(number: int, sink_id: str = "pipeline.sink.query") -> BatchId:
    return BatchId(sink_id=sink_id, number=number)


def numbers(spark: SparkSession, start: int, end: int) -> DataFrame:
    return spark.range(start, end, numPartitions=2).selectExpr("id", "timestamp_seconds(id) AS at")


def test_a_delta_batch_is_committed_once_and_leaves_no_files_when_it_is_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    from deltalake import DeltaTable

    from streamhouse.spark.pipelines.sinks.delta import DeltaWriter

    table = tmp_path / "table"
    writer = DeltaWriter(DeltaSink(**_COMMON, table=str(table), options={}))
    writer.shape(numbers(spark, 0, 1))

    writer.write(numbers(spark, 0, 10), batch(0))
    writer.write(numbers(spark, 0, 10), batch(0))
    writer.write(numbers(spark, 0, 0), batch(1))
    writer.write(numbers(spark, 10, 15), batch(2))
    writer.write(numbers(spark, 90, 95), batch(1))
    writer.write(numbers(spark, 15, 20), batch(0, sink_id="pipeline.sink.other"))

    assert sorted(DeltaTable(table).to_pyarrow_table().column("id").to_pylist()) == list(range(20))
    referenced = {Path(path).name for path in DeltaTable(table).file_uris()}
    assert {path.name for path in table.glob("*.parquet")} == referenced
    with pytest.raises(InvalidConfig, match=r"it has at: .*, the rows have nothing else"):
        writer.shape(spark.range(1))


def test_in_complete_mode_a_result_takes_the_place_of_the_one_before_once(spark: SparkSession, tmp_path: Path) -> None:
    from deltalake import DeltaTable

    from streamhouse.spark.pipelines.sinks.delta import DeltaWriter

    table = tmp_path / "table"
    common = {**_COMMON, "mode": OutputMode.COMPLETE}
    writer = DeltaWriter(DeltaSink(**common, table=str(table), options={}))

    def ids_after(rows: DataFrame, number: int) -> list[int]:
        writer.write(rows, batch(number))
        return sorted(DeltaTable(table).to_pyarrow_table().column("id").to_pylist())

    assert ids_after(numbers(spark, 0, 10), 0) == list(range(10))
    assert ids_after(numbers(spark, 5, 8), 1) == [5, 6, 7]
    assert ids_after(numbers(spark, 0, 10), 0) == [5, 6, 7], "a batch that comes late changes nothing"
    assert ids_after(numbers(spark, 0, 0), 2) == []
    assert ids_after(numbers(spark, 3, 4), 3) == [3]


def test_a_delta_table_can_be_on_s3(spark: SparkSession, s3_bucket: S3Bucket) -> None:
    from deltalake import DeltaTable

    from streamhouse.spark.pipelines.sinks.data_files import directory_at
    from streamhouse.spark.pipelines.sinks.delta import DeltaWriter

    options = {**S3_ENVIRONMENT, "AWS_ENDPOINT_URL": s3_bucket.endpoint, "AWS_ALLOW_HTTP": "true"}
    url = f"s3://{s3_bucket.name}/lake/numbers"
    writer = DeltaWriter(DeltaSink(**_COMMON, table=url, options=options))

    writer.write(numbers(spark, 0, 10), batch(0))
    writer.write(numbers(spark, 0, 10), batch(0))

    table = DeltaTable(url, storage_options=options)
    assert sorted(table.to_pyarrow_table().column("id").to_pylist()) == list(range(10))
    files = [item.key for item in directory_at(url, options).store().list("") if item.key.endswith(".parquet")]
    assert len(files) == len(table.file_uris())


def test_an_iceberg_batch_is_committed_once_also_beside_other_writers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa
    from pyiceberg.catalog import load_catalog
    from pyiceberg.table import Transaction

    from streamhouse.spark.pipelines.sinks.iceberg import IcebergWriter

    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": tmp_path.as_uri()}
    catalog = load_catalog("default", **properties)
    writer = IcebergWriter(IcebergSink(**_COMMON, table="shop.numbers", catalog=properties))
    writer.shape(numbers(spark, 0, 1))

    writer.write(numbers(spark, 0, 10), batch(0))
    writer.write(numbers(spark, 0, 10), batch(0))
    add_files = Transaction.add_files
    others = pa.table({"id": [100], "at": pa.array([datetime.now(UTC)], pa.timestamp("us", tz="UTC"))})

    def raced(transaction: Transaction, *arguments: Any, **named: Any) -> None:
        add_files(transaction, *arguments, **named)
        monkeypatch.setattr(Transaction, "add_files", add_files)
        catalog.load_table("shop.numbers").append(others)

    monkeypatch.setattr(Transaction, "add_files", raced)
    writer.write(numbers(spark, 10, 20), batch(1))
    writer.write(numbers(spark, 0, 10), batch(0))

    table = catalog.load_table("shop.numbers")
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == [*range(20), 100]
    written = {path.name for path in tmp_path.rglob("part-*.parquet")}
    referenced = {Path(path).name for path in table.inspect.files().column("file_path").to_pylist()}
    assert written == {name for name in referenced if name.startswith("part-")}
    with pytest.raises(InvalidConfig, match="do not fit the Iceberg table"):
        writer.shape(spark.range(1))


def test_a_postgres_batch_is_upserted_once_and_what_is_refused_is_told_each_time(
    spark: SparkSession, postgres_dsn: str
) -> None:
    from streamhouse.spark.pipelines.sinks.postgres import PostgresWriter

    sink = PostgresSink(**_COMMON, dsn=postgres_dsn, table="public.shop", key=("id",), key_line=1)
    writer = PostgresWriter(sink)
    columns = "id BIGINT, name STRING, price DECIMAL(8,2), at TIMESTAMP, day DATE, tags ARRAY<STRING>"
    at = datetime(2026, 11, 1, 8, tzinfo=UTC)

    def rows(*each: tuple[int | None, str]) -> DataFrame:
        values = [(number, name, Decimal("1.50"), at, date(2026, 11, 1), [name]) for number, name in each]
        return writer.shape(spark.createDataFrame(values, columns).coalesce(1))

    assert writer.write(rows((1, "one"), (2, "two"), (1, "uno")), batch(0)) == []
    several = rows((2, "dos"), (None, "nobody"), (3, "nul\0"), (4, "four"))
    refusals = writer.write(several, batch(1))
    assert writer.write(several, batch(1)) == refusals, "a batch that comes again is refused the same"
    assert writer.write(rows((1, "zombie")), batch(0)) == []

    assert [json.loads(refusal.row)["name"] for refusal in refusals] == ["nobody", "nul\0"]
    assert refusals[0].error.startswith("NotNullViolationError: ")
    found = _query(postgres_dsn, "SELECT * FROM shop ORDER BY id")
    assert [(row["id"], row["name"]) for row in found] == [(1, "uno"), (2, "dos"), (4, "four")]
    assert tuple(found[0])[2:] == (Decimal("1.50"), at, date(2026, 11, 1), '["uno"]')
    assert _query(postgres_dsn, "SELECT batch_id FROM streamhouse_batches")[0]["batch_id"] == 1


def test_a_postgres_table_that_does_not_fit_is_an_error_of_the_settings(spark: SparkSession, postgres_dsn: str) -> None:
    from streamhouse.spark.pipelines.sinks.postgres import PostgresWriter

    _query(postgres_dsn, "CREATE TABLE keyless (id bigint)")
    writer = PostgresWriter(PostgresSink(**_COMMON, dsn=postgres_dsn, table="keyless", key=("id",), key_line=1))

    with pytest.raises(InvalidConfig, match="needs a unique index on"):
        writer.write(spark.range(1), batch(0))
    with pytest.raises(InvalidConfig, match="there is no column 'id'"):
        writer.shape(spark.range(1).selectExpr("id AS number"))


def _query(dsn: str, sql: str) -> list[Any]:
    async def fetch() -> list[Any]:
        connection = await asyncpg.connect(dsn)
        try:
            return list(await connection.fetch(sql))
        finally:
            await connection.close()

    return asyncio.run(fetch())
