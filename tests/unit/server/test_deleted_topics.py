"""A topic that was just deleted: whoever looks whether it is gone does not bring it back."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from log_parts.kafka import Kafka
from streamhouse.testing import Broker
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import create_topics, delete_topics, metadata

DELAY_MS = 10_000


@pytest.fixture
def broker() -> Iterator[Broker]:
    """With the delay that a node has; a broker inside a test has none."""
    with Broker(auto_create_delay=DELAY_MS) as broker:
        yield broker


@pytest.fixture
def kafka(broker: Broker) -> Iterator[Kafka]:
    with Kafka(broker.bootstrap) as kafka:
        yield kafka


@pytest.fixture
def topic(broker: Broker, kafka: Kafka) -> str:
    """That was there, and was deleted."""
    name = f"topic-{uuid4().hex[:8]}"
    broker.create_topic(name)
    delete(kafka, name)
    return name


def delete(kafka: Kafka, name: str) -> None:
    request = delete_topics.DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000)
    (answer,) = kafka.call(delete_topics, request, 4).responses
    assert answer.error_code == ErrorCode.NONE


def ask(kafka: Kafka, name: str) -> int:
    """As every client does that may create topics."""
    request = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=name)])
    (answer,) = kafka.call(metadata, request, 12).topics
    return int(answer.error_code)


def test_who_looks_whether_it_is_gone_does_not_create_it_again(broker: Broker, kafka: Kafka, topic: str) -> None:
    for _ in range(3):
        assert ask(kafka, topic) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert broker.node.broker.topics.find(topic) is None


def test_who_names_it_later_creates_it(broker: Broker, kafka: Kafka, topic: str) -> None:
    broker._clock.pass_time(DELAY_MS - 5_000)
    assert ask(kafka, topic) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker._clock.pass_time(5_000)
    assert ask(kafka, topic) == ErrorCode.NONE


def test_who_creates_it_does_so_at_once(broker: Broker, kafka: Kafka, topic: str) -> None:
    new = create_topics.CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    (answer,) = kafka.call(create_topics, create_topics.CreateTopicsRequest(topics=[new]), 7).topics

    assert answer.error_code == ErrorCode.NONE
    assert ask(kafka, topic) == ErrorCode.NONE
    delete(kafka, topic)
    assert ask(kafka, topic) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_other_topics_are_created_by_naming_them(kafka: Kafka, topic: str) -> None:
    assert ask(kafka, f"{topic}-other") == ErrorCode.NONE


def test_a_broker_inside_a_test_has_no_delay() -> None:
    with Broker() as broker, Kafka(broker.bootstrap) as kafka:
        broker.create_topic("orders")
        delete(kafka, "orders")
        assert ask(kafka, "orders") == ErrorCode.NONE


def test_what_is_remembered_of_deleted_topics_is_forgotten() -> None:
    with Broker(auto_create_delay=DELAY_MS) as broker, Kafka(broker.bootstrap) as kafka:
        for number in range(3):
            broker.create_topic(f"topic-{number}")
            delete(kafka, f"topic-{number}")
            broker._clock.pass_time(DELAY_MS)
        assert list(broker.node.broker.topics._deleted_at_ms) == ["topic-2"]
