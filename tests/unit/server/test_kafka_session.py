"""One connection's requests and replies: in order, overlapping where they may, bounded where they must."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from log_parts.batches import real, sent
from log_parts.kafka import Kafka, fetch_request, produce_request
from node.wait import eventually
from streamhouse.format.records import Record, decode_records, encode_records
from streamhouse.server.kafka import listener
from streamhouse.testing import Broker
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import api_versions, describe_groups, fetch, metadata, produce

HOUR_MS = 3_600_000


def on_loop(broker: Broker, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run_coroutine_threadsafe(work(), broker._loop).result(60)


def tasks_of(broker: Broker) -> int:
    """How many coroutines the listener has under way."""

    async def count() -> int:
        return len(broker.node.kafka._tasks)

    found: int = on_loop(broker, count)
    return found


def test_replies_come_in_the_order_of_the_requests_whatever_each_takes(kafka: Kafka, topic: str) -> None:
    """The helper checks every correlation id."""
    stream = b""
    expected = []
    for number in range(60):
        match number % 4:
            case 0:
                stream += kafka.encode(produce, produce_request(topic, real(b"%d" % number)), 9)
                expected.append("ProduceResponse")
            case 1:
                stream += kafka.encode(fetch, fetch_request(topic, 0, max_wait_ms=1), 12)
                expected.append("FetchResponse")
            case 2:
                stream += kafka.encode(metadata, metadata.MetadataRequest(topics=[]), 9)
                expected.append("MetadataResponse")
            case _:
                stream += kafka.encode(api_versions, api_versions.ApiVersionsRequest(), 0)
                expected.append("ApiVersionsResponse")
    kafka.socket.sendall(stream)

    assert [type(kafka.receive()).__name__ for _ in expected] == expected


def test_a_fetch_behind_a_produce_on_the_same_connection_sees_its_record(kafka: Kafka, topic: str) -> None:
    for number in range(20):
        stream = kafka.encode(produce, produce_request(topic, real(b"%d" % number)), 9)
        stream += kafka.encode(fetch, fetch_request(topic, number), 12)
        kafka.socket.sendall(stream)
        kafka.receive()
        (answer,) = kafka.receive().responses[0].partitions
        assert [record.value for record in decode_records(bytes(answer.records))] == [b"%d" % number]


def test_produces_behind_a_request_that_waits_are_appended_in_order(kafka: Kafka, topic: str) -> None:
    stream = kafka.encode(fetch, fetch_request(topic, 0, max_wait_ms=50), 12)
    for number in range(30):
        stream += kafka.encode(produce, produce_request(topic, real(b"%d" % number)), 9)
    kafka.socket.sendall(stream)

    kafka.receive()
    offsets = [kafka.receive().responses[0].partition_responses[0].base_offset for _ in range(30)]

    assert offsets == list(range(30))
    assert [record.value for record in kafka.read(topic)] == [b"%d" % number for number in range(30)]


def test_a_flood_of_requests_is_answered_completely(kafka: Kafka, topic: str) -> None:
    """More than may be queued and more than may be unanswered."""
    count = 3_000
    stream = b"".join(kafka.encode(produce, produce_request(topic, real(b"x")), 9) for _ in range(count))
    stream += b"".join(kafka.encode(metadata, metadata.MetadataRequest(topics=[]), 9) for _ in range(200))
    sender = threading.Thread(target=kafka.socket.sendall, args=(stream,))
    sender.start()

    offsets = [kafka.receive().responses[0].partition_responses[0].base_offset for _ in range(count)]
    for _ in range(200):
        kafka.receive()
    sender.join()

    assert offsets == list(range(count))


def test_a_long_poll_is_answered_when_a_record_comes(broker: Broker, kafka: Kafka, topic: str) -> None:
    kafka.send(fetch, fetch_request(topic, 0, max_wait_ms=HOUR_MS), 12)
    with Kafka(broker.bootstrap) as other:
        other.produce_values(topic, b"news")

    (answer,) = kafka.receive().responses[0].partitions

    assert [record.value for record in decode_records(bytes(answer.records))] == [b"news"]


def test_a_long_poll_waits_for_as_many_bytes_as_it_asked_for(broker: Broker, kafka: Kafka, topic: str) -> None:
    kafka.send(fetch, fetch_request(topic, 0, max_wait_ms=HOUR_MS, min_bytes=500), 12)
    with Kafka(broker.bootstrap) as other:
        other.produce(topic, sent(200))
        other.produce(topic, sent(200))
        other.produce(topic, sent(200))

    (answer,) = kafka.receive().responses[0].partitions

    assert len(answer.records) == 600


def test_a_long_poll_of_a_topic_that_is_deleted_is_answered(broker: Broker, kafka: Kafka, topic: str) -> None:
    kafka.send(fetch, fetch_request(topic, 0, max_wait_ms=HOUR_MS), 12)
    eventually(lambda: tasks_of(broker) > 0, "the fetch waits")

    async def delete() -> None:
        topics = broker.node.broker.topics
        await topics.delete(topics.get(topic))

    on_loop(broker, delete)

    (answer,) = kafka.receive().responses[0].partitions
    assert answer.error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_a_long_poll_ends_with_its_connection(broker: Broker, topic: str) -> None:
    """Otherwise whoever connects, polls and leaves would leave a task behind each time."""
    before = tasks_of(broker)
    with Kafka(broker.bootstrap) as kafka:
        kafka.send(fetch, fetch_request(topic, 0, max_wait_ms=HOUR_MS), 12)
        eventually(lambda: tasks_of(broker) > before, "the fetch waits")

    try:
        eventually(lambda: tasks_of(broker) == before, "nothing is left of it")
    finally:
        with Kafka(broker.bootstrap) as other:
            other.produce_values(topic, b"wake it")


def test_a_client_that_leaves_in_the_middle_disturbs_nobody(broker: Broker, kafka: Kafka, topic: str) -> None:
    for _ in range(20):
        with Kafka(broker.bootstrap) as other:
            other.send(produce, produce_request(topic, real(b"x")), 9)
            other.socket.sendall(b"\0\0\1\0half")

    eventually(lambda: kafka.offset_of(topic, -1).offset == 20, "what was whole is there")


def test_a_repeat_of_a_durable_batch_is_answered(kafka: Kafka, topic: str) -> None:
    batch = real(b"once", producer=(4, 0, 0))

    answers = [kafka.produce(topic, batch) for _ in range(3)]

    assert [(answer.error_code, answer.base_offset) for answer in answers] == [(0, 0)] * 3


@pytest.mark.parametrize("in_between", [b"", b"x" * 100])
def test_bytes_behind_a_bad_frame_are_not_looked_at(broker: Broker, topic: str, in_between: bytes) -> None:
    with Kafka(broker.bootstrap) as kafka:
        good = kafka.encode(produce, produce_request(topic, real(b"x")), 9)
        kafka.socket.sendall(b"\xff\xff\xff\xff" + in_between + good)
        assert kafka.is_closed_by_broker()

    with Kafka(broker.bootstrap) as kafka:
        assert kafka.offset_of(topic, -1).offset == 0


@pytest.mark.parametrize("is_queued", [False, True])
def test_a_large_request_without_records_is_refused(kafka: Kafka, topic: str, is_queued: bool) -> None:
    """At once, also behind a request that waits: until its turn it would be kept."""
    stream = kafka.encode(fetch, fetch_request(topic, 0, max_wait_ms=HOUR_MS), 12) if is_queued else b""
    groups = describe_groups.DescribeGroupsRequest(groups=["g" * 1000] * 5000)
    kafka.socket.sendall(stream + kafka.encode(describe_groups, groups, 5))

    assert kafka.is_closed_by_broker()


def received_bytes(broker: Broker) -> int:
    """As the metrics have it."""
    return broker.node.kafka.traffic.receive_budget.used_bytes


def queued_bytes(broker: Broker) -> int:
    return sum(session._queued_bytes for session in list(broker.node.kafka._sessions.values()))


def test_what_waits_behind_a_long_poll_is_in_the_budget_until_its_client_goes(broker: Broker, topic: str) -> None:
    size = 3 * 2**20
    with Kafka(broker.bootstrap) as kafka:
        kafka.send(fetch, fetch_request(topic, 0, max_wait_ms=2**31 - 1), 12)
        eventually(lambda: tasks_of(broker) > 0, "the fetch waits")
        kafka.send(produce, produce_request(topic, sent(size)), 9)
        eventually(lambda: queued_bytes(broker) > size, "it waits")
        assert size < received_bytes(broker) < size + 1_000

    eventually(lambda: received_bytes(broker) == 0, "the budget is whole again")


def test_large_requests_under_way_are_in_the_budget_too(broker: Broker, kafka: Kafka, topic: str) -> None:
    """The poll itself, of which a connection may have one."""
    request = msgspec.structs.replace(fetch_request(topic, 0, max_wait_ms=HOUR_MS), rack_id="r" * 30_000)
    kafka.send(fetch, request, 12)

    eventually(lambda: received_bytes(broker) > 30_000, "the poll is counted")
    with Kafka(broker.bootstrap) as other:
        other.produce_values(topic, b"news")
    kafka.receive()
    eventually(lambda: received_bytes(broker) == 0, "the budget is whole again")


def test_a_decent_pipeline_gets_on_beside_large_requests_behind_long_polls() -> None:
    """Five of 1 MiB in flight, of which each has to be looked at in a thread; others have used up nearly everything."""
    with (
        Broker(receive_bytes=32 * 2**20, max_request_bytes=32 * 2**20) as broker,
        Kafka(broker.bootstrap) as greedy,
        Kafka(broker.bootstrap) as decent,
    ):
        broker.create_topic("empty")
        broker.create_topic("compacted", config={"cleanup.policy": "compact"})
        greedy.send(fetch, fetch_request("empty", 0, max_wait_ms=HOUR_MS), 12)
        eventually(lambda: tasks_of(broker) > 0, "the fetch waits")
        greedy.send(produce, produce_request("empty", sent(28 * 2**20)), 9)
        eventually(lambda: queued_bytes(broker) > 28 * 2**20, "it waits")
        assert received_bytes(broker) > 28 * 2**20

        batch = encode_records([Record(0, 1_000, b"key", bytes(2**20 - 1_000))])
        stream = [decent.encode(produce, produce_request("compacted", batch), 9) for _ in range(20)]
        sender = threading.Thread(target=decent.socket.sendall, args=(b"".join(stream),))
        sender.start()
        offsets = [decent.receive().responses[0].partition_responses[0].base_offset for _ in stream]
        sender.join()

    assert offsets == list(range(20))


def test_a_full_buffer_holds_producers_back_and_lets_them_go_on() -> None:
    """Pipelined produces, several in one read, each of which finds the buffer full."""
    with (
        Broker(buffer_bytes=200_000, partition_buffer_bytes=200_000, segment_bytes=50_000) as broker,
        Kafka(broker.bootstrap) as kafka,
    ):
        broker.create_topic("orders")
        stream = b"".join(kafka.encode(produce, produce_request("orders", sent(10_000)), 9) for _ in range(300))
        sender = threading.Thread(target=kafka.socket.sendall, args=(stream,))
        sender.start()
        offsets = [kafka.receive().responses[0].partition_responses[0].base_offset for _ in range(300)]
        sender.join()

    assert offsets == list(range(300))


def test_a_topic_that_stamps_time_takes_a_large_batch(broker: Broker, kafka: Kafka) -> None:
    broker.create_topic("stamped", config={"message.timestamp.type": "LogAppendTime"})

    answer = kafka.produce("stamped", real(b"x" * 300_000))

    assert answer.error_code == 0
    assert answer.log_append_time_ms > 0
    assert [len(record.value or b"") for record in kafka.read("stamped")] == [300_000]


def test_a_node_that_stops_answers_what_it_had_received_to_the_last_byte() -> None:
    broker = Broker()
    broker.start()
    try:
        broker.create_topic("orders")
        with Kafka(broker.bootstrap) as kafka:
            for _ in range(16):
                kafka.produce("orders", sent(500_000))
            kafka.send(fetch, fetch_request("orders", 0, max_bytes=2**30, partition_max_bytes=2**30), 12)
            first = kafka.receive_bytes(4)
            stopping = threading.Thread(target=broker.stop)
            stopping.start()
            try:
                rest = kafka.receive_bytes(int.from_bytes(first, "big"))
            finally:
                stopping.join()
        assert len(rest) > 8_000_000
    finally:
        broker.close()


def test_a_node_stops_although_a_consumer_polls_for_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_DRAIN_LIMIT_MS", 100)
    with Broker() as broker:
        broker.create_topic("orders")
        with Kafka(broker.bootstrap) as kafka:
            kafka.send(fetch, fetch_request("orders", 0, max_wait_ms=HOUR_MS), 12)
            eventually(lambda: tasks_of(broker) > 0, "the fetch waits")
            broker.stop()

            assert broker._node is None
