"""Fetch (1): the records of one partition from an offset on, at once; none at the end of the log.

A record is its offset and its payload: keys, headers and times are not for Flume's readers, and a record without a
value is one with an empty payload.

A connection that joined a group reads what that group has given it, and nothing else of the group's topics: what was
read while the partition went to another is not answered either."""

from __future__ import annotations

import logging
from collections.abc import Callable

from streamhouse.broker.records import EARLIEST as OLDEST_RECORD
from streamhouse.broker.records import RecordDoor
from streamhouse.format.rows import Record
from streamhouse.model.errors import StreamHouseError, UnreadableRecords
from streamhouse.model.topic import Topic
from streamhouse.server.flume.errors import code_of
from streamhouse.wire.flume.codes import ErrorCode
from streamhouse.wire.flume.records import EARLIEST, FETCH_RECORD_BYTES, FetchRecord, FetchRequest, FetchResponse

_log = logging.getLogger(__name__)


async def answer_fetch(
    records: RecordDoor, request: FetchRequest, largest_bytes: int, check_fetch: Callable[[str, int], None]
) -> FetchResponse:
    """`check_fetch` raises what stands against reading the partition on this connection."""
    try:
        topic = await records.topic(request.topic, request.partition)
        check_fetch(topic.name, request.partition)
        found = await _read(records, topic, request, min(max(request.max_bytes, 1), largest_bytes))
        check_fetch(topic.name, request.partition)
    except UnreadableRecords as problem:
        # Flume's codes cannot say which offset is behind it.
        _log.warning("a Flume client cannot read on: %s", problem)
        return FetchResponse(code_of(problem), ())
    except StreamHouseError as problem:
        return FetchResponse(code_of(problem), ())
    return FetchResponse(ErrorCode.NONE, found)


async def _read(records: RecordDoor, topic: Topic, request: FetchRequest, max_bytes: int) -> list[FetchRecord]:
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
