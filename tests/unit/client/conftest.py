"""A broker of a few lines that keeps its log in a list and lets a test answer for it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from streamhouse.client.address import Address
from streamhouse.format.batch import BatchHeader, place, read_header
from streamhouse.wire.kafka import frame
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import (
    api_versions,
    fetch,
    init_producer_id,
    list_offsets,
    metadata,
    produce,
)
from streamhouse.wire.kafka.registry import APIS

Answer = Callable[[Any, int], Any]
NODE_ID = 7
_LATEST = -1


class FakeBroker:
    """`answers` are functions of (request, version) by API key; one that returns None leaves the request unanswered."""

    def __init__(self) -> None:
        self.topics: dict[str, int] = {}
        self.batches: dict[tuple[str, int], list[bytes]] = defaultdict(list)
        self.requests: list[Any] = []
        self.connections = 0
        self.answers: dict[int, Answer] = {
            api_versions.API_KEY: self.answer_api_versions,
            metadata.API_KEY: self.answer_metadata,
            produce.API_KEY: self.answer_produce,
            fetch.API_KEY: self.answer_fetch,
            list_offsets.API_KEY: self.answer_list_offsets,
            init_producer_id.API_KEY: self.answer_init_producer_id,
        }
        self._server: asyncio.Server | None = None
        self._producer_ids = 100

    async def __aenter__(self) -> FakeBroker:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    @property
    def address(self) -> Address:
        assert self._server is not None
        return Address(*self._server.sockets[0].getsockname()[:2])

    def received(self, kind: type) -> list[Any]:
        return [request for request in self.requests if isinstance(request, kind)]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                await self._answer(memoryview(await reader.readexactly(size)), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, request: memoryview, writer: asyncio.StreamWriter) -> None:
        header = frame.decode_request_header(request, 0, len(request))
        assert header.api is not None
        body = header.api.decode_request(request, header.body_pos, len(request), header.api_version)
        self.requests.append(body)
        response = self.answers[header.api_key](body, header.api_version)
        if response is ConnectionResetError:
            raise ConnectionResetError
        if response is not None:
            encoded = header.api.encode_response(response, header.api_version)
            writer.writelines(frame.encode_response(header.correlation_id, header.api, header.api_version, encoded))
            await writer.drain()

    def answer_api_versions(self, request: Any, version: int) -> Any:
        keys = [
            api_versions.ApiVersion(api_key=key, min_version=APIS[key].min_version, max_version=APIS[key].max_version)
            for key in self.answers
        ]
        return api_versions.ApiVersionsResponse(api_keys=keys)

    def answer_metadata(self, request: Any, version: int) -> Any:
        names = list(self.topics) if request.topics is None else [topic.name for topic in request.topics]
        topics = []
        for name in names:
            if name not in self.topics:
                topics.append(
                    metadata.MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)
                )
                continue
            partitions = [
                metadata.MetadataResponsePartition(partition_index=index, leader_id=NODE_ID, leader_epoch=1)
                for index in range(self.topics[name])
            ]
            topics.append(metadata.MetadataResponseTopic(name=name, topic_id=UUID(int=1), partitions=partitions))
        host, port = self.address.host, self.address.port
        brokers = [metadata.MetadataResponseBroker(node_id=NODE_ID, host=host, port=port)]
        return metadata.MetadataResponse(brokers=brokers, topics=topics)

    def answer_produce(self, request: Any, version: int) -> Any:
        topic = request.topic_data[0]
        partition = topic.partition_data[0]
        log = self.batches[topic.name, partition.index]
        base_offset = self._end(log)
        batch = bytearray(partition.records)
        place(batch, 0, base_offset, 1)
        log.append(bytes(batch))
        return None if request.acks == 0 else self.produced(request, base_offset=base_offset)

    @staticmethod
    def produced(request: Any, *, base_offset: int = -1, error_code: int = 0) -> Any:
        topic = request.topic_data[0]
        answer = produce.PartitionProduceResponse(
            index=topic.partition_data[0].index, base_offset=base_offset, error_code=error_code
        )
        return produce.ProduceResponse(
            responses=[produce.TopicProduceResponse(name=topic.name, partition_responses=[answer])]
        )

    def answer_fetch(self, request: Any, version: int) -> Any:
        partitions = []
        for wanted in request.topics[0].partitions:
            log = self.batches[request.topics[0].topic, wanted.partition]
            if wanted.fetch_offset > self._end(log):
                partitions.append(
                    fetch.PartitionData(
                        partition_index=wanted.partition, error_code=ErrorCode.OFFSET_OUT_OF_RANGE, records=None
                    )
                )
                continue
            found = [batch for batch in log if read_header(batch).end_offset > wanted.fetch_offset]
            records = b"".join(found)[: wanted.partition_max_bytes] if len(found) > 1 else b"".join(found)
            partitions.append(fetch.PartitionData(partition_index=wanted.partition, records=records))
        return fetch.FetchResponse(
            responses=[fetch.FetchableTopicResponse(topic=request.topics[0].topic, partitions=partitions)]
        )

    def answer_list_offsets(self, request: Any, version: int) -> Any:
        topic = request.topics[0]
        partitions = [
            list_offsets.ListOffsetsPartitionResponse(
                partition_index=wanted.partition_index,
                offset=self._end(self.batches[topic.name, wanted.partition_index])
                if wanted.timestamp == _LATEST
                else 0,
            )
            for wanted in topic.partitions
        ]
        answer = list_offsets.ListOffsetsTopicResponse(name=topic.name, partitions=partitions)
        return list_offsets.ListOffsetsResponse(topics=[answer])

    def answer_init_producer_id(self, request: Any, version: int) -> Any:
        self._producer_ids += 1
        return init_producer_id.InitProducerIdResponse(producer_id=self._producer_ids, producer_epoch=0)

    def headers(self, topic: str, partition: int) -> list[BatchHeader]:
        return [read_header(batch) for batch in self.batches[topic, partition]]

    @staticmethod
    def _end(log: list[bytes]) -> int:
        return read_header(log[-1]).end_offset if log else 0


@pytest.fixture
def fake_broker() -> FakeBroker:
    return FakeBroker()


class FailFirst:
    """An answer that differs for the first requests."""

    def __init__(self, times: int, instead: Answer, otherwise: Answer) -> None:
        self._left = times
        self._instead = instead
        self._otherwise = otherwise

    def __call__(self, request: Any, version: int) -> Any:
        if self._left > 0:
            self._left -= 1
            return self._instead(request, version)
        return self._otherwise(request, version)


@pytest.fixture
def fail_first() -> type[FailFirst]:
    return FailFirst
