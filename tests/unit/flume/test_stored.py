"""Segments, topics and committed offsets are read beside a node that has them open, and nothing is changed by that."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from streamhouse.flume import (
    GroupConsumer,
    LogRecord,
    OffsetStore,
    Producer,
    Record,
    Segment,
    TopicManager,
    read_log,
)
from streamhouse.model.errors import CorruptData, MetadataUnavailable, NotFound, OffsetOutOfRange, Unsupported
from streamhouse.testing import Broker


def fill(broker: Broker, count: int = 100) -> None:
    """`orders` with so many records in partition 0, in a segment, the half of which `analytics` has read."""
    with Producer(broker.flume_address) as producer:
        producer.produce_many("orders", [b"%d" % number for number in range(count)])
    broker.flush()
    with GroupConsumer(broker.flume_address, "analytics", ["orders"]) as consumer:
        consumer.seek("orders", 0, count // 2)
        consumer.commit()


def shape(directory: Path) -> dict[str, tuple[int, int]]:
    """Every file with its size and time of change."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


def read_all(directory: Path) -> tuple[int, int, int, list[str], int]:
    with OffsetStore(directory) as offsets, TopicManager(directory) as topics:
        topic = topics.get("orders")
        assert topic is not None
        partition = topic.partition(0)
        return (
            offsets.fetch("analytics", "orders", 0),
            partition.oldest_offset,
            partition.newest_offset,
            topics.topics(),
            sum(1 for path in partition.segments() for _ in Segment(path)),
        )


EXPECTED = (50, 0, 99, ["orders"], 100)


def test_the_documents_segment_as_far_as_it_reads(broker: Broker, tmp_path: Path) -> None:
    fill(broker)
    topic = TopicManager(tmp_path).get("orders")
    assert topic is not None
    (path,) = topic.partition(0).segments()
    segment = Segment(path)
    assert segment.read(5) == Record(offset=5, payload=b"5")
    assert segment.recover() == segment.next_offset == 100
    assert (segment.base_offset, segment.index[0][0]) == (0, 0)
    assert list(segment)[3:5] == [Record(offset=3, payload=b"3"), Record(offset=4, payload=b"4")]
    assert [record.offset for record in segment.records(97)] == [97, 98, 99]
    with pytest.raises(OffsetOutOfRange):
        segment.read(100)
    segment.close()


def test_a_damaged_segment_is_found_and_a_missing_one_said(broker: Broker, tmp_path: Path) -> None:
    fill(broker)
    (path,) = tmp_path.glob("objects/segments/**/*.strm")
    damaged = tmp_path / "damaged.strm"
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    damaged.write_bytes(data)
    with Segment(damaged) as segment, pytest.raises(CorruptData):
        segment.recover()
    damaged.write_bytes(data[:-1])
    with pytest.raises(CorruptData):
        Segment(damaged)
    with pytest.raises(NotFound):
        Segment(tmp_path / "nothing.strm")


def test_a_log_file_has_what_no_segment_has_yet(broker: Broker, tmp_path: Path) -> None:
    with Producer(broker.flume_address) as producer:
        producer.produce_to_partition("orders", 0, b"key", b"first")
        producer.produce_to_partition("orders", 2, None, b"second")
    (topic,) = TopicManager(tmp_path).rows()
    files = sorted(tmp_path.glob("wal/*.wal"))
    assert [found for path in files for found in read_log(path)] == [
        LogRecord(topic.topic_id, 0, Record(offset=0, payload=b"first")),
        LogRecord(topic.topic_id, 2, Record(offset=0, payload=b"second")),
    ]
    with Producer(broker.flume_address) as producer:
        assert producer.produce_to_partition("orders", 0, None, b"third").offset == 1
    broker.kill()
    with files[0].open("r+b") as file:
        place = file.read().index(b"first")
        file.seek(place)
        file.write(b"FIRST")
    with pytest.raises(CorruptData, match="damaged at byte"):
        list(read_log(files[0]))
    with pytest.raises(NotFound):
        list(read_log(tmp_path / "nothing.wal"))


def test_the_documents_topic_manager_as_far_as_it_reads(broker: Broker, tmp_path: Path) -> None:
    fill(broker)
    manager = TopicManager(tmp_path)
    t = manager.get("orders")
    assert manager.get("users") is None
    assert manager.topics() == ["orders"]
    assert t is not None
    assert t.num_partitions == 3
    assert t.read(0, 7) == Record(offset=7, payload=b"7")
    p = t.partition(0)
    assert p.read(99).payload == b"99"
    assert (p.oldest_offset, p.newest_offset) == (0, 99)
    assert (t.partition(1).oldest_offset, t.partition(1).newest_offset) == (0, -1)
    with pytest.raises(OffsetOutOfRange):
        p.read(100)
    with pytest.raises(NotFound):
        t.partition(3)
    manager.close()


