"""The steps of `streamhouse maintain rebuild` around the Spark job: who may, what for, and writing it down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import uvloop

from streamhouse.app.options import metadata_url, objects_url, s3_options
from streamhouse.cli.console import print_error
from streamhouse.cli.maintain_report import print_rebuilt
from streamhouse.cli.object_store import opened_objects
from streamhouse.cli.usage import refusing_as_usage
from streamhouse.format.object_keys import SEGMENTS_PREFIX
from streamhouse.log.data_directory import DataDirectory
from streamhouse.log.wal_files import wal_paths
from streamhouse.metadata.open import metadata_file, open_metadata
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
    settings: Settings,
    session: Callable[[], AbstractContextManager[SparkSession]],
    *,
    wal_agent: str | None,
    accept_gaps: bool,
    dry_run: bool,
    as_json: bool,
    bars: Bars,
) -> int:
    """The exit code: 1 if offsets are missing and nobody said that it may be so."""
    with _own_wal_agent(Path(settings.data_dir)) as own_agent:
        with refusing_as_usage():
            url = _absolute(objects_url(settings))
        bucket = Bucket(url=url, s3=s3_options(settings))
        agent = own_agent if wal_agent is None else wal_agent
        _check_stores(settings, restores=not dry_run)
        with session() as spark:
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


def _check_stores(settings: Settings, *, restores: bool) -> None:
    """That both answer, before Spark is started and reads for long."""

    async def look() -> None:
        async with opened_objects(settings) as objects:
            async for _ in objects.list(SEGMENTS_PREFIX):
                break
        file = metadata_file(metadata_url(settings))
        if restores and (file is None or file.is_file()):
            await (await open_metadata(metadata_url(settings), SystemClock())).close()

    uvloop.run(look())


def _restore(settings: Settings, report: RebuildReport) -> None:
    uvloop.run(_write(metadata_url(settings), report.metadata))


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
