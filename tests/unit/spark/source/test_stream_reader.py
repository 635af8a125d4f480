"""Streaming reads of a topic: micro-batch by micro-batch, from a checkpoint on, within limits, nothing twice."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from uuid import UUID

import pytest
import uvloop
from confluent_kafka import Consumer
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

from node.wait import eventually
from spark_parts.topics import Stream, Topic, read_tasks
from streamhouse.client.cluster import Cluster
from streamhouse.client.groups_admin import GroupPartition, GroupsAdmin
from streamhouse.client.planning import PlanningClient
from streamhouse.model.errors import InvalidInput, NotFound, OffsetOutOfRange, Unavailable
from streamhouse.testing import Broker
from streamhouse.wire.http.planning import PinRequest

EARLIEST = {"startingOffsets": "earliest"}


def values(found: list[tuple[str, int, int, bytes]]) -> list[bytes]:
    return [value for *_, value in found]


@pytest.fixture
def stream(topic: Topic) -> Iterator[Stream]:
    started = topic.stream(**EARLIEST)
    yield started
    started.stop()


# --- going on ---


def test_each_micro_batch_has_what_came_since_the_one_before(topic: Topic, stream: Stream) -> None:
    topic.produce(b"a", b"b")
    assert values(stream.next_batch()) == [b"a", b"b"]
    assert stream.next_batch() == []
    topic.produce(b"c")
    topic.flush()
    topic.produce(b"d", partition=1)
    assert values(stream.next_batch()) == [b"c", b"d"]
    assert stream.next_batch() == []


def test_a_query_starts_at_the_latest_unless_told_otherwise(topic: Topic) -> None:
    topic.produce(b"old")
    stream = topic.stream()
    assert stream.next_batch() == []
    topic.produce(b"new")
    assert values(stream.next_batch()) == [b"new"]


def test_a_query_starts_where_it_is_told(topic: Topic) -> None:
    topic.produce(b"a", b"b", b"c")
    stream = topic.stream(startingOffsets=f'{{"{topic.name}":{{"0":1,"1":-1}}}}')
    assert values(stream.next_batch()) == [b"b", b"c"]


@pytest.mark.parametrize("position", ["latest", "earliest"])
def test_partitions_that_are_added_are_read_from_their_beginning(topic: Topic, position: str) -> None:
    """Also what was produced before the query heard of them, and also if it is to start at the latest."""
    stream = topic.stream(startingOffsets=position)
    topic.produce(b"a")
    stream.next_batch()
    topic.broker.create_partitions(topic.name, 4)
    topic.produce(b"b", b"c", partition=3)

    found: list[tuple[str, int, int, bytes]] = []
    eventually(lambda: found.extend(stream.next_batch()) or len(found) >= 2, "what is in the new partitions")
    stream.restart(startingOffsets="latest")
    topic.produce(b"d", partition=2)
    topic.produce(b"e", partition=3)
    found += stream.next_batch()

    assert sorted(found)[-4:] == [
        (topic.name, 2, 0, b"d"), (topic.name, 3, 0, b"b"), (topic.name, 3, 1, b"c"), (topic.name, 3, 2, b"e"),
    ]  # fmt: skip
    assert [value for *_, value in found if value != b"a"] == [b"b", b"c", b"d", b"e"]


def test_a_topic_that_grows_before_the_first_micro_batch_is_read_whole(topic: Topic) -> None:
    stream = topic.stream()
    start = stream.reader.initialOffset()
    topic.broker.create_partitions(topic.name, 3)
    topic.produce(b"new", partition=2)

    found = stream.next_batch()

    assert start[topic.name] == {"0": 0, "1": 0}
    assert found == [(topic.name, 2, 0, b"new")]


def test_offsets_have_the_shape_that_sparks_kafka_source_keeps(topic: Topic, stream: Stream) -> None:
    topic.produce(b"a", b"b")
    start, end = stream.plan()
    ids = {"@topics": {topic.name: start["@topics"][topic.name]}}
    assert UUID(ids["@topics"][topic.name]).int != 0
    assert start == {topic.name: {"0": 0, "1": 0}, **ids}
    assert end == {topic.name: {"0": 2, "1": 0}, **ids, "@start": start}
    assert stream.reader.reportLatestOffset() == {topic.name: {"0": 2, "1": 0}}
    stream.checkpoint = end
    assert stream.plan() == (end, end)
    assert stream.reader.partitions(end, end) == []
    topic.produce(b"c")
    assert stream.plan()[1] == {topic.name: {"0": 3, "1": 0}, **ids}


def test_a_restarted_query_goes_on_from_its_checkpoint(topic: Topic, stream: Stream) -> None:
    topic.produce(b"a")
    assert values(stream.next_batch()) == [b"a"]
    topic.produce(b"b")
    stream.restart(startingOffsets="latest")
    assert values(stream.next_batch()) == [b"b"]


@pytest.mark.parametrize("position", ["latest", "earliest"])
def test_the_first_micro_batch_starts_where_it_did_however_often_spark_asks(topic: Topic, position: str) -> None:
    topic.produce(b"old")
    stream = topic.stream(startingOffsets=position)
    start = stream.reader.initialOffset()
    topic.produce(b"a", b"b")
    assert stream.reader.initialOffset() == start
    _, end = stream.plan()
    expected = read_tasks(stream.reader, stream.reader.partitions(start, end))
    assert values(expected) == ([b"a", b"b"] if position == "latest" else [b"old", b"a", b"b"])
    # The driver dies in this micro-batch. Spark knows its end, and asks anew where it started.
    topic.produce(b"c")
    stream.restart()
    asked_again = stream.reader.initialOffset()
    assert read_tasks(stream.reader, stream.reader.partitions(asked_again, end)) == expected
    stream.checkpoint = end
    assert values(stream.next_batch()) == [b"c"]


def test_a_micro_batch_that_is_run_again_has_the_same_records(topic: Topic, stream: Stream) -> None:
    topic.produce(b"a", b"b")
    start, end = stream.plan()
    topic.produce(b"c")
    topic.flush()
    stream.restart()
    stream.checkpoint = start
    tasks = stream.reader.partitions(start, end)
    rows = [row for task in tasks for batch in stream.reader.read(task) for row in batch.to_pylist()]
    assert [row["value"] for row in rows] == [b"a", b"b"]


# --- what appears and disappears ---


def test_a_topic_that_does_not_exist_is_an_error(topic: Topic) -> None:
    stream = topic.stream(subscribe="nowhere")
    with pytest.raises(NotFound, match="no topic 'nowhere'"):
        stream.next_batch()


def test_topics_that_appear_later_are_read_from_their_first_record_on(broker: Broker, topic: Topic) -> None:
    stream = topic.stream(subscribePattern=re.escape(topic.name) + ".*")
    assert stream.next_batch() == []
    broker.create_topic(f"{topic.name}-later", 1, {})
    later = Topic(broker, f"{topic.name}-later")
    later.produce(b"first")
    later.flush()
    later.produce(b"second")
    assert eventually(lambda: values(stream.next_batch()), "the new topic's records") == [b"first", b"second"]
    later.produce(b"third")
    assert values(stream.next_batch()) == [b"third"]


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_that_is_deleted_is_reported_as_told(broker: Broker, topic: Topic, fails: bool) -> None:
    other = Topic.create(broker, "other")
    stream = topic.stream(subscribe=f"{topic.name},{other.name}", failOnDataLoss=str(fails), **EARLIEST)
    topic.produce(b"a")
    other.produce(b"b")
    assert sorted(values(stream.next_batch())) == [b"a", b"b"]
    other.delete()
    topic.produce(b"c")

    def saw_it_go() -> bool:
        topic.produce(b"more")
        stream.next_batch()
        return other.name not in (stream.checkpoint or {})

    if fails:
        with pytest.raises(OffsetOutOfRange, match=f"{other.name}-0, {other.name}-1 cannot be read on"):
            eventually(saw_it_go, "the topic's end")
    else:
        eventually(saw_it_go, "the topic's end")


@pytest.mark.parametrize("fails", [True, False])
def test_records_that_retention_took_are_reported_as_told(topic: Topic, fails: bool) -> None:
    stream = topic.stream(failOnDataLoss=str(fails), **EARLIEST)
    topic.produce(b"a")
    assert values(stream.next_batch()) == [b"a"]
    topic.produce(b"b", b"c", b"d")
    topic.flush()
    topic.delete_before(3)
    if fails:
        with pytest.raises(OffsetOutOfRange, match="records 1 to 2"):
            stream.next_batch()
    else:
        assert values(stream.next_batch()) == [b"d"]


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_that_is_made_again_is_reported_and_read_from_its_first_record(
    broker: Broker, topic: Topic, fails: bool
) -> None:
    stream = topic.stream(failOnDataLoss=str(fails), **EARLIEST)
    topic.produce(b"a", b"b", b"c")
    assert len(stream.next_batch()) == 3
    topic.delete()
    broker.create_topic(topic.name, 2, {})
    topic.produce(b"new")
    if fails:
        with pytest.raises(OffsetOutOfRange, match="deleted and made again"):
            stream.next_batch()
    else:
        assert values(stream.next_batch()) == [b"new"]
        assert stream.next_batch() == []


@pytest.mark.parametrize("restarts", [True, False])
@pytest.mark.parametrize("count", [3, 8])
@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_that_is_made_again_with_as_many_records_or_more_is_not_read_on_in_the_middle(
    broker: Broker, topic: Topic, fails: bool, count: int, restarts: bool
) -> None:
    stream = topic.stream(failOnDataLoss=str(fails), maxOffsetsPerTrigger="5", **EARLIEST)
    topic.produce(b"a", b"b", b"c")
    assert len(stream.next_batch()) == 3
    topic.delete()
    broker.create_topic(topic.name, 2, {})
    new = [b"%d" % number for number in range(count)]
    topic.produce(*new)
    if restarts:
        stream.restart()
    if fails:
        with pytest.raises(OffsetOutOfRange, match=f"topic {topic.name} was deleted and made again"):
            stream.next_batch()
    else:
        assert values(stream.next_batch()) == new[:5]
        assert values(stream.next_batch()) == new[5:]
        topic.produce(b"last")
        assert values(stream.next_batch()) == [b"last"]


def test_a_micro_batch_that_is_run_again_after_its_topic_was_made_again_reads_nothing_of_the_new_one(
    broker: Broker, topic: Topic
) -> None:
    stream = topic.stream(failOnDataLoss="false", **EARLIEST)
    topic.produce(b"a", b"b")
    start, end = stream.plan()
    topic.delete()
    broker.create_topic(topic.name, 2, {})
    topic.produce(b"x", b"y", b"z")

    assert read_tasks(stream.reader, stream.reader.partitions(start, end)) == []
    stream.checkpoint = end
    assert values(stream.next_batch()) == [b"x", b"y", b"z"]


def test_a_task_that_was_planned_before_its_topic_was_made_again_reads_nothing_of_the_new_one(
    broker: Broker, topic: Topic
) -> None:
    """The records were in the leader's memory only, so there is nothing left of them."""
    stream = topic.stream(failOnDataLoss="true", **EARLIEST)
    topic.produce(b"a", b"b")
    tasks = stream.reader.partitions(*stream.plan())
    topic.delete()
    broker.create_topic(topic.name, 2, {})
    topic.produce(b"x", b"y", b"z")

    with pytest.raises(OffsetOutOfRange, match="deleted while its records were read"):
        read_tasks(stream.reader, tasks)


