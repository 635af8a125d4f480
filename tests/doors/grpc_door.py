"""The gRPC door, with nothing but its definition: as a client in any language would use it."""

from __future__ import annotations

from collections.abc import Iterator

import grpc

from doors.record import Sample, Shown
from node.process import Node
from node.wait import HUNG_SECONDS
from streamhouse.wire.grpc import streamhouse_v1_pb2 as api

_SERVICE = "/streamhouse.v1.Records"


def write(node: Node, topic: str, samples: tuple[Sample, ...]) -> list[int]:
    with grpc.insecure_channel(node.grpc_address) as channel:
        call = channel.unary_unary(
            f"{_SERVICE}/Produce", api.ProduceRequest.SerializeToString, api.ProduceResponse.FromString
        )
        answer = call(api.ProduceRequest(topic=topic, records=map(_record, samples)), timeout=HUNG_SECONDS)
    assert not answer.errors, answer
    return list(answer.offsets)


def write_stream(node: Node, topic: str, samples: tuple[Sample, ...]) -> list[int]:
    """A request for each record, without waiting for answers."""

    def requests() -> Iterator[api.ProduceStreamRequest]:
        for sample in samples:
            yield api.ProduceStreamRequest(topic=topic, records=[_record(sample)])

    with grpc.insecure_channel(node.grpc_address) as channel:
        call = channel.stream_stream(
            f"{_SERVICE}/ProduceStream",
            api.ProduceStreamRequest.SerializeToString,
            api.ProduceStreamResponse.FromString,
        )
        answers = list(call(requests(), timeout=HUNG_SECONDS))
    assert all(answer.WhichOneof("outcome") == "stored" for answer in answers), answers
    return [offset for answer in answers for offset in answer.stored.offsets]


def read(node: Node, topic: str, count: int) -> list[Shown]:
    with grpc.insecure_channel(node.grpc_address) as channel:
        call = channel.unary_stream(
            f"{_SERVICE}/Consume", api.ConsumeRequest.SerializeToString, api.ConsumeResponse.FromString
        )
        pages = list(call(api.ConsumeRequest(topic=topic, until_end=True), timeout=HUNG_SECONDS))
    found = [_shown(record) for page in pages for record in page.records]
    assert len(found) == count
    return found


def _record(sample: Sample) -> api.NewRecord:
    return api.NewRecord(
        key=sample.key,
        value=sample.value,
        headers=[api.Header(key=name, value=value) for name, value in sample.headers],
        partition=0,
        timestamp_ms=sample.timestamp_ms,
    )


def _shown(record: api.Record) -> Shown:
    return Shown(
        offset=record.offset,
        key=record.key if record.HasField("key") else None,
        value=record.value if record.HasField("value") else None,
        headers=tuple((header.key, header.value if header.HasField("value") else None) for header in record.headers),
        timestamp_ms=record.timestamp_ms,
    )


def partitions_of(node: Node, topic: str, keys: list[bytes]) -> list[int]:
    with grpc.insecure_channel(node.grpc_address) as channel:
        call = channel.unary_unary(
            f"{_SERVICE}/Produce", api.ProduceRequest.SerializeToString, api.ProduceResponse.FromString
        )
        request = api.ProduceRequest(topic=topic, records=[api.NewRecord(key=key, value=b"") for key in keys])
        return list(call(request, timeout=HUNG_SECONDS).partitions)
