"""Retention really deletes: rows first, objects after the grace period, and only what is old enough or too much."""

from __future__ import annotations

import random
import time
from pathlib import Path

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from faults.sweep import BRISK
from faults.workload import create_topic
from node.process import Node
from node.raw import RawConnection, build_batch, read_values
from node.storage import Storage, assert_rows_and_objects_agree, committed_records, segments_of
from node.wait import HUNG_SECONDS, eventually

BUSY = ("--retention-interval", "100ms", "--garbage-interval", "100ms", "--garbage-grace", "300ms")
LAZY = ("--retention-interval", "100ms", "--garbage-grace", "1h")


def produce(node: Node, topic: str, count: int, *, timestamp: int, size: int = 100) -> None:
    with RawConnection(node.address) as raw:
        for number in range(count):
            # Random, because what counts is the size in the object store, after compression.
            value = random.Random(number).randbytes(size)
            assert raw.produce(topic, build_batch(value, timestamp=timestamp)).error_code == 0


def start_offset(node: Node, topic: str) -> int:
    with RawConnection(node.address) as raw:
        return int(raw.list_offset(topic, -2).offset)


def read_offsets(raw: RawConnection, topic: str, start: int) -> list[int]:
    """From there to the end of the log, in as many fetches as it takes: none crosses from segments into memory."""
    found: list[int] = []
    position, end = start, raw.list_offset(topic, -1).offset
    while position < end:
        answer = raw.fetch(topic, position)
        assert answer.error_code == 0, f"fetch answered with {answer.error_code}"
        # A fetch begins with the batch that its offset is in.
        offsets = [offset for offset in read_values(answer.records) if offset >= position]
        assert offsets, f"nothing at {position}, before the end at {end}"
        found += offsets
        position = offsets[-1] + 1
    return found


def test_records_older_than_the_retention_are_deleted_with_their_objects(storage: Storage, data_dir: Path) -> None:
    now = int(time.time() * 1000)
    with Node(data_dir, *BRISK, *BUSY, *storage.options) as node:
        create_topic(node.bootstrap, "timed", 1, retention_ms="3600000")
        produce(node, "timed", 10, timestamp=now - 7_200_000)
        eventually(lambda: start_offset(node, "timed") == 10, "old records to be deleted")
        produce(node, "timed", 10, timestamp=now)
        eventually(lambda: storage.object_sizes().keys() == live_keys(storage), "their objects to be deleted")
        with RawConnection(node.address) as raw:
            assert raw.fetch("timed", 0).error_code == 1  # OFFSET_OUT_OF_RANGE
            assert raw.fetch("timed", 10).log_start_offset == 10
            assert read_offsets(raw, "timed", 10) == list(range(10, 20))
        eventually(lambda: committed_records(storage, "timed") == 10, "only what is kept in the table")
        assert_rows_and_objects_agree(storage)
        node.kill9()
        node.start()
        assert start_offset(node, "timed") == 10
        assert node.terminate() == 0


def live_keys(storage: Storage) -> set[str]:
    return {segment.object_key for segment in segments_of(storage)}


def test_a_partition_larger_than_its_retention_loses_its_oldest_segments(storage: Storage, data_dir: Path) -> None:
    now = int(time.time() * 1000)
    limit = 30_000
    with Node(data_dir, *BRISK, *BUSY, *storage.options) as node:
        create_topic(node.bootstrap, "sized", 1, retention_bytes=str(limit), compression_type="producer")
        produce(node, "sized", 200, timestamp=now, size=1000)
        eventually(lambda: is_trimmed(storage, "sized", limit), "the oldest to be deleted")
        eventually(lambda: storage.object_sizes().keys() == live_keys(storage), "their objects to be deleted")
        kept = start_offset(node, "sized")
        assert 0 < kept < 200
        with RawConnection(node.address) as raw:
            assert raw.list_offset("sized", -1).offset == 200
            assert next(iter(read_values(raw.fetch("sized", kept).records))) == kept
        assert_rows_and_objects_agree(storage)


def is_trimmed(storage: Storage, topic: str, limit: int) -> bool:
    """All 200 records were stored, and one more segment less would be less than the limit."""
    segments = segments_of(storage, topic)
    if not segments or segments[-1].end_offset < 200:
        return False
    sizes = [segment.size_bytes for segment in segments]
    assert sum(sizes) >= limit, "more was deleted than the limit says"
    return sum(sizes[1:]) < limit


def test_objects_stay_for_the_grace_period(storage: Storage, data_dir: Path) -> None:
    with Node(data_dir, *BRISK, *LAZY, *storage.options) as node:
        create_topic(node.bootstrap, "grace", 1)
        produce(node, "grace", 10, timestamp=int(time.time() * 1000))
        eventually(lambda: committed_records(storage, "grace") == 10, "all committed")
        objects = set(storage.object_sizes())
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        target = TopicPartition("grace", 0, 10)
        admin.delete_records([target])[target].result(HUNG_SECONDS)
        eventually(lambda: segments_of(storage, "grace") == [], "the rows to go first")
        create_topic(node.bootstrap, "marker", 1, retention_ms="1")
        produce(node, "marker", 1, timestamp=1)
        eventually(lambda: start_offset(node, "marker") == 1, "retention to have run again")
        assert objects <= set(storage.object_sizes())


def test_the_objects_of_a_deleted_topic_go_too(storage: Storage, data_dir: Path) -> None:
    with Node(data_dir, *BRISK, *BUSY, *storage.options) as node:
        create_topic(node.bootstrap, "doomed", 2)
        produce(node, "doomed", 10, timestamp=int(time.time() * 1000))
        eventually(lambda: committed_records(storage, "doomed") == 10, "all committed")
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        admin.delete_topics(["doomed"])["doomed"].result(HUNG_SECONDS)
        eventually(lambda: storage.object_sizes() == {}, "its objects to be deleted")
        assert segments_of(storage) == []


def test_deleted_records_stay_deleted_after_a_crash(storage: Storage, data_dir: Path) -> None:
    with Node(data_dir, *BRISK, *BUSY, *storage.options) as node:
        create_topic(node.bootstrap, "cut", 1)
        produce(node, "cut", 10, timestamp=int(time.time() * 1000))
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        target = TopicPartition("cut", 0, 7)
        assert admin.delete_records([target])[target].result(HUNG_SECONDS).low_watermark == 7
        node.kill9()
        node.start()
        assert start_offset(node, "cut") == 7
        with RawConnection(node.address) as raw:
            assert read_offsets(raw, "cut", 7) == [7, 8, 9]
            assert raw.produce("cut", build_batch(b"next")).base_offset == 10
