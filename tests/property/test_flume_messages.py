"""Flume's messages: what is encoded is decoded again, and no bytes do worse than being refused."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamhouse.model.errors import MalformedRequest
from streamhouse.wire.flume import _produce_scan, groups, produce_scan_twin, records
from streamhouse.wire.flume.codes import ApiKey
from streamhouse.wire.flume.frame import decode_request_header, encode_request

int16 = st.integers(-(2**15), 2**15 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
name = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
names = st.lists(name, max_size=5).map(tuple)
blob = st.binary(max_size=100)

CODECS: dict[str, tuple[Any, Any, st.SearchStrategy[Any]]] = {
    "produce": (
        records.encode_produce_request,
        records.decode_produce_request,
        st.builds(records.ProduceRequest, name, int32, blob, blob),
    ),
    "produced": (
        records.encode_produce_response,
        records.decode_produce_response,
        st.builds(records.ProduceResponse, int32, int64, int16),
    ),
    "fetch": (
        records.encode_fetch_request,
        records.decode_fetch_request,
        st.builds(records.FetchRequest, name, int32, int64, int32),
    ),
    "fetched": (
        records.encode_fetch_response,
        records.decode_fetch_response,
        st.builds(records.FetchResponse, int16, st.lists(st.builds(records.FetchRecord, int64, blob), max_size=5)),
    ),
    "join": (
        groups.encode_join_group_request,
        groups.decode_join_group_request,
        st.builds(groups.JoinGroupRequest, name, name, int32, names),
    ),
    "joined": (
        groups.encode_join_group_response,
        groups.decode_join_group_response,
        st.builds(groups.JoinGroupResponse, int16, int32, name, name, names),
    ),
    "leave": (
        groups.encode_leave_group_request,
        groups.decode_leave_group_request,
        st.builds(groups.LeaveGroupRequest, name, name),
    ),
    "heartbeat": (
        groups.encode_heartbeat_request,
        groups.decode_heartbeat_request,
        st.builds(groups.HeartbeatRequest, name, int32, name),
    ),
    "commit": (
        groups.encode_offset_commit_request,
        groups.decode_offset_commit_request,
        st.builds(groups.OffsetCommitRequest, name, name, int32, int64),
    ),
    "committed?": (
        groups.encode_offset_fetch_request,
        groups.decode_offset_fetch_request,
        st.builds(groups.OffsetFetchRequest, name, name, int32),
    ),
    "committed": (
        groups.encode_offset_fetch_response,
        groups.decode_offset_fetch_response,
        st.builds(groups.OffsetFetchResponse, int16, int64),
    ),
    "assignment": (
        groups.encode_assignment_response,
        groups.decode_assignment_response,
        st.builds(
            groups.AssignmentResponse,
            int16,
            st.lists(st.builds(groups.AssignedPartition, name, int32), max_size=5).map(tuple),
        ),
    ),
}
KERNELS = [_produce_scan, produce_scan_twin]
each_codec = pytest.mark.parametrize(("encode", "decode", "messages"), CODECS.values(), ids=CODECS)


@each_codec
def test_what_is_encoded_is_decoded_again(
    encode: Callable[[Any], bytes], decode: Any, messages: st.SearchStrategy[Any]
) -> None:
    @given(messages, blob, blob)
    def check(message: Any, before: bytes, behind: bytes) -> None:
        encoded = encode(message)
        lies_in = memoryview(before + encoded + behind)
        assert decode(lies_in, len(before), len(before) + len(encoded)) == message

    check()


@each_codec
def test_no_bytes_do_worse_than_being_refused(
    encode: Callable[[Any], bytes], decode: Any, messages: st.SearchStrategy[Any]
) -> None:
    """Those that are taken are the bytes of the message that was read from them."""

    @given(st.one_of(st.binary(max_size=60), messages.map(encode)), st.data())
    def check(content: bytes, data: st.DataObject) -> None:
        damaged = bytearray(content)
        for _ in range(data.draw(st.integers(0, 3)) if damaged else 0):
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
        with suppress(MalformedRequest):
            message = decode(memoryview(bytes(damaged) + b"\x01" * 16), 0, len(damaged))
            if len(damaged) > 2:  # a code alone is short for an error without the rest
                assert encode(message) == bytes(damaged)

    check()


@pytest.mark.parametrize("kernel", KERNELS)
@given(CODECS["produce"][2], int32, blob, blob)
def test_a_produces_frame_is_scanned_as_it_was_encoded(
    kernel: ModuleType, produce: records.ProduceRequest, request_id: int, before: bytes, behind: bytes
) -> None:
    frame = encode_request(ApiKey.PRODUCE, request_id, records.encode_produce_request(produce))[4:]
    lies_in = memoryview(before + frame + behind)
    found = kernel.scan(lies_in, len(before), len(before) + len(frame))
    assert found == (
        request_id,
        produce.topic.encode(),
        produce.partition,
        produce.key,
        produce.payload,
        produce_scan_twin.fnv1a_32(produce.key),
    )


@pytest.mark.parametrize("kernel", KERNELS)
@given(CODECS["produce"][2], st.data())
def test_a_damaged_frame_is_scanned_as_the_general_codec_reads_it(
    kernel: ModuleType, produce: records.ProduceRequest, data: st.DataObject
) -> None:
    frame = bytearray(encode_request(ApiKey.PRODUCE, 7, records.encode_produce_request(produce))[4:])
    for _ in range(data.draw(st.integers(0, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(frame)))
    lies_in = memoryview(bytes(frame) + bytes(16))
    found = kernel.scan(lies_in, 0, end)
    try:
        api_key, _ = decode_request_header(lies_in, 0, end)
        read = records.decode_produce_request(lies_in, 6, end) if api_key == ApiKey.PRODUCE else None
    except MalformedRequest:
        # The codec wants names that are text; the scan leaves that to who looks them up.
        assert found is None or not _is_text(found.topic)
    else:
        assert (found is None) == (read is None)
        assert read is None or (found.topic.decode(), *found[2:5]) == read


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True
