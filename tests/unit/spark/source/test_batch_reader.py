"""Batch reads of a topic: everything once, as the options say, and no more bytes than needed."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThanOrEqual,
    InputPartition,
    LessThan,
)
from pyspark.sql.types import StructType

from spark_parts.topics import Topic, pieces_of, read, read_tasks
from streamhouse.core.scan_plan import StoredPiece, TailPiece
from streamhouse.model.errors import InvalidConfig, NotFound, OffsetOutOfRange
from streamhouse.spark.source.task import ScanTask
from streamhouse.testing import Broker


def values(topic: Topic, **options: str) -> list[bytes]:
    return [value for *_, value in topic.read(**options)]


def test_segments_and_tail_are_read_as_a_kafka_client_reads_them(topic: Topic) -> None:
    topic.produce(b"a", b"b")
    topic.produce(b"c", partition=1)
    topic.flush()
    topic.produce(b"d")
    topic.produce(b"e", partition=1)
    tasks = topic.batch_reader().partitions()
    assert {type(piece) for piece in pieces_of(tasks)} == {StoredPiece, TailPiece}
    assert topic.read() == topic.values()
    assert len(topic.values()) == 5


def test_presigned_urls_lead_to_the_same_records(topic: Topic) -> None:
    topic.produce(b"a", b"b")
    topic.flush()
    topic.produce(b"c")
    tasks = topic.batch_reader(presign="true").partitions()
    assert all(piece.url.startswith("http") for piece in pieces_of(tasks) if isinstance(piece, StoredPiece))
    assert topic.read(presign="true") == topic.values()


def test_objects_in_a_nodes_own_memory_are_refused_with_what_to_do_and_can_be_read_by_urls() -> None:
    with Broker(http=True) as broker:
        topic = Topic.create(broker, "unseen")
        topic.produce(b"a")
        topic.flush()
        with pytest.raises(InvalidConfig, match=r"in its own memory.*Broker\(http=True, durable=True\)"):
            topic.read()
        assert topic.read(presign="true") == topic.values()


def test_an_empty_topic_has_no_rows(topic: Topic) -> None:
    reader = topic.batch_reader()
    assert reader.partitions() == []
    assert topic.read() == []


def test_a_snapshot_does_not_grow_after_planning(topic: Topic) -> None:
    topic.produce(b"a")
    reader = topic.batch_reader()
    tasks = reader.partitions()
    topic.produce(b"b")
    topic.flush()
    assert [value for *_, value in read_tasks(reader, tasks)] == [b"a"]


def test_offsets_bound_what_is_read(topic: Topic) -> None:
    topic.produce(*(b"%d" % number for number in range(10)))
    topic.flush()
    topic.produce(b"other", partition=1)
    bounds = {
        "startingOffsets": f'{{"{topic.name}":{{"0":3,"1":-2}}}}',
        "endingOffsets": f'{{"{topic.name}":{{"0":6,"1":-1}}}}',
    }
    assert values(topic, **bounds) == [b"3", b"4", b"5", b"other"]


def test_times_bound_what_is_read(topic: Topic) -> None:
    for number in range(5):
        topic.produce(b"%d" % number, timestamp_ms=1_000 * number)
        topic.flush()
    assert values(topic, startingTimestamp="2500", startingOffsetsByTimestampStrategy="latest") == [b"3", b"4"]
    assert values(topic, endingTimestamp="2000") == [b"0", b"1"]
    assert values(topic, endingTimestamp="99999") == [b"0", b"1", b"2", b"3", b"4"]
    each = f'{{"{topic.name}":{{"0":4000,"1":0}}}}'
    assert values(topic, startingOffsetsByTimestamp=each, startingOffsetsByTimestampStrategy="latest") == [b"4"]


def test_a_time_after_everything_is_an_error_unless_told_otherwise(topic: Topic) -> None:
    topic.produce(b"a", timestamp_ms=1_000)
    topic.produce(b"a", timestamp_ms=1_000, partition=1)
    with pytest.raises(OffsetOutOfRange, match=r"no record at or after 5000.*Strategy"):
        topic.read(startingTimestamp="5000")
    assert topic.read(startingTimestamp="5000", startingOffsetsByTimestampStrategy="latest") == []


def test_partitions_are_chosen_by_assignment_and_topics_by_pattern(broker: Broker, topic: Topic) -> None:
    topic.produce(b"a")
    topic.produce(b"b", partition=1)
    assert values(topic, assign=f'{{"{topic.name}":[1]}}') == [b"b"]
    assert values(topic, subscribePattern=re.escape(topic.name[:-1]) + ".") == [b"a", b"b"]
    assert values(topic, subscribePattern=re.escape(topic.name[:-1])) == []


def test_topics_and_partitions_that_do_not_exist_are_named(topic: Topic) -> None:
    with pytest.raises(NotFound, match="no topic 'nowhere'"):
        topic.read(subscribe="nowhere")
    with pytest.raises(NotFound, match=f"no partition {topic.name}-7"):
        topic.read(assign=f'{{"{topic.name}":[0,7]}}')


def test_offsets_for_some_partitions_only_are_refused(topic: Topic) -> None:
    with pytest.raises(InvalidConfig, match=rf"'startingOffsets' does not name {topic.name}-1.*-2 is the earliest"):
        topic.read(startingOffsets=f'{{"{topic.name}":{{"0":0}}}}')
    with pytest.raises(InvalidConfig, match=rf"names {topic.name}-9, which is not read"):
        topic.read(startingOffsets=f'{{"{topic.name}":{{"0":0,"1":0,"9":0}}}}')


def test_deleted_records_are_an_error_or_passed_over_as_told(topic: Topic, caplog: pytest.LogCaptureFixture) -> None:
    topic.produce(*(b"%d" % number for number in range(5)))
    topic.flush()
    topic.delete_before(3)
    start = f'{{"{topic.name}":{{"0":1,"1":0}}}}'
    with pytest.raises(OffsetOutOfRange, match=rf"records 1 to 2 of {topic.name}-0.*failOnDataLoss"):
        topic.read(startingOffsets=start)
    assert values(topic, startingOffsets=start, failOnDataLoss="false") == [b"3", b"4"]
    assert "records 1 to 2" in caplog.text
    assert values(topic) == [b"3", b"4"]


def test_an_offset_beyond_the_end_is_an_error_or_passed_over_as_told(topic: Topic) -> None:
    topic.produce(b"a", b"b")
    start = f'{{"{topic.name}":{{"0":9,"1":0}}}}'
    with pytest.raises(OffsetOutOfRange, match="from offset 9, but ends at 2"):
        topic.read(startingOffsets=start)
    assert topic.read(startingOffsets=start, failOnDataLoss="false") == []
    end = f'{{"{topic.name}":{{"0":9,"1":0}}}}'
    with pytest.raises(OffsetOutOfRange, match="up to offset 9, but ends at 2"):
        topic.read(endingOffsets=end)
    assert values(topic, endingOffsets=end, failOnDataLoss="false") == [b"a", b"b"]


def test_a_large_partition_becomes_many_tasks(topic: Topic) -> None:
    for _ in range(12):
        topic.produce(*(os.urandom(100_000) for _ in range(5)))
    topic.flush()
    topic.produce(b"small", partition=1)
    tasks = topic.batch_reader(minPartitions="6").partitions()
    assert len(tasks) == 6
    assert topic.read(minPartitions="6") == topic.values()


def test_many_small_partitions_are_one_task(broker: Broker) -> None:
    many = Topic.create(broker, "many", partitions=8)
    for partition in range(8):
        many.produce(b"x", partition=partition)
    tasks = many.batch_reader().partitions()
    assert len(tasks) == 1
    assert len(read(many.batch_reader())) == 8


def test_filters_leave_out_partitions_segments_and_blocks(topic: Topic) -> None:
    for number in range(4):
        topic.produce(b"%d" % number, timestamp_ms=1_000 * number)
        topic.flush()
    topic.produce(b"other", partition=1, timestamp_ms=0)

    def planned(*filters: Filter) -> int:
        reader = topic.batch_reader()
        reader.pushFilters(list(filters))
        return len(pieces_of(reader.partitions()))

    assert planned() == 5
    assert planned(EqualTo(("partition",), 0)) == 4
    assert planned(EqualTo(("topic",), "another")) == 0
    assert planned(GreaterThanOrEqual(("offset",), 2), EqualTo(("partition",), 0)) == 2
    since = datetime.fromtimestamp(2, UTC)
    assert planned(GreaterThanOrEqual(("timestamp",), since), EqualTo(("partition",), 0)) == 2
    assert planned(LessThan(("timestamp",), since), EqualTo(("partition",), 0)) == 2
    assert [value for *_, value in topic.read(EqualTo(("offset",), 2))] == [b"2"]


def test_a_reader_says_that_it_does_not_push_filters_where_spark_would_refuse_one_that_does(topic: Topic) -> None:
    # What pyspark.sql.worker.plan_data_source_read looks at while filter pushdown is off.
    push_filters = topic.batch_reader().pushFilters
    assert getattr(push_filters, "__func__", None) is DataSourceReader.pushFilters


def test_a_schema_of_the_users_own_is_refused(topic: Topic) -> None:
    with pytest.raises(InvalidConfig, match="a topic has the columns key, value"):
        topic.source().reader(StructType().add("id", "long"))


# --- what happens between planning and reading ---


def test_a_tail_that_has_become_a_segment_is_still_read(topic: Topic) -> None:
    topic.produce(b"a", b"b")
    reader = topic.batch_reader()
    tasks = reader.partitions()
    topic.flush()
    topic.broker.restart()
    assert [value for *_, value in read_tasks(reader, tasks)] == [b"a", b"b"]


@pytest.mark.parametrize("presign", ["false", "true"])
def test_an_object_that_is_gone_is_looked_for_again(topic: Topic, presign: str) -> None:
    topic.produce(b"a", b"b")
    topic.flush()
    reader = topic.batch_reader(presign=presign)
    tasks = merged_since(reader.partitions())
    assert [value for *_, value in read_tasks(reader, tasks)] == [b"a", b"b"]


@pytest.mark.parametrize("fails", [True, False])
def test_records_that_are_deleted_after_planning_are_reported_as_told(topic: Topic, fails: bool) -> None:
    topic.produce(*(b"%d" % number for number in range(5)))
    topic.flush()
    reader = topic.batch_reader(failOnDataLoss=str(fails))
    tasks = merged_since(reader.partitions())
    topic.delete_before(3)
    if fails:
        with pytest.raises(OffsetOutOfRange, match="records 0 to 2"):
            read_tasks(reader, tasks)
    else:
        assert [value for *_, value in read_tasks(reader, tasks)] == [b"3", b"4"]


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_that_is_deleted_after_planning_is_reported_as_told(topic: Topic, fails: bool) -> None:
    topic.produce(b"a")
    reader = topic.batch_reader(failOnDataLoss=str(fails))
    tasks = reader.partitions()
    topic.delete()
    if fails:
        with pytest.raises(OffsetOutOfRange, match="was deleted while"):
            read_tasks(reader, tasks)
    else:
        assert read_tasks(reader, tasks) == []


def merged_since(tasks: Sequence[InputPartition]) -> Sequence[InputPartition]:
    """As after a merge: the objects that were planned are not there any more."""
    for task in tasks:
        assert isinstance(task, ScanTask)
        task.pieces = tuple(_gone(piece) if isinstance(piece, StoredPiece) else piece for piece in task.pieces)
    return tasks


def _gone(piece: StoredPiece) -> StoredPiece:
    return replace(piece, key=f"{piece.key}x", url=piece.url and f"{piece.url}x")