def test_a_checkpoint_without_ids_is_gone_on_with_and_gets_them(broker: Broker, topic: Topic) -> None:
    stream = topic.stream(**EARLIEST)
    topic.produce(b"a", b"b")
    stream.checkpoint = {topic.name: {"0": 1, "1": 0}}

    assert values(stream.next_batch()) == [b"b"]
    assert stream.next_batch() == []
    topic.delete()
    broker.create_topic(topic.name, 2, {})
    topic.produce(b"x", b"y", b"z")
    with pytest.raises(OffsetOutOfRange, match="deleted and made again"):
        stream.next_batch()


def test_an_idle_query_with_a_checkpoint_without_ids_makes_no_micro_batch_for_them(topic: Topic) -> None:
    stream = topic.stream(**EARLIEST)
    topic.produce(b"a")
    stream.checkpoint = {topic.name: {"0": 1, "1": 0}}
    assert stream.plan()[1] is stream.checkpoint


# --- limits ---


def test_a_limit_of_offsets_is_split_over_the_partitions(topic: Topic) -> None:
    stream = topic.stream(maxOffsetsPerTrigger="10", **EARLIEST)
    topic.produce(*(b"%d" % number for number in range(36)))
    topic.produce(*(b"x" for _ in range(4)), partition=1)
    assert stream.reader.getDefaultReadLimit() == ReadMaxRows(10)
    taken = [stream.next_batch() for _ in range(5)]
    assert list(map(len, taken)) == [10, 10, 10, 10, 0]
    assert [sum(partition == 0 for _, partition, *_ in batch) for batch in taken] == [9, 9, 9, 9, 0]
    assert sorted(row for batch in taken for row in batch) == topic.values()


