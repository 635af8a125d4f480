"""CreatePartitions (37), versions 0 to 3: always refused, since a topic's partition count is fixed when it is made."""

from __future__ import annotations

from streamhouse.server.kafka.context import Context
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import create_partitions as messages
from streamhouse.wire.kafka.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(results=[_refuse(context, asked) for asked in request.topics])


def _refuse(context: Context, asked: CreatePartitionsTopic) -> CreatePartitionsTopicResult:
    topic = context.broker.topics.find(asked.name)
    if topic is None:
        return CreatePartitionsTopicResult(
            name=asked.name,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=f"there is no topic {asked.name[:300]!r}",
        )
    return CreatePartitionsTopicResult(
        name=asked.name,
        error_code=ErrorCode.INVALID_PARTITIONS,
        error_message=f"topic {topic.name!r} has {topic.partition_count} partitions for good: the number is fixed "
        "when a topic is created, so that a key stays in its partition; create another topic with more",
    )
