"""The service `streamhouse.v1.Topics`."""

from __future__ import annotations

from collections.abc import Mapping

import grpc

from streamhouse.broker.topics import LONGEST_WAIT_MS
from streamhouse.model.config_units import without_units
from streamhouse.model.errors import InvalidConfig, StreamHouseError
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import CONFIG_KEYS, Topic
from streamhouse.server.doors import DoorContext
from streamhouse.server.grpc.calls import unary
from streamhouse.server.grpc.public.message_limits import check_question
from streamhouse.server.grpc.public.messages import log_ends
from streamhouse.wire.grpc import streamhouse_v1_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["Topics"].full_name


class TopicsService:
    def __init__(self, context: DoorContext) -> None:
        self._broker = context.broker
        self._topics = context.broker.topics
        self._kafka = context.kafka
        self._records = context.records

    def handler(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "CreateTopic": unary(pb.CreateTopicRequest, self._create, check=check_question),
                "ListTopics": unary(pb.ListTopicsRequest, self._list, check=check_question),
                "GetTopic": unary(pb.GetTopicRequest, self._get, check=check_question),
                "ConfigureTopic": unary(pb.ConfigureTopicRequest, self._configure, check=check_question),
                "CreatePartitions": unary(pb.CreatePartitionsRequest, self._create_partitions, check=check_question),
                "DeleteTopic": unary(pb.DeleteTopicRequest, self._delete, check=check_question),
                "ListPartitions": unary(pb.ListPartitionsRequest, self._list_partitions, check=check_question),
            },
        )

    async def _create(self, request: pb.CreateTopicRequest, _: int) -> pb.Topic:
        topic = await self._topics.create(
            request.name,
            request.partition_count or None,
            without_units(request.config),
            validate_only=request.validate_only,
            wait_ms=LONGEST_WAIT_MS,
        )
        return self._described(topic)

    async def _list(self, _request: pb.ListTopicsRequest, _: int) -> pb.ListTopicsResponse:
        await self._topics.refresh()
        return pb.ListTopicsResponse(topics=map(_message, self._topics))

    async def _get(self, request: pb.GetTopicRequest, _: int) -> pb.Topic:
        return self._described(await self._records.topic(request.name))

    async def _configure(self, request: pb.ConfigureTopicRequest, _: int) -> pb.Topic:
        topic = await self._records.topic(request.name)
        unknown = [name for name in request.reset if name not in CONFIG_KEYS]
        if unknown:
            raise InvalidConfig(f"there is no topic config {unknown[0][:100]!r}")
        wanted = without_units(request.set)

        def change(own: Mapping[str, str]) -> Mapping[str, str]:
            kept = {name: value for name, value in own.items() if name not in request.reset}
            return kept | wanted

        await self._topics.change_config(topic, change, validate_only=request.validate_only)
        return self._described(self._topics.get(topic.name))

    async def _create_partitions(self, request: pb.CreatePartitionsRequest, _: int) -> pb.Topic:
        await self._topics.refresh()
        topic = self._topics.get(request.name)
        count = request.partition_count
        grown = await self._topics.grow(topic, count, validate_only=request.validate_only, wait_ms=LONGEST_WAIT_MS)
        return self._described(grown)

    async def _delete(self, request: pb.DeleteTopicRequest, _: int) -> pb.DeleteTopicResponse:
        await self._topics.delete(await self._records.topic(request.name))
        return pb.DeleteTopicResponse()

    async def _list_partitions(self, request: pb.ListPartitionsRequest, _: int) -> pb.ListPartitionsResponse:
        topic = await self._records.topic(request.topic)
        ends = await self._records.ends(topic)
        return pb.ListPartitionsResponse(
            partitions=[
                pb.Partition(
                    partition=partition,
                    leader=self._leader(topic, partition),
                    ends=None if isinstance(end, StreamHouseError) else log_ends(end),
                )
                for partition, end in ends.items()
            ]
        )

    def _leader(self, topic: Topic, partition: int) -> pb.Leader | None:
        """This node knows best what it leads; of others it knows what the last look at the cluster showed."""
        here = self._topics.leaders_of(topic)[partition]
        if here is not None and (here.knows_the_end or self._broker.nodes.is_alone):
            node_id = self._broker.identity.node_id
            # What clients are told may be another address than the one it listens on.
            told = next((node for node in self._broker.nodes.all() if node.node_id == node_id), self._kafka)
            return pb.Leader(node_id=node_id, host=told.host, port=told.port, epoch=here.epoch)
        leader = self._broker.nodes.leader_of(TopicPartition(topic.topic_id, partition))
        if leader is None:
            return None
        node = leader.node
        return pb.Leader(node_id=node.node_id, host=node.host, port=node.port, epoch=leader.epoch)

    def _described(self, topic: Topic) -> pb.Topic:
        message = _message(topic)
        message.effective_config.update(self._topics.told_config_of(topic))
        return message


def _message(topic: Topic) -> pb.Topic:
    return pb.Topic(
        name=topic.name,
        topic_id=str(topic.topic_id),
        partition_count=topic.partition_count,
        config=topic.config,
        created_at_ms=topic.created_at_ms,
    )
