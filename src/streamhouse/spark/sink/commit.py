"""The driver's part of a write: what tasks have staged is adopted into the log, or abandoned."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage

from streamhouse.client.planning import PlanningClient
from streamhouse.model.errors import StreamHouseError, Unavailable
from streamhouse.runtime.clock import SystemClock
from streamhouse.wire.http.planning import AdoptRequest, StagedObject

_log = logging.getLogger(__name__)

# The client asks again for a minute by itself. A node that is down may be replaced, and a large batch takes its time.
_PATIENCE_MS = 10 * 60_000
_SLOWEST_BYTES_PER_MS = 10_000


@dataclass(frozen=True, slots=True)
class StagedMessage(WriterCommitMessage):
    """What one task tells the driver."""

    sink_id: str
    batch_id: int
    objects: tuple[StagedObject, ...]


def adopt(endpoint: str, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Returns when the records are in the log, these or those of an earlier try of the same batch."""
    staged = [message for message in messages if isinstance(message, StagedMessage) and message.objects]
    if not staged:
        return
    objects = [item for message in staged for item in message.objects]
    request = AdoptRequest(sink_id=staged[0].sink_id, batch_id=staged[0].batch_id, objects=objects)
    clock = SystemClock()
    deadline_ms = clock.monotonic_ms() + _PATIENCE_MS + _size_bytes(objects) // _SLOWEST_BYTES_PER_MS
    with PlanningClient(endpoint) as client:
        while True:
            try:
                client.adopt(request)
                return
            except Unavailable as problem:
                if clock.monotonic_ms() >= deadline_ms:
                    raise
                _log.warning(
                    "batch %d of sink %s is not in the log yet: %s", request.batch_id, request.sink_id, problem
                )


def abandon(endpoint: str, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Spark may call this after a commit that took effect all the same; the node keeps what such a commit needs."""
    keys = [item.key for message in messages if isinstance(message, StagedMessage) for item in message.objects]
    if not keys:
        return
    try:
        with PlanningClient(endpoint) as client:
            client.abandon(keys)
    except StreamHouseError as problem:
        _log.warning("staged objects are left to the node to find: %s", problem)


def _size_bytes(objects: Iterable[StagedObject]) -> int:
    return sum(run.end_byte - run.start_byte for item in objects for run in item.runs)
