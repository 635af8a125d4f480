"""CreateTopics: what is refused, with the code that Kafka gives, and what is only checked."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from log_parts.kafka import Kafka
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import create_topics, metadata
from streamhouse.wire.kafka.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)

VERSION = 7
NOBODY = 77
HERE = 1
"""The node id of a broker alone."""


def new_topic(name: str = "", partitions: int = 1, replicas: int = 1, **config: str) -> CreatableTopic:
    configs = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in config.items()]
    return CreatableTopic(
        name=name or f"topic-{uuid4().hex[:8]}", num_partitions=partitions, replication_factor=replicas, configs=configs
    )


def assigned(brokers: dict[int, list[int]], partitions: int = -1, replicas: int = -1) -> CreatableTopic:
    return CreatableTopic(
        name=f"topic-{uuid4().hex[:8]}",
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[CreatableReplicaAssignment(partition_index=at, broker_ids=ids) for at, ids in brokers.items()],
    )


def create(kafka: Kafka, *topics: CreatableTopic, check: bool = False) -> list[int]:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=30_000, validate_only=check)
    answer = kafka.call(create_topics, request, VERSION)
    assert [each.name for each in answer.topics] == [each.name for each in topics]
    return [each.error_code for each in answer.topics]


def exists(kafka: Kafka, name: str) -> bool:
    asked = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    (answer,) = kafka.call(metadata, asked, 12).topics
    return bool(answer.error_code == ErrorCode.NONE)


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (new_topic(replicas=1), ErrorCode.NONE),
        (new_topic(replicas=-1), ErrorCode.NONE),
        (new_topic(replicas=3), ErrorCode.NONE),
        (new_topic(replicas=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new_topic(replicas=-2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new_topic(partitions=-1), ErrorCode.NONE),
        (new_topic(partitions=0), ErrorCode.INVALID_PARTITIONS),
        (new_topic(partitions=-2), ErrorCode.INVALID_PARTITIONS),
        (new_topic(partitions=10_001), ErrorCode.INVALID_PARTITIONS),
        (new_topic(partitions=0, replicas=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (assigned({0: [HERE], 1: [HERE]}), ErrorCode.NONE),
        (assigned({1: [HERE], 0: [HERE]}), ErrorCode.NONE),
        (assigned({0: [HERE]}, partitions=1), ErrorCode.INVALID_REQUEST),
        (assigned({0: [HERE]}, replicas=1), ErrorCode.INVALID_REQUEST),
        (assigned({0: [HERE], 2: [HERE]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned({0: [HERE], 1: [NOBODY]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned({0: []}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (assigned({0: [HERE, HERE]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=range(18),
)
def test_each_mistake_has_kafkas_code(kafka: Kafka, topic: CreatableTopic, code: int, check: bool) -> None:
    name = f"{topic.name}-{check}"
    renamed = CreatableTopic(
        name=name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=topic.assignments,
    )

    assert create(kafka, renamed, check=check) == [code]
    assert exists(kafka, name) == (code == ErrorCode.NONE and not check)


@pytest.mark.parametrize("check", [False, True])
def test_names_that_differ_only_in_dots_and_underscores_collide(kafka: Kafka, check: bool) -> None:
    stem = uuid4().hex[:8]
    assert create(kafka, new_topic(f"a.{stem}_b")) == [ErrorCode.NONE]

    codes = create(kafka, new_topic(f"a_{stem}.b"), new_topic(f"a.{stem}_b"), new_topic(f"a-{stem}-b"), check=check)

    assert codes == [ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NONE]
    assert not exists(kafka, f"a_{stem}.b")


@pytest.mark.parametrize("check", [False, True])
def test_names_of_one_request_collide_with_one_another(kafka: Kafka, check: bool) -> None:
    stem = uuid4().hex[:8]

    codes = create(kafka, new_topic(f"{stem}_b"), new_topic(f"{stem}.b"), new_topic("c"), new_topic("d"), check=check)

    assert codes[:2] == [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert not exists(kafka, f"{stem}.b")


def test_a_topic_that_collides_is_not_created_by_naming_it_either(kafka: Kafka) -> None:
    stem = uuid4().hex[:8]
    create(kafka, new_topic(f"{stem}.b"))

    asked = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=f"{stem}_b")])
    (answer,) = kafka.call(metadata, asked, 12).topics

    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(
    "again", [{}, {"replicas": 0}, {"partitions": 0}, {"segment_bytes": "102400"}, {"no_such_config": "1"}], ids=str
)
def test_of_a_topic_that_there_is_nothing_else_is_said(kafka: Kafka, check: bool, again: dict[str, Any]) -> None:
    """Start-up scripts create it each time, and take this answer for a success."""
    name = f"topic-{uuid4().hex[:8]}"
    assert create(kafka, new_topic(name)) == [ErrorCode.NONE]
    assert create(kafka, new_topic(name, **again), check=check) == [ErrorCode.TOPIC_ALREADY_EXISTS]


def test_a_bad_name_is_told_before_all_else(kafka: Kafka) -> None:
    assert create(kafka, new_topic("no/name", replicas=0)) == [ErrorCode.INVALID_TOPIC_EXCEPTION]
