"""AlterReplicaLogDirs (34), versions 1 to 2: a node has one directory, and there is nowhere to move a partition to.

What a node leads may be assigned to the directory that it is in, and to no other (LOG_DIR_NOT_FOUND)."""

from __future__ import annotations

from functools import cache, partial

from streamhouse.server.kafka.context import Context
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import alter_replica_log_dirs as messages
from streamhouse.wire.kafka.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    # A request may name a topic thousands of times.
    led_here = cache(partial(_led_here, context))
    codes: dict[str, dict[int, ErrorCode]] = {}
    for directory in request.dirs:
        is_ours = directory.path == context.broker.settings.data_dir
        for asked in directory.topics:
            here = led_here(asked.name) if is_ours else None
            codes.setdefault(asked.name, {}).update((index, _code(index, here)) for index in asked.partitions)
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                    for index, code in partitions.items()
                ],
            )
            for name, partitions in codes.items()
        ]
    )


def _led_here(context: Context, name: str) -> set[int]:
    topic = context.broker.topics.find(name)
    leaders = context.broker.topics.leaders_of(topic) if topic is not None else ()
    return {index for index, leader in enumerate(leaders) if leader is not None}


def _code(index: int, here: set[int] | None) -> ErrorCode:
    """`here`: what is in the directory; None if the directory is not there."""
    if here is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    return ErrorCode.NONE if index in here else ErrorCode.REPLICA_NOT_AVAILABLE
