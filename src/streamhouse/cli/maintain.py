"""`streamhouse maintain …`: compact, merge, export, verify and rebuild logs, on Spark."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from streamhouse.cli.completing import complete_directories, complete_topics
from streamhouse.cli.console import progress_bar
from streamhouse.cli.options import (
    DEFAULT_BOOTSTRAP,
    as_duration_ms,
    as_size_bytes,
    as_topic_name,
    as_topic_names,
    json_option,
    parse_assignments,
)
from streamhouse.cli.settings_options import effective_settings, settings_options
from streamhouse.cli.spark_node import endpoints_of, spark_node_option, topics_of
from streamhouse.model.errors import InvalidConfig
from streamhouse.model.extras import install_hint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamhouse.model.settings import Settings
    from streamhouse.spark.jobs.progress import Bars
    from streamhouse.spark.options import Connection

Command = TypeVar("Command", bound=Callable[..., Any])

_S3_SETTINGS = ("s3_endpoint", "s3_region", "s3_access_key_id", "s3_secret_access_key", "s3_session_token")


@click.group(short_help="Compact, merge, export, verify and rebuild logs, on Spark.")
def maintain() -> None:
    """Compact, merge, export, verify and rebuild logs, on Spark.

    Jobs run on this machine's cores, or on any cluster by its --master. Each can be killed at any moment and run
    again. They work with a node, which is asked before Spark is started. Workers read and write the object store with
    the AWS_* variables or the --s3-… options.

    \b
    Examples:
      streamhouse maintain compact --dry-run
      streamhouse maintain merge orders --master 'local[4]' --bootstrap a1.example.com:9092
      streamhouse maintain export orders --format delta --to s3://lake/orders
      streamhouse maintain verify
    """


def _assignments_of(what: str) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], dict[str, str]]:
    """An option's callback, so that what is malformed is refused before a node is asked."""
    return lambda _, __, texts: parse_assignments(texts, what)


def _spark_options(command: Command) -> Command:
    for option in (
        click.option(
            "--spark-conf",
            "conf",
            multiple=True,
            callback=_assignments_of("Spark setting"),
            metavar="NAME=VALUE",
            help="A setting of Spark; may be repeated.",
        ),
        click.option(
            "--master", default="local[*]", show_default=True, metavar="URL", help="The Spark master to run on."
        ),
    ):
        command = option(command)
    return command


def _node_options(command: Callable[..., Any]) -> Callable[..., Any]:
    return spark_node_option(DEFAULT_BOOTSTRAP)(settings_options(*_S3_SETTINGS)(command))


def _dry_run_option(help_text: str) -> Callable[[Command], Command]:
    return click.option("--dry-run", is_flag=True, help=help_text)


def _require_place(_: click.Context, __: click.Parameter, place: str) -> str:
    if not place.strip():
        raise click.BadParameter("give a directory, or s3://bucket/prefix")
    return place


_target_size_option = click.option(
    "--target-size",
    "target_bytes",
    default="64MiB",
    show_default=True,
    callback=as_size_bytes,
    metavar="SIZE",
    help="How large new segments become, before compression.",
)


@maintain.command(short_help="Keep the latest record of each key.")
@click.argument("topics", nargs=-1, callback=as_topic_names, shell_complete=complete_topics)
@_target_size_option
@_dry_run_option("Find out what would go, and change nothing.")
@json_option
@_spark_options
@_node_options
def compact(
    topics: tuple[str, ...],
    target_bytes: int,
    dry_run: bool,
    as_json: bool,
    master: str,
    conf: dict[str, str],
    bootstrap: str | None,
    config_file: str | None,
    **given: str | bool | None,
) -> None:
    """Keep the latest record of each key, in TOPICS or in all topics with cleanup.policy=compact.

    As in Kafka: min.compaction.lag.ms keeps young records, delete.retention.ms tombstones, and offsets do not change.
    Producers and consumers go on meanwhile.

    \b
    Examples:
      streamhouse maintain compact
      streamhouse maintain compact customers --dry-run
    """
    _require_packages()
    from streamhouse.cli.maintain_report import print_swaps
    from streamhouse.spark.jobs.compact import Compaction, compacted
    from streamhouse.spark.jobs.compact import compact as run

    connection = _connection(bootstrap, config_file, given)
    compacted(topics_of(connection.endpoint, topics), topics)
    job = Compaction(connection=connection, topics=topics, target_bytes=target_bytes, dry_run=dry_run)
    with _session("compact", master, conf) as spark:
        swaps = run(spark, job, bars=_bars(as_json))
    print_swaps(swaps, as_json=as_json, dry_run=dry_run)


