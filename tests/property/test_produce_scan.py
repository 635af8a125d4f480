"""The compiled way through a common Produce request takes what the general codec takes, reads the same, replies the
same bytes, and leaves everything else to it."""

from __future__ import annotations

from random import Random
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from format_samples.batches import batch
from streamhouse.format.batch import check_produced
from streamhouse.format.compression import Codec
from streamhouse.format.records import Record, encode_records
from streamhouse.model.errors import MalformedRequest, StreamHouseError
from streamhouse.wire.kafka.frame import SIZE_BYTES, decode_request_header, encode_request, encode_response
from streamhouse.wire.kafka.messages import produce as messages
from streamhouse.wire.kafka.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from streamhouse.wire.kafka.produce_scan import encode_reply, scan
from streamhouse.wire.kafka.produce_size import check_batch_count
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]
NO_ID = UUID(int=0)
TOPIC_IDS_SINCE = 13
VERSIONS = range(API.min_version, API.max_version + 1)

_examples = settings(max_examples=150, deadline=None, database=None)
_int64 = st.integers(-(2**63), 2**63 - 1)
_int32 = st.integers(-(2**31), 2**31 - 1)

good_batches = st.builds(
    lambda values, codec, producer: encode_records(
        [Record(index, 1_000 + index, None, value) for index, value in enumerate(values)],
        codec=codec,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
    ),
    st.lists(st.binary(max_size=60), min_size=1, max_size=5),
    st.sampled_from(list(Codec)),
    st.just((-1, -1, -1)) | st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1), st.integers(0, 2**31 - 1)),
)
odd_batches = st.builds(
    batch,
    st.integers(0, 2**62),
    count=st.integers(-1, 9) | st.integers(10, 2**31 - 1),
    records=st.binary(max_size=80),
    attributes=st.integers(-(2**15), 2**15 - 1) | st.sampled_from([0, 4, 5, 8, 16, 32]),
    last_offset_delta=st.none() | st.integers(-2, 9),
    magic=st.sampled_from([2, 2, 2, 0, 1, 3]),
    producer=st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.integers(-2, 2)),
)
batches = good_batches | good_batches | odd_batches | st.binary(max_size=80)
ascii_names = st.from_regex(r"[A-Za-z0-9._-]{1,249}", fullmatch=True)
names = ascii_names | st.text(max_size=20)


@st.composite
def requests(draw: st.DrawFn, version: int) -> ProduceRequest:
    """Mostly of the common shape."""
    topics = [
        TopicProduceData(
            name=draw(names) if version < TOPIC_IDS_SINCE else "",
            topic_id=draw(st.uuids()) if version >= TOPIC_IDS_SINCE else NO_ID,
            partition_data=[
                PartitionProduceData(index=draw(_int32), records=draw(batches))
                for _ in range(draw(st.sampled_from([1, 1, 1, 1, 0, 2])))
            ],
        )
        for _ in range(draw(st.sampled_from([1, 1, 1, 1, 0, 2])))
    ]
    return ProduceRequest(
        transactional_id=draw(st.sampled_from([None, None, None, "", "tx"])),
        acks=draw(st.sampled_from([-1, 0, 1, 1, 2, -2])),
        timeout_ms=draw(_int32),
        topic_data=topics,
    )


@st.composite
def frames(draw: st.DrawFn, *, common: bool = False) -> bytes:
    """A request without its size."""
    version = draw(st.sampled_from(VERSIONS))
    request = draw(common_requests(version) if common else requests(version))
    client_id = draw(st.none() | st.just("") | (ascii_names if common else st.text(max_size=12)))
    encoded = encode_request(API, version, draw(_int32), client_id, messages.encode_request(request, version))
    return b"".join(encoded)[SIZE_BYTES:]


@st.composite
def common_requests(draw: st.DrawFn, version: int) -> ProduceRequest:
    by_id = version >= TOPIC_IDS_SINCE
    data = PartitionProduceData(index=draw(_int32), records=draw(good_batches))
    return ProduceRequest(
        acks=draw(st.sampled_from([-1, 0, 1])),
        timeout_ms=draw(_int32),
        topic_data=[
            TopicProduceData(
                name="" if by_id else draw(ascii_names),
                topic_id=draw(st.uuids()) if by_id else NO_ID,
                partition_data=[data],
            )
        ],
    )


