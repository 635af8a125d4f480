"""The driver's part of a scan: offset ranges become tasks, and records that are gone are reported."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from streamhouse.client.planning import PlanningClient
from streamhouse.core.scan_plan import SMALL_TASK_BYTES, ScanPiece, plan_tasks, task_count
from streamhouse.spark.source.data_loss import DataLoss
from streamhouse.spark.source.options import SourceOptions
from streamhouse.spark.source.positions import TopicPartition
from streamhouse.spark.source.ranges import FoundRange, find_ranges
from streamhouse.spark.source.task import ScanTask
from streamhouse.wire.http.planning import ObjectsLocation, RangeQuestion

# Below this a read costs more in being asked for than in being done.
_SMALLEST_PIECE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRange:
    """`from_earliest`: it starts wherever the log does, so that nothing of it can have been deleted."""

    partition: TopicPartition
    start: int
    end: int
    topic_id: UUID | None = None
    from_earliest: bool = False
    min_timestamp_ms: int | None = None
    max_timestamp_ms: int | None = None

    def question(self) -> RangeQuestion:
        return RangeQuestion(
            topic=self.partition.topic,
            partition=self.partition.partition,
            start=self.start,
            end=self.end,
            min_timestamp_ms=self.min_timestamp_ms,
            max_timestamp_ms=self.max_timestamp_ms,
            topic_id=self.topic_id,
        )


class ScanPlanner:
    def __init__(self, client: PlanningClient, options: SourceOptions) -> None:
        self._client = client
        self._options = options
        self._data_loss = DataLoss(is_fatal=options.fail_on_data_loss)

    def tasks(self, wanted: Iterable[WantedRange]) -> list[ScanTask]:
        """Tasks by bytes: one for many small ranges, many for a large one."""
        ranges = [each for each in wanted if each.end > each.start]
        min_tasks = self._options.min_partitions or 1
        found = self._find(ranges, SMALL_TASK_BYTES)
        for each, there in zip(ranges, found, strict=True):
            self._check_complete(each, there)
        pieces = _pieces(found)
        if pieces and len(pieces) < min_tasks:
            finer = sum(piece.size_bytes for piece in pieces) // min_tasks
            pieces = _pieces(self._find(ranges, max(finer, _SMALLEST_PIECE_BYTES)))
        count = task_count(pieces, parallelism=os.cpu_count() or 1, min_tasks=min_tasks)
        return [ScanTask(task, self._location) for task in plan_tasks(pieces, count=count)]

    @cached_property
    def _location(self) -> ObjectsLocation:
        """Asked once: where the objects are does not change under a running query."""
        return self._client.cluster().objects

    def _find(self, ranges: Sequence[WantedRange], piece_bytes: int) -> list[FoundRange]:
        questions = [each.question() for each in ranges]
        return find_ranges(self._client, questions, piece_bytes=piece_bytes, presign=self._options.presign)

    def _check_complete(self, wanted: WantedRange, found: FoundRange) -> None:
        if found.log_start_offset > wanted.start and not wanted.from_earliest:
            gone_end = min(found.log_start_offset, wanted.end)
            self._data_loss.report(
                f"records {wanted.start} to {gone_end - 1} of {wanted.partition} have been deleted; "
                f"it starts at offset {found.log_start_offset}"
            )
        if found.high_watermark < wanted.end:
            self._data_loss.report(
                f"{wanted.partition} was to be read up to offset {wanted.end}, but ends at {found.high_watermark}"
            )


def _pieces(found: Iterable[FoundRange]) -> list[ScanPiece]:
    return [piece for each in found for piece in each.pieces]