@maintain.command(short_help="Make few large segments of many small ones.")
@click.argument("topics", nargs=-1, callback=as_topic_names, shell_complete=complete_topics)
@_target_size_option
@_dry_run_option("Show what would be merged, and change nothing.")
@json_option
@_spark_options
@_node_options
def merge(
    topics: tuple[str, ...],
    target_bytes: int,
    dry_run: bool,
    as_json: bool,
    master: str,
    conf: dict[str, str],
    bootstrap: str | None,
    config_file: str | None,
    **given: str | bool | None,
) -> None:
    """Make few large segments of many small neighbouring ones, in TOPICS or in all of them.

    Record batches are copied as they are. Segments that are far apart in time stay apart, so that retention still
    works.

    \b
    Examples:
      streamhouse maintain merge
      streamhouse maintain merge orders --target-size 16MiB
    """
    _require_packages()
    from streamhouse.cli.maintain_report import print_swaps
    from streamhouse.spark.jobs.merge import Merging
    from streamhouse.spark.jobs.merge import merge as run

    connection = _connection(bootstrap, config_file, given)
    topics_of(connection.endpoint, topics)
    job = Merging(connection=connection, topics=topics, target_bytes=target_bytes, dry_run=dry_run)
    with _session("merge", master, conf) as spark:
        swaps = run(spark, job, bars=_bars(as_json))
    print_swaps(swaps, as_json=as_json, dry_run=dry_run)


@maintain.command(short_help="Copy a topic to Parquet, Delta or Iceberg.")
@click.argument("topic", callback=as_topic_name, shell_complete=complete_topics)
@click.option(
    "--to",
    "location",
    required=True,
    metavar="PLACE",
    callback=_require_place,
    shell_complete=complete_directories,
    help="A directory, or s3://bucket/prefix.",
)
@click.option(
    "--format",
    "format_name",
    default="parquet",
    show_default=True,
    type=click.Choice(["parquet", "delta", "iceberg"]),
    help="What is written there.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    callback=_assignments_of("target's option"),
    metavar="NAME=VALUE",
    help="What deltalake, pyiceberg or S3 must be told, such as uri=… of a catalog; may be repeated.",
)
@_dry_run_option("Show what would be exported, and write nothing.")
@json_option
@_spark_options
@_node_options
def export(
    topic: str,
    location: str,
    format_name: str,
    options: dict[str, str],
    dry_run: bool,
    as_json: bool,
    master: str,
    conf: dict[str, str],
    bootstrap: str | None,
    config_file: str | None,
    **given: str | bool | None,
) -> None:
    """Copy what is new in a topic to Parquet files, a Delta table or an Iceberg table, each record once.

    How far it has got is kept in the target itself, so the next run goes on from there. An Iceberg table is named
    streamhouse.TOPIC, in a catalog that --option describes, or in an SQLite file in the directory.

    \b
    Examples:
      streamhouse maintain export orders --to /lake/orders
      streamhouse maintain export orders --to s3://lake/orders --format delta
      streamhouse maintain export orders --to s3://lake --format iceberg --option type=rest --option uri=http://…
    """
    _require_packages()
    from streamhouse.cli.maintain_report import print_export
    from streamhouse.spark.jobs.export.job import Export
    from streamhouse.spark.jobs.export.job import export as run

    connection = _connection(bootstrap, config_file, given)
    topics_of(connection.endpoint, [topic])
    job = Export(
        connection=connection,
        topic=topic,
        format=format_name,
        location=location,
        options=options,
        dry_run=dry_run,
    )
    with _session("export", master, conf) as spark:
        report = run(spark, job, bars=_bars(as_json))
    print_export(topic, report, as_json=as_json, dry_run=dry_run)


