"""What objects say of themselves, read in the workers: topic descriptors, footers, directories, whole segments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from streamhouse.core.rebuild import FoundRange, FoundSegment
from streamhouse.format import wal_object
from streamhouse.format.object_keys import parse_segment_key, parse_topic_descriptor_key
from streamhouse.format.segment import decode_footer
from streamhouse.format.segment_index import FOOTER_BYTES, LINEAGE_BYTES
from streamhouse.format.topic_descriptor import TopicDescriptor, decode_descriptor
from streamhouse.model.errors import CorruptData, NotFound, StreamHouseError
from streamhouse.model.names import TopicPartition
from streamhouse.objects.blocking import BlockingStore, blocking_store
from streamhouse.objects.s3 import S3Options
from streamhouse.spark.jobs.audit import audit_segment, audit_wal_object

# Enough for the directory of most WAL objects; what is larger takes a second read.
_DIRECTORY_HINT_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """An object store as a node's settings name it, for every worker."""

    url: str
    s3: S3Options | None = None

    def open(self) -> BlockingStore:
        return blocking_store(self.url, self.s3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Objects to be looked at by one call."""

    bucket: Bucket
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundWalObject:
    key: str
    size_bytes: int
    ranges: tuple[tuple[TopicPartition, FoundRange], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedSegment:
    """`epochs` of its records, with the first offset of each; what is damaged has `problem` and nothing else."""

    key: str
    checksum: int = 0
    epochs: tuple[tuple[int, int], ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Damaged:
    key: str
    problem: str


def newest_descriptors(bucket: Bucket, keys: Iterable[str]) -> tuple[list[TopicDescriptor], list[Damaged]]:
    """Of every topic the one that counts, or an older one if that is damaged."""
    store = bucket.open()
    found: dict[UUID, TopicDescriptor] = {}
    damaged: list[Damaged] = []
    parsed = sorted(key for key in map(parse_topic_descriptor_key, keys) if key is not None)
    named = {parse_topic_descriptor_key(key): key for key in keys}
    for key in reversed(parsed):
        if key.topic_id in found:
            continue
        try:
            found[key.topic_id] = decode_descriptor(store.get(named[key]))
        except CorruptData as problem:
            damaged.append(Damaged(key=named[key], problem=problem.message))
    return sorted(found.values(), key=lambda descriptor: descriptor.topic.name), damaged


def read_footers(pointer: Keys) -> list[FoundSegment | Damaged]:
    """Of segments; those that are gone meanwhile are left out."""
    store = pointer.bucket.open()
    found: list[FoundSegment | Damaged] = []
    for key in pointer.keys:
        named = parse_segment_key(key)
        assert named is not None
        try:
            suffix, size_bytes = store.get_suffix(key, LINEAGE_BYTES + FOOTER_BYTES)
            footer = decode_footer(suffix, size_bytes)
        except NotFound:
            continue
        except StreamHouseError as problem:
            found.append(Damaged(key=key, problem=problem.message))
            continue
        if footer.epoch != named.epoch or not named.base_offset <= footer.base_offset < footer.end_offset:
            found.append(Damaged(key=key, problem="its footer does not fit its key"))
            continue
        found.append(
            FoundSegment(
                object_key=key,
                base_offset=named.base_offset,
                end_offset=footer.end_offset,
                record_count=footer.record_count,
                size_bytes=size_bytes,
                min_timestamp_ms=footer.min_timestamp_ms,
                max_timestamp_ms=footer.max_timestamp_ms,
                epoch=footer.epoch,
                attempt=named.unique,
                lineage=footer.lineage,
            )
        )
    return found


def read_directories(pointer: Keys) -> list[FoundWalObject | Damaged]:
    """Of WAL objects; those that are gone meanwhile are left out."""
    store = pointer.bucket.open()
    found: list[FoundWalObject | Damaged] = []
    for key in pointer.keys:
        try:
            suffix, size_bytes = store.get_suffix(key, _DIRECTORY_HINT_BYTES)
            footer = wal_object.decode_footer(suffix, size_bytes)
            start = footer.directory_position - (size_bytes - len(suffix))
            directory = (
                memoryview(suffix)[start : start + footer.directory_end - footer.directory_position]
                if start >= 0
                else store.get_range(key, footer.directory_position, footer.directory_end)
            )
            entries = wal_object.decode_directory(directory, footer)
        except NotFound:
            continue
        except StreamHouseError as problem:
            found.append(Damaged(key=key, problem=problem.message))
            continue
        ranges = tuple((entry.partition, _found_range(key, entry)) for entry in entries)
        found.append(FoundWalObject(key=key, size_bytes=size_bytes, ranges=ranges))
    return found


def audit_segments(pointer: Keys) -> list[AuditedSegment]:
    store = pointer.bucket.open()
    audited: list[AuditedSegment] = []
    for key in pointer.keys:
        try:
            audit = audit_segment(store.get(key))
        except NotFound:
            audited.append(AuditedSegment(key=key, problem="is not there any more"))
            continue
        audited.append(
            AuditedSegment(
                key=key, checksum=audit.checksum, epochs=tuple(audit.epochs), problem="; ".join(audit.problems)
            )
        )
    return audited


def audit_wal_objects(pointer: Keys) -> list[Damaged]:
    """Those that are not whole."""
    store = pointer.bucket.open()
    damaged: list[Damaged] = []
    for key in pointer.keys:
        try:
            _, problems = audit_wal_object(store.get(key))
        except NotFound:
            problems = ["is not there any more"]
        if problems:
            damaged.append(Damaged(key=key, problem="; ".join(problems)))
    return damaged


def _found_range(key: str, entry: wal_object.RangeEntry) -> FoundRange:
    return FoundRange(
        object_key=key,
        base_offset=entry.base_offset,
        end_offset=entry.end_offset,
        epoch=entry.epoch,
        position=entry.position,
        size_bytes=entry.size_bytes,
        checksum=entry.checksum,
    )
