"""Requests by hand: a socket, frames, and kafka-python's codec as a second opinion on ours."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from kafka.protocol.consumer import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.producer import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
)
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from node.wait import HUNG_SECONDS

PRODUCE_VERSION = 9
FETCH_VERSION = 12
METADATA_VERSION = 9
LIST_OFFSETS_VERSION = 7
INIT_PRODUCER_ID_VERSION = 4

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


class Closed(AssertionError):
    """The node closed the connection."""


class RawConnection:
    """One connection on which a test says exactly what is sent and reads exactly what comes back."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=HUNG_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._next_correlation = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(self, request: Any) -> int:
        """Send without waiting; returns the correlation id."""
        correlation = self._next_correlation
        self._next_correlation += 1
        request.with_header(correlation_id=correlation, client_id="raw")
        self.socket.sendall(request.encode(header=True, framed=True))
        return correlation

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._receive(4))
        return self._receive(size)

    def receive(self, response: Any, version: int) -> Any:
        return response.decode(self.receive_frame(), version=version, header=True)

    def call(self, request: Any, response: Any) -> Any:
        self.send(request)
        return self.receive(response, request.API_VERSION)

    def is_closed_by_node(self) -> bool:
        """Waits for the node's next word; true if that is the end of the connection."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _receive(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            try:
                part = self.socket.recv(size)
            except ConnectionError as problem:
                raise Closed(str(problem)) from problem
            if not part:
                raise Closed("the node closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    # -- the calls that tests make again and again --------------------------------------------------------------

    def produce(self, topic: str, batch: bytes, *, partition: int = 0, acks: int = -1) -> Any:
        """The partition's answer to one Produce of one batch."""
        answer = self.call(produce_request(topic, batch, partition=partition, acks=acks), ProduceResponse)
        return answer.responses[0].partition_responses[0]

    def fetch(self, topic: str, offset: int, **options: Any) -> Any:
        """The partition's answer to one Fetch."""
        answer = self.call(fetch_request(topic, offset, **options), FetchResponse)
        assert answer.error_code == 0, f"fetch failed as a whole with {answer.error_code}"
        return answer.responses[0].partitions[0]

    def list_offset(self, topic: str, timestamp: int, partition: int = 0) -> Any:
        """The partition's answer to one ListOffsets: -1 latest, -2 earliest, -3 the largest timestamp."""
        topics = ListOffsetsRequest.ListOffsetsTopic
        wanted = topics.ListOffsetsPartition(partition_index=partition, current_leader_epoch=-1, timestamp=timestamp)
        request = ListOffsetsRequest(
            version=LIST_OFFSETS_VERSION,
            replica_id=-1,
            isolation_level=0,
            topics=[topics(name=topic, partitions=[wanted])],
        )
        return self.call(request, ListOffsetsResponse).topics[0].partitions[0]

    def metadata(self, *topics: str, create: bool = False) -> Any:
        request = MetadataRequest(
            version=METADATA_VERSION,
            topics=[MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics],
            allow_auto_topic_creation=create,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
        return self.call(request, MetadataResponse)

    def init_producer_id(self, producer_id: int = -1, epoch: int = -1) -> Any:
        request = InitProducerIdRequest(
            version=INIT_PRODUCER_ID_VERSION,
            transactional_id=None,
            transaction_timeout_ms=60_000,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        return self.call(request, InitProducerIdResponse)


def produce_request(
    topic: str,
    batch: bytes,
    *,
    partition: int = 0,
    acks: int = -1,
    timeout_ms: int = 30_000,
    version: int = PRODUCE_VERSION,
) -> ProduceRequest:
    topics = ProduceRequest.TopicProduceData
    return ProduceRequest(
        version=version,
        transactional_id=None,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            topics(name=topic, partition_data=[topics.PartitionProduceData(index=partition, records=bytes(batch))])
        ],
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
    current_epoch: int = -1,
    last_fetched_epoch: int = -1,
    rack: str = "",
) -> FetchRequest:
    topics = FetchRequest.FetchTopic
    wanted = topics.FetchPartition(
        partition=partition,
        current_leader_epoch=current_epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_fetched_epoch,
        log_start_offset=-1,
        partition_max_bytes=partition_max_bytes,
    )
    return FetchRequest(
        version=FETCH_VERSION,
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[topics(topic=topic, partitions=[wanted])],
        forgotten_topics_data=[],
        rack_id=rack,
    )


def build_batch(
    *values: bytes | None,
    keys: Sequence[bytes | None] | None = None,
    headers: Sequence[tuple[str, bytes | None]] = (),
    timestamp: int | None = None,
    codec: str = "none",
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
) -> bytes:
    """One v2 record batch; the timestamps of its records are a millisecond apart, from now unless told otherwise."""
    start = int(time.time() * 1000) if timestamp is None else timestamp
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=CODECS[codec],
        is_transactional=False,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        batch_size=2**30,
    )
    for index, value in enumerate(values):
        builder.append(index, start + index, keys[index] if keys else None, value, list(headers))
    return bytes(builder.build())


def read_batches(records: bytes | None) -> Iterator[Any]:
    """The whole batches of a fetch answer, each with its CRC checked."""
    memory = MemoryRecords(bytes(records or b""))
    while memory.has_next():
        batch = memory.next_batch()
        assert batch.validate_crc(), f"the batch at offset {batch.base_offset} has a wrong CRC"
        yield batch


def read_values(records: bytes | None) -> dict[int, bytes | None]:
    return {record.offset: record.value for batch in read_batches(records) for record in batch}
