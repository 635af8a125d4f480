"""`maintain compact`: of the records with one key, the latest stays, as in Kafka, and every offset keeps its value."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from streamhouse.client.planning import PlanningClient
from streamhouse.core.compaction import bucket_count, cleanable_count, kept_part, may_drop_tombstones
from streamhouse.core.merging import plan_rewrites, window_ms
from streamhouse.model.errors import InvalidConfig
from streamhouse.runtime.clock import Clock, SystemClock
from streamhouse.spark.jobs.logs import StoredLog, find_topics
from streamhouse.spark.jobs.objects import Objects
from streamhouse.spark.jobs.progress import Bars, no_bars
from streamhouse.spark.jobs.survivors import Kept, KeyPointer, find_survivors
from streamhouse.spark.jobs.swap import Rewriting, Swap, Swapper
from streamhouse.spark.options import Connection
from streamhouse.wire.http.planning import TopicAnswer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_TARGET_BYTES = 64 * 2**20
_NOTHING = Kept(count=0, bits=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Topics by name, or all that have cleanup.policy=compact."""

    connection: Connection
    topics: Collection[str] = ()
    target_bytes: int = DEFAULT_TARGET_BYTES
    dry_run: bool = False


def compact(spark: SparkSession, job: Compaction, *, bars: Bars = no_bars, clock: Clock | None = None) -> list[Swap]:
    client = PlanningClient(job.connection.endpoint)
    objects = Objects(connection=job.connection, location=client.cluster().objects)
    swapper = Swapper(spark, client, bars)
    now_ms = (clock or SystemClock()).now_ms()
    swaps: list[Swap] = []
    for topic in compacted(find_topics(client, job.topics), job.topics):
        plan = partial(_plan, spark, objects, job.target_bytes, now_ms, bars)
        swaps += swapper.preview(topic, plan) if job.dry_run else swapper.run(topic, plan)
    return swaps


def compacted(topics: Sequence[TopicAnswer], named: Collection[str]) -> list[TopicAnswer]:
    """Those that are; InvalidConfig if one that was named is not."""
    found = [topic for topic in topics if "compact" in topic.config["cleanup.policy"].split(",")]
    for topic in topics if named else ():
        if topic not in found:
            raise InvalidConfig(
                f"topic {topic.name!r} has cleanup.policy={topic.config['cleanup.policy']}, so it is not compacted",
                hint=f"`streamhouse topic alter {topic.name} --config cleanup.policy=compact` changes that",
            )
    return found


def _plan(
    spark: SparkSession, objects: Objects, target_bytes: int, now_ms: int, bars: Bars, logs: Sequence[StoredLog]
) -> list[Rewriting]:
    cleanable = [
        cleanable_count(log.segments, min_lag_ms=log.config.min_compaction_lag_ms, now_ms=now_ms) for log in logs
    ]
    parallelism = spark.sparkContext.defaultParallelism
    pointers = [
        pointer
        for number, (log, count) in enumerate(zip(logs, cleanable, strict=True))
        for pointer in _key_pointers(objects, number, log, count, parallelism, now_ms)
    ]
    survivors = find_survivors(spark, pointers, bars)
    rewritings: list[Rewriting] = []
    for number, (log, count) in enumerate(zip(logs, cleanable, strict=True)):
        kept = [survivors.get((number, index), _NOTHING) for index in range(count)]
        rewritings += _rewritings(objects, target_bytes, log, kept)
    return rewritings


def _key_pointers(
    objects: Objects, number: int, log: StoredLog, count: int, parallelism: int, now_ms: int
) -> list[KeyPointer]:
    segments = log.segments[:count]
    parts = bucket_count(sum(segment.size_bytes for segment in segments), parallelism=parallelism)
    return [
        KeyPointer(
            objects=objects,
            log=number,
            segment=index,
            key=segment.object_key,
            record_count=segment.record_count,
            drops_tombstones=may_drop_tombstones(
                segment, delete_retention_ms=log.config.delete_retention_ms, now_ms=now_ms
            ),
            parts=parts,
        )
        for index, segment in enumerate(segments)
    ]


def _rewritings(objects: Objects, target_bytes: int, log: StoredLog, kept: list[Kept]) -> list[Rewriting]:
    """The last record stays whatever it is, so that every segment has one and the log's end can be read from it."""
    if not kept:
        return []
    kept[-1] = _with_last(kept[-1], log.segments[len(kept) - 1].record_count)
    config = log.config
    runs = plan_rewrites(
        [kept_part(segment, each.count) for segment, each in zip(log.segments, kept, strict=False)],
        target_bytes=target_bytes,
        window_ms=window_ms(
            deletes="delete" in config.cleanup_policy,
            retention_ms=config.retention_ms,
            compacts=True,
            delete_retention_ms=config.delete_retention_ms,
        ),
    )
    return [
        Rewriting(
            log=log,
            run=run,
            kept_count=sum(kept[index].count for index in run),
            pointer=log.rewriting(
                run,
                {
                    index: kept[index].bits or b""
                    for index in run
                    if kept[index].count < log.segments[index].record_count
                },
                objects=objects,
                target_bytes=target_bytes,
            ),
        )
        for run in runs
    ]


def _with_last(kept: Kept, record_count: int) -> Kept:
    if kept.count == record_count:
        return kept
    flags = np.zeros(record_count, np.uint8)
    if kept.bits is not None:
        flags = np.unpackbits(np.frombuffer(kept.bits, np.uint8), count=record_count)
    flags[-1] = 1
    count = int(flags.sum())
    return Kept(count=count, bits=None if count == record_count else np.packbits(flags).tobytes())
