"""The protocol by hand: versions, order of answers, and how much and how long a fetch may be."""

from __future__ import annotations

import struct
import time

import pytest
from kafka.protocol.consumer import (
    FetchResponse,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.producer import ProduceResponse

from compat.conftest import Broker, NewTopicName
from node.raw import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    RawConnection,
    build_batch,
    fetch_request,
    produce_request,
    read_batches,
    read_values,
)

UNSUPPORTED_VERSION = 35
BATCH_OVERHEAD = 100

# What the contract names, by API key, with the oldest version of Kafka 2.1's clients and one of today's.
CONTRACT = {
    0: (3, 11), 1: (4, 12), 2: (1, 7), 3: (1, 12), 18: (0, 3), 19: (2, 5), 20: (1, 5), 21: (0, 2), 37: (0, 2),
    22: (0, 4), 32: (1, 4), 33: (0, 1), 44: (0, 1), 23: (2, 4), 60: (0, 0), 35: (1, 3), 10: (0, 3), 8: (2, 8),
    9: (1, 7),
}  # fmt: skip


def versions_request(version: int) -> ApiVersionsRequest:
    return ApiVersionsRequest(version=version, client_software_name="raw", client_software_version="1")


@pytest.mark.parametrize("version", range(4))
def test_api_versions_are_told_in_every_version(raw: RawConnection, version: int) -> None:
    answer = raw.call(versions_request(version), ApiVersionsResponse)
    assert answer.error_code == 0
    told = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    for key, (oldest, newest) in CONTRACT.items():
        assert key in told, f"API {key} is missing"
        assert told[key][0] <= oldest, f"API {key} begins at {told[key][0]}"
        assert told[key][1] >= newest, f"API {key} ends at {told[key][1]}"


def test_a_version_of_api_versions_from_the_future_gets_the_list_in_the_oldest_form(raw: RawConnection) -> None:
    """KIP-511: so that a newer client can choose what both know, on the same connection."""
    header = struct.pack(">hhih", 18, 99, 7, 3) + b"raw" + b"\x00"
    body = b"\x07future" + b"\x02x" + b"\x00"
    raw.socket.sendall(struct.pack(">i", len(header + body)) + header + body)
    answer = raw.receive(ApiVersionsResponse, 0)
    assert answer.header.correlation_id == 7
    assert answer.error_code == UNSUPPORTED_VERSION
    assert any(api.api_key == 18 for api in answer.api_keys)
    assert raw.call(versions_request(0), ApiVersionsResponse).error_code == 0


def test_an_unknown_version_of_another_request_ends_the_connection(raw: RawConnection) -> None:
    header = struct.pack(">hhih", 3, 99, 7, 3) + b"raw"
    raw.socket.sendall(struct.pack(">i", len(header)) + header)
    assert raw.is_closed_by_node()


def test_an_unknown_request_ends_the_connection(raw: RawConnection) -> None:
    header = struct.pack(">hhih", 999, 0, 7, 3) + b"raw"
    raw.socket.sendall(struct.pack(">i", len(header)) + header)
    assert raw.is_closed_by_node()


def test_pipelined_requests_are_answered_in_order(raw: RawConnection, new_topic: NewTopicName) -> None:
    """Slow ones (a produce that is synced, a fetch that waits) before fast ones, all sent before any answer is read."""
    topic = new_topic()
    produced = [raw.send(produce_request(topic, build_batch(f"{number}".encode()))) for number in range(50)]
    waiting = raw.send(fetch_request(topic, 50, max_wait_ms=300))
    quick = raw.send(versions_request(0))
    for number, correlation in enumerate(produced):
        answer = raw.receive(ProduceResponse, PRODUCE_VERSION)
        partition = answer.responses[0].partition_responses[0]
        assert answer.header.correlation_id == correlation
        assert (partition.error_code, partition.base_offset) == (0, number)
    assert raw.receive(FetchResponse, FETCH_VERSION).header.correlation_id == waiting
    assert raw.receive(ApiVersionsResponse, 0).header.correlation_id == quick


def test_requests_that_arrive_byte_by_byte_are_understood(raw: RawConnection) -> None:
    request = versions_request(0)
    request.with_header(correlation_id=3, client_id="slow")
    for byte in request.encode(header=True, framed=True):
        raw.socket.sendall(bytes([byte]))
    assert raw.receive(ApiVersionsResponse, 0).header.correlation_id == 3


# -- how much, how long ---------------------------------------------------------------------------------------------


@pytest.fixture
def ten_batches(raw: RawConnection, new_topic: NewTopicName) -> str:
    """Ten batches of three records, about a thousand bytes each."""
    topic = new_topic()
    for number in range(10):
        values = [bytes([number]) * 300 for _ in range(3)]
        assert raw.produce(topic, build_batch(*values)).error_code == 0
    return topic


def test_a_fetch_in_the_middle_of_a_batch_gets_the_whole_batch(raw: RawConnection, ten_batches: str) -> None:
    batches = list(read_batches(raw.fetch(ten_batches, 4).records))
    assert [batch.base_offset for batch in batches] == list(range(3, 30, 3))


