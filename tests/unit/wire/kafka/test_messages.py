"""The generated codecs against bytes written by hand from Kafka's protocol guide, and what they promise besides."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from uuid import UUID

import msgspec
import pytest

from streamhouse.model.errors import MalformedRequest
from streamhouse.wire.kafka.messages import api_versions, fetch, heartbeat, metadata, produce

_TOPIC_ID = UUID("00112233-4455-6677-8899-aabbccddeeff")

_METADATA_REQUEST_V1_ALL_TOPICS = b"\xff\xff\xff\xff"
_API_VERSIONS_RESPONSE_V3 = (
    b"\x00\x00"  # error code
    b"\x02" + b"\x00\x12\x00\x00\x00\x03\x00" + b"\x00\x00\x00\x00"  # one key: 18, versions 0 to 3; throttle time
    b"\x02"  # two tagged fields:
    b"\x01\x08" + b"\x00\x00\x00\x00\x00\x00\x00\x05"  # tag 1, the epoch of the finalized features
    b"\x03\x01\x01"  # tag 3, ready for a migration from ZooKeeper
)
_PRODUCE_REQUEST_V9 = (
    b"\x00" + b"\xff\xff" + b"\x00\x00\x75\x30"  # no transactional id, acks -1, timeout 30 s
    b"\x02" + b"\x02t"  # one topic, "t"
    b"\x02" + b"\x00\x00\x00\x03" + b"\x05RRRR" + b"\x00"  # one partition, 3, with four bytes of records
    b"\x00\x00"
)
_PRODUCE_REQUEST_V3 = (
    b"\xff\xff" + b"\x00\x01" + b"\x00\x00\x00\x64"
    b"\x00\x00\x00\x01" + b"\x00\x01t"
    b"\x00\x00\x00\x01" + b"\x00\x00\x00\x03" + b"\x00\x00\x00\x04RRRR"
)
_FETCH_RESPONSE_V13 = (
    b"\x00\x00\x00\x00" + b"\x00\x00" + b"\x00\x00\x00\x07"  # throttle time, error code, session
    b"\x02" + _TOPIC_ID.bytes + b"\x02"  # one topic, one partition
    b"\x00\x00\x00\x01"
    + b"\x00\x06"  # partition 1, NOT_LEADER_OR_FOLLOWER
    + b"\x00\x00\x00\x00\x00\x00\x00\x09" * 3  # high watermark, last stable offset, log start offset
    + b"\x00"  # aborted transactions: null
    b"\xff\xff\xff\xff" + b"\x05RRRR"  # preferred replica: none; records
    b"\x01" + b"\x01\x09" + b"\x00\x00\x00\x02" + b"\x00\x00\x00\x05" + b"\x00"  # tag 1: the leader is 2, in epoch 5
    b"\x00\x00"
)


def _fetch_response() -> fetch.FetchResponse:
    partition = fetch.PartitionData(
        partition_index=1,
        error_code=6,
        high_watermark=9,
        last_stable_offset=9,
        log_start_offset=9,
        current_leader=fetch.LeaderIdAndEpoch(leader_id=2, leader_epoch=5),
        aborted_transactions=None,
        records=b"RRRR",
    )
    topic = fetch.FetchableTopicResponse(topic_id=_TOPIC_ID, partitions=[partition])
    return fetch.FetchResponse(session_id=7, responses=[topic])


def _produce_request(acks: int, timeout_ms: int) -> produce.ProduceRequest:
    partition = produce.PartitionProduceData(index=3, records=b"RRRR")
    topic = produce.TopicProduceData(name="t", partition_data=[partition])
    return produce.ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[topic])


def test_metadata_for_all_topics() -> None:
    request = metadata.MetadataRequest(topics=None)

    assert b"".join(metadata.encode_request(request, 1)) == _METADATA_REQUEST_V1_ALL_TOPICS
    assert metadata.decode_request(memoryview(_METADATA_REQUEST_V1_ALL_TOPICS), 0, 4, 1).topics is None


def test_null_is_refused_in_a_version_that_does_not_allow_it() -> None:
    with pytest.raises(MalformedRequest, match=r"MetadataRequest\.topics may not be null in version 0"):
        metadata.decode_request(memoryview(_METADATA_REQUEST_V1_ALL_TOPICS), 0, 4, 0)
    with pytest.raises(ValueError, match=r"MetadataRequest\.topics may not be None in version 0"):
        metadata.encode_request(metadata.MetadataRequest(topics=None), 0)


def test_api_versions_with_tagged_fields() -> None:
    response = api_versions.ApiVersionsResponse(
        api_keys=[api_versions.ApiVersion(api_key=18, min_version=0, max_version=3)],
        finalized_features_epoch=5,
        zk_migration_ready=True,
    )

    assert b"".join(api_versions.encode_response(response, 3)) == _API_VERSIONS_RESPONSE_V3
    decoded = api_versions.decode_response(memoryview(_API_VERSIONS_RESPONSE_V3), 0, len(_API_VERSIONS_RESPONSE_V3), 3)
    assert decoded == response


@pytest.mark.parametrize(
    ("version", "raw", "request_"),
    [(9, _PRODUCE_REQUEST_V9, _produce_request(-1, 30_000)), (3, _PRODUCE_REQUEST_V3, _produce_request(1, 100))],
    ids=["flexible", "legacy"],
)
def test_produce(version: int, raw: bytes, request_: produce.ProduceRequest) -> None:
    assert b"".join(produce.encode_request(request_, version)) == raw
    assert produce.decode_request(memoryview(raw), 0, len(raw), version) == request_


def test_fetch_with_topic_ids_and_a_hint_of_the_leader() -> None:
    assert b"".join(fetch.encode_response(_fetch_response(), 13)) == _FETCH_RESPONSE_V13
    decoded = fetch.decode_response(memoryview(_FETCH_RESPONSE_V13), 0, len(_FETCH_RESPONSE_V13), 13)
    assert decoded == _fetch_response()


def test_the_records_of_a_produce_request_are_a_view_of_its_bytes() -> None:
    buffer = bytearray(_PRODUCE_REQUEST_V9)
    request = produce.decode_request(memoryview(buffer), 0, len(buffer), 9)

    buffer[:] = buffer.replace(b"RRRR", b"SSSS")

    assert request.topic_data[0].partition_data[0].records == b"SSSS"


def test_the_records_of_a_fetch_response_are_written_from_where_they_are() -> None:
    first, second, third = memoryview(bytes(5_000_000)), memoryview(bytes(7)), bytes(9)
    partitions = [
        fetch.PartitionData(partition_index=0, records=[first, second]),
        fetch.PartitionData(partition_index=1, records=None),
        fetch.PartitionData(partition_index=2, records=third),
    ]
    response = fetch.FetchResponse(responses=[fetch.FetchableTopicResponse(topic="t", partitions=partitions)])

    for version in (4, 12):
        buffers = fetch.encode_response(response, version)
        assert buffers[1] is first
        assert buffers[2] is second
        assert buffers[4] is third
        assert len(buffers) == 6
        raw = b"".join(buffers)
        again = fetch.decode_response(memoryview(raw), 0, len(raw), version).responses[0].partitions
        assert [p.records and bytes(p.records) for p in again] == [bytes(5_000_007), None, bytes(9)]


def test_unknown_tagged_fields_are_skipped_wherever_they_are() -> None:
    unknown = b"\x01\x63\x02??"
    raw = _PRODUCE_REQUEST_V9[:-3] + unknown + unknown + unknown

    assert produce.decode_request(memoryview(raw), 0, len(raw), 9) == _produce_request(-1, 30_000)


def test_a_known_tagged_field_that_is_not_as_long_as_it_says_is_refused() -> None:
    raw = _FETCH_RESPONSE_V13.replace(b"\x01\x01\x09", b"\x01\x01\x08")

    with pytest.raises(MalformedRequest, match="tagged field 1 of PartitionData"):
        fetch.decode_response(memoryview(raw), 0, len(raw), 13)


def test_a_response_may_have_bytes_after_its_end() -> None:
    raw = _FETCH_RESPONSE_V13 + b"from the future"

    assert fetch.decode_response(memoryview(raw), 0, len(raw), 13) == _fetch_response()


@pytest.mark.parametrize("version", [-1, 5, 32767])
def test_a_version_that_does_not_exist_is_refused(version: int) -> None:
    with pytest.raises(MalformedRequest, match="Heartbeat has no version"):
        heartbeat.decode_request(memoryview(b""), 0, 0, version)
    with pytest.raises(MalformedRequest, match="Heartbeat has no version"):
        heartbeat.decode_response(memoryview(b""), 0, 0, version)
    with pytest.raises(ValueError, match="Heartbeat has no version"):
        heartbeat.encode_request(heartbeat.HeartbeatRequest(), version)
    with pytest.raises(ValueError, match="Heartbeat has no version"):
        heartbeat.encode_response(heartbeat.HeartbeatResponse(), version)


def test_what_a_version_does_not_have_is_left_out() -> None:
    request = heartbeat.HeartbeatRequest(group_id="g", generation_id=1, member_id="m", group_instance_id="static")
    raw = b"".join(heartbeat.encode_request(request, 2))

    assert raw == b"\x00\x01g\x00\x00\x00\x01\x00\x01m"
    assert heartbeat.decode_request(memoryview(raw), 0, len(raw), 2).group_instance_id is None


def test_messages_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        heartbeat.HeartbeatRequest().group_id = "other"  # type: ignore[misc]
    assert msgspec.structs.replace(heartbeat.HeartbeatRequest(), group_id="other").group_id == "other"


def test_the_committed_modules_are_what_the_generator_writes() -> None:
    generator = Path(__file__).parents[4] / "tools" / "generate_kafka_messages.py"

    result = subprocess.run([sys.executable, generator, "--check"], capture_output=True, text=True, check=False)

    assert (result.returncode, result.stderr) == (0, "")
