"""Which API answers what, other than Produce: requests decoded, errors turned into the answer that carries them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from streamhouse.broker.records import RecordDoor
from streamhouse.client.groups_admin import GroupPartition
from streamhouse.model.errors import StreamHouseError
from streamhouse.server.flume.errors import code_of
from streamhouse.server.flume.fetch import answer_fetch
from streamhouse.server.flume.groups import Memberships
from streamhouse.wire.flume import groups as messages
from streamhouse.wire.flume.codes import ApiKey, ErrorCode
from streamhouse.wire.flume.records import FetchRequest, decode_fetch_request, encode_fetch_response


class Door(NamedTuple):
    """What a connection's requests are answered with."""

    records: RecordDoor
    memberships: Memberships
    largest_reply_bytes: Callable[[], int]


class Api(NamedTuple):
    decode: Callable[[memoryview, int, int], Any]
    answer: Callable[[Door, Any], Awaitable[bytes]]


async def _fetch(door: Door, request: FetchRequest) -> bytes:
    answer = await answer_fetch(door.records, request, door.largest_reply_bytes(), door.memberships.check_fetch)
    return encode_fetch_response(answer)


async def _join_group(door: Door, request: messages.JoinGroupRequest) -> bytes:
    try:
        response = await door.memberships.join(request)
    except StreamHouseError as problem:
        response = messages.JoinGroupResponse(
            code_of(problem), messages.NO_GENERATION, "", messages.NEW_MEMBER, members=()
        )
    return messages.encode_join_group_response(response)


async def _leave_group(door: Door, request: messages.LeaveGroupRequest) -> bytes:
    return await _code(door.memberships.leave(request.group_id, request.member_id))


async def _heartbeat(door: Door, request: messages.HeartbeatRequest) -> bytes:
    try:
        is_current = await door.memberships.heartbeat(request)
    except StreamHouseError as problem:
        return messages.encode_error_code(code_of(problem))
    return messages.encode_error_code(ErrorCode.NONE if is_current else ErrorCode.REBALANCE_NEEDED)


async def _offset_commit(door: Door, request: messages.OffsetCommitRequest) -> bytes:
    return await _code(_commit(door, request))


async def _commit(door: Door, request: messages.OffsetCommitRequest) -> None:
    topic = await door.records.topic(request.topic, request.partition)
    await door.memberships.commit(request.group_id, GroupPartition(topic.name, request.partition), request.offset)


async def _offset_fetch(door: Door, request: messages.OffsetFetchRequest) -> bytes:
    try:
        offset = await door.memberships.committed(request.group_id, GroupPartition(request.topic, request.partition))
    except StreamHouseError as problem:
        return messages.encode_offset_fetch_response(messages.OffsetFetchResponse(code_of(problem), messages.NO_COMMIT))
    return messages.encode_offset_fetch_response(messages.OffsetFetchResponse(ErrorCode.NONE, offset))


async def _assignment(door: Door, request: messages.AssignmentRequest) -> bytes:
    try:
        held = door.memberships.assignment(request.group_id, request.member_id, request.generation)
    except StreamHouseError as problem:
        return messages.encode_assignment_response(messages.AssignmentResponse(code_of(problem), ()))
    partitions = tuple(messages.AssignedPartition(topic, partition) for topic, partition in held)
    return messages.encode_assignment_response(messages.AssignmentResponse(ErrorCode.NONE, partitions))


async def _code(work: Awaitable[None]) -> bytes:
    try:
        await work
    except StreamHouseError as problem:
        return messages.encode_error_code(code_of(problem))
    return messages.encode_error_code(ErrorCode.NONE)


APIS: dict[int, Api] = {
    ApiKey.FETCH: Api(decode_fetch_request, _fetch),
    ApiKey.JOIN_GROUP: Api(messages.decode_join_group_request, _join_group),
    ApiKey.LEAVE_GROUP: Api(messages.decode_leave_group_request, _leave_group),
    ApiKey.HEARTBEAT: Api(messages.decode_heartbeat_request, _heartbeat),
    ApiKey.OFFSET_COMMIT: Api(messages.decode_offset_commit_request, _offset_commit),
    ApiKey.OFFSET_FETCH: Api(messages.decode_offset_fetch_request, _offset_fetch),
    ApiKey.ASSIGNMENT: Api(messages.decode_assignment_request, _assignment),
}
