"""The client over gRPC: one connection to one node, which answers for the whole cluster."""

from __future__ import annotations

from collections.abc import Mapping

from streamhouse.client.api_records import TopicInfo
from streamhouse.client.api_transport import Membership, Reading, RecordSink, RecordSource
from streamhouse.client.grpc_channel import GrpcChannel
from streamhouse.client.grpc_sink import GrpcSink
from streamhouse.client.grpc_source import GrpcGroupReader, GrpcReader
from streamhouse.runtime.clock import SystemClock
from streamhouse.wire.grpc import streamhouse_v1_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["Topics"].full_name
_CALL_MS = 30_000
_CONNECT_MS = 10_000
# A record may be as large as its topic allows, and comes in one message with what surrounds it.
_MAX_MESSAGE_BYTES = 256 * 1024 * 1024


class GrpcTransport:
    def __init__(self, address: str, client_id: str) -> None:
        self._client_id = client_id
        self._clock = SystemClock()
        self._channel = GrpcChannel(address, max_message_bytes=_MAX_MESSAGE_BYTES, connect_timeout_ms=_CONNECT_MS)
        self._create = self._channel.unary(SERVICE, "CreateTopic", pb.CreateTopicRequest, pb.Topic)
        self._grow = self._channel.unary(SERVICE, "CreatePartitions", pb.CreatePartitionsRequest, pb.Topic)
        self._delete = self._channel.unary(SERVICE, "DeleteTopic", pb.DeleteTopicRequest, pb.DeleteTopicResponse)
        self._list = self._channel.unary(SERVICE, "ListTopics", pb.ListTopicsRequest, pb.ListTopicsResponse)

    async def open(self) -> None:
        await self._channel.connected()

    async def close(self) -> None:
        await self._channel.close()

    async def create_topic(self, name: str, partition_count: int | None, config: Mapping[str, str]) -> None:
        request = pb.CreateTopicRequest(name=name, partition_count=partition_count or 0, config=dict(config))
        await self._channel.call(self._create, request, _CALL_MS)

    async def create_partitions(self, name: str, partition_count: int) -> None:
        request = pb.CreatePartitionsRequest(name=name, partition_count=partition_count)
        await self._channel.call(self._grow, request, _CALL_MS)

    async def delete_topic(self, name: str) -> None:
        await self._channel.call(self._delete, pb.DeleteTopicRequest(name=name), _CALL_MS)

    async def topics(self) -> list[TopicInfo]:
        answer = await self._channel.call(self._list, pb.ListTopicsRequest(), _CALL_MS)
        return [TopicInfo(name=topic.name, partition_count=topic.partition_count) for topic in answer.topics]

    def sink(self) -> RecordSink:
        return GrpcSink(self._channel)

    def source(self, wanted: Reading | Membership) -> RecordSource:
        if isinstance(wanted, Reading):
            return GrpcReader(self._channel, self._clock, wanted)
        return GrpcGroupReader(self._channel, self._clock, wanted, self._client_id)
