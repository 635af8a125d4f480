"""A broker that several tests share is as new after a reset, whatever was done to it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from log_parts.batches import real
from log_parts.kafka import Kafka
from node.wait import eventually
from streamhouse.client.planning import PlanningClient
from streamhouse.format.object_keys import manifest_key, staged_object_key
from streamhouse.metadata.sinks import NewSinkBatch
from streamhouse.testing import Broker
from streamhouse.wire.http.planning import AdoptAnswer, AdoptRequest, StagedObject, StagedRun

DAY_MS = 86_400_000


def seen(broker: Broker) -> tuple[list[str], list[str]]:
    topics = [topic.name for topic in broker.node.broker.topics]
    groups = broker.node.broker.groups.all_groups()
    assert isinstance(groups, list)
    return topics, [group.group_id for group in groups]


def test_topics_groups_and_offsets_are_gone_and_the_ports_are_the_same(streamhouse_broker: Broker) -> None:
    bootstrap = streamhouse_broker.bootstrap
    streamhouse_broker.produce_all("orders", ["a", "b"])
    streamhouse_broker.flush()
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers"})
    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    consumer.close()

    streamhouse_broker.reset()

    assert seen(streamhouse_broker) == ([], [])
    assert streamhouse_broker.bootstrap == bootstrap
    stored = streamhouse_broker.produce("orders", "new", partition=0)
    assert stored.offset == 0
    assert [record.value for record in streamhouse_broker.read("orders")] == [b"new"]
    again = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers"})
    assert again.committed([TopicPartition("orders", 0)])[0].offset < 0
    again.close()


def test_nothing_is_left_in_the_object_store(streamhouse_broker: Broker) -> None:
    streamhouse_broker.produce("orders", "a")
    streamhouse_broker.flush()
    inner = streamhouse_broker._objects._inner

    streamhouse_broker.reset()

    assert not [key for key in inner._objects if "segments/" in key]  # type: ignore[attr-defined]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_clients_may_be_connected_and_go_on(streamhouse_broker: Broker, protocol: str) -> None:
    streamhouse_broker.create_topic("orders")
    config = {} if protocol == "consumer" else {"heartbeat.interval.ms": 100}
    consumer = Consumer(
        {"bootstrap.servers": streamhouse_broker.bootstrap, "group.id": "readers", "group.protocol": protocol}
        | {"auto.offset.reset": "earliest", "topic.metadata.refresh.interval.ms": 100, **config}
    )
    consumer.subscribe(["orders"])
    producer = Producer({"bootstrap.servers": streamhouse_broker.bootstrap, "enable.idempotence": True})
    producer.produce("orders", b"before")
    assert producer.flush(60) == 0
    eventually(lambda: consumer.poll(0.1), "the first record comes")

    streamhouse_broker.reset()
    streamhouse_broker.create_topic("orders")
    producer.produce("orders", b"after")
    assert producer.flush(60) == 0

    def polled() -> bytes | None:
        message = consumer.poll(0.1)
        return message.value() if message is not None and message.error() is None else None

    assert eventually(polled, "the next record comes") == b"after"
    consumer.close()


def test_members_that_the_node_keeps_over_http_are_gone_also_one_whose_poll_waits() -> None:
    with Broker(http=True) as broker:
        groups = f"{broker.endpoint}/api/v1/groups"
        broker.create_topic("orders")
        members = [_post(f"{groups}/billing/members", topics=["orders"]) for _ in range(2)]
        secret = {"Streamhouse-Member-Secret": members[0]["member_secret"]}
        polled = f"{groups}/billing/members/{members[0]['member_id']}/poll"
        with ThreadPoolExecutor() as threads:
            waiting = threads.submit(_post, polled, secret, max_wait_ms=30_000)
            kept = broker.node.doors.http._rest._admin._sessions  # type: ignore[union-attr]
            eventually(lambda: any(session.calls for session in kept._sessions.values()), "the poll has come")

            broker.reset()

            with pytest.raises(HTTPError, match="404"):
                waiting.result()
        for member in members:
            with pytest.raises(HTTPError, match="404"):
                _post(f"{groups}/billing/members/{member['member_id']}/poll", secret)
        broker.create_topic("orders", partitions=2)
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "billing"})
        consumer.subscribe(["orders"])
        eventually(lambda: consumer.poll(0.1) or consumer.assignment(), "it has partitions")
        assert len(consumer.assignment()) == 2
        consumer.close()


def _post(url: str, headers: Mapping[str, str] = MappingProxyType({}), **body: object) -> Any:
    asked = Request(url, json.dumps(body).encode(), {**headers, "Content-Type": "application/json"})
    with urlopen(asked) as answer:
        return json.load(answer)


def adopt(broker: Broker, value: bytes) -> AdoptAnswer:
    """As a sink's first batch."""
    key, data = staged_object_key("daily", 1, 0, uuid4()), bytes(real(value))
    broker._run(broker._objects.create(key, [data]))
    run = StagedRun(topic="report", partition=0, start_byte=0, end_byte=len(data), record_count=1)
    with PlanningClient(broker.endpoint) as client:
        return client.adopt(AdoptRequest(sink_id="daily", batch_id=1, objects=[StagedObject(key=key, runs=[run])]))