def test_deleted_records_are_not_read_although_their_segment_is_there(broker: Broker, tmp_path: Path) -> None:
    fill(broker)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for done in admin.delete_records([TopicPartition("orders", 0, 50)]).values():
        done.result()
    topic = TopicManager(tmp_path).get("orders")
    assert topic is not None
    assert topic.partition(0).oldest_offset == 50
    assert topic.read(0, 50) == Record(offset=50, payload=b"50")
    with pytest.raises(OffsetOutOfRange, match="from 50 on, below 100"):
        topic.read(0, 49)


def test_the_documents_offset_store_as_far_as_it_reads(broker: Broker, tmp_path: Path) -> None:
    fill(broker)
    offset_store = OffsetStore(tmp_path)
    assert offset_store.fetch("analytics", "orders", 0) == 50
    assert offset_store.fetch("analytics", "orders", 1) == -1
    assert offset_store.fetch("nobody", "orders", 0) == -1
    assert offset_store.fetch_all("analytics") == {("orders", 0): 50}
    with GroupConsumer(broker.flume_address, "analytics", ["orders"]) as consumer:
        consumer.seek("orders", 0, 51)
        consumer.commit()
    assert offset_store.fetch("analytics", "orders", 0) == 51
    with pytest.raises(Unsupported, match="GroupConsumer"):
        offset_store.commit("analytics", "orders", 0, 42)
    assert offset_store.fetch("analytics", "orders", 0) == 51
    offset_store.close()


def test_a_node_that_runs_is_read_and_goes_on(broker: Broker, tmp_path: Path) -> None:
    fill(broker)
    before = set(shape(tmp_path))
    assert read_all(tmp_path) == EXPECTED
    assert set(shape(tmp_path)) == before
    with Producer(broker.flume_address) as producer:
        assert producer.produce("orders", b"more").offset == 100


READER = """
import json, sys
from streamhouse.flume import OffsetStore
store, seen = OffsetStore(sys.argv[1]), []
print("reading", flush=True)
while not seen or seen[-1] < 300:
    found = store.fetch("analytics", "orders", 0)
    if not seen or seen[-1] != found:
        seen.append(found)
print(json.dumps(seen))
"""


def test_another_process_that_reads_all_the_time_locks_nobody_out_and_sees_what_is_committed(
    broker: Broker, tmp_path: Path
) -> None:
    fill(broker, 300)
    command = [sys.executable, "-c", READER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "reading\n"
        with GroupConsumer(broker.flume_address, "analytics", ["orders"]) as consumer:
            for offset in range(151, 301):
                consumer.seek("orders", 0, offset)
                consumer.commit()
        seen = json.loads(reader.stdout.read())
    assert reader.returncode == 0
    assert seen == sorted(seen)
    assert (seen[0] >= 150, seen[-1]) == (True, 300)


def test_a_node_that_was_stopped_is_read_and_nothing_is_made_or_changed(broker: Broker, tmp_path: Path) -> None:
    fill(broker)
    broker.close()
    before = shape(tmp_path)
    assert not any(name.endswith(("-wal", "-shm")) for name in before)
    assert read_all(tmp_path) == EXPECTED
    assert shape(tmp_path) == before


def test_a_node_that_was_killed_is_read_with_what_only_its_log_has_and_nothing_is_made_or_changed(
    broker: Broker, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    fill(broker)
    broker.kill()
    left_behind = tmp_path_factory.mktemp("killed") / "data"
    shutil.copytree(tmp_path, left_behind)
    before = shape(left_behind)
    assert before[str(left_behind / "metadata.db-wal")][0] > 0
    assert read_all(left_behind) == EXPECTED
    assert shape(left_behind) == before
    (left_behind / "metadata.db-shm").unlink()
    with pytest.raises(MetadataUnavailable, match="cannot read"):
        read_all(left_behind)
    assert shape(left_behind).keys() == before.keys() - {str(left_behind / "metadata.db-shm")}


def test_a_node_that_starts_again_is_read_on(broker: Broker, tmp_path: Path) -> None:
    fill(broker)
    offsets = OffsetStore(tmp_path)
    assert offsets.fetch("analytics", "orders", 0) == 50
    broker.restart()
    with GroupConsumer(broker.flume_address, "analytics", ["orders"]) as consumer:
        consumer.seek("orders", 0, 60)
        consumer.commit()
    assert offsets.fetch("analytics", "orders", 0) == 60


def test_a_directory_without_a_database_is_said(tmp_path: Path) -> None:
    for kind in (OffsetStore, TopicManager):
        with pytest.raises(NotFound, match="no metadata database"):
            kind(tmp_path)
    assert list(tmp_path.iterdir()) == []