def general(frame: bytes) -> tuple[object, ...] | None:
    """What `scan` may say of a frame, worked out by the general codec; None where that refuses, or does something
    that is not common."""
    view = memoryview(frame)
    try:
        header = decode_request_header(view, 0, len(frame))
        if header.api is not API:
            return None
        request = messages.decode_request(view, header.body_pos, len(frame), header.api_version)
        if request.transactional_id is not None or request.acks not in (-1, 0, 1):
            return None
        if len(request.topic_data) != 1 or len(request.topic_data[0].partition_data) != 1:
            return None
        (topic,) = request.topic_data
        (data,) = topic.partition_data
        if not isinstance(data.records, memoryview):
            return None
        checked = check_produced(data.records)
    except StreamHouseError:
        return None
    key = topic.topic_id.bytes if header.api_version >= TOPIC_IDS_SINCE else topic.name.encode()
    return (
        header.api_version,
        header.correlation_id,
        request.acks,
        request.timeout_ms,
        key,
        data.index,
        bytes(data.records),
        checked,
    )


def scanned(frame: bytes, before: bytes = b"", after: bytes = b"") -> tuple[object, ...] | None:
    """What `scan` says, the batch as its bytes; the frame may lie anywhere in a buffer."""
    buffer = memoryview(before + frame + after)
    found = scan(buffer, len(before), len(before) + len(frame))
    if found is None:
        return None
    version, correlation_id, acks, timeout_ms, topic, partition, start, end, header = found
    return version, correlation_id, acks, timeout_ms, topic, partition, bytes(buffer[start:end]), header


@_examples
@given(frames())
def test_any_request_is_left_alone_or_read_as_the_general_codec_reads_it(frame: bytes) -> None:
    found = scanned(frame)

    assert found is None or found == general(frame)


@_examples
@given(frames(common=True), st.binary(max_size=9), st.binary(max_size=9))
def test_a_common_request_is_taken_wherever_it_lies_in_a_buffer(frame: bytes, before: bytes, after: bytes) -> None:
    found = scanned(frame, before, after)

    assert found is not None
    assert found == general(frame)


@_examples
@given(frames(common=True))
def test_a_request_that_is_cut_short_is_left_alone_although_the_buffer_goes_on(frame: bytes) -> None:
    for cut in range(0, len(frame), 1 + len(frame) // 60):
        assert scan(memoryview(frame), 0, cut) is None


@settings(_examples, max_examples=300)
@given(frames(common=True), st.integers(0, 2**32))
def test_a_damaged_request_is_never_taken_when_the_general_codec_refuses_it(frame: bytes, seed: int) -> None:
    random = Random(seed)
    head = min(len(frame), 60)
    for _ in range(60):
        damaged = bytearray(frame)
        for _ in range(random.randint(1, 2)):
            at = random.randrange(head if random.random() < 0.7 else len(damaged))
            match random.randrange(4):
                case 0:
                    damaged[at] ^= 1 << random.randrange(8)
                case 1:
                    damaged[at] = random.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
                case 2:
                    del damaged[at : at + random.randint(1, 3)]
                case _:
                    damaged[at:at] = random.randbytes(random.randint(1, 3))
            if not damaged:
                break
        content = bytes(damaged)
        if not content:
            continue
        found = scanned(content)
        assert found is None or found == general(content), content.hex()


def test_every_value_of_every_byte_before_the_batch_is_judged_as_the_general_codec_judges_it() -> None:
    for version in VERSIONS:
        by_id = version >= TOPIC_IDS_SINCE
        data = PartitionProduceData(index=1, records=batch())
        topic = TopicProduceData(
            name="" if by_id else "t\u00e9", topic_id=UUID(int=77) if by_id else NO_ID, partition_data=[data]
        )
        request = ProduceRequest(acks=-1, timeout_ms=1, topic_data=[topic])
        frame = b"".join(encode_request(API, version, 5, "c\u00e9", messages.encode_request(request, version)))[4:]
        for at in range(len(frame) - len(batch())):
            for value in range(256):
                changed = frame[:at] + bytes([value]) + frame[at + 1 :]
                found = scanned(changed)
                assert found is None or found == general(changed), (version, at, value)


@_examples
@given(
    version=st.sampled_from(VERSIONS),
    correlation_id=_int32,
    name=ascii_names,
    topic_id=st.uuids(),
    partition=_int32,
    base_offset=_int64,
    append_time_ms=_int64,
    log_start_offset=_int64,
)
def test_a_reply_has_the_bytes_that_the_general_codec_writes(
    version: int,
    correlation_id: int,
    name: str,
    topic_id: UUID,
    partition: int,
    base_offset: int,
    append_time_ms: int,
    log_start_offset: int,
) -> None:
    by_id = version >= TOPIC_IDS_SINCE
    answer = PartitionProduceResponse(
        index=partition,
        base_offset=base_offset,
        log_append_time_ms=append_time_ms,
        log_start_offset=log_start_offset,
    )
    topic = TopicProduceResponse(
        name="" if by_id else name, topic_id=topic_id if by_id else NO_ID, partition_responses=[answer]
    )
    body = messages.encode_response(ProduceResponse(responses=[topic]), version)
    expected = b"".join(encode_response(correlation_id, API, version, body))

    key = topic_id.bytes if by_id else name.encode()
    reply = encode_reply(version, correlation_id, key, partition, base_offset, append_time_ms, log_start_offset)

    assert reply == expected


@pytest.mark.parametrize("version", [-1, 0, 1, 2, 14, 99, 2**15 - 1])
def test_a_version_that_is_not_spoken_is_left_alone(version: int) -> None:
    request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=[PartitionProduceData()])])
    frame = bytearray(b"".join(encode_request(API, 9, 1, None, messages.encode_request(request, 9)))[4:])
    frame[2:4] = version.to_bytes(2, "big", signed=True)

    assert scan(memoryview(frame), 0, len(frame)) is None