@maintain.command(short_help="Check every byte of a bucket.")
@click.argument("topics", nargs=-1, callback=as_topic_names, shell_complete=complete_topics)
@click.option(
    "--settling",
    "settling_ms",
    default="1h",
    show_default=True,
    callback=as_duration_ms,
    metavar="DURATION",
    help="Tell of objects that nothing refers to only if they are older than this.",
)
@_dry_run_option("Show how much there is to check, and read none of it.")
@json_option
@_spark_options
@_node_options
def verify(
    topics: tuple[str, ...],
    settling_ms: int,
    dry_run: bool,
    as_json: bool,
    master: str,
    conf: dict[str, str],
    bootstrap: str | None,
    config_file: str | None,
    **given: str | bool | None,
) -> int:
    """Check every checksum, offset and record of TOPICS, or of everything in the bucket, while the cluster runs.

    Each violation is a line, and the exit code is 1 if there are any. `streamhouse cluster verify` is quicker, looks
    at the metadata store itself, and reads no records.

    \b
    Examples:
      streamhouse maintain verify
      streamhouse maintain verify orders --json
    """
    _require_packages()
    from streamhouse.cli.maintain_report import print_verification
    from streamhouse.spark.jobs.verify import Verification, survey
    from streamhouse.spark.jobs.verify import verify as run

    connection = _connection(bootstrap, config_file, given)
    topics_of(connection.endpoint, topics)
    job = Verification(connection=connection, topics=topics, settling_ms=settling_ms)
    if dry_run:
        report = survey(job)
    else:
        with _session("verify", master, conf) as spark:
            report = run(spark, job, bars=_bars(as_json))
    print_verification(report, as_json=as_json, dry_run=dry_run)
    return 1 if report.violations else 0


@maintain.command(short_help="Rebuild lost metadata from the bucket.")
@click.option(
    "--wal-agent",
    metavar="ID",
    help="The agent whose own disk may hold more records; default: the data directory's, if it has a WAL.",
)
@click.option("--accept-gaps", is_flag=True, help="Restore logs of which offsets are missing, and lose older ones.")
@_dry_run_option("Show what would be restored, and write nothing.")
@json_option
@_spark_options
@settings_options("data_dir", "metadata", "objects", "s3_path_style", *_S3_SETTINGS)
def rebuild(
    wal_agent: str | None,
    accept_gaps: bool,
    dry_run: bool,
    as_json: bool,
    master: str,
    conf: dict[str, str],
    config_file: str | None,
    **given: str | bool | None,
) -> int:
    """Rebuild the metadata of a cluster from its bucket alone, for the day when the database is lost.

    Stop every node first. Topics, configs, partitions, segments and WAL objects come back; consumer groups and their
    offsets do not. The metadata store must have none of the topics.

    \b
    Examples:
      streamhouse maintain rebuild --dry-run
      streamhouse maintain rebuild --metadata postgresql://… --objects s3://bucket/prefix
    """
    _require_packages()
    from streamhouse.cli.maintain_rebuild import run_rebuild

    return run_rebuild(
        effective_settings(config_file, given).settings,
        lambda: _session("rebuild", master, conf),
        wal_agent=wal_agent,
        accept_gaps=accept_gaps,
        dry_run=dry_run,
        as_json=as_json,
        bars=_bars(as_json),
    )


def _require_packages() -> None:
    """Jobs need more than a node does."""
    for name in ("pyspark", "pyarrow", "numpy"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise InvalidConfig(f"{name} is not installed", hint=install_hint("spark")) from error


@contextmanager
def _session(job: str, master: str, conf: dict[str, str]) -> Iterator[SparkSession]:
    from streamhouse.spark.session import open_session

    session = open_session(f"streamhouse maintain {job}", master=master, conf=conf)
    try:
        yield session
    finally:
        session.stop()


def _bars(as_json: bool) -> Bars:
    return partial(progress_bar, visible=not as_json)


def _connection(bootstrap: str | None, config_file: str | None, given: dict[str, str | bool | None]) -> Connection:
    from streamhouse.objects.s3 import S3Options
    from streamhouse.spark.options import Connection

    settings: Settings = effective_settings(config_file, given).settings
    return Connection(
        endpoint=endpoints_of(bootstrap),
        s3=S3Options(
            endpoint=settings.s3_endpoint,
            region=settings.s3_region,
            access_key_id=settings.s3_access_key_id,
            secret_access_key=settings.s3_secret_access_key,
            session_token=settings.s3_session_token,
        ),
    )
