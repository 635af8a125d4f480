"""A socket to a broker that speaks through our own codec, in any version, and can say anything else too."""

from __future__ import annotations

import socket
import struct
from types import ModuleType, TracebackType
from typing import Any, Self

from log_parts.batches import real
from streamhouse.format.records import Record, decode_records
from streamhouse.wire.kafka.frame import decode_response_header, encode_request
from streamhouse.wire.kafka.messages import fetch, list_offsets, produce
from streamhouse.wire.kafka.registry import APIS, Api

HUNG_SECONDS = 60.0
PRODUCE_VERSION = 9
FETCH_VERSION = 12
LIST_OFFSETS_VERSION = 7


class Kafka:
    """One connection; requests may be sent ahead of reading their answers."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=HUNG_SECONDS)
        self._correlation_id = 0
        self._sent: list[tuple[int, Api, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def encode(self, messages: ModuleType, request: Any, version: int, *, answered: bool = True) -> bytes:
        """The frame of the next request."""
        api = APIS[messages.API_KEY]
        self._correlation_id += 1
        if answered:
            self._sent.append((self._correlation_id, api, version))
        body = messages.encode_request(request, version)
        return b"".join(encode_request(api, version, self._correlation_id, "test", body))

    def send(self, messages: ModuleType, request: Any, version: int, *, answered: bool = True) -> None:
        self.socket.sendall(self.encode(messages, request, version, answered=answered))

    def receive(self) -> Any:
        """The answer to the oldest request that has none yet."""
        correlation_id, api, version = self._sent.pop(0)
        raw = memoryview(self.receive_frame())
        header = decode_response_header(raw, 0, len(raw), api, version)
        assert header.correlation_id == correlation_id, "answers come in the order of the requests"
        return api.decode_response(raw, header.body_pos, len(raw), version)

    def call(self, messages: ModuleType, request: Any, version: int) -> Any:
        self.send(messages, request, version)
        return self.receive()

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self.receive_bytes(4))
        return self.receive_bytes(size)

    def receive_bytes(self, size: int) -> bytes:
        parts = []
        while size:
            part = self.socket.recv(min(size, 1 << 20))
            if not part:
                raise ConnectionResetError("the broker closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def is_closed_by_broker(self) -> bool:
        """Waits for the broker's next word; true if it is the end."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    # --- what tests do again and again ---

    def produce(self, topic: str, batch: bytes | memoryview, *, partition: int = 0, acks: int = -1) -> Any:
        """The partition's answer."""
        self.send_produce(topic, batch, partition=partition, acks=acks)
        return self.receive().responses[0].partition_responses[0]

    def send_produce(self, topic: str, batch: bytes | memoryview, *, partition: int = 0, acks: int = -1) -> None:
        request = produce_request(topic, batch, partition=partition, acks=acks)
        self.send(produce, request, PRODUCE_VERSION, answered=acks != 0)

    def produce_values(self, topic: str, *values: bytes, partition: int = 0) -> int:
        """The base offset; nothing else than success is expected."""
        answer = self.produce(topic, real(*values), partition=partition)
        assert answer.error_code == 0, answer
        return int(answer.base_offset)

    def fetch(self, topic: str, offset: int, **options: Any) -> Any:
        """The partition's answer."""
        return self.call(fetch, fetch_request(topic, offset, **options), FETCH_VERSION).responses[0].partitions[0]

    def read(self, topic: str, *, partition: int = 0, offset: int = 0) -> list[Record]:
        """Every record from an offset on."""
        records: list[Record] = []
        while True:
            answer = self.fetch(topic, offset, partition=partition)
            assert answer.error_code == 0, answer
            if offset >= answer.high_watermark:
                return records
            found = decode_records(bytes(answer.records), start_offset=offset)
            assert found, "a fetch below the high watermark brings something"
            records += found
            offset = found[-1].offset + 1

    def offset_of(self, topic: str, timestamp: int, *, partition: int = 0) -> Any:
        """The partition's answer: -1 latest, -2 earliest, -3 the largest timestamp."""
        asked = list_offsets.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        request = list_offsets.ListOffsetsRequest(
            topics=[list_offsets.ListOffsetsTopic(name=topic, partitions=[asked])]
        )
        return self.call(list_offsets, request, LIST_OFFSETS_VERSION).topics[0].partitions[0]


def produce_request(
    topic: str, batch: bytes | memoryview, *, partition: int = 0, acks: int = -1
) -> produce.ProduceRequest:
    data = produce.PartitionProduceData(index=partition, records=bytes(batch))
    return produce.ProduceRequest(
        acks=acks, timeout_ms=30_000, topic_data=[produce.TopicProduceData(name=topic, partition_data=[data])]
    )


def fetch_request(
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 50 * 2**20,
    partition_max_bytes: int = 50 * 2**20,
    session_id: int = 0,
    session_epoch: int = -1,
) -> fetch.FetchRequest:
    asked = fetch.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=partition_max_bytes)
    return fetch.FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[fetch.FetchTopic(topic=topic, partitions=[asked])],
    )
