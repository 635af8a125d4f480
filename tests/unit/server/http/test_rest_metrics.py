"""What /metrics says after things have happened: through every listener, and in storage, leases and groups."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from flume_parts.raw import RawFlume
from grpc_parts.calls import connected
from log_parts.batches import real
from log_parts.kafka import Kafka, produce_request
from metrics_parts.exported import samples, value
from node.wait import eventually
from rest_parts.caller import RestCaller
from streamhouse.log.local_wal import LocalWal
from streamhouse.log.wal_files import WalFile
from streamhouse.testing import Broker
from streamhouse.wire.kafka.messages import offset_commit, produce


@pytest.fixture
def broker() -> Iterator[Broker]:
    """Durable: with a WAL on disk to measure."""
    with Broker(
        durable=True, http=True, grpc=True, flume=True, default_partitions=1, group_initial_rebalance_delay=0
    ) as broker:
        broker.create_topic("orders")
        yield broker


def metrics(broker: Broker) -> str:
    return RestCaller(broker.endpoint).call("GET", "/metrics").body.decode()


def produced(broker: Broker, listener: str) -> tuple[float, float, float]:
    """(records, requests that were answered well, requests that were timed)."""
    text = metrics(broker)
    return (
        value(text, "streamhouse_produce_records_total", listener=listener),
        value(text, "streamhouse_produce_requests_total", listener=listener, result="ok"),
        value(text, "streamhouse_produce_seconds_count", listener=listener),
    )


def test_what_comes_through_kafka_is_counted_with_its_time(broker: Broker) -> None:
    with Kafka(broker.bootstrap) as kafka:
        for _ in range(3):
            kafka.call(produce, produce_request("orders", real(b"a", b"b")), 9)
        # Another shape than the most common one takes another way.
        two = produce_request("orders", real(b"c"))
        two.topic_data[0].partition_data.append(produce_request("orders", real(b"d")).topic_data[0].partition_data[0])
        kafka.call(produce, two, 9)
        assert produced(broker, "kafka") == (8, 4, 4)
        assert value(metrics(broker), "streamhouse_produce_bytes_total", listener="kafka") > 5 * 61


def test_without_an_answer_there_is_a_request_and_no_time(broker: Broker) -> None:
    with Kafka(broker.bootstrap) as kafka:
        request = produce_request("orders", real(b"a"), acks=0)
        kafka.send(produce, request, 9, answered=False)
        eventually(lambda: produced(broker, "kafka") == (1, 1, 0), "the request in the metrics")


def test_what_kafka_refuses_is_counted_as_refused(broker: Broker) -> None:
    with Kafka(broker.bootstrap) as kafka:
        broken = bytearray(real(b"a"))
        broken[-1] ^= 1
        kafka.call(produce, produce_request("orders", bytes(broken)), 9)
        kafka.call(produce, produce_request("missing", real(b"a")), 9)
    text = metrics(broker)
    assert value(text, "streamhouse_produce_requests_total", listener="kafka", result="refused") == 2
    assert produced(broker, "kafka")[:2] == (0, 0)


def test_what_comes_through_http_grpc_and_flume_is_counted_there(broker: Broker) -> None:
    rest = RestCaller(broker.endpoint)
    rest.post("topics/orders/records", {"records": [{"value": 1}]})
    rest.post("topics/orders/records", {"records": [{"value": 1}, {"value": 2}]})
    assert produced(broker, "http") == (3, 2, 2)

    async def over_grpc() -> None:
        async with connected(broker.grpc_address) as api:
            await api.produce("orders", [b"a", b"b"])

    asyncio.run(over_grpc())
    assert produced(broker, "grpc") == (2, 1, 1)
    with RawFlume(broker.flume_address) as flume:
        flume.produce("orders", b"a")
        flume.produce("made-by-flume", b"a")  # forwarded, as its topic has to be made first
    assert produced(broker, "flume") == (2, 2, 2)
    assert produced(broker, "kafka") == (0, 0, 0)


def test_what_goes_out_is_counted_where_it_does(broker: Broker) -> None:
    rest = RestCaller(broker.endpoint)
    rest.post("topics/orders/records", {"records": [{"value": "x" * 1000}]})
    rest.get("topics/orders/partitions/0/records?offset=0")
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"})
    consumer.assign([TopicPartition("orders", 0, 0)])
    assert eventually(lambda: consumer.poll(1.0), "a record").value()
    consumer.close()
    text = metrics(broker)
    for listener in ("http", "kafka"):
        assert value(text, "streamhouse_fetch_records_total", listener=listener) == 1
        assert value(text, "streamhouse_fetch_bytes_total", listener=listener) >= 1000
        assert value(text, "streamhouse_fetch_requests_total", listener=listener, result="ok") >= 1
        assert value(text, "streamhouse_fetch_seconds_count", listener=listener) >= 1
    assert rest.call("GET", "topics/orders/partitions/0/records?offset=999").status == 416
    assert value(metrics(broker), "streamhouse_fetch_requests_total", listener="http", result="refused") == 1


def test_syncs_segments_and_requests_to_the_object_store_are_counted(broker: Broker) -> None:
    with Kafka(broker.bootstrap) as kafka:
        kafka.call(produce, produce_request("orders", real(b"x" * 1000)), 9)
    text = metrics(broker)
    assert value(text, "streamhouse_wal_sync_seconds_count", wal="local") == 1
    assert value(text, "streamhouse_wal_sync_batches_sum", wal="local") == 1
    assert 1000 < value(text, "streamhouse_wal_sync_bytes_sum", wal="local") < 1200
    assert value(text, "streamhouse_oldest_unuploaded_seconds") >= 0
    puts = value(text, "streamhouse_object_requests_total", operation="put", result="ok")
    broker.faults.fail_puts(2)
    broker.flush()
    text = metrics(broker)
    assert value(text, "streamhouse_segment_rolls_total", reason="flush") == 1
    assert value(text, "streamhouse_segment_upload_seconds_count") == 1
    assert value(text, "streamhouse_segment_records_total") == 1
    assert value(text, "streamhouse_upload_retries_total") == 2
    assert value(text, "streamhouse_object_requests_total", operation="put", result="failed") == 2
    assert value(text, "streamhouse_object_requests_total", operation="put", result="ok") >= puts + 1
    assert value(text, "streamhouse_oldest_unuploaded_seconds") == 0


def test_segments_are_told_apart_by_why_they_were_made() -> None:
    with Broker(http=True, default_partitions=1, segment_bytes=1024) as small:
        small.create_topic("orders")
        with Kafka(small.bootstrap) as kafka:
            kafka.call(produce, produce_request("orders", real(b"x" * 2000)), 9)
        eventually(
            lambda: value(metrics(small), "streamhouse_segment_rolls_total", reason="size") == 1, "a segment by size"
        )


def test_leases_that_run_out_are_lost_and_retaken(broker: Broker) -> None:
    assert value(metrics(broker), "streamhouse_lease_events_total", event="acquired") == 1
    broker._clock.pass_time(3_600_000)  # faults.pass_time would have the broker keep them
    eventually(
        lambda: value(metrics(broker), "streamhouse_lease_events_total", event="retaken") >= 1, "the lease again"
    )
    assert value(metrics(broker), "streamhouse_lease_events_total", event="lost") >= 1
    assert value(metrics(broker), "streamhouse_rebalance_rounds_total", result="done") >= 1


def test_a_group_has_a_state_and_a_lag_under_its_name_whatever_that_is(broker: Broker) -> None:
    name = 'a "hostile" \\ group\n'
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for _ in range(10):
        producer.produce("orders", b"x")
    producer.flush()
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    message = eventually(lambda: consumer.poll(1.0), "a record")
    consumer.commit(message=message, asynchronous=False)
    text = metrics(broker)
    assert value(text, "streamhouse_groups", state="Stable") == 1
    assert value(text, "streamhouse_group_rebalances_total") == 1
    (lag,) = [sample for sample in samples(text) if sample.name == "streamhouse_group_lag_records"]
    assert lag.value == 9
    assert lag.labels["group"] == r"a \"hostile\" \\ group\n"
    assert value(text, "streamhouse_groups_unmeasured") == 0
    consumer.close()


def test_a_group_that_committed_below_0_has_no_lag_there(broker: Broker) -> None:
    with Kafka(broker.bootstrap) as kafka:
        kafka.call(produce, produce_request("orders", real(b"a", b"b")), 9)
        partition = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=-2)
        topic = offset_commit.OffsetCommitRequestTopic(name="orders", partitions=[partition])
        kafka.call(offset_commit, offset_commit.OffsetCommitRequest(group_id="reset", topics=[topic]), 5)
    text = metrics(broker)
    assert "streamhouse_group_lag_records" not in {sample.name for sample in samples(text)}
    assert value(text, "streamhouse_groups_unmeasured") == 0
    described = RestCaller(broker.endpoint).call("GET", "/api/v1/groups/reset").json
    assert described["partitions"] == []


def test_the_wal_says_for_how_long_it_cannot_be_written(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer's own failures are for the WAL's tests; here one is reported as it reports them."""
    wal = broker.node.engine.wals.local
    assert isinstance(wal, LocalWal)
    full = OSError(28, "No space left on device")
    tries: list[int] = []

    def cannot_create(size_bytes: int = 0) -> WalFile:
        tries.append(size_bytes)
        raise full

    async def fail() -> None:
        wal._fail(full)

    def refusing() -> float:
        return value(metrics(broker), "streamhouse_wal_refusing", wal="local")

    assert refusing() == 0
    with monkeypatch.context() as disk:
        disk.setattr(wal._files, "create", cannot_create)
        asyncio.run_coroutine_threadsafe(fail(), broker._loop).result(60)
        eventually(lambda: len(tries) > 1, "tries to make a new file")
        assert refusing() == 1
        assert value(metrics(broker), "streamhouse_wal_failures_total", wal="local") == 1
    eventually(lambda: refusing() == 0, "a file that can be written")
    assert value(metrics(broker), "streamhouse_wal_refusing", wal="object") == 0
