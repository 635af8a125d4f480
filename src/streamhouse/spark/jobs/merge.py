"""`maintain merge`: many small segments become a few large ones; their batches are copied as they are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from streamhouse.client.planning import PlanningClient
from streamhouse.core.merging import Part, plan_rewrites, window_ms
from streamhouse.spark.jobs.logs import StoredLog, find_topics
from streamhouse.spark.jobs.objects import Objects
from streamhouse.spark.jobs.progress import Bars, no_bars
from streamhouse.spark.jobs.swap import Rewriting, Swap, Swapper
from streamhouse.spark.options import Connection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_TARGET_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Merging:
    """Topics by name, or all."""

    connection: Connection
    topics: Collection[str] = ()
    target_bytes: int = DEFAULT_TARGET_BYTES
    dry_run: bool = False


def merge(spark: SparkSession, job: Merging, *, bars: Bars = no_bars) -> list[Swap]:
    client = PlanningClient(job.connection.endpoint)
    objects = Objects(connection=job.connection, location=client.cluster().objects)
    swapper = Swapper(spark, client, bars)
    plan = partial(_plan, objects, job.target_bytes)
    swaps: list[Swap] = []
    for topic in find_topics(client, job.topics):
        swaps += swapper.preview(topic, plan) if job.dry_run else swapper.run(topic, plan)
    return swaps


def _plan(objects: Objects, target_bytes: int, logs: Sequence[StoredLog]) -> list[Rewriting]:
    return [
        Rewriting(
            log=log,
            run=run,
            kept_count=sum(log.segments[index].record_count for index in run),
            pointer=log.rewriting(run, {}, objects=objects, target_bytes=target_bytes),
        )
        for log in logs
        for run in _runs(log, target_bytes)
    ]


def _runs(log: StoredLog, target_bytes: int) -> list[range]:
    config = log.config
    return plan_rewrites(
        [Part(kept_bytes=segment.size_bytes, max_timestamp_ms=segment.max_timestamp_ms) for segment in log.segments],
        target_bytes=target_bytes,
        window_ms=window_ms(
            deletes="delete" in config.cleanup_policy,
            retention_ms=config.retention_ms,
            compacts="compact" in config.cleanup_policy,
            delete_retention_ms=config.delete_retention_ms,
        ),
    )
