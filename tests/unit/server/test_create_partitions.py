"""CreatePartitions: what grows, what is refused with which of Kafka's codes, and what clients then see."""

from __future__ import annotations

import asyncio

import pytest

from log_parts.kafka import Kafka
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.handlers import create_partitions as handler
from streamhouse.testing import Broker
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.frame import RequestHeader
from streamhouse.wire.kafka.messages import create_partitions, metadata
from streamhouse.wire.kafka.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)

VERSION = 3
NOBODY = 77


def request(*topics: CreatePartitionsTopic, check: bool = False) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(topics=list(topics), timeout_ms=30_000, validate_only=check)


def grow(
    kafka: Kafka, topic: str, count: int, brokers: list[list[int]] | None = None, *, check: bool = False
) -> tuple[int, str]:
    assignments = None if brokers is None else [CreatePartitionsAssignment(broker_ids=each) for each in brokers]
    asked = CreatePartitionsTopic(name=topic, count=count, assignments=assignments)
    (answer,) = kafka.call(create_partitions, request(asked, check=check), VERSION).results
    assert answer.name == topic
    return answer.error_code, answer.error_message or ""


def partitions(kafka: Kafka, topic: str) -> dict[int, int]:
    """The leader of each, as Metadata tells it."""
    asked = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=topic)])
    (answer,) = kafka.call(metadata, asked, 12).topics
    return {each.partition_index: each.leader_id for each in answer.partitions}


def node_id(broker: Broker) -> int:
    return broker.node.broker.identity.node_id


def test_a_topic_grows_and_its_new_partitions_are_led_when_that_is_answered(
    broker: Broker, kafka: Kafka, topic: str
) -> None:
    kafka.produce_values(topic, b"before", partition=1)

    assert grow(kafka, topic, 5) == (ErrorCode.NONE, "")

    assert partitions(kafka, topic) == dict.fromkeys(range(5), node_id(broker))
    assert kafka.produce_values(topic, b"new", partition=4) == 0
    assert [record.value for record in kafka.read(topic, partition=4)] == [b"new"]
    assert [record.value for record in kafka.read(topic, partition=1)] == [b"before"]


def test_a_new_partition_does_not_exist_before(kafka: Kafka, topic: str) -> None:
    answer = kafka.fetch(topic, 0, partition=2)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("count", "says"), [(2, "already"), (1, "not be an increase"), (0, "not be an increase"), (10_001, "10000")]
)
def test_what_is_no_growth_is_refused_and_says_why(kafka: Kafka, topic: str, count: int, says: str) -> None:
    code, message = grow(kafka, topic, count)

    assert code == ErrorCode.INVALID_PARTITIONS
    assert says in message
    assert len(partitions(kafka, topic)) == 2


def test_a_topic_whose_partitions_are_fixed_is_left_alone(broker: Broker, kafka: Kafka) -> None:
    broker.create_topic("fixed", 2, {"streamhouse.partitions.fixed": "true"})

    code, message = grow(kafka, "fixed", 3)

    assert code == ErrorCode.POLICY_VIOLATION
    assert "streamhouse.partitions.fixed" in message
    assert len(partitions(kafka, "fixed")) == 2


def test_a_topic_that_is_not_there_does_not_grow(kafka: Kafka) -> None:
    assert grow(kafka, "never-was", 3)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_that_is_named_twice_is_answered_once_and_left_alone(kafka: Kafka, topic: str) -> None:
    twice = [CreatePartitionsTopic(name=topic, count=count, assignments=None) for count in (3, 4)]
    unknown = CreatePartitionsTopic(name="never-was", count=4, assignments=None)

    answers = kafka.call(create_partitions, request(*twice, unknown), VERSION).results

    assert {answer.name: answer.error_code for answer in answers} == {
        topic: ErrorCode.INVALID_REQUEST,
        "never-was": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert len(answers) == 2
    assert len(partitions(kafka, topic)) == 2


def test_a_check_changes_nothing_and_refuses_what_would_be_refused(kafka: Kafka, topic: str) -> None:
    assert grow(kafka, topic, 3, check=True)[0] == ErrorCode.NONE
    assert grow(kafka, topic, 2, check=True)[0] == ErrorCode.INVALID_PARTITIONS
    assert len(partitions(kafka, topic)) == 2


def test_brokers_that_exist_may_be_assigned(broker: Broker, kafka: Kafka, topic: str) -> None:
    assert grow(kafka, topic, 4, [[node_id(broker)]] * 2)[0] == ErrorCode.NONE
    assert len(partitions(kafka, topic)) == 4


@pytest.mark.parametrize(
    "brokers",
    [[[1]], [[1], [1], [1]], [[1], [NOBODY]], [[1], []], [[1, 1], [1, 1]], [[1], [1, 1]], []],
    ids=["too few", "too many", "nobody", "none", "twice", "uneven", "empty"],
)
def test_an_assignment_that_makes_no_sense_is_refused(kafka: Kafka, topic: str, brokers: list[list[int]]) -> None:
    assert grow(kafka, topic, 4, brokers)[0] == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert len(partitions(kafka, topic)) == 2


def test_of_two_who_grow_a_topic_at_once_both_agree_or_one_wins(broker: Broker, kafka: Kafka, topic: str) -> None:
    async def both(*counts: int) -> list[int]:
        node = broker.node
        context = Context(node.broker, node.kafka.endpoint, RequestHeader(37, 3, 1, None, 0), 2**20, "127.0.0.1")
        asked = [CreatePartitionsTopic(name=topic, count=count, assignments=None) for count in counts]
        answers = await asyncio.gather(*(handler.handle(context, request(each)) for each in asked))
        return [answer.results[0].error_code for answer in answers]

    codes = asyncio.run_coroutine_threadsafe(both(4, 4, 6), broker._loop).result(60)

    assert codes == [ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS, ErrorCode.NONE]
    assert len(partitions(kafka, topic)) == 6


def test_a_topic_that_grew_is_as_large_after_a_restart() -> None:
    with Broker(durable=True) as broker:
        broker.create_topic("orders", 1)
        with Kafka(broker.bootstrap) as kafka:
            assert grow(kafka, "orders", 3)[0] == ErrorCode.NONE
            kafka.produce_values("orders", b"in the WAL", partition=2)
        broker.kill()
        broker.start()
        with Kafka(broker.bootstrap) as kafka:
            assert len(partitions(kafka, "orders")) == 3
            assert [record.value for record in kafka.read("orders", partition=2)] == [b"in the WAL"]