def test_a_fetch_is_bounded_by_its_partitions_limit(raw: RawConnection, ten_batches: str) -> None:
    records = raw.fetch(ten_batches, 0, partition_max_bytes=2500).records
    assert len(records) <= 2500
    assert len(list(read_batches(records))) == 2


def test_a_fetch_is_bounded_by_its_own_limit(raw: RawConnection, ten_batches: str) -> None:
    records = raw.fetch(ten_batches, 0, max_bytes=2500).records
    assert len(records) <= 2500
    assert len(list(read_batches(records))) == 2


def test_a_fetch_smaller_than_a_batch_gets_one_batch_all_the_same(raw: RawConnection, ten_batches: str) -> None:
    """KIP-74: or the consumer could never go on."""
    batches = list(read_batches(raw.fetch(ten_batches, 6, max_bytes=10, partition_max_bytes=10).records))
    assert [batch.base_offset for batch in batches] == [6]


def test_a_reader_of_single_batches_comes_to_the_end(raw: RawConnection, ten_batches: str) -> None:
    offset, values = 0, {}
    while offset < 30:
        received = read_values(raw.fetch(ten_batches, offset, max_bytes=1).records)
        values.update(received)
        offset = max(received) + 1
    assert values == {offset: bytes([offset // 3]) * 300 for offset in range(30)}


def test_a_fetch_waits_for_its_least_bytes(broker: Broker, raw: RawConnection, new_topic: NewTopicName) -> None:
    topic = new_topic()
    correlation = raw.send(fetch_request(topic, 0, max_wait_ms=60_000, min_bytes=3000))
    with RawConnection(broker.address) as other:
        for _ in range(4):
            other.produce(topic, build_batch(b"x" * 1000))
    answer = raw.receive(FetchResponse, FETCH_VERSION)
    assert answer.header.correlation_id == correlation
    assert len(answer.responses[0].partitions[0].records) >= 3000


def test_a_fetch_of_an_empty_end_waits_as_long_as_it_said_and_no_longer(
    raw: RawConnection, new_topic: NewTopicName
) -> None:
    topic = new_topic()
    started = time.monotonic()
    answer = raw.fetch(topic, 0, max_wait_ms=400, min_bytes=1)
    assert not answer.records
    assert answer.error_code == 0
    assert time.monotonic() - started >= 0.35


def test_a_fetch_that_may_not_wait_does_not(raw: RawConnection, new_topic: NewTopicName) -> None:
    answer = raw.fetch(new_topic(), 0, max_wait_ms=0, min_bytes=1)
    assert (answer.error_code, answer.high_watermark) == (0, 0)


def test_a_fetch_out_of_range_is_told_at_once(raw: RawConnection, ten_batches: str) -> None:
    for offset in (31, 10_000, -5):
        assert raw.fetch(ten_batches, offset, max_wait_ms=60_000).error_code == 1, f"offset {offset}"
    at_end = raw.fetch(ten_batches, 30)
    assert (at_end.error_code, at_end.high_watermark) == (0, 30)


def test_a_fetch_of_an_unknown_partition_is_told(raw: RawConnection, ten_batches: str) -> None:
    assert raw.fetch(ten_batches, 0, partition=9).error_code == 3
    assert raw.fetch("never-was", 0).error_code == 3


# -- other answers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [3, 5, 7, 8, 9, 11])
def test_produce_is_answered_in_every_version(raw: RawConnection, new_topic: NewTopicName, version: int) -> None:
    topic = new_topic()
    answer = raw.call(produce_request(topic, build_batch(b"x"), version=version), ProduceResponse)
    partition = answer.responses[0].partition_responses[0]
    assert (answer.responses[0].name, partition.error_code, partition.base_offset) == (topic, 0, 0)


def test_offsets_are_listed_in_the_oldest_version(raw: RawConnection, ten_batches: str) -> None:
    from kafka.protocol.consumer import ListOffsetsRequest

    topics = ListOffsetsRequest.ListOffsetsTopic
    wanted = topics.ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(version=1, replica_id=-1, topics=[topics(name=ten_batches, partitions=[wanted])])
    assert raw.call(request, ListOffsetsResponse).topics[0].partitions[0].offset == 30


def test_the_leaders_epoch_ends_where_the_log_ends(raw: RawConnection, ten_batches: str) -> None:
    epoch = next(read_batches(raw.fetch(ten_batches, 0).records)).leader_epoch
    assert epoch_end(raw, ten_batches, epoch) == (0, epoch, 30)


def test_kafkas_first_epoch_ends_where_the_log_ends(raw: RawConnection, ten_batches: str) -> None:
    """As clients bring it from elsewhere: with Kafka it is the topic's own, here no record has it."""
    assert epoch_end(raw, ten_batches, 0) == (0, 0, 30)
    fetched = raw.fetch(ten_batches, 20, last_fetched_epoch=0)
    assert (fetched.error_code, next(read_batches(fetched.records)).base_offset) == (0, 18)


def epoch_end(raw: RawConnection, topic: str, epoch: int) -> tuple[int, int, int]:
    topics = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    wanted = topics.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(version=3, replica_id=-1, topics=[topics(topic=topic, partitions=[wanted])])
    answer = raw.call(request, OffsetForLeaderEpochResponse).topics[0].partitions[0]
    return answer.error_code, answer.leader_epoch, answer.end_offset
