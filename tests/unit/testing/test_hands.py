"""What a test does to its broker by hand: records in, records out, waiting; blocking, and awaited."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer

from node.wait import eventually
from streamhouse.model.errors import InvalidConfig, InvalidInput, NotFound, StreamHouseError
from streamhouse.testing import Broker


@pytest.fixture
def broker(streamhouse_broker: Broker) -> Broker:
    streamhouse_broker.create_topic("orders", partitions=2)
    return streamhouse_broker


# --- produce ---


def test_a_record_goes_in_with_all_that_it_has(broker: Broker) -> None:
    stored = broker.produce(
        "orders", b"one", key="alice", headers={"trace": "t-1", "none": None}, partition=1, timestamp=1_700_000_000_000
    )

    assert (stored.partition, stored.offset, stored.timestamp_ms) == (1, 0, 1_700_000_000_000)
    (record,) = broker.read("orders")
    assert (record.topic, record.partition, record.offset) == ("orders", 1, 0)
    assert (record.key, record.value) == (b"alice", b"one")
    assert record.headers == (("trace", b"t-1"), ("none", None))
    assert record.time == datetime.fromtimestamp(1_700_000_000, UTC)


@pytest.mark.parametrize(
    ("value", "stored"),
    [(b"x", b"x"), ("ä", "ä".encode()), (None, None), ({"amount": 3}, b'{"amount":3}'), ([1], b"[1]"), (7, b"7")],
)
def test_values_are_bytes_text_null_or_json(broker: Broker, value: object, stored: bytes | None) -> None:
    broker.produce("orders", value)

    assert [record.value for record in broker.read("orders")] == [stored]


def test_many_records_go_in_at_once_and_their_offsets_come_back(broker: Broker) -> None:
    stored = broker.produce_all(
        "orders", ["a", {"value": "b", "partition": 0}, {"value": {"n": 1}, "key": "k", "partition": 0}]
    )

    assert [each.offset for each in stored] == [0, 1, 2]
    assert [record.value for record in broker.read("orders", partition=0)] == [b"a", b"b", b'{"n":1}']


def test_a_key_goes_where_kafkas_clients_send_it(broker: Broker) -> None:
    first, second = broker.produce("orders", "a", key="alice"), broker.produce("orders", "b", key="alice")

    assert (first.partition, second.offset) == (second.partition, first.offset + 1)


def test_a_topic_is_made_as_a_clients_first_record_makes_it(streamhouse_broker: Broker) -> None:
    streamhouse_broker.produce("new", "a")

    assert len(streamhouse_broker.read("new")) == 1


def test_what_the_broker_refuses_is_raised(broker: Broker) -> None:
    with pytest.raises(NotFound, match="no partition 7"):
        broker.produce("orders", "a", partition=7)
    with pytest.raises(StreamHouseError, match="bytes"):
        broker.produce("orders", b"x" * 2_000_000)
    with pytest.raises(InvalidInput, match=r"a record has no 'vaule', .*did you mean value"):
        broker.produce_all("orders", [{"vaule": 1}])


# --- read ---


def test_records_are_read_as_what_they_are_said_to_be(broker: Broker) -> None:
    broker.produce("orders", {"amount": 3}, key="alice")

    (record,) = broker.read("orders", format="json", key_format="text")

    assert (record.key, record.value["amount"]) == ("alice", 3)


def test_records_come_by_time_and_those_of_a_partition_in_their_order(broker: Broker) -> None:
    for partition, timestamp, value in [(0, 10, "a"), (1, 5, "b"), (0, 3, "c"), (1, 20, "d")]:
        broker.produce("orders", value, partition=partition, timestamp=timestamp)

    assert [record.value for record in broker.read("orders")] == [b"b", b"a", b"c", b"d"]


def test_records_of_segments_and_of_memory_are_read_together(broker: Broker) -> None:
    broker.produce_all("orders", [f"{number}" for number in range(25_000)])
    broker.flush()
    broker.produce("orders", "last")

    assert len(broker.read("orders")) == 25_001


def test_a_read_waits_for_as_many_as_are_wanted(broker: Broker) -> None:
    writer = threading.Timer(0.05, lambda: broker.produce_all("orders", ["a", "b", "c"]))
    writer.start()

    assert len(broker.read("orders", count=3)) == 3
    writer.join()


def test_a_read_in_vain_says_what_is_there(broker: Broker) -> None:
    broker.produce("orders", "one", key="alice", partition=1)

    with pytest.raises(AssertionError) as said:
        broker.read("orders", count=3, timeout=0.05)

    assert "after 0.05 s there are 1 records of 'orders', and not 3" in str(said.value)
    assert "1@0 b'alice': b'one'" in str(said.value)


def test_a_read_in_vain_of_much_shows_the_end_of_it(broker: Broker) -> None:
    broker.produce_all("orders", [{"value": f"{number}" + "x" * 1000, "partition": 0} for number in range(50)])

    with pytest.raises(AssertionError, match="40 before") as said:
        broker.read("orders", count=51, timeout=0)

    assert "0@49" in str(said.value)
    assert len(str(said.value)) < 5_000


def test_a_topic_that_is_not_there_is_named_with_those_that_are(broker: Broker) -> None:
    with pytest.raises(NotFound, match=r"no 'order'.*the topics are orders"):
        broker.read("order")
    with pytest.raises(AssertionError, match="there is no such topic; the topics are orders"):
        broker.read("order", count=1, timeout=0)


def test_an_empty_topic_is_read_as_that(broker: Broker) -> None:
    assert broker.read("orders") == []
    with pytest.raises(AssertionError, match="it is empty"):
        broker.read("orders", count=1, timeout=0)


# --- wait ---


def test_records_are_waited_for(broker: Broker) -> None:
    writer = threading.Timer(0.05, lambda: broker.produce("orders", "a"))
    writer.start()

    broker.wait(topic="orders", records=1)

    writer.join()
    assert len(broker.read("orders")) == 1


def test_a_group_is_waited_for_until_it_is_stable_and_behind_by_nothing(broker: Broker) -> None:
    broker.produce_all("orders", ["a", "b", "c"])
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"}
        | {"enable.auto.commit": False}
    )
    consumer.subscribe(["orders"])
    seen: list[object] = []

    def service() -> None:
        while len(seen) < 3:
            message = consumer.poll(0.1)
            if message is not None:
                seen.append(message)
        broker.wait(group="readers", members=1)
        with pytest.raises(AssertionError, match=r"'readers' has committed nothing"):
            broker.wait(group="readers", lag=0, timeout=0)
        consumer.commit(asynchronous=False)

    working = threading.Thread(target=service, daemon=True)
    working.start()
    broker.wait(group="readers", lag=0)
    broker.wait(group="readers", topic="orders", lag=0, committed=3)
    working.join()

    broker.produce("orders", "d", partition=0)
    with pytest.raises(AssertionError, match=r"is 1 records behind, and not 0: orders/0 has committed . of ."):
        broker.wait(group="readers", lag=0, timeout=0)
    with pytest.raises(AssertionError, match="has committed 3 of 'orders', and not 4"):
        broker.wait(group="readers", topic="orders", committed=4, timeout=0)
    with pytest.raises(AssertionError, match="has 1 members, and not 2"):
        broker.wait(group="readers", members=2, timeout=0)
    consumer.close()
    broker.wait(group="readers", members=0)


def test_what_is_waited_for_in_vain_is_said_with_what_is_there(broker: Broker) -> None:
    with pytest.raises(AssertionError, match=r"after 0 s there are 0 records of 'orders', and not 1$"):
        broker.wait(topic="orders", records=1, timeout=0)
    with pytest.raises(AssertionError, match="there is no such topic, but orders"):
        broker.wait(topic="order", records=1, timeout=0)
    with pytest.raises(AssertionError, match="group 'readers' has no members: the broker has no group"):
        broker.wait(group="readers", timeout=0)


def test_a_wait_for_nothing_is_refused(broker: Broker) -> None:
    with pytest.raises(InvalidInput, match="nothing to wait for"):
        broker.wait(topic="orders")
    with pytest.raises(InvalidInput, match="those of a group"):
        broker.wait(topic="orders", lag=0)
    with pytest.raises(InvalidInput, match="those of a topic"):
        broker.wait(group="readers", committed=3)
    with pytest.raises(InvalidInput, match="records=-1"):
        broker.wait(topic="orders", records=-1)


@pytest.mark.parametrize("timeout", [None, "30", -1, float("nan"), float("inf"), True])
async def test_a_time_out_that_is_none_is_refused(broker: Broker, timeout: Any) -> None:
    with pytest.raises(InvalidInput, match=r"timeout=.* is not for how long to wait \(seconds"):
        broker.read("orders", timeout=timeout)
    with pytest.raises(InvalidInput, match="timeout="):
        await asyncio.to_thread(broker.wait, topic="orders", records=0, timeout=timeout)
    with pytest.raises(InvalidInput, match="timeout="):
        await broker.aio.wait(topic="orders", records=0, timeout=timeout)
    with pytest.raises(InvalidInput, match="timeout="):
        await broker.aio.read("orders", timeout=timeout)


@pytest.mark.parametrize("timestamp", ["2020-01-01", 1.5, True])
def test_a_time_that_is_none_is_refused_with_what_to_write(broker: Broker, timestamp: Any) -> None:
    with pytest.raises(InvalidInput, match=r"is not a time \(milliseconds since 1970, or datetime"):
        broker.produce("orders", "a", timestamp=timestamp)


def test_configs_may_be_numbers_and_what_is_neither_is_named(broker: Broker) -> None:
    config = {"retention.ms": 3_600_000, "streamhouse.validate": True, "min.cleanable.dirty.ratio": 0.25}
    broker.create_topic("numbers", config=config)
    topics = broker.node.broker.topics
    assert dict(topics.get("numbers").config) == {
        "retention.ms": "3600000",
        "streamhouse.validate": "true",
        "min.cleanable.dirty.ratio": "0.25",
    }
    with pytest.raises(InvalidConfig, match=r"topic config retention.ms: None is neither text nor a number"):
        broker.create_topic("none", config={"retention.ms": None})  # type: ignore[dict-item]


# --- awaited ---


async def test_what_may_take_a_while_does_not_block_a_loop_unknowingly(broker: Broker) -> None:
    with pytest.raises(RuntimeError, match=r"await broker.aio.wait"):
        broker.wait(topic="orders", records=1)
    with pytest.raises(RuntimeError, match=r"await broker.aio.read"):
        broker.read("orders", count=1)
    assert broker.read("orders") == []


async def test_the_same_calls_can_be_awaited_while_the_tests_own_loop_goes_on(broker: Broker) -> None:
    consumer = AIOKafkaConsumer(
        "orders", bootstrap_servers=broker.bootstrap, group_id="readers", auto_offset_reset="earliest"
    )
    await consumer.start()
    await broker.aio.wait(group="readers", members=1)
    stored = await broker.aio.produce("orders", {"n": 1}, key="k")
    await broker.aio.produce_all("orders", ["a", "b"])

    async def service() -> None:
        for _ in range(3):
            await consumer.getone()
        await consumer.commit()

    await asyncio.gather(service(), broker.aio.wait(group="readers", lag=0))
    records = await broker.aio.read("orders", count=3)

    assert stored.offset == 0
    assert len(records) == 3
    with pytest.raises(AssertionError, match="3 records"):
        await broker.aio.read("orders", count=4, timeout=0)
    await consumer.stop()


def test_a_broker_that_does_not_run_says_so(broker: Broker) -> None:
    broker.stop()

    with pytest.raises(RuntimeError, match="not running"):
        broker.produce("orders", "a")
    broker.start()
    eventually(lambda: broker.produce("orders", "a"), "it is taken")