def test_a_limit_of_bytes_takes_whole_blocks(topic: Topic) -> None:
    stream = topic.stream(maxBytesPerTrigger="600KB", **EARLIEST)
    for _ in range(8):
        topic.produce(os.urandom(250_000))
    topic.flush()
    topic.produce(os.urandom(250_000))
    topic.produce(os.urandom(250_000), partition=1)
    assert stream.reader.getDefaultReadLimit() == ReadMaxBytes(600_000)
    taken = []
    while batch := stream.next_batch():
        taken.append(batch)
    assert sorted(row for batch in taken for row in batch) == topic.values()
    assert 4 <= len(taken) <= 10
    assert max(map(len, taken)) <= 4


def test_a_limit_below_a_block_still_goes_on(topic: Topic) -> None:
    stream = topic.stream(maxBytesPerTrigger="1", **EARLIEST)
    for _ in range(3):
        topic.produce(os.urandom(250_000))
    topic.flush()
    topic.produce(b"tail", b"tail")
    assert [len(stream.next_batch()) for _ in range(6)] == [1, 1, 1, 1, 1, 0]


def test_both_limits_hold_together(topic: Topic) -> None:
    stream = topic.stream(maxOffsetsPerTrigger="2", maxBytesPerTrigger="1", **EARLIEST)
    topic.produce(*(b"%d" % number for number in range(3)))
    topic.flush()
    assert [len(stream.next_batch()) for _ in range(3)] == [2, 1, 0]


