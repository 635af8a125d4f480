"""Flume's frames, byte for byte as its document lays them out."""

from __future__ import annotations

from typing import Any

import pytest

from streamhouse.model.errors import InvalidInput, MalformedRequest
from streamhouse.wire.flume import frame, groups, records
from streamhouse.wire.flume.codes import ApiKey, ErrorCode

MESSAGES: dict[str, tuple[Any, Any, Any, str]] = {
    "produce request": (
        records.encode_produce_request,
        records.decode_produce_request,
        records.ProduceRequest("orders", -1, b"user-123", b'{"item": "widget"}'),
        "0006 6f7264657273 ffffffff 00000008 757365722d313233 00000012 7b226974656d223a2022776964676574227d",
    ),
    "produce request without a key": (
        records.encode_produce_request,
        records.decode_produce_request,
        records.ProduceRequest("t", 2, b"", b""),
        "0001 74 00000002 00000000 00000000",
    ),
    "produce response": (
        records.encode_produce_response,
        records.decode_produce_response,
        records.ProduceResponse(1, 258, 0),
        "00000001 0000000000000102 0000",
    ),
    "fetch request": (
        records.encode_fetch_request,
        records.decode_fetch_request,
        records.FetchRequest("orders", 1, 5, 65536),
        "0006 6f7264657273 00000001 0000000000000005 00010000",
    ),
    "fetch response": (
        records.encode_fetch_response,
        records.decode_fetch_response,
        records.FetchResponse(0, [records.FetchRecord(0, b"first"), records.FetchRecord(1, b"")]),
        "0000 00000002 0000000000000000 00000005 6669727374 0000000000000001 00000000",
    ),
    "fetch response of an error": (
        records.encode_fetch_response,
        records.decode_fetch_response,
        records.FetchResponse(3, []),
        "0003 00000000",
    ),
    "join group request": (
        groups.encode_join_group_request,
        groups.decode_join_group_request,
        groups.JoinGroupRequest("analytics", "", 10000, ("orders", "events")),
        "0009 616e616c7974696373 0000 00002710 0002 0006 6f7264657273 0006 6576656e7473",
    ),
    "join group response": (
        groups.encode_join_group_response,
        groups.decode_join_group_response,
        groups.JoinGroupResponse(0, 1, "m-a", "m-x", ("m-a", "m-x")),
        "0000 00000001 0003 6d2d61 0003 6d2d78 0002 0003 6d2d61 0003 6d2d78",
    ),
    "leave group request": (
        groups.encode_leave_group_request,
        groups.decode_leave_group_request,
        groups.LeaveGroupRequest("g", "m-x"),
        "0001 67 0003 6d2d78",
    ),
    "heartbeat request": (
        groups.encode_heartbeat_request,
        groups.decode_heartbeat_request,
        groups.HeartbeatRequest("g", 7, "m-x"),
        "0001 67 00000007 0003 6d2d78",
    ),
    "an error code alone": (groups.encode_error_code, groups.decode_error_code, 6, "0006"),
    "offset commit request": (
        groups.encode_offset_commit_request,
        groups.decode_offset_commit_request,
        groups.OffsetCommitRequest("g", "orders", 0, 42),
        "0001 67 0006 6f7264657273 00000000 000000000000002a",
    ),
    "offset fetch request": (
        groups.encode_offset_fetch_request,
        groups.decode_offset_fetch_request,
        groups.OffsetFetchRequest("g", "orders", 3),
        "0001 67 0006 6f7264657273 00000003",
    ),
    "offset fetch response": (
        groups.encode_offset_fetch_response,
        groups.decode_offset_fetch_response,
        groups.OffsetFetchResponse(0, -1),
        "0000 ffffffffffffffff",
    ),
    "assignment request": (
        groups.encode_heartbeat_request,
        groups.decode_assignment_request,
        groups.AssignmentRequest("g", 7, "m-x"),
        "0001 67 00000007 0003 6d2d78",
    ),
    "assignment response": (
        groups.encode_assignment_response,
        groups.decode_assignment_response,
        groups.AssignmentResponse(0, (groups.AssignedPartition("t", 0), groups.AssignedPartition("t", 2))),
        "0000 00000002 0001 74 00000000 0001 74 00000002",
    ),
}
each_message = pytest.mark.parametrize(("encode", "decode", "message", "golden"), MESSAGES.values(), ids=MESSAGES)


@each_message
def test_a_message_is_these_bytes(encode: Any, decode: Any, message: Any, golden: str) -> None:
    assert encode(message).hex() == golden.replace(" ", "")


@each_message
def test_these_bytes_are_the_message_wherever_they_lie(encode: Any, decode: Any, message: Any, golden: str) -> None:
    encoded = bytes.fromhex(golden)
    padded = memoryview(b"before" + encoded + b"and more behind")
    assert decode(padded, 6, 6 + len(encoded)) == message


@each_message
def test_a_message_that_is_cut_or_goes_on_is_refused(encode: Any, decode: Any, message: Any, golden: str) -> None:
    encoded = bytes.fromhex(golden)
    whole = memoryview(encoded + b"\0" * 64)
    lone_code = len(encoded) > 2 and encoded[:2] == b"\x00\x03"
    for end in range(len(encoded)):
        if not (lone_code and end == 2):
            with pytest.raises(MalformedRequest):
                decode(whole, 0, end)
    with pytest.raises(MalformedRequest):
        decode(whole, 0, len(encoded) + 1)


def test_frames_begin_with_the_size_of_what_follows_it() -> None:
    assert frame.encode_request(ApiKey.HEARTBEAT, 42, b"xyz").hex() == "0000000900040000002a78797a"
    assert frame.encode_response(42, b"xyz").hex() == "000000070000002a78797a"
    assert records.encode_produce_reply(7, 1, 2, 0) == frame.encode_response(
        7, records.encode_produce_response(records.ProduceResponse(1, 2, 0))
    )


def test_the_numbers_are_the_documents() -> None:
    assert [key.value for key in ApiKey][:7] == list(range(7))
    assert [key.name for key in ApiKey][:7] == [
        "PRODUCE",
        "FETCH",
        "JOIN_GROUP",
        "LEAVE_GROUP",
        "HEARTBEAT",
        "OFFSET_COMMIT",
        "OFFSET_FETCH",
    ]
    assert {code.name: code.value for code in ErrorCode} == {
        "NONE": 0,
        "UNKNOWN": 1,
        "TOPIC_NOT_FOUND": 2,
        "OFFSET_OUT_OF_RANGE": 3,
        "UNKNOWN_MEMBER": 4,
        "STALE_GENERATION": 5,
        "REBALANCE_NEEDED": 6,
    }


@pytest.mark.parametrize("size", [-1, 3, 101, 2**31 - 1])
def test_a_response_of_impossible_size_is_refused_before_it_is_read(size: int) -> None:
    with pytest.raises(MalformedRequest):
        frame.decode_size(size.to_bytes(4, "big", signed=True), 100)


def test_a_name_that_does_not_fit_its_length_is_refused() -> None:
    with pytest.raises(InvalidInput, match="too long"):
        records.encode_fetch_request(records.FetchRequest("x" * 2**15, 0, 0, 1))
    with pytest.raises(InvalidInput, match="not text"):
        records.encode_fetch_request(records.FetchRequest("\udc80", 0, 0, 1))
