"""Where the objects are and with which keys, in a form that goes to every worker."""

from __future__ import annotations

from dataclasses import dataclass

from streamhouse.objects.blocking import BlockingStore
from streamhouse.spark.options import Connection
from streamhouse.wire.http.planning import ObjectsLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    connection: Connection
    location: ObjectsLocation

    def open(self) -> BlockingStore:
        """The process's own, which is kept."""
        return self.connection.store(self.location)
