"""Rows into an Iceberg table: files by the executors, one commit by the driver that carries the batch's id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from streamhouse.model.errors import InvalidConfig, Unavailable
from streamhouse.spark.pipelines.model import IcebergSink
from streamhouse.spark.pipelines.sinks.data_files import directory_at
from streamhouse.spark.pipelines.sinks.lake import HINT, lake_schema
from streamhouse.spark.pipelines.sinks.writer import BatchId, Refusal

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyspark.sql import DataFrame

_CATALOG = "default"
_BATCH_PROPERTY = "streamhouse.batch."
# pyiceberg would put a commit that lost a race on top of the winner's: also a batch that the winner has written.
_NO_RETRIES = {"commit.retry.num-retries": "0"}
_TRIES = 10


class IcebergWriter:
    """The id of the last batch is a property of the table that changes in the transaction that adds the rows."""

    def __init__(self, sink: IcebergSink) -> None:
        self._name = sink.table
        self._properties: Mapping[str, str] = sink.catalog

    def shape(self, rows: DataFrame) -> DataFrame:
        schema = lake_schema(rows)
        table = self._find(self._catalog())
        if table is not None:
            _check_fits(table, schema)
        return rows

    def write(self, batch: DataFrame, batch_id: BatchId) -> Sequence[Refusal]:
        catalog = self._catalog()
        table = self._find(catalog) or self._create(catalog, lake_schema(batch))
        _check_fits(table, lake_schema(batch))
        directory = directory_at(f"{table.location().rstrip('/')}/data", self._properties)
        files = directory.write(batch, f"part-{batch_id.number:020d}")
        paths = [f"{table.location().rstrip('/')}/data/{file.key}" for file in files]
        if files and not self._commit(table, paths, batch_id):
            directory.remove(files)
        return ()

    def _commit(self, table: Table, paths: list[str], batch_id: BatchId) -> bool:
        """False if an earlier try has done it."""
        from pyiceberg.exceptions import CommitFailedException

        name = _BATCH_PROPERTY + batch_id.sink_id
        for _ in range(_TRIES):
            table.refresh()
            if int(table.properties.get(name, -1)) >= batch_id.number:
                return False
            try:
                if _NO_RETRIES.items() - table.properties.items():
                    with table.transaction() as settings:
                        settings.set_properties(_NO_RETRIES)
                with table.transaction() as transaction:
                    transaction.set_properties({name: str(batch_id.number)})
                    transaction.add_files(paths, check_duplicate_files=False)
                return True
            except CommitFailedException:
                # Somebody else was first: look again at what is there now.
                continue
        raise Unavailable(f"others commit to the Iceberg table {self._name} all the time")

    # -- the table ----------------------------------------------------------------------------------------------

    def _catalog(self) -> Catalog:
        try:
            from pyiceberg.catalog import load_catalog
        except ImportError as error:
            raise InvalidConfig("an iceberg sink needs the package pyiceberg", hint=HINT) from error
        try:
            return load_catalog(_CATALOG, **self._properties)
        except Exception as error:
            # Whatever the many kinds of catalogs raise, it is their settings that are wrong.
            raise InvalidConfig(f"cannot open the Iceberg catalog: {error}") from error

    def _find(self, catalog: Catalog) -> Table | None:
        from pyiceberg.exceptions import NoSuchTableError

        try:
            return catalog.load_table(self._name)
        except NoSuchTableError:
            return None

    def _create(self, catalog: Catalog, schema: pa.Schema) -> Table:
        catalog.create_namespace_if_not_exists(self._name.rpartition(".")[0])
        return catalog.create_table_if_not_exists(self._name, schema, properties=_NO_RETRIES)


def _check_fits(table: Table, schema: pa.Schema) -> None:
    names = {field.name for field in table.schema().fields}
    if names != set(schema.names):
        there, ours = sorted(names - set(schema.names)), sorted(set(schema.names) - names)
        message = f"the rows do not fit the Iceberg table: it has {there}, the rows have {ours}"
        raise InvalidConfig(message, hint="names must be the same")
