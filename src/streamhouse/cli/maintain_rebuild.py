"""The steps of `streamhouse maintain rebuild` around the Spark job: who may, what for, and writing it down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import uvloop

from streamhouse.app.options import objects_url, s3_options
from streamhouse.cli.console import print_error
from streamhouse.cli.maintain_report import print_rebuilt
from streamhouse.log.data_directory import DataDirectory
from streamhouse.log.wal_files import wal_paths
from streamhouse.metadata.open import open_metadata
from streamhouse.model.errors import AlreadyExists, NotFound
from streamhouse.model.settings import Settings
from streamhouse.runtime.clock import SystemClock
from streamhouse.spark.jobs.bucket import Bucket
from streamhouse.spark.jobs.rebuild import Rebuild, RebuildReport, rebuild

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamhouse.core.rebuild import RebuiltMetadata
    from streamhouse.spark.jobs.progress import Bars


def run_rebuild(
    spark: SparkSession,
    settings: Settings,
    *,
    wal_agent: str | None,
    accept_gaps: bool,
    dry_run: bool,
    as_json: bool,
    bars: Bars,
) -> int:
    """The exit code: 1 if offsets are missing and nobody said that it may be so."""
    with _own_wal_agent(Path(settings.data_dir)) as own_agent:
        bucket = Bucket(url=_absolute(objects_url(settings)), s3=s3_options(settings))
        agent = own_agent if wal_agent is None else wal_agent
        report = rebuild(spark, Rebuild(bucket=bucket, wal_agent_id=agent), bars=bars)
        allowed = accept_gaps or not report.missing
        if allowed and not dry_run:
            _restore(settings, report)
        print_rebuilt(report, as_json=as_json, restored=allowed and not dry_run)
    if not allowed:
        print_error("offsets are missing, so nothing was restored (--accept-gaps restores what can be read)")
    return 0 if allowed else 1


@contextmanager
def _own_wal_agent(data_dir: Path) -> Iterator[str]:
    """The agent of this directory if it has a WAL, else nobody; no node can use it meanwhile."""
    if not data_dir.is_dir():
        yield ""
        return
    directory = DataDirectory(data_dir)
    try:
        has_wal = any(True for _ in wal_paths(directory.wal))
        yield directory.agent_id() if has_wal else ""
    finally:
        directory.close()


def _absolute(url: str) -> str:
    """Workers need not run where we do. Opening a directory would make it, which looking for a log should not."""
    scheme, _, path = url.partition(":")
    if scheme != "file":
        return url
    directory = Path(unquote(path.removeprefix("//"))).absolute()
    if not directory.is_dir():
        raise NotFound(f"there is no object store {str(directory)!r}", hint="give --objects or --data-dir")
    return directory.as_uri()


def _restore(settings: Settings, report: RebuildReport) -> None:
    url = settings.metadata or f"sqlite:{quote(settings.data_dir)}/metadata.db"
    uvloop.run(_write(url, report.metadata))


async def _write(url: str, metadata: RebuiltMetadata) -> None:
    store = await open_metadata(url, SystemClock())
    try:
        there = {topic.name for topic in await store.list_topics()}
        taken = [topic.name for topic in metadata.topics if topic.name in there]
        if taken:
            raise AlreadyExists(
                f"the metadata store has topics already, {taken[0]!r} among them",
                hint="rebuild into an empty one: the old one may know more than the bucket",
            )
        await store.restore(metadata)
    finally:
        await store.close()
