"""A topic that is deleted and made again under its name: who knew the old one is told, and nothing of it is left."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest

from log_parts.batches import real
from log_parts.kafka import Kafka
from spark_parts.topics import Topic
from streamhouse.testing import Broker
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import fetch, metadata, offset_commit, offset_fetch, produce

GROUP = f"group-{uuid4()}"
# From these versions on requests name topics by their ids.
FETCH_BY_ID, PRODUCE_BY_ID, COMMIT_BY_ID = 13, 13, 10
MISSING = -1


def id_of(kafka: Kafka, topic: str) -> UUID:
    request = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=topic)])
    (found,) = kafka.call(metadata, request, 12).topics
    assert found.error_code == ErrorCode.NONE
    topic_id: UUID = found.topic_id
    return topic_id


def commit(kafka: Kafka, topic: str, topic_id: UUID, offset: int, version: int) -> int:
    place = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    named = offset_commit.OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[place])
    request = offset_commit.OffsetCommitRequest(group_id=GROUP, topics=[named])
    return int(kafka.call(offset_commit, request, version).topics[0].partitions[0].error_code)


def committed(kafka: Kafka, topic: str) -> int:
    asked = offset_fetch.OffsetFetchRequestTopic(name=topic, partition_indexes=[0])
    answer = kafka.call(offset_fetch, offset_fetch.OffsetFetchRequest(group_id=GROUP, topics=[asked]), 7)
    return int(answer.topics[0].partitions[0].committed_offset)


@pytest.fixture(scope="module")
def made_again() -> Iterator[tuple[Kafka, str, UUID]]:
    """The topic's name, and the id of the one that is gone; both had three records."""
    with Broker() as broker, Kafka(broker.bootstrap) as kafka:
        topic = Topic.create(broker, "orders")
        topic.produce(b"a", b"b", b"c")
        old = id_of(kafka, topic.name)
        assert commit(kafka, topic.name, old, 3, 9) == ErrorCode.NONE
        assert committed(kafka, topic.name) == 3
        topic.delete()
        broker.create_topic(topic.name, 2, {})
        topic.produce(b"x", b"y", b"z")
        assert id_of(kafka, topic.name) != old
        yield kafka, topic.name, old


def test_a_group_has_no_offsets_of_the_old_one(made_again: tuple[Kafka, str, UUID]) -> None:
    kafka, topic, old = made_again

    assert committed(kafka, topic) == MISSING
    for version in range(COMMIT_BY_ID, offset_commit.MAX_VERSION + 1):
        assert commit(kafka, topic, old, 3, version) == ErrorCode.UNKNOWN_TOPIC_ID
    assert committed(kafka, topic) == MISSING


def test_a_reader_and_a_producer_of_the_old_one_are_told(made_again: tuple[Kafka, str, UUID]) -> None:
    kafka, _, old = made_again

    for version in range(FETCH_BY_ID, fetch.MAX_VERSION + 1):
        place = fetch.FetchPartition(partition=0, fetch_offset=2, partition_max_bytes=10**6)
        request = fetch.FetchRequest(max_bytes=10**6, topics=[fetch.FetchTopic(topic_id=old, partitions=[place])])
        (partition,) = kafka.call(fetch, request, version).responses[0].partitions
        assert (partition.error_code, bytes(partition.records or b"")) == (ErrorCode.UNKNOWN_TOPIC_ID, b"")
    for version in range(PRODUCE_BY_ID, produce.MAX_VERSION + 1):
        data = produce.PartitionProduceData(index=0, records=bytes(real(b"late")))
        named = produce.TopicProduceData(topic_id=old, partition_data=[data])
        answer = kafka.call(produce, produce.ProduceRequest(acks=-1, topic_data=[named]), version)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
