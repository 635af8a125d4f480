"""The driver of an export: what is new is cut into files, workers write them, and a few at a time are committed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

from streamhouse.client.planning import PlanningClient
from streamhouse.core.scan_plan import ScanPiece
from streamhouse.model.errors import InvalidConfig, Unavailable
from streamhouse.runtime.entropy import new_uuid
from streamhouse.spark.jobs.export.delta import DeltaTarget
from streamhouse.spark.jobs.export.file_task import FilePointer, write_file
from streamhouse.spark.jobs.export.iceberg import IcebergTarget
from streamhouse.spark.jobs.export.parquet import ParquetTarget
from streamhouse.spark.jobs.export.target import FileRange, Target, Wave
from streamhouse.spark.jobs.logs import find_topics
from streamhouse.spark.jobs.pointers import run_pointers
from streamhouse.spark.jobs.progress import Bars, no_bars
from streamhouse.spark.options import Connection
from streamhouse.spark.pipelines.sinks.data_files import DataFile, directory_at
from streamhouse.spark.source.ranges import find_ranges
from streamhouse.wire.http.planning import (
    EARLIEST,
    LATEST,
    ObjectsLocation,
    OffsetQuestion,
    RangeQuestion,
    TopicAnswer,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMATS = ("parquet", "delta", "iceberg")

Files: TypeAlias = dict[FileRange, tuple[ScanPiece, ...]]
"""What each file is made from, in the order of their offsets."""

_FILE_BYTES = 32 * 2**20
_PIECE_BYTES = 16 * 2**20
_FILES_PER_CORE = 4
_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """`location`: a directory or s3://bucket/prefix. `options` are what deltalake, pyiceberg or S3 need to be told."""

    connection: Connection
    topic: str
    format: str
    location: str
    options: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Of one partition: [start, end) was or would be exported; `lost` offsets before it were deleted before that."""

    partition: int
    start: int
    end: int
    lost: int


@dataclass(slots=True, kw_only=True)
class ExportReport:
    partitions: list[Exported]
    files: int = 0
    rows: int = 0
    bytes_written: int = 0


def export(spark: SparkSession, job: Export, *, bars: Bars = no_bars) -> ExportReport:
    client = PlanningClient(job.connection.endpoint)
    (topic,) = find_topics(client, [job.topic])
    target = _open_target(job, topic)
    exporter = _Exporter(spark, client, job.connection, topic, target, bars)
    if job.dry_run:
        return ExportReport(partitions=exporter.missing(target.exported()))
    return exporter.run()


def _open_target(job: Export, topic: TopicAnswer) -> Target:
    match job.format:
        case "parquet":
            return ParquetTarget(directory_at(job.location, job.options), topic.topic_id)
        case "delta":
            return DeltaTarget(job.location, job.options, topic.topic_id, topic.partition_count)
        case "iceberg":
            return IcebergTarget(job.location, job.options, topic.name, topic.topic_id)
        case _:
            raise InvalidConfig(f"{job.format!r} is not a format", hint=f"there are {', '.join(FORMATS)}")


class _Exporter:
    def __init__(
        self,
        spark: SparkSession,
        client: PlanningClient,
        connection: Connection,
        topic: TopicAnswer,
        target: Target,
        bars: Bars,
    ) -> None:
        self._spark = spark
        self._client = client
        self._connection = connection
        self._topic = topic
        self._target = target
        self._bars = bars
        self._location: ObjectsLocation = client.cluster().objects
        self._ends = self._offsets(LATEST)

    def run(self) -> ExportReport:
        """All that the log has when the run starts."""
        report = ExportReport(partitions=[])
        unfinished = self._target.unfinished()
        if unfinished is not None:
            self._export(unfinished, self._find(unfinished.ranges), report)
        report.partitions = self.missing(self._target.exported())
        for _ in range(_TRIES):
            if all(self._export_next(files, report) for files in self._waves(self.missing(self._target.exported()))):
                return report
        raise Unavailable("another export of the topic moves the target each time", hint="run one at a time")

    def missing(self, exported: Mapping[int, int]) -> list[Exported]:
        earliest = self._offsets(EARLIEST)
        return [
            Exported(
                partition=partition,
                start=max(earliest[partition], exported.get(partition, 0)),
                end=self._ends[partition],
                # What was gone before the first export was never asked for.
                lost=max(0, earliest[partition] - exported[partition]) if partition in exported else 0,
            )
            for partition in range(self._topic.partition_count)
            if max(earliest[partition], exported.get(partition, 0)) < self._ends[partition]
        ]

    def _offsets(self, which: int) -> list[int]:
        questions = [
            OffsetQuestion(topic=self._topic.name, partition=partition, timestamp_ms=which)
            for partition in range(self._topic.partition_count)
        ]
        return [offset or 0 for offset in self._client.offsets(questions)]

    def _waves(self, missing: Sequence[Exported]) -> Iterator[Files]:
        """So many files that all cores are busy, and so few that a killed run has not lost much."""
        files = self._cut(missing)
        # Of every partition the first files, then the next ones: those of a partition stay in order.
        numbered = [
            (number, each)
            for _, of_partition in groupby(files, key=lambda each: each.partition)
            for number, each in enumerate(of_partition)
        ]
        ordered = [each for _, each in sorted(numbered, key=lambda pair: pair[0])]
        size = _FILES_PER_CORE * self._spark.sparkContext.defaultParallelism
        for start in range(0, len(ordered), size):
            yield {each: files[each] for each in ordered[start : start + size]}

    def _cut(self, missing: Sequence[Exported]) -> Files:
        """Into files of about the same size, whose ranges leave nothing out."""
        whole = [FileRange(each.partition, each.start, each.end) for each in missing]
        files: Files = {}
        for asked, pieces in self._find(whole).items():
            groups = list(_grouped(pieces)) or [()]
            starts = [asked.start, *(group[0].start for group in groups[1:])]
            for group, start, end in zip(groups, starts, [*starts[1:], asked.end], strict=True):
                files[FileRange(asked.partition, start, end)] = group
        return files

    def _find(self, ranges: Sequence[FileRange]) -> Files:
        questions = [
            RangeQuestion(topic=self._topic.name, partition=each.partition, start=each.start, end=each.end)
            for each in ranges
        ]
        found = find_ranges(self._client, questions, piece_bytes=_PIECE_BYTES, presign=False)
        return {each: there.pieces for each, there in zip(ranges, found, strict=True)}

    def _export_next(self, files: Files, report: ExportReport) -> bool:
        wave = Wave(ranges=tuple(files))
        begun = self._target.begin(wave)
        return self._export(begun, files if begun == wave else self._find(begun.ranges), report) and begun == wave

    def _export(self, wave: Wave, files: Files, report: ExportReport) -> bool:
        """Whether it counts now; if not, somebody else was faster, and what there is to do has changed."""
        pointers = [
            FilePointer(
                connection=self._connection,
                location=self._location,
                pieces=pieces,
                directory=self._target.directory,
                key=self._key(each),
            )
            for each, pieces in files.items()
        ]
        with self._bars(f"exporting {self._topic.name}", len(pointers)) as bar:
            written = [file for file in run_pointers(self._spark, pointers, write_file, bar) if file.row_count]
        if not self._target.commit(wave, written):
            if not self._target.names_by_range:
                self._target.directory.remove(DataFile(*file) for file in written)
            return False
        _count(report, written)
        return True

    def _key(self, of: FileRange) -> str:
        name = f"{self._topic.topic_id}-{of.partition:05d}-{of.start:020d}-{of.end:020d}"
        return f"{name}.parquet" if self._target.names_by_range else f"{name}-{new_uuid()}.parquet"


def _grouped(pieces: Sequence[ScanPiece]) -> Iterator[tuple[ScanPiece, ...]]:
    group: list[ScanPiece] = []
    size_bytes = 0
    for piece in pieces:
        if group and size_bytes + piece.size_bytes > _FILE_BYTES:
            yield tuple(group)
            group, size_bytes = [], 0
        group.append(piece)
        size_bytes += piece.size_bytes
    if group:
        yield tuple(group)


def _count(report: ExportReport, files: Sequence[DataFile]) -> None:
    report.files += len(files)
    report.rows += sum(file.row_count for file in files)
    report.bytes_written += sum(file.size_bytes for file in files)
