"""An export to an Iceberg table: the transaction that adds the files also sets a property, the next offsets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from streamhouse.model.errors import InvalidConfig
from streamhouse.spark.jobs.export.file_task import export_schema
from streamhouse.spark.jobs.export.target import Wave
from streamhouse.spark.pipelines.sinks.data_files import DataFile, Directory, directory_at
from streamhouse.spark.pipelines.sinks.lake import HINT

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

_CATALOG = "default"
_NAMESPACE = "streamhouse"
# pyiceberg would put a commit that lost a race on top of the winner's: also offsets that the winner has exported.
_NO_RETRIES = {"commit.retry.num-retries": "0"}


def catalog_beside(directory: Directory) -> dict[str, str]:
    """A catalog in an SQLite file next to the tables, for those who have none."""
    if not directory.url.startswith("file://"):
        raise InvalidConfig(
            "an Iceberg table in a bucket needs a catalog",
            hint="describe it, such as --option type=rest --option uri=http://…, as pyiceberg takes it",
        )
    path = directory.url.removeprefix("file://")
    return {"type": "sql", "uri": f"sqlite:///{path}/catalog.db", "warehouse": directory.url}


class IcebergTarget:
    names_by_range = False

    def __init__(self, location: str, options: Mapping[str, str], topic: str, topic_id: UUID) -> None:
        warehouse = directory_at(location, options)
        has_catalog = "uri" in options or "type" in options
        self._properties = dict(options) if has_catalog else {**catalog_beside(warehouse), **options}
        self._warehouse = warehouse
        self._name = (_NAMESPACE, topic)
        self._offsets_property = f"streamhouse.exported.{topic_id}"
        self._table = self._find_or_create(self._catalog())
        self.directory = directory_at(f"{self._table.location().rstrip('/')}/data", self._properties)

    def exported(self) -> Mapping[int, int]:
        self._table.refresh()
        return self._offsets()

    def unfinished(self) -> Wave | None:
        return None

    def begin(self, wave: Wave) -> Wave:
        return wave

    def commit(self, wave: Wave, files: Sequence[DataFile]) -> bool:
        from pyiceberg.exceptions import CommitFailedException

        self._table.refresh()
        offsets = self._offsets()
        if any(offsets.get(partition, 0) > start for partition, start in wave.starts().items()):
            return False
        moved = {str(partition): offset for partition, offset in sorted({**offsets, **wave.ends()}.items())}
        base = f"{self._table.location().rstrip('/')}/data"
        try:
            with self._table.transaction() as transaction:
                transaction.set_properties({self._offsets_property: json.dumps(moved)})
                if files:
                    transaction.add_files([f"{base}/{file.key}" for file in files], check_duplicate_files=False)
        except CommitFailedException:
            return False
        return True

    def _offsets(self) -> dict[int, int]:
        stored = json.loads(self._table.properties.get(self._offsets_property, "{}"))
        return {int(partition): int(offset) for partition, offset in stored.items()}

    def _catalog(self) -> Catalog:
        try:
            from pyiceberg.catalog import load_catalog
        except ImportError as error:
            raise InvalidConfig("an export to Iceberg needs the package pyiceberg", hint=HINT) from error
        if self._warehouse.url.startswith("file://"):
            # An SQLite file is made where its directory is.
            self._warehouse.store()
        try:
            return load_catalog(_CATALOG, **self._properties)
        except Exception as error:
            # Whatever the many kinds of catalogs raise, it is their settings that are wrong.
            raise InvalidConfig(f"cannot open the Iceberg catalog: {error}") from error

    def _find_or_create(self, catalog: Catalog) -> Table:
        catalog.create_namespace_if_not_exists(_NAMESPACE)
        table = catalog.create_table_if_not_exists(self._name, export_schema(), properties=_NO_RETRIES)
        if _NO_RETRIES.items() - table.properties.items():
            with table.transaction() as settings:
                settings.set_properties(_NO_RETRIES)
        return table
