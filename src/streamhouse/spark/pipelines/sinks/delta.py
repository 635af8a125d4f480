"""Rows into a Delta table: files by the executors, one commit by the driver that carries the batch's id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from streamhouse.model.errors import InvalidConfig, Unavailable
from streamhouse.runtime.clock import SystemClock
from streamhouse.spark.pipelines.model import DeltaSink, OutputMode
from streamhouse.spark.pipelines.sinks.data_files import DataFile, Directory, directory_at
from streamhouse.spark.pipelines.sinks.delta_table import add_action, find_delta_table
from streamhouse.spark.pipelines.sinks.lake import lake_schema
from streamhouse.spark.pipelines.sinks.writer import BatchId, Refusal

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame


class DeltaWriter:
    """The transaction id that Delta keeps for each application makes a batch's second commit, or one by a driver that
    was thought dead, impossible."""

    def __init__(self, sink: DeltaSink) -> None:
        self._table = sink.table
        self._options: Mapping[str, str] = sink.options
        self._directory: Directory = directory_at(sink.table, sink.options)
        # In complete mode a batch is the whole result, and takes the place of the one before.
        self._mode: Literal["append", "overwrite"] = "overwrite" if sink.mode is OutputMode.COMPLETE else "append"

    def shape(self, rows: DataFrame) -> DataFrame:
        schema = lake_schema(rows)
        table = find_delta_table(self._table, self._options)
        if table is not None:
            _check_fits(table, schema, self._table)
        return rows

    def write(self, batch: DataFrame, batch_id: BatchId) -> Sequence[Refusal]:
        files = self._directory.write(batch, f"part-{batch_id.number:020d}")
        changes_something = bool(files) or self._mode == "overwrite"
        if changes_something and not self._commit(files, lake_schema(batch), batch_id):
            self._directory.remove(files)
        return ()

    def _commit(self, files: Sequence[DataFile], schema: pa.Schema, batch_id: BatchId) -> bool:
        """False if an earlier try has done it."""
        from deltalake import CommitProperties, DeltaTable, Transaction
        from deltalake.exceptions import CommitFailedError, DeltaError

        now_ms = SystemClock().now_ms()
        try:
            table = DeltaTable.create(self._table, schema, mode="ignore", storage_options=dict(self._options))
            _check_fits(table, schema, self._table)
            if _last_batch(table, batch_id.sink_id) >= batch_id.number:
                return False
            transaction = Transaction(batch_id.sink_id, batch_id.number, now_ms)
            table.create_write_transaction(
                [add_action(file, now_ms) for file in files],
                mode=self._mode,
                schema=table.schema(),
                commit_properties=CommitProperties(app_transactions=[transaction]),
            )
        except CommitFailedError as error:
            table = DeltaTable(self._table, storage_options=dict(self._options))
            if _last_batch(table, batch_id.sink_id) >= batch_id.number:
                return False
            raise Unavailable(f"cannot commit to the Delta table {self._table}: {error}") from error
        except (DeltaError, OSError) as error:
            raise Unavailable(f"cannot write to the Delta table {self._table}: {error}") from error
        return True


def _last_batch(table: DeltaTable, sink_id: str) -> int:
    version = table.transaction_version(sink_id)
    return -1 if version is None else version


def _check_fits(table: DeltaTable, schema: pa.Schema, name: str) -> None:
    from deltalake import Schema

    there = {(field.name, str(field.type)) for field in table.schema().fields}
    ours = {(field.name, str(field.type)) for field in Schema.from_arrow(schema).fields}
    if there != ours:
        both = f"it has {_listed(there - ours)}, the rows have {_listed(ours - there)}"
        raise InvalidConfig(f"the rows do not fit the Delta table {name}: {both}")


def _listed(fields: set[tuple[str, str]]) -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in sorted(fields)) or "nothing else"
