"""What the driver hands an executor: pieces of the log to read, and where the objects are."""

from __future__ import annotations

from pyspark.sql.datasource import InputPartition

from streamhouse.core.scan_plan import ScanPiece
from streamhouse.wire.http.planning import ObjectsLocation


class ScanTask(InputPartition):
    """Pickled once for each task; everything that all tasks have in common is in the reader."""

    def __init__(self, pieces: tuple[ScanPiece, ...], location: ObjectsLocation) -> None:
        super().__init__(None)
        self.pieces = pieces
        self.location = location
