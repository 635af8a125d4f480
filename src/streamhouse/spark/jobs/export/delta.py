"""An export to a Delta table: the commit that adds the files carries the next offset of each partition.

Delta keeps one number for each application id, which outlives checkpoints and the clean-up of the log; ours is the
offset. A commit is refused if somebody else has moved it since the table was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from streamhouse.model.errors import Unavailable
from streamhouse.runtime.clock import SystemClock
from streamhouse.spark.jobs.export.file_task import export_schema
from streamhouse.spark.jobs.export.target import Wave
from streamhouse.spark.pipelines.sinks.data_files import DataFile, directory_at
from streamhouse.spark.pipelines.sinks.delta_table import add_action, find_delta_table


class DeltaTarget:
    names_by_range = False

    def __init__(self, location: str, options: Mapping[str, str], topic_id: UUID, partition_count: int) -> None:
        self.directory = directory_at(location, options)
        self._location = location
        self._options = dict(options)
        self._applications = {
            partition: f"streamhouse-export/{topic_id}/{partition}" for partition in range(partition_count)
        }

    def exported(self) -> Mapping[int, int]:
        table = find_delta_table(self._location, self._options)
        if table is None:
            return {}
        found = {partition: table.transaction_version(name) for partition, name in self._applications.items()}
        return {partition: offset for partition, offset in found.items() if offset is not None}

    def unfinished(self) -> Wave | None:
        return None

    def begin(self, wave: Wave) -> Wave:
        return wave

    def commit(self, wave: Wave, files: Sequence[DataFile]) -> bool:
        from deltalake import CommitProperties, DeltaTable, Transaction
        from deltalake.exceptions import CommitFailedError, DeltaError

        now_ms = SystemClock().now_ms()
        try:
            table = DeltaTable.create(self._location, export_schema(), mode="ignore", storage_options=self._options)
            if any(
                (table.transaction_version(self._applications[partition]) or 0) > start
                for partition, start in wave.starts().items()
            ):
                return False
            moved = [Transaction(self._applications[partition], end, now_ms) for partition, end in wave.ends().items()]
            table.create_write_transaction(
                [add_action(file, now_ms) for file in files],
                mode="append",
                schema=table.schema(),
                commit_properties=CommitProperties(app_transactions=moved),
            )
        except CommitFailedError:
            return False
        except (DeltaError, OSError) as error:
            raise Unavailable(f"cannot write to the Delta table {self._location}: {error}") from error
        return True
