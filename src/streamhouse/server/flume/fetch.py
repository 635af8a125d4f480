"""Fetch (1): the records of one partition from an offset on, at once; none at the end of the log.

A record is its offset and its payload: keys, headers and times are not for Flume's readers, and a record without a
value is one with an empty payload."""

from __future__ import annotations

import logging

from streamhouse.broker.records import EARLIEST as OLDEST_RECORD
from streamhouse.broker.records import RecordDoor
from streamhouse.format.rows import Record
from streamhouse.model.errors import StreamHouseError, UnreadableRecords
from streamhouse.server.flume.errors import code_of
from streamhouse.wire.flume.codes import ErrorCode
from streamhouse.wire.flume.records import EARLIEST, FETCH_RECORD_BYTES, FetchRecord, FetchRequest, FetchResponse

_log = logging.getLogger(__name__)


async def answer_fetch(records: RecordDoor, request: FetchRequest, largest_bytes: int) -> FetchResponse:
    try:
        found = await _read(records, request, min(max(request.max_bytes, 1), largest_bytes))
    except UnreadableRecords as problem:
        # Flume's codes cannot say which offset is behind it.
        _log.warning("a Flume client cannot read on: %s", problem)
        return FetchResponse(code_of(problem), ())
    except StreamHouseError as problem:
        return FetchResponse(code_of(problem), ())
    return FetchResponse(ErrorCode.NONE, found)


async def _read(records: RecordDoor, request: FetchRequest, max_bytes: int) -> list[FetchRecord]:
    topic = await records.topic(request.topic, request.partition)
    offset = request.offset
    if offset == EARLIEST:
        offset = (await records.offset_at(topic, request.partition, OLDEST_RECORD)).log_start_offset
    while True:
        read = await records.read(
            topic,
            request.partition,
            offset,
            max_records=max(max_bytes // FETCH_RECORD_BYTES, 1),
            max_bytes=max_bytes,
        )
        if read.records or read.next_offset == offset:
            return _up_to(read.records, max_bytes)
        offset = read.next_offset  # compaction left nothing there, which is not the end


def _up_to(records: list[Record], max_bytes: int) -> list[FetchRecord]:
    """As many as fit, but at least one: else a reader would never get past it."""
    fitting: list[FetchRecord] = []
    room = max_bytes
    for record in records:
        payload = record.value or b""
        room -= FETCH_RECORD_BYTES + len(payload)
        if room < 0 and fitting:
            break
        fitting.append(FetchRecord(record.offset, payload))
    return fitting
