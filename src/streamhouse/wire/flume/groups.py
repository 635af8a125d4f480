"""Consumer groups:

JoinGroupRequest:     [GroupLen:2][Group][MemberIDLen:2][MemberID][SessionTimeout:4][TopicCount:2][Topics]
JoinGroupResponse:    [ErrorCode:2][Generation:4][LeaderLen:2][Leader][MemberIDLen:2][MemberID][MemberCount:2][Members]
LeaveGroupRequest:    [GroupLen:2][Group][MemberIDLen:2][MemberID]
LeaveGroupResponse:   [ErrorCode:2]
HeartbeatRequest:     [GroupLen:2][Group][Generation:4][MemberIDLen:2][MemberID]
HeartbeatResponse:    [ErrorCode:2]
OffsetCommitRequest:  [GroupLen:2][Group][TopicLen:2][Topic][Partition:4][Offset:8]
OffsetCommitResponse: [ErrorCode:2]
OffsetFetchRequest:   [GroupLen:2][Group][TopicLen:2][Topic][Partition:4]
OffsetFetchResponse:  [ErrorCode:2][Offset:8]

Ours, made of the same fields:

AssignmentRequest:    [GroupLen:2][Group][Generation:4][MemberIDLen:2][MemberID]
AssignmentResponse:   [ErrorCode:2][Count:4], each [TopicLen:2][Topic][Partition:4]
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from streamhouse.wire.flume.codes import ErrorCode
from streamhouse.wire.flume.reading import FieldReader
from streamhouse.wire.flume.writing import text, texts

NEW_MEMBER = ""
NO_GENERATION = -1
NO_COMMIT = -1

_int16 = Struct(">h")
_int32 = Struct(">i")
_code_and_int32 = Struct(">hi")
_code_and_offset = Struct(">hq")
_partition_and_offset = Struct(">iq")
_LEAST_ASSIGNED_BYTES = 6


class JoinGroupRequest(NamedTuple):
    """Without a member id it is a new member's; with one, that of a member which joins again."""

    group_id: str
    member_id: str
    session_timeout_ms: int
    topics: tuple[str, ...]


class JoinGroupResponse(NamedTuple):
    error_code: int
    generation: int
    leader_id: str
    member_id: str
    members: tuple[str, ...]


class LeaveGroupRequest(NamedTuple):
    group_id: str
    member_id: str


class HeartbeatRequest(NamedTuple):
    group_id: str
    generation: int
    member_id: str


class AssignmentRequest(NamedTuple):
    group_id: str
    generation: int
    member_id: str


class OffsetCommitRequest(NamedTuple):
    group_id: str
    topic: str
    partition: int
    offset: int


class OffsetFetchRequest(NamedTuple):
    group_id: str
    topic: str
    partition: int


class OffsetFetchResponse(NamedTuple):
    error_code: int
    offset: int


class AssignedPartition(NamedTuple):
    topic: str
    partition: int


class AssignmentResponse(NamedTuple):
    error_code: int
    partitions: tuple[AssignedPartition, ...]


def encode_join_group_request(request: JoinGroupRequest) -> bytes:
    group_id, member_id, session_timeout_ms, topics = request
    return text(group_id) + text(member_id) + _int32.pack(session_timeout_ms) + texts(topics)


def decode_join_group_request(data: memoryview, start: int, end: int) -> JoinGroupRequest:
    reader = FieldReader(data, start, end)
    request = JoinGroupRequest(reader.text(), reader.text(), reader.int32(), reader.texts())
    reader.done()
    return request


def encode_join_group_response(response: JoinGroupResponse) -> bytes:
    error_code, generation, leader_id, member_id, members = response
    return _code_and_int32.pack(error_code, generation) + text(leader_id) + text(member_id) + texts(members)


def decode_join_group_response(data: memoryview, start: int, end: int) -> JoinGroupResponse:
    reader = FieldReader(data, start, end)
    response = JoinGroupResponse(reader.int16(), reader.int32(), reader.text(), reader.text(), reader.texts())
    reader.done()
    return response


def encode_leave_group_request(request: LeaveGroupRequest) -> bytes:
    return text(request.group_id) + text(request.member_id)


def decode_leave_group_request(data: memoryview, start: int, end: int) -> LeaveGroupRequest:
    reader = FieldReader(data, start, end)
    request = LeaveGroupRequest(reader.text(), reader.text())
    reader.done()
    return request


def encode_heartbeat_request(request: HeartbeatRequest | AssignmentRequest) -> bytes:
    """A request for the assignment has the same fields."""
    return text(request.group_id) + _int32.pack(request.generation) + text(request.member_id)


def decode_heartbeat_request(data: memoryview, start: int, end: int) -> HeartbeatRequest:
    return HeartbeatRequest(*_decode_member(data, start, end))


def decode_assignment_request(data: memoryview, start: int, end: int) -> AssignmentRequest:
    return AssignmentRequest(*_decode_member(data, start, end))


def _decode_member(data: memoryview, start: int, end: int) -> tuple[str, int, str]:
    reader = FieldReader(data, start, end)
    fields = reader.text(), reader.int32(), reader.text()
    reader.done()
    return fields


def encode_error_code(error_code: int) -> bytes:
    """The whole answer to a leave, a heartbeat and a commit."""
    return _int16.pack(error_code)


def decode_error_code(data: memoryview, start: int, end: int) -> int:
    reader = FieldReader(data, start, end)
    error_code = reader.int16()
    reader.done()
    return error_code


def encode_offset_commit_request(request: OffsetCommitRequest) -> bytes:
    group_id, topic, partition, offset = request
    return text(group_id) + text(topic) + _partition_and_offset.pack(partition, offset)


def decode_offset_commit_request(data: memoryview, start: int, end: int) -> OffsetCommitRequest:
    reader = FieldReader(data, start, end)
    request = OffsetCommitRequest(reader.text(), reader.text(), reader.int32(), reader.int64())
    reader.done()
    return request


def encode_offset_fetch_request(request: OffsetFetchRequest) -> bytes:
    return text(request.group_id) + text(request.topic) + _int32.pack(request.partition)


def decode_offset_fetch_request(data: memoryview, start: int, end: int) -> OffsetFetchRequest:
    reader = FieldReader(data, start, end)
    request = OffsetFetchRequest(reader.text(), reader.text(), reader.int32())
    reader.done()
    return request


def encode_offset_fetch_response(response: OffsetFetchResponse) -> bytes:
    return _code_and_offset.pack(*response)


def decode_offset_fetch_response(data: memoryview, start: int, end: int) -> OffsetFetchResponse:
    reader = FieldReader(data, start, end)
    response = OffsetFetchResponse(reader.int16(), reader.int64())
    reader.done()
    return response


def encode_assignment_response(response: AssignmentResponse) -> bytes:
    parts = [_code_and_int32.pack(response.error_code, len(response.partitions))]
    parts += [text(topic) + _int32.pack(partition) for topic, partition in response.partitions]
    return b"".join(parts)


def decode_assignment_response(data: memoryview, start: int, end: int) -> AssignmentResponse:
    reader = FieldReader(data, start, end)
    error_code = reader.int16()
    if error_code != ErrorCode.NONE and end - start == 2:
        # A broker that does not know the API says no more than that.
        return AssignmentResponse(error_code, ())
    count = reader.count(_LEAST_ASSIGNED_BYTES)
    partitions = tuple(AssignedPartition(reader.text(), reader.int32()) for _ in range(count))
    reader.done()
    return AssignmentResponse(error_code, partitions)