def test_spark_can_ask_for_everything_in_spite_of_limits(topic: Topic) -> None:
    stream = topic.stream(maxOffsetsPerTrigger="1", **EARLIEST)
    topic.produce(b"a", b"b", b"c")
    assert len(stream.next_batch(ReadAllAvailable())) == 3


def test_available_now_ends_at_what_was_there(topic: Topic) -> None:
    stream = topic.stream(maxOffsetsPerTrigger="2", **EARLIEST)
    topic.produce(b"a", b"b", b"c")
    stream.reader.prepareForTriggerAvailableNow()
    assert values(stream.next_batch()) == [b"a", b"b"]
    topic.produce(b"later")
    assert values(stream.next_batch()) == [b"c"]
    assert stream.next_batch() == []
    stream.restart()
    stream.reader.prepareForTriggerAvailableNow()
    assert values(stream.next_batch()) == [b"later"]
    assert stream.next_batch() == []


def test_available_now_from_the_latest_on_has_nothing_to_read(topic: Topic) -> None:
    stream = topic.stream()
    topic.produce(b"a")
    stream.reader.prepareForTriggerAvailableNow()
    topic.produce(b"between")
    assert stream.next_batch() == []
    stream.restart()
    stream.reader.prepareForTriggerAvailableNow()
    assert values(stream.next_batch()) == [b"between"]


