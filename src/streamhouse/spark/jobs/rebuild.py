"""`maintain rebuild`: what the metadata store held, found again in the bucket, for the day when the database is lost.

Footers and directories tell which objects are the log (`core/rebuild.py`); those are then read whole, since a row needs
an object's checksum and a damaged object must not become part of a log. What is damaged is left out, and the choice is
made again without it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from streamhouse.core.rebuild import (
    EPOCHS_SKIPPED,
    FoundRange,
    FoundSegment,
    Gap,
    RebuiltMetadata,
    RebuiltPartition,
    RebuiltTopic,
    RebuiltWalObject,
    choose_ranges,
    choose_segments,
    first_offset,
    last_generation,
    next_producer_id,
)
from streamhouse.format.object_keys import (
    SEGMENTS_PREFIX,
    TOPICS_PREFIX,
    WAL_PREFIX,
    parse_segment_key,
    parse_wal_object_key,
)
from streamhouse.format.topic_descriptor import TopicDescriptor
from streamhouse.model.errors import NotFound
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import MAX_PARTITIONS
from streamhouse.runtime.clock import SystemClock
from streamhouse.spark.jobs.bucket import (
    AuditedSegment,
    Bucket,
    Damaged,
    FoundWalObject,
    Keys,
    audit_segments,
    audit_wal_objects,
    newest_descriptors,
    read_directories,
    read_footers,
)
from streamhouse.spark.jobs.pointers import run_pointers
from streamhouse.spark.jobs.progress import Bars, no_bars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Found = TypeVar("Found")

_SMALL_READS_AT_ONCE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild:
    """`wal_agent_id`: the agent whose own disk may hold records that the bucket does not, or nobody."""

    bucket: Bucket
    wal_agent_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingOffsets:
    topic: str
    partition: int
    gap: Gap


@dataclass(slots=True, kw_only=True)
class RebuildReport:
    """`metadata` is what can be restored; offsets that are `missing` are lost if it is. `strangers`: objects of topics
    that nothing describes, which are left alone."""

    metadata: RebuiltMetadata
    missing: list[MissingOffsets] = field(default_factory=list)
    damaged: list[Damaged] = field(default_factory=list)
    strangers: int = 0


def rebuild(spark: SparkSession, job: Rebuild, *, bars: Bars = no_bars) -> RebuildReport:
    return _Rebuilder(spark, job, bars).run()


class _Rebuilder:
    def __init__(self, spark: SparkSession, job: Rebuild, bars: Bars) -> None:
        self._spark = spark
        self._bucket = job.bucket
        self._wal_agent_id = job.wal_agent_id
        self._bars = bars
        self._damaged: list[Damaged] = []
        self._missing: list[MissingOffsets] = []
        self._segments: dict[TopicPartition, list[FoundSegment]] = defaultdict(list)
        self._ranges: dict[TopicPartition, list[FoundRange]] = defaultdict(list)
        self._counts: dict[UUID, int] = {}
        self._wal_objects: dict[str, FoundWalObject] = {}
        self._audits: dict[str, AuditedSegment] = {}

    def run(self) -> RebuildReport:
        store = self._bucket.open()
        descriptors, damaged = newest_descriptors(self._bucket, [info.key for info in store.list(TOPICS_PREFIX)])
        self._damaged += damaged
        if not descriptors:
            raise NotFound(
                f"no object under {TOPICS_PREFIX} of {self._bucket.url} describes a topic",
                hint="check --objects: this is not the bucket of a cluster, or of one that never had topics",
            )
        strangers = self._look_at(descriptors)
        self._settle_segments()
        self._settle_wal_objects()
        topics = tuple(self._topic(descriptor) for descriptor in descriptors)
        used = {each.object_key for topic in topics for partition in topic.partitions for each in partition.ranges}
        metadata = RebuiltMetadata(
            topics=topics,
            wal_objects=tuple(_wal_row(self._wal_objects[key]) for key in sorted(used)),
            next_producer_id=next_producer_id(SystemClock().now_ms()),
            wal_agent_id=self._wal_agent_id,
        )
        return RebuildReport(metadata=metadata, missing=self._missing, damaged=self._damaged, strangers=strangers)

    def _look_at(self, descriptors: Sequence[TopicDescriptor]) -> int:
        """Footers and directories of everything; returns how many objects belong to no described topic.

        A topic has as many partitions as its descriptor says or its objects show, whichever is more: it may have grown
        and not been described again before the database was lost."""
        self._counts = {descriptor.topic.topic_id: descriptor.topic.partition_count for descriptor in descriptors}
        store = self._bucket.open()
        partition_of = {
            info.key: TopicPartition(key.topic_id, key.partition)
            for info in store.list(SEGMENTS_PREFIX)
            if (key := parse_segment_key(info.key)) is not None
        }
        ours = [key for key, partition in partition_of.items() if self._is_described(partition)]
        for found in self._each("footers", ours, read_footers, _SMALL_READS_AT_ONCE):
            if isinstance(found, Damaged):
                self._damaged.append(found)
            else:
                self._segments[partition_of[found.object_key]].append(found)
        wal_keys = [info.key for info in store.list(WAL_PREFIX) if parse_wal_object_key(info.key) is not None]
        for wal in self._each("WAL directories", wal_keys, read_directories, _SMALL_READS_AT_ONCE):
            if isinstance(wal, Damaged):
                self._damaged.append(wal)
                continue
            self._wal_objects[wal.key] = wal
            for partition, found_range in wal.ranges:
                if self._is_described(partition):
                    self._ranges[partition].append(found_range)
        for partition in (*self._segments, *self._ranges):
            self._counts[partition.topic_id] = max(self._counts[partition.topic_id], partition.partition + 1)
        return len(partition_of) - len(ours)

    def _is_described(self, partition: TopicPartition) -> bool:
        return partition.topic_id in self._counts and 0 <= partition.partition < MAX_PARTITIONS

    def _settle_segments(self) -> None:
        """Until everything chosen was read and is whole."""
        while True:
            chosen = [segment for segments in self._segments.values() for segment in choose_segments(segments).extents]
            unread = [segment.object_key for segment in chosen if segment.object_key not in self._audits]
            if not unread:
                return
            for audit in self._each("segments", unread, audit_segments, 1):
                self._audits[audit.key] = audit
                if audit.problem:
                    self._damaged.append(Damaged(key=audit.key, problem=audit.problem))
            damaged = {audit.key for audit in self._audits.values() if audit.problem}
            for partition, segments in self._segments.items():
                self._segments[partition] = [each for each in segments if each.object_key not in damaged]

    def _settle_wal_objects(self) -> None:
        read: set[str] = set()
        while True:
            chosen = {each.object_key for partition in self._ranges for each in self._chosen_ranges(partition)[0]}
            if not chosen - read:
                return
            damaged = list(self._each("WAL objects", sorted(chosen - read), audit_wal_objects, 1))
            read |= chosen
            self._damaged += damaged
            gone = {each.key for each in damaged}
            for partition, ranges in self._ranges.items():
                self._ranges[partition] = [each for each in ranges if each.object_key not in gone]

    def _chosen_ranges(self, partition: TopicPartition) -> tuple[tuple[FoundRange, ...], tuple[Gap, ...]]:
        segments = choose_segments(self._segments[partition]).extents
        last_epoch = self._audits[segments[-1].object_key].epochs[-1][0] if segments else 0
        chosen = choose_ranges(
            self._ranges[partition],
            committed_end=segments[-1].end_offset if segments else None,
            last_epoch=last_epoch,
        )
        return chosen.extents, chosen.gaps

    def _topic(self, descriptor: TopicDescriptor) -> RebuiltTopic:
        topic = descriptor.topic
        return RebuiltTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            created_at_ms=topic.created_at_ms,
            config=topic.config,
            partitions=tuple(
                self._partition(topic.name, TopicPartition(topic.topic_id, number))
                for number in range(self._counts[topic.topic_id])
            ),
        )

    def _partition(self, topic: str, partition: TopicPartition) -> RebuiltPartition:
        chosen = choose_segments(self._segments[partition])
        ranges, range_gaps = self._chosen_ranges(partition)
        for gap in (*chosen.gaps, *range_gaps):
            self._missing.append(MissingOffsets(topic=topic, partition=partition.partition, gap=gap))
        segments = tuple(
            replace(segment, checksum=self._audits[segment.object_key].checksum) for segment in chosen.extents
        )
        first_range = ranges[0].base_offset if ranges else 0
        next_offset = segments[-1].end_offset if segments else first_range
        everything: list[FoundSegment | FoundRange] = [*self._segments[partition], *self._ranges[partition]]
        return RebuiltPartition(
            partition=partition.partition,
            log_start_offset=first_offset(segments, self._segments[partition]) if segments else first_range,
            next_offset=next_offset,
            durable_end=max(next_offset, ranges[-1].end_offset if ranges else 0),
            lease_epoch=max((each.epoch for each in everything), default=0) + EPOCHS_SKIPPED,
            generation=last_generation(self._segments[partition]),
            epochs=_epochs(self._audits[segment.object_key] for segment in segments),
            segments=segments,
            ranges=ranges,
        )

    def _each(
        self, what: str, keys: Sequence[str], work: Callable[[Keys], list[Found]], at_once: int
    ) -> Iterable[Found]:
        pointers = [
            Keys(bucket=self._bucket, keys=tuple(keys[start : start + at_once]))
            for start in range(0, len(keys), at_once)
        ]
        with self._bars(what, len(pointers)) as bar:
            return chain.from_iterable(run_pointers(self._spark, pointers, work, bar))


def _epochs(audits: Iterable[AuditedSegment]) -> tuple[tuple[int, int], ...]:
    """Where each epoch starts, among all segments of a log."""
    starts: list[tuple[int, int]] = []
    for audit in audits:
        starts += [each for each in audit.epochs if not starts or each[0] > starts[-1][0]]
    return tuple(starts)


def _wal_row(found: FoundWalObject) -> RebuiltWalObject:
    key = parse_wal_object_key(found.key)
    assert key is not None
    return RebuiltWalObject(object_key=found.key, agent_id=key.agent_id, size_bytes=found.size_bytes)