def test_a_batch_that_understates_its_largest_timestamp_is_left_to_who_repairs_it() -> None:
    def frame(largest_ms: int) -> memoryview:
        data = PartitionProduceData(index=0, records=batch(timestamp_ms=1_000, max_timestamp_ms=largest_ms))
        request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
        return memoryview(b"".join(encode_request(API, 9, 1, None, messages.encode_request(request, 9)))[4:])

    for largest_ms, is_taken in ((1_000, True), (999, False), (-1, False)):
        asked = frame(largest_ms)
        assert (scan(asked, 0, len(asked)) is not None) is is_taken


@pytest.mark.parametrize("end", [10, 11, 1_000])
def test_an_end_beyond_the_buffer_reads_nothing_there(end: int) -> None:
    assert scan(memoryview(b"\0\0\0\x09\0\0\0\1\xff"), 0, end) is None


def _request_of(counts: list[int], version: int) -> bytes:
    """A request with so many batches for each of so many topics, as a body."""
    by_id = version >= TOPIC_IDS_SINCE
    topics = [
        TopicProduceData(
            name="" if by_id else f"topic-{number}",
            topic_id=UUID(int=number + 1) if by_id else NO_ID,
            partition_data=[PartitionProduceData(index=index, records=batch()) for index in range(count)],
        )
        for number, count in enumerate(counts)
    ]
    return b"".join(messages.encode_request(ProduceRequest(acks=1, topic_data=topics), version))


@_examples
@given(st.sampled_from(VERSIONS), st.lists(st.integers(0, 4), max_size=4), st.integers(0, 25))
def test_a_request_is_counted_without_decoding_it(version: int, counts: list[int], limit: int) -> None:
    body = memoryview(_request_of(counts, version))
    pieces = len(counts) + sum(counts)

    if pieces > limit:
        with pytest.raises(MalformedRequest):
            check_batch_count(body, 0, len(body), version, limit)
    else:
        check_batch_count(body, 0, len(body), version, limit)


@_examples
@given(frames(), st.integers(0, 2**32))
def test_whatever_is_counted_ends_and_refuses_nothing_that_the_codec_takes(frame: bytes, seed: int) -> None:
    random = Random(seed)
    for _ in range(20):
        damaged = bytearray(frame)
        for _ in range(random.randint(0, 2)):
            damaged[random.randrange(len(damaged))] = random.choice((0, 1, 0x7F, 0x80, 0xFF))
        view = memoryview(bytes(damaged))
        try:
            header = decode_request_header(view, 0, len(view))
        except MalformedRequest:
            continue
        if header.api is not API:
            continue
        try:
            check_batch_count(view, header.body_pos, len(view), header.api_version, 1_000)
        except MalformedRequest:
            with pytest.raises(MalformedRequest):
                messages.decode_request(view, header.body_pos, len(view), header.api_version)
