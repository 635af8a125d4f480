"""Produce and Fetch:

ProduceRequest:  [TopicLen:2][Topic][Partition:4][KeyLen:4][Key][PayloadLen:4][Payload]
ProduceResponse: [Partition:4][Offset:8][ErrorCode:2]
FetchRequest:    [TopicLen:2][Topic][Partition:4][Offset:8][MaxBytes:4]
FetchResponse:   [ErrorCode:2][RecordCount:4][Records], each [Offset:8][PayloadLen:4][Payload]
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from streamhouse.wire.flume.codes import ErrorCode
from streamhouse.wire.flume.frame import RESPONSE_HEADER_BYTES
from streamhouse.wire.flume.reading import FieldReader
from streamhouse.wire.flume.writing import blob, text

ANY_PARTITION = -1
"""The key's hash decides."""
NO_OFFSET = -1
EARLIEST = -2
"""Ours: a fetch from the oldest record there is. The document has no other way to find it, and no such offset."""
FETCH_RECORD_BYTES = 12
"""What a fetched record takes beside its payload."""

_partition = Struct(">i")
_produce_response = Struct(">iqh")
_produce_reply = Struct(">iiiqh")
_PRODUCE_REPLY_SIZE = RESPONSE_HEADER_BYTES + _produce_response.size
_fetch_target = Struct(">iqi")
_fetch_head = Struct(">hi")
_record_head = Struct(">qi")


class ProduceRequest(NamedTuple):
    """An empty key is no key: the wire has no other way to say so."""

    topic: str
    partition: int
    key: bytes
    payload: bytes


class ProduceResponse(NamedTuple):
    partition: int
    offset: int
    error_code: int


class FetchRequest(NamedTuple):
    topic: str
    partition: int
    offset: int
    max_bytes: int


class FetchRecord(NamedTuple):
    offset: int
    payload: bytes


class FetchResponse(NamedTuple):
    error_code: int
    records: Sequence[FetchRecord]


def encode_produce_request(request: ProduceRequest) -> bytes:
    return text(request.topic) + _partition.pack(request.partition) + blob(request.key) + blob(request.payload)


def decode_produce_request(data: memoryview, start: int, end: int) -> ProduceRequest:
    """Brokers, who read one for every record, use `produce_scan`."""
    reader = FieldReader(data, start, end)
    request = ProduceRequest(reader.text(), reader.int32(), reader.blob(), reader.blob())
    reader.done()
    return request


def encode_produce_response(response: ProduceResponse) -> bytes:
    return _produce_response.pack(*response)


def encode_produce_reply(request_id: int, partition: int, offset: int, error_code: int) -> bytes:
    """The whole response, with what is around it."""
    return _produce_reply.pack(_PRODUCE_REPLY_SIZE, request_id, partition, offset, error_code)


def decode_produce_response(data: memoryview, start: int, end: int) -> ProduceResponse:
    reader = FieldReader(data, start, end)
    response = ProduceResponse(reader.int32(), reader.int64(), reader.int16())
    reader.done()
    return response


def encode_fetch_request(request: FetchRequest) -> bytes:
    return text(request.topic) + _fetch_target.pack(request.partition, request.offset, request.max_bytes)


def decode_fetch_request(data: memoryview, start: int, end: int) -> FetchRequest:
    reader = FieldReader(data, start, end)
    request = FetchRequest(reader.text(), reader.int32(), reader.int64(), reader.int32())
    reader.done()
    return request


def encode_fetch_response(response: FetchResponse) -> bytes:
    parts = [_fetch_head.pack(response.error_code, len(response.records))]
    for offset, payload in response.records:
        parts.append(_record_head.pack(offset, len(payload)))
        parts.append(payload)
    return b"".join(parts)


def decode_fetch_response(data: memoryview, start: int, end: int) -> FetchResponse:
    reader = FieldReader(data, start, end)
    error_code = reader.int16()
    if error_code != ErrorCode.NONE and end - start == 2:
        return FetchResponse(error_code, ())
    count = reader.count(FETCH_RECORD_BYTES)
    records = [FetchRecord(reader.int64(), reader.blob()) for _ in range(count)]
    reader.done()
    return FetchResponse(error_code, records)
