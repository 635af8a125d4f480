"""A Delta table as the sink and the export know it: opened if it is there, and given files that are written already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from streamhouse.model.errors import InvalidConfig
from streamhouse.spark.pipelines.sinks.data_files import DataFile
from streamhouse.spark.pipelines.sinks.lake import HINT

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction


def find_delta_table(location: str, options: Mapping[str, str]) -> DeltaTable | None:
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError, TableNotFoundError
    except ImportError as error:
        raise InvalidConfig("Delta tables need the package deltalake", hint=HINT) from error
    try:
        return DeltaTable(location, storage_options=dict(options))
    except TableNotFoundError:
        return None
    except (DeltaError, OSError) as error:
        raise InvalidConfig(f"cannot open the Delta table {location}: {error}") from error


def add_action(file: DataFile, now_ms: int) -> AddAction:
    from deltalake.transaction import AddAction

    return AddAction(
        path=file.key,
        size=file.size_bytes,
        partition_values={},
        modification_time=now_ms,
        data_change=True,
        stats=json.dumps({"numRecords": file.row_count}),
    )
