"""DescribeLogDirs (35), versions 1 to 5: one directory, which holds what each partition has in segments and buffers."""

from __future__ import annotations

from streamhouse.model.topic import Topic
from streamhouse.server.kafka.context import Context
from streamhouse.wire.kafka.messages import describe_log_dirs as messages
from streamhouse.wire.kafka.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    topics = [_topic(context, topic, wanted) for topic, wanted in _wanted(context, request)]
    return DescribeLogDirsResponse(
        results=[DescribeLogDirsResult(log_dir=context.broker.settings.data_dir, topics=topics)]
    )


def _wanted(context: Context, request: DescribeLogDirsRequest) -> list[tuple[Topic, set[int]]]:
    topics = context.broker.topics
    if request.topics is None:
        return [(topic, set(range(topic.partition_count))) for topic in topics]
    named: dict[str, set[int]] = {}
    for asked in request.topics:
        named.setdefault(asked.topic, set()).update(asked.partitions)
    return [(topic, partitions) for name, partitions in named.items() if (topic := topics.find(name)) is not None]


def _topic(context: Context, topic: Topic, wanted: set[int]) -> DescribeLogDirsTopic:
    leaders = context.broker.topics.leaders_of(topic)
    return DescribeLogDirsTopic(
        name=topic.name,
        partitions=[
            DescribeLogDirsPartition(
                partition_index=index,
                partition_size=sum(segment.size_bytes for segment in leader.segments) + leader.buffered_bytes,
            )
            for index, leader in enumerate(leaders)
            if leader is not None and index in wanted
        ],
    )
