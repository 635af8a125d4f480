"""Segments rewritten in the workers and put in the place of the old ones, a few at a time.

A run that is killed has done what was swapped in; the rest is planned again by the next one. What workers stored and
nobody registered is removed by the node, as any upload that came to nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from streamhouse.client.planning import PlanningClient
from streamhouse.model.errors import Fenced, NotFound, Unavailable
from streamhouse.runtime.entropy import new_uuid
from streamhouse.spark.jobs.logs import StoredLog, stored_log
from streamhouse.spark.jobs.pointers import run_pointers
from streamhouse.spark.jobs.progress import Bars
from streamhouse.spark.jobs.rewrite import RewritePointer, rewrite
from streamhouse.wire.http.planning import ReplaceRequest, SegmentInfo, TopicAnswer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# So that little is lost with a killed run, and cores do not wait for one another too often.
_RUNS_PER_CORE = 4
_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriting:
    """Neighbouring segments of a log, by their numbers in it, which are to become others. `kept_count` of their records
    stay."""

    log: StoredLog
    run: range
    kept_count: int
    pointer: RewritePointer

    @property
    def removed(self) -> tuple[SegmentInfo, ...]:
        return self.log.segments[self.run.start : self.run.stop]


Plan: TypeAlias = Callable[[Sequence[StoredLog]], list[Rewriting]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """Segments that were replaced, or would be: then it is not known yet how many and how large the new ones are."""

    topic: str
    partition: int
    base_offset: int
    end_offset: int
    segments_before: int
    segments_after: int | None
    records_before: int
    records_after: int
    bytes_before: int
    bytes_after: int | None


class Swapper:
    def __init__(self, spark: SparkSession, client: PlanningClient, bars: Bars) -> None:
        self._spark = spark
        self._client = client
        self._bars = bars

    def preview(self, topic: TopicAnswer, plan: Plan) -> list[Swap]:
        logs = [stored_log(self._client, topic, partition) for partition in range(topic.partition_count)]
        return [_swap(rewriting, None) for rewriting in plan(logs)]

    def run(self, topic: TopicAnswer, plan: Plan) -> list[Swap]:
        """Plan, rewrite, replace; and plan again for logs whose segments changed meanwhile, or for which another job
        has made a plan since."""
        done: list[Swap] = []
        partitions = set(range(topic.partition_count))
        for _ in range(_TRIES):
            logs = [stored_log(self._client, topic, partition, to_replace=True) for partition in sorted(partitions)]
            partitions = set()
            for wave in self._waves(plan(logs)):
                # Of a plan that was overtaken nothing more is wanted.
                current = [each for each in wave if each.log.partition not in partitions]
                if current:
                    swapped, overtaken = self._swap_wave(current)
                    done += swapped
                    partitions |= overtaken
            if not partitions:
                return done
        names = ", ".join(f"{topic.name}/{partition}" for partition in sorted(partitions))
        raise Unavailable(
            f"the segments of {names} changed each time that they were looked at",
            hint="run the command again when retention, or another such command, is done with them",
        )

    def _waves(self, rewritings: Sequence[Rewriting]) -> Iterator[Sequence[Rewriting]]:
        size = _RUNS_PER_CORE * self._spark.sparkContext.defaultParallelism
        for start in range(0, len(rewritings), size):
            yield rewritings[start : start + size]

    def _swap_wave(self, wave: Sequence[Rewriting]) -> tuple[list[Swap], set[int]]:
        """What was done, and the partitions for which the plan no longer held."""
        description = f"rewriting {wave[0].log.topic}"
        with self._bars(description, len(wave)) as bar:
            try:
                stored = run_pointers(self._spark, [each.pointer for each in wave], rewrite, bar)
            except NotFound:
                # Replaced by others so long ago that the old objects are gone.
                return [], {each.log.partition for each in wave}
        swapped: list[Swap] = []
        overtaken: set[int] = set()
        for rewriting, added in zip(wave, stored, strict=True):
            if self._replace(rewriting, added):
                swapped.append(_swap(rewriting, added))
            else:
                overtaken.add(rewriting.log.partition)
        return swapped, overtaken

    def _replace(self, rewriting: Rewriting, added: Sequence[SegmentInfo]) -> bool:
        try:
            self._client.replace(
                ReplaceRequest(
                    topic=rewriting.log.topic,
                    partition=rewriting.log.partition,
                    # The client repeats the request as it is when no answer comes, and the node knows it by this.
                    commit_id=new_uuid(),
                    removed=[segment.object_key for segment in rewriting.removed],
                    added=list(added),
                )
            )
        except (Fenced, NotFound):
            return False
        return True


def _swap(rewriting: Rewriting, added: Sequence[SegmentInfo] | None) -> Swap:
    removed = rewriting.removed
    return Swap(
        topic=rewriting.log.topic,
        partition=rewriting.log.partition,
        base_offset=removed[0].base_offset,
        end_offset=removed[-1].end_offset,
        segments_before=len(removed),
        segments_after=None if added is None else len(added),
        records_before=sum(segment.record_count for segment in removed),
        records_after=rewriting.kept_count,
        bytes_before=sum(segment.size_bytes for segment in removed),
        bytes_after=None if added is None else sum(segment.size_bytes for segment in added),
    )
