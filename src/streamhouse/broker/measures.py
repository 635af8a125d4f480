"""What goes through one listener, in and out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from streamhouse.runtime.measures import Histogram

LISTENERS = ("kafka", "http", "grpc", "flume")


class DoorMeasures:
    """Produces count at the listener where a client came in, wherever the leader is. For Kafka each is a request; for
    the others a batch, into which their requests are divided or gathered."""

    __slots__ = (
        "fetch_seconds",
        "fetched_bytes",
        "fetched_records",
        "fetches_refused",
        "produce_seconds",
        "produced_bytes",
        "produced_records",
        "produces_refused",
        "produces_unanswered",
    )

    def __init__(self) -> None:
        self.produced_records = 0
        self.produced_bytes = 0
        """Of record batches, as the log has them."""
        self.produces_refused = 0
        self.produces_unanswered = 0
        """Whose clients did not want an answer; the others are the count of `produce_seconds`."""
        self.produce_seconds = Histogram()
        """Until the answer, which says that all is durable, or that something was refused."""
        self.fetched_bytes = 0
        self.fetched_records = 0
        """Of whole batches, which may begin before the offset that was asked for."""
        self.fetches_refused = 0
        self.fetch_seconds = Histogram()
        """Until the answer, and so with the wait for new records, as far as the client allowed it."""

    def produced(self, records: int, size_bytes: int) -> None:
        self.produced_records += records
        self.produced_bytes += size_bytes


def door_measures() -> Mapping[str, DoorMeasures]:
    """By listener."""
    return MappingProxyType({name: DoorMeasures() for name in LISTENERS})
