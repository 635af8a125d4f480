"""Rows into a PostgreSQL table, by key: the batch's rows and its id in one transaction."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql import types as T

from streamhouse.model.errors import InvalidConfig, Unavailable
from streamhouse.spark.pipelines.model import PostgresSink
from streamhouse.spark.pipelines.sinks.writer import BatchId, Refusal

if TYPE_CHECKING:
    import asyncpg
    from pyspark.sql import DataFrame

BATCH_TABLE = "streamhouse_batches"
"""Which batch each sink wrote last."""

_CHUNK_ROWS = 10_000
_STAGE = "streamhouse_stage"
_ORDER = "streamhouse_order"
_TYPES: dict[type[T.DataType], str] = {
    T.StringType: "text",
    T.BooleanType: "boolean",
    T.ByteType: "smallint",
    T.ShortType: "smallint",
    T.IntegerType: "integer",
    T.LongType: "bigint",
    T.FloatType: "real",
    T.DoubleType: "double precision",
    T.DateType: "date",
    T.TimestampType: "timestamptz",
    T.TimestampNTZType: "timestamp",
    T.BinaryType: "bytea",
}
_NESTED = (T.StructType, T.ArrayType, T.MapType)


class PostgresWriter:
    def __init__(self, sink: PostgresSink) -> None:
        self._sink = sink

    def shape(self, rows: DataFrame) -> DataFrame:
        """What has parts becomes JSON."""
        missing = [name for name in self._sink.key if name not in rows.columns]
        if missing:
            raise InvalidConfig(f"there is no column {missing[0]!r}", hint=f"there are {', '.join(rows.columns)}")
        columns = [
            F.to_json(F.col(f"`{field.name}`")).alias(field.name)
            if isinstance(field.dataType, _NESTED)
            else F.col(f"`{field.name}`")
            for field in rows.schema.fields
        ]
        for field in rows.schema.fields:
            if not isinstance(field.dataType, _NESTED):
                _column_type(field)
        return rows.select(*columns)

    def write(self, batch: DataFrame, batch_id: BatchId) -> Sequence[Refusal]:
        return asyncio.run(self._write(batch, batch_id))

    async def _write(self, batch: DataFrame, batch_id: BatchId) -> Sequence[Refusal]:
        import asyncpg

        rows = map(tuple, batch.toLocalIterator())
        try:
            connection = await asyncpg.connect(self._sink.dsn)
        except (OSError, asyncpg.PostgresError) as error:
            raise Unavailable(f"cannot reach PostgreSQL for sink {self._sink.name!r}: {error}") from error
        try:
            async with connection.transaction():
                return await self._upsert(connection, batch.schema, rows, batch_id)
        except asyncpg.PostgresError as error:
            raise InvalidConfig(
                f"sink {self._sink.name!r} cannot write to table {self._sink.table!r}: {error}",
                hint=f"its columns must fit the rows, and it needs a unique index on ({', '.join(self._sink.key)})",
            ) from error
        finally:
            await connection.close()

    async def _upsert(
        self, connection: asyncpg.Connection, schema: T.StructType, rows: Iterator[tuple[Any, ...]], batch_id: BatchId
    ) -> Sequence[Refusal]:
        await self._prepare(connection, schema)
        last = await connection.fetchval(
            f"""INSERT INTO {BATCH_TABLE} AS mine (sink_id, batch_id) VALUES ($1, -1)
                ON CONFLICT (sink_id) DO UPDATE SET batch_id = mine.batch_id RETURNING batch_id""",  # noqa: S608 - a constant
            batch_id.sink_id,
        )
        refusals: list[Refusal] = []
        names = schema.fieldNames()
        while chunk := list(islice(rows, _CHUNK_ROWS)):
            # A batch that comes again changes nothing, but what it was refused must be told again. One that is older
            # than the last comes from a driver that was thought dead.
            if last <= batch_id.number:
                refusals += await self._upsert_chunk(connection, names, chunk)
        await connection.execute(
            f"UPDATE {BATCH_TABLE} SET batch_id = greatest(batch_id, $2) WHERE sink_id = $1",  # noqa: S608 - a constant
            batch_id.sink_id,
            batch_id.number,
        )
        return refusals

    async def _upsert_chunk(
        self, connection: asyncpg.Connection, names: list[str], chunk: list[tuple[Any, ...]]
    ) -> list[Refusal]:
        """A row that PostgreSQL refuses is found by halving; all others are written."""
        import asyncpg

        try:
            async with connection.transaction():
                await self._copy_and_merge(connection, names, chunk)
            return []
        except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError, ValueError, TypeError) as error:
            if len(chunk) == 1:
                row = dict(zip(names, chunk[0], strict=True))
                return [Refusal(row=json.dumps(row, default=str), error=f"{type(error).__name__}: {error}")]
            half = len(chunk) // 2
            first = await self._upsert_chunk(connection, names, chunk[:half])
            return first + await self._upsert_chunk(connection, names, chunk[half:])

    # -- SQL ----------------------------------------------------------------------------------------------------

    async def _prepare(self, connection: asyncpg.Connection, schema: T.StructType) -> None:
        key = ", ".join(map(_quoted, self._sink.key))
        columns = ", ".join(f"{_quoted(field.name)} {_column_type(field)}" for field in schema.fields)
        await connection.execute(
            f"CREATE TABLE IF NOT EXISTS {BATCH_TABLE} (sink_id text PRIMARY KEY, batch_id bigint NOT NULL)"
        )
        await connection.execute(f"CREATE TABLE IF NOT EXISTS {self._target()} ({columns}, PRIMARY KEY ({key}))")
        wanted = ", ".join(map(_quoted, schema.fieldNames()))
        await connection.execute(
            f"""CREATE TEMPORARY TABLE {_STAGE} ON COMMIT DROP AS
                SELECT {wanted}, 0::bigint AS {_ORDER} FROM {self._target()} WITH NO DATA"""  # noqa: S608 - names are quoted
        )

    async def _copy_and_merge(
        self, connection: asyncpg.Connection, names: list[str], chunk: list[tuple[Any, ...]]
    ) -> None:
        numbered = ((*row, number) for number, row in enumerate(chunk))
        await connection.copy_records_to_table(_STAGE, records=numbered, columns=[*names, _ORDER])
        columns = ", ".join(map(_quoted, names))
        key = ", ".join(map(_quoted, self._sink.key))
        others = [name for name in names if name not in self._sink.key]
        changes = ", ".join(f"{_quoted(name)} = excluded.{_quoted(name)}" for name in others)
        action = f"DO UPDATE SET {changes}" if changes else "DO NOTHING"
        await connection.execute(
            f"""INSERT INTO {self._target()} ({columns})
                SELECT DISTINCT ON ({key}) {columns} FROM {_STAGE} ORDER BY {key}, {_ORDER} DESC
                ON CONFLICT ({key}) {action}"""  # noqa: S608 - names are quoted
        )
        await connection.execute(f"TRUNCATE {_STAGE}")

    def _target(self) -> str:
        return ".".join(map(_quoted, self._sink.table.split(".")))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _column_type(field: T.StructField) -> str:
    if isinstance(field.dataType, T.DecimalType):
        return f"numeric({field.dataType.precision}, {field.dataType.scale})"
    name = _TYPES.get(type(field.dataType))
    if name is None:
        raise InvalidConfig(f"column {field.name!r} has type {field.dataType.simpleString()}, which PostgreSQL has not")
    return name
