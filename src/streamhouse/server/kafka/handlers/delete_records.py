"""DeleteRecords (21), versions 0 to 2: moves the start of the log; -1 deletes everything there is."""

from __future__ import annotations

from streamhouse.model.errors import StreamHouseError
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.errors import code_of
from streamhouse.server.kafka.partitions import NO_ID, find_leader
from streamhouse.wire.kafka.messages import delete_records as messages
from streamhouse.wire.kafka.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[await _delete(context, topic.name, asked) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


async def _delete(context: Context, topic: str, asked: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    try:
        leader = find_leader(context.broker, topic, NO_ID, asked.partition_index)
        low_watermark = await context.broker.delete_records(leader, asked.offset)
    except StreamHouseError as problem:
        return DeleteRecordsPartitionResult(
            partition_index=asked.partition_index, low_watermark=-1, error_code=code_of(problem)
        )
    return DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=low_watermark)
