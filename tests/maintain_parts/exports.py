"""Topics and the places that they are exported to, read back with the libraries that others read them with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from maintain_parts.logs import connection_to
from spark_parts.nodes import SparkNode
from spark_parts.rows import Row
from streamhouse.spark.jobs.export.delta import DeltaTarget
from streamhouse.spark.jobs.export.iceberg import IcebergTarget
from streamhouse.spark.jobs.export.job import Export, ExportReport, export
from streamhouse.spark.jobs.export.parquet import ParquetTarget

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TARGETS = {"parquet": ParquetTarget, "delta": DeltaTarget, "iceberg": IcebergTarget}


class Place:
    """A topic and the place that it is exported to."""

    def __init__(self, spark: SparkSession, node: SparkNode, topic: str, format_name: str, directory: Path) -> None:
        self.topic = topic
        self.format = format_name
        self.directory = directory
        self._spark = spark
        self._node = node

    def export(self, *, dry_run: bool = False) -> ExportReport:
        job = Export(
            connection=connection_to(self._node),
            topic=self.topic,
            format=self.format,
            location=str(self.directory),
            dry_run=dry_run,
        )
        return export(self._spark, job)

    def read(self) -> list[Row]:
        return _rows_of(self._table())

    def _table(self) -> pa.Table:
        match self.format:
            case "parquet":
                import pyarrow.dataset as ds

                return ds.dataset(self.directory, format="parquet").to_table()
            case "delta":
                from deltalake import DeltaTable

                return DeltaTable(self.directory).to_pyarrow_table()
            case _:
                from pyiceberg.catalog import load_catalog

                catalog = load_catalog("default", type="sql", uri=f"sqlite:///{self.directory}/catalog.db")
                return catalog.load_table(("streamhouse", self.topic)).scan().to_arrow()


def _rows_of(table: pa.Table) -> list[Row]:
    return sorted(
        Row(
            row["topic"],
            row["partition"],
            row["offset"],
            round(row["timestamp"].timestamp() * 1000),
            row["key"],
            row["value"],
            tuple((header["key"], header["value"]) for header in row["headers"] or ()),
        )
        for row in table.to_pylist()
    )