@pytest.mark.parametrize("passed_ms", [0, 30 * DAY_MS])
def test_a_sinks_batch_is_written_again(passed_ms: int) -> None:
    with Broker(http=True) as broker:
        broker.create_topic("report")
        broker.faults.pass_time(passed_ms)
        assert not adopt(broker, b"before").is_repeat

        broker.reset()
        broker.create_topic("report")

        assert not adopt(broker, b"after").is_repeat
        assert [record.value for record in broker.read("report")] == [b"after"]


def test_a_sinks_batch_that_was_begun_is_forgotten_with_what_was_staged(streamhouse_broker: Broker) -> None:
    metadata, objects = streamhouse_broker._metadata, streamhouse_broker._objects
    key = staged_object_key("daily", 1, 0, uuid4())
    batch = NewSinkBatch(
        sink_id="daily", batch_id=1, manifest_key=manifest_key("daily", 1, uuid4()), object_keys=(key,), record_count=1
    )
    streamhouse_broker._run(objects.create(key, [b"staged"]))
    streamhouse_broker._run(metadata.begin_sink_batch(batch))

    streamhouse_broker.reset()

    assert streamhouse_broker._run(metadata.find_sink_batch("daily", 1)) is None
    assert key not in objects._inner._objects  # type: ignore[attr-defined]


def test_faults_have_ended_and_the_clock_is_right(streamhouse_broker: Broker) -> None:
    faults = streamhouse_broker.faults
    faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=None)
    faults.fail_puts(None)
    faults.fail_reads(None)
    faults.pass_time(30 * DAY_MS)
    faults.jump_clock(-7 * DAY_MS)

    streamhouse_broker.reset()

    stored = streamhouse_broker.produce("orders", "a")
    assert abs(stored.timestamp_ms - time.time() * 1000) < 60_000
    streamhouse_broker.flush()
    with Kafka(streamhouse_broker.bootstrap) as kafka:
        assert [record.value for record in kafka.read("orders", partition=stored.partition)] == [b"a"]


def test_leases_that_ran_out_are_taken_again(streamhouse_broker: Broker) -> None:
    streamhouse_broker.create_topic("orders")
    streamhouse_broker.faults.expire_leases()

    streamhouse_broker.reset()

    streamhouse_broker.produce("orders", "a")


def test_configs_that_were_set_are_the_defaults_again(streamhouse_broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": streamhouse_broker.bootstrap})
    resource = ConfigResource(ResourceType.BROKER, "1")
    resource.add_incremental_config(
        ConfigEntry("log.retention.ms", "1000", incremental_operation=AlterConfigOpType.SET)
    )
    admin.incremental_alter_configs([resource])[resource].result()
    topics = streamhouse_broker.node.broker.topics
    streamhouse_broker.create_topic("orders")
    assert topics.log_config_of(topics.get("orders")).retention_ms == 1000

    streamhouse_broker.reset()

    streamhouse_broker.create_topic("orders")
    assert topics.log_config_of(topics.get("orders")).retention_ms == 7 * DAY_MS


@pytest.mark.parametrize("ended", ["stop", "kill"])
def test_a_broker_that_a_test_has_ended_runs_again(streamhouse_broker: Broker, ended: str) -> None:
    bootstrap = streamhouse_broker.bootstrap
    streamhouse_broker.produce("orders", "a")
    getattr(streamhouse_broker, ended)()

    streamhouse_broker.reset()

    assert streamhouse_broker.bootstrap == bootstrap
    assert seen(streamhouse_broker) == ([], [])


def test_a_reset_may_be_repeated_and_a_closed_broker_has_none() -> None:
    broker = Broker()
    with pytest.raises(RuntimeError, match="never started"):
        broker.reset()
    with broker:
        for _ in range(5):
            broker.produce("orders", "a")
            broker.reset()
        assert seen(broker) == ([], [])
    with pytest.raises(RuntimeError, match="closed"):
        broker.reset()