# --- what others see of it ---


def committed(broker: Broker, group: str) -> dict[GroupPartition, int]:
    async def ask() -> dict[GroupPartition, int]:
        async with Cluster.connect(broker.bootstrap) as cluster:
            return await GroupsAdmin(cluster).committed_offsets(group)

    return uvloop.run(ask())


def test_progress_is_committed_as_a_group(broker: Broker, topic: Topic) -> None:
    stream = topic.stream(commitGroup="dashboard", **EARLIEST)
    topic.produce(b"a", b"b")
    stream.next_batch()
    assert committed(broker, "dashboard") == {(topic.name, 0): 0, (topic.name, 1): 0}
    assert stream.next_batch() == []
    assert committed(broker, "dashboard") == {(topic.name, 0): 2, (topic.name, 1): 0}
    topic.produce(b"c")
    _, end = stream.plan()
    stream.reader.commit(end)
    assert committed(broker, "dashboard") == {(topic.name, 0): 3, (topic.name, 1): 0}
    stream.stop()


def test_a_group_with_members_is_not_committed_to(broker: Broker, topic: Topic) -> None:
    member = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "taken"})
    try:
        member.subscribe([topic.name])
        eventually(lambda: member.poll(0.1) is None and member.assignment(), "the group's only member")
        stream = topic.stream(commitGroup="taken", **EARLIEST)
        with pytest.raises(InvalidInput, match="'taken' has members"):
            stream.next_batch()
        stream.stop()
    finally:
        member.close()


def test_a_coordinator_that_is_away_does_not_stop_a_query(
    broker: Broker, topic: Topic, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(*_: object) -> None:
        raise Unavailable("nobody coordinates the group right now")

    stream = topic.stream(commitGroup="patient", **EARLIEST)
    topic.produce(b"a")
    with monkeypatch.context() as context:
        context.setattr(GroupsAdmin, "commit_offsets", away)
        assert values(stream.next_batch()) == [b"a"]
    assert "nobody coordinates" in caplog.text
    assert stream.next_batch() == []
    assert committed(broker, "patient") == {(topic.name, 0): 1, (topic.name, 1): 0}
    stream.stop()


def test_a_running_query_holds_what_it_has_not_read(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[dict[int, int]] = []
    pin = PlanningClient.pin

    def recorded(client: PlanningClient, request: PinRequest) -> None:
        held.append({each.partition: each.offset for each in request.offsets})
        pin(client, request)

    monkeypatch.setattr(PlanningClient, "pin", recorded)
    stream = topic.stream(pinRetention="10m", **EARLIEST)
    topic.produce(b"a", b"b")
    assert values(stream.next_batch()) == [b"a", b"b"]
    assert held == [{0: 0, 1: 0}]
    assert stream.next_batch() == []
    assert held == [{0: 0, 1: 0}, {0: 2, 1: 0}]
    stream.stop()


def test_a_deleted_topic_ends_neither_pin_nor_group(broker: Broker, topic: Topic) -> None:
    other = Topic.create(broker, "other")
    options = {"pinRetention": "10m", "commitGroup": "calm", "failOnDataLoss": "false", **EARLIEST}
    stream = topic.stream(subscribe=f"{topic.name},{other.name}", **options)
    assert stream.next_batch() == []
    other.delete()
    topic.produce(b"a")
    assert eventually(stream.next_batch, "what is still there") == [(topic.name, 0, 0, b"a")]
    stream.stop()
