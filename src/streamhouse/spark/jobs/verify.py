"""`maintain verify`: every checksum, offset and record of a bucket, read in parallel while the cluster runs.

Nothing stands still meanwhile: what is wrong with a segment counts only if it is still registered afterwards."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from streamhouse.client.planning import PlanningClient
from streamhouse.core.seams import find_breaks, find_end_breaks, name_extent
from streamhouse.format.object_keys import (
    SEGMENTS_PREFIX,
    WAL_PREFIX,
    parse_segment_key,
    parse_wal_object_key,
    segment_prefix,
)
from streamhouse.model.errors import NotFound
from streamhouse.objects.store import ObjectInfo
from streamhouse.runtime.clock import SystemClock
from streamhouse.spark.jobs.audit import against_row, audit_segment, audit_wal_object
from streamhouse.spark.jobs.logs import find_topics
from streamhouse.spark.jobs.objects import Objects
from streamhouse.spark.jobs.pointers import run_pointers
from streamhouse.spark.jobs.progress import Bars, no_bars
from streamhouse.spark.options import Connection
from streamhouse.wire.http.planning import SegmentInfo, SegmentsAnswer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_SETTLING_MS = 3_600_000
_MISSING = "is not there"


class Severity(Enum):
    """A note is worth knowing and nothing to worry about."""

    VIOLATION = "violation"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    severity: Severity
    subject: str
    message: str


@dataclass(slots=True, kw_only=True)
class Report:
    partitions: int = 0
    segments: int = 0
    wal_objects: int = 0
    records: int = 0
    bytes_read: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def violations(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity is Severity.VIOLATION]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Topics by name, or everything in the bucket. Objects that nothing refers to and that are younger than
    `settling_ms` may be on their way, or on their way out, and are not told of."""

    connection: Connection
    topics: Collection[str] = ()
    settling_ms: int = DEFAULT_SETTLING_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    topic: str
    partition: int
    answer: SegmentsAnswer

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _SegmentPointer:
    objects: Objects
    log: int
    row: SegmentInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class _WalPointer:
    objects: Objects
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Audited:
    """`problems` of one object; a missing one has just that."""

    problems: tuple[str, ...]
    records: int = 0
    bytes_read: int = 0


def survey(job: Verification) -> Report:
    """How much there is to check, without reading it."""
    client = PlanningClient(job.connection.endpoint)
    logs = _logs(client, job.topics)
    report = Report(partitions=len(logs), segments=sum(len(log.answer.segments) for log in logs))
    if not job.topics:
        objects = Objects(connection=job.connection, location=client.cluster().objects)
        report.wal_objects = len(objects.open().list(WAL_PREFIX))
    return report


def verify(spark: SparkSession, job: Verification, *, bars: Bars = no_bars) -> Report:
    client = PlanningClient(job.connection.endpoint)
    objects = Objects(connection=job.connection, location=client.cluster().objects)
    logs = _logs(client, job.topics)
    report = Report(partitions=len(logs))
    for log in logs:
        _check_seams(report, log)
    _check_segments(spark, client, objects, logs, report, bars)
    store = objects.open()
    unsettled_ms = SystemClock().now_ms() - job.settling_ms
    if job.topics:
        prefixes = [segment_prefix(log.answer.topic_id, log.partition) for log in logs]
        listed = [info for prefix in prefixes for info in store.list(prefix)]
    else:
        _check_wal_objects(spark, objects, [info.key for info in store.list(WAL_PREFIX)], report, bars)
        listed = store.list(SEGMENTS_PREFIX)
    _note_extra(report, client, logs, [info for info in listed if info.modified_at_ms <= unsettled_ms])
    return report


def _logs(client: PlanningClient, topics: Collection[str]) -> list[_Log]:
    return [
        _Log(topic=topic.name, partition=partition, answer=client.segments(topic.name, partition))
        for topic in find_topics(client, topics)
        for partition in range(topic.partition_count)
    ]


