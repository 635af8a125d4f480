"""Records, errors and positions as the messages of `streamhouse.v1` have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamhouse.broker.records import EARLIEST, LATEST
from streamhouse.client.peer import FoundOffset
from streamhouse.format.rows import Record
from streamhouse.model.errors import InvalidInput, StreamHouseError
from streamhouse.server.row_messages import made_of
from streamhouse.wire.grpc import streamhouse_v1_pb2 as pb
from streamhouse.wire.grpc.error_kinds import kind_of

_RECORD_BYTES = 24
"""What a record takes beside its key, value and headers, about."""


async def record_messages(records: Sequence[Record]) -> list[pb.Record]:
    return await made_of(records, lambda: [_record_message(record) for record in records])


def _record_message(record: Record) -> pb.Record:
    return pb.Record(
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=record.key,
        value=record.value,
        headers=[pb.Header(key=key, value=value) for key, value in record.headers],
    )


def size_of(record: Record) -> int:
    """What a record takes in a message, about."""
    headers = sum(len(key) + len(value or b"") + _RECORD_BYTES for key, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers + _RECORD_BYTES


def in_messages(records: Sequence[Record], max_bytes: int) -> Iterator[Sequence[Record]]:
    """The same records, in runs that a message of about `max_bytes` holds: what was compressed in the log is not so in
    an answer, and gRPC's clients refuse messages that are too large."""
    start = size = 0
    for index, record in enumerate(records):
        size += size_of(record)
        if size > max_bytes and index > start:
            yield records[start:index]
            start, size = index, size_of(record)
    if start < len(records):
        yield records[start:]


def error_message(problem: StreamHouseError) -> pb.Error:
    # A name that came from a client may hold what UTF-8 cannot say.
    return pb.Error(code=kind_of(problem).name, message=str(problem).encode("utf-8", "replace").decode())


def log_ends(found: FoundOffset) -> pb.LogEnds:
    return pb.LogEnds(
        log_start_offset=found.log_start_offset, committed_end=found.committed_end, high_watermark=found.high_watermark
    )


def time_of(position: pb.Position, default: int) -> int | None:
    """The time that a position stands for, with Kafka's numbers for the ends of the log; None if it is an offset."""
    match position.WhichOneof("at"):
        case "offset":
            return None
        case "timestamp_ms":
            if position.timestamp_ms < 0:
                raise InvalidInput(f"{position.timestamp_ms} is not a time", hint="milliseconds since 1970")
            return position.timestamp_ms
        case "edge":
            return _EDGES.get(position.edge, default)
    return default


_EDGES = {pb.EDGE_EARLIEST: EARLIEST, pb.EDGE_LATEST: LATEST}
