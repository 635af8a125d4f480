"""Metadata (3), versions 0 to 13: brokers, topics and leaders; creates unknown topics if that is switched on.

A topic that was deleted less than `auto_create_delay` ago is not created by that: whoever deletes one asks in this way
whether it is gone.

A partition without a leader that waits for the one agent whose disk may hold acknowledged records of it has that one
as its only replica, offline, as Kafka would show it."""

from __future__ import annotations

from uuid import UUID

from streamhouse.model.errors import StreamHouseError
from streamhouse.model.topic import Topic
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.distinct import distinct
from streamhouse.server.kafka.errors import code_of
from streamhouse.server.kafka.operations import CLUSTER_OPERATIONS, NOT_ASKED_FOR, TOPIC_OPERATIONS
from streamhouse.server.kafka.partitions import NO_ID, TopicLookup, awaited_nodes, leader_of
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import metadata as messages
from streamhouse.wire.kafka.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]
_NULL_NAMES_SINCE = 12


async def handle(context: Context, request: MetadataRequest) -> MetadataResponse:
    topics = await _topics(context, request)
    nodes = context.broker.nodes
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack or None)
            for node in nodes.all()
        ],
        cluster_id=context.broker.identity.cluster_id,
        controller_id=nodes.controller_id,
        topics=topics,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED_FOR
        ),
    )


async def _topics(context: Context, request: MetadataRequest) -> list[MetadataResponseTopic]:
    asks_for_all = request.topics is None or (context.version == 0 and not request.topics)
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED_FOR
    if asks_for_all:
        return [_describe(context, topic, operations) for topic in context.broker.topics]
    lookup = TopicLookup(context.broker)
    may_create = context.broker.settings.auto_create_topics and request.allow_auto_topic_creation
    answers = []
    for asked in distinct(request.topics or [], _looked_up_by):
        try:
            topic = await _find(context, lookup, asked, may_create=may_create)
            answers.append(_describe(context, topic, operations))
        except StreamHouseError as problem:
            answers.append(
                MetadataResponseTopic(error_code=_code(problem), name=_name(context, asked), topic_id=asked.topic_id)
            )
    return answers


def _looked_up_by(asked: MetadataRequestTopic) -> UUID | str | None:
    """An id under a thousand names is one topic."""
    return asked.topic_id if asked.topic_id != NO_ID else asked.name


async def _find(context: Context, lookup: TopicLookup, asked: MetadataRequestTopic, *, may_create: bool) -> Topic:
    name = asked.name or ""
    if may_create and asked.topic_id == NO_ID and not context.broker.topics.was_just_deleted(name):
        return await context.broker.topics.ensure(name)
    return await lookup.get(name, asked.topic_id)


def _name(context: Context, asked: MetadataRequestTopic) -> str | None:
    """What was asked for by id alone has no name, and older versions have no way to say so."""
    return asked.name or (None if context.version >= _NULL_NAMES_SINCE else "")


def _code(problem: StreamHouseError) -> ErrorCode:
    code = code_of(problem)
    # What a client retries here is a leader that is not there yet, not a coordinator.
    return ErrorCode.LEADER_NOT_AVAILABLE if code == ErrorCode.COORDINATOR_NOT_AVAILABLE else code


def _describe(context: Context, topic: Topic, operations: int) -> MetadataResponseTopic:
    partitions = []
    for index in range(topic.partition_count):
        leader_id, leader_epoch = leader_of(context.broker, topic, index)
        awaited = [] if leader_id >= 0 else awaited_nodes(context.broker, topic, index)
        replicas = [leader_id] if leader_id >= 0 else awaited
        partitions.append(
            MetadataResponsePartition(
                error_code=ErrorCode.NONE if leader_id >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=index,
                leader_id=leader_id,
                leader_epoch=leader_epoch,
                replica_nodes=replicas,
                isr_nodes=replicas,
                offline_replicas=awaited,
            )
        )
    return MetadataResponseTopic(
        name=topic.name, topic_id=topic.topic_id, partitions=partitions, topic_authorized_operations=operations
    )