def _check_seams(report: Report, log: _Log) -> None:
    answer = log.answer
    for problem in find_breaks("segment", answer.segments):
        _violation(report, str(log), problem)
    for problem in find_end_breaks(answer.segments, answer.log_start_offset, answer.committed_end):
        _violation(report, str(log), problem)


def _check_segments(
    spark: SparkSession, client: PlanningClient, objects: Objects, logs: Sequence[_Log], report: Report, bars: Bars
) -> None:
    pointers = [
        _SegmentPointer(objects=objects, log=number, row=row)
        for number, log in enumerate(logs)
        for row in log.answer.segments
    ]
    with bars("segments", len(pointers)) as bar:
        audits = run_pointers(spark, pointers, _audit_segment, bar)
    report.segments += len(pointers)
    _count(report, audits)
    suspects = [(pointer, audit) for pointer, audit in zip(pointers, audits, strict=True) if audit.problems]
    registered = _registered(client, [logs[pointer.log] for pointer, _ in suspects])
    for pointer, audit in suspects:
        if pointer.row.object_key in registered:
            subject = f"{logs[pointer.log]} {name_extent('segment', pointer.row)}"
            for problem in audit.problems:
                _violation(report, subject, f"object {pointer.row.object_key}: {problem}")


def _check_wal_objects(spark: SparkSession, objects: Objects, keys: Sequence[str], report: Report, bars: Bars) -> None:
    """They carry their own directory. One that is gone by now was no longer needed: nobody else removes them."""
    ours = [key for key in keys if parse_wal_object_key(key) is not None]
    with bars("WAL objects", len(ours)) as bar:
        audits = run_pointers(spark, [_WalPointer(objects=objects, key=key) for key in ours], _audit_wal_object, bar)
    report.wal_objects += len(ours)
    _count(report, audits)
    for key, audit in zip(ours, audits, strict=True):
        for problem in audit.problems:
            _violation(report, f"WAL object {key}", problem)


def _note_extra(report: Report, client: PlanningClient, logs: Sequence[_Log], listed: Iterable[ObjectInfo]) -> None:
    known = {row.object_key for log in logs for row in log.answer.segments}
    extra = [info.key for info in listed if info.key not in known and parse_segment_key(info.key) is not None]
    if extra:
        # Now, not before: what was registered during the run is known by now.
        known = _registered(client, logs)
    for key in extra:
        if key not in known:
            report.findings.append(
                Finding(severity=Severity.NOTE, subject=f"object {key}", message="is referred to by nothing")
            )


def _registered(client: PlanningClient, logs: Iterable[_Log]) -> set[str]:
    """The keys of all segments that these partitions have now."""
    keys: set[str] = set()
    for topic, partition in {(log.topic, log.partition) for log in logs}:
        try:
            keys |= {row.object_key for row in client.segments(topic, partition).segments}
        except NotFound:
            continue  # the topic was deleted meanwhile
    return keys


def _count(report: Report, audits: Iterable[_Audited]) -> None:
    for audit in audits:
        report.records += audit.records
        report.bytes_read += audit.bytes_read


def _violation(report: Report, subject: str, message: str) -> None:
    report.findings.append(Finding(severity=Severity.VIOLATION, subject=subject, message=message))


def _audit_segment(pointer: _SegmentPointer) -> _Audited:
    try:
        data = pointer.objects.open().get(pointer.row.object_key)
    except NotFound:
        return _Audited(problems=(_MISSING,))
    audit = audit_segment(data)
    return _Audited(
        problems=(*audit.problems, *against_row(audit, pointer.row)),
        records=audit.record_count,
        bytes_read=len(data),
    )


def _audit_wal_object(pointer: _WalPointer) -> _Audited:
    try:
        data = pointer.objects.open().get(pointer.key)
    except NotFound:
        return _Audited(problems=())
    entries, problems = audit_wal_object(data)
    return _Audited(
        problems=tuple(problems),
        records=sum(entry.end_offset - entry.base_offset for entry in entries),
        bytes_read=len(data),
    )
