"""Produce requests are read as protobuf reads them, compiled or not, and never further than they go."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError
from hypothesis import example, given
from hypothesis import strategies as st

from streamhouse.format.rows import Record, records_of
from streamhouse.model.errors import BatchTooLarge, MalformedRequest
from streamhouse.wire.grpc import produce_rows, produce_rows_twin
from streamhouse.wire.grpc import streamhouse_v1_pb2 as pb
from streamhouse.wire.grpc.produce_message import NOT_GIVEN, ProduceRows

NOW_MS = 1_700_000_000_000
MANY = 1_000

blobs = st.none() | st.binary(max_size=20)
texts = st.text(max_size=5)
headers = st.lists(st.builds(pb.Header, key=texts, value=blobs), max_size=3)
records = st.builds(
    pb.NewRecord,
    key=blobs,
    value=blobs,
    headers=headers,
    partition=st.none() | st.integers(-(2**31), 2**31 - 1),
    timestamp_ms=st.none() | st.integers(-(2**63), 2**63 - 1),
)
requests = st.builds(pb.ProduceRequest, topic=texts, records=st.lists(records, max_size=20))


def read(raw: bytes, max_parts: int = MANY) -> ProduceRows | str:
    """What both implementations say, which is the same."""
    answers = [_outcome(module.read_rows, raw, max_parts) for module in (produce_rows, produce_rows_twin)]
    assert answers[0] == answers[1]
    return answers[0]


def _outcome(read_rows: object, raw: bytes, max_parts: int) -> ProduceRows | str:
    try:
        return read_rows(raw, NOW_MS, max_parts)  # type: ignore[operator]
    except (MalformedRequest, BatchTooLarge) as problem:
        return str(problem)


def rows_of(request: pb.ProduceRequest) -> list[tuple[int, Record]]:
    """The same by protobuf's own messages."""
    return [
        (
            record.partition if record.HasField("partition") else NOT_GIVEN,
            Record(
                0,
                record.timestamp_ms if record.HasField("timestamp_ms") else NOW_MS,
                record.key if record.HasField("key") else None,
                record.value if record.HasField("value") else None,
                tuple((each.key, each.value if each.HasField("value") else None) for each in record.headers),
            ),
        )
        for record in request.records
    ]


def both(rows: ProduceRows) -> list[tuple[int, Record]]:
    return list(zip(memoryview(rows.partitions).cast("i"), records_of(rows.columns), strict=True))


def test_the_kernel_is_compiled_here() -> None:
    assert produce_rows.COMPILED


@given(requests)
@example(pb.ProduceRequest(topic="t", records=[pb.NewRecord()] * 9))
def test_a_request_is_read_as_protobuf_reads_it(request: pb.ProduceRequest) -> None:
    rows = read(request.SerializeToString())

    assert isinstance(rows, ProduceRows)
    assert rows.topic == request.topic.encode()
    assert both(rows) == rows_of(request)


@given(requests, requests)
def test_requests_end_to_end_are_one_request(first: pb.ProduceRequest, second: pb.ProduceRequest) -> None:
    rows = read(first.SerializeToString() + second.SerializeToString())

    assert isinstance(rows, ProduceRows)
    assert both(rows) == rows_of(first) + rows_of(second)


@given(requests, st.data())
def test_a_damaged_request_is_refused_or_read_as_protobuf_reads_it(
    request: pb.ProduceRequest, data: st.DataObject
) -> None:
    raw = bytearray(request.SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        if raw:
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    _compare(bytes(raw[: data.draw(st.integers(0, len(raw)))]))


@given(st.binary(max_size=60))
@example(b"\x12\xff\xff\xff\xff\x07noise")
@example(b"\x92\x00\x00")
@example(b"\x12\x0b\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
@example(b"\x12\x0c\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
@example(b"\x00\x00")
@example(b"\x0b\x0c")
@example(b"\x08\x01\x0d\x00\x00\x00\x00\x11" + bytes(8))
def test_noise_is_refused_or_read_as_protobuf_reads_it(raw: bytes) -> None:
    _compare(raw)


def _compare(raw: bytes) -> None:
    rows = read(raw)
    try:
        expected = rows_of(pb.ProduceRequest.FromString(raw))
    except DecodeError:
        return  # Also for keys that are no text, which are looked at later.
    if isinstance(rows, ProduceRows):
        assert both(rows) == expected
    else:
        # Groups are the one thing that protobuf reads and we do not: no version of the request ever had one.
        assert any(byte & 7 in (3, 4) for byte in raw)


@pytest.mark.parametrize("part", [b"\x12\x00", b"\x12\x02\x1a\x00"], ids=["records", "headers"])
def test_more_parts_than_allowed_are_refused(part: bytes) -> None:
    parts = len(part) // 2

    assert isinstance(read(part * (10 // parts), max_parts=10), ProduceRows)
    refusal = read(part * (10 // parts + 1), max_parts=10)
    assert isinstance(refusal, str)
    assert "more than 10" in refusal
