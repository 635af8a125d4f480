"""`streamhouse cluster …`: check that metadata and objects agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from streamhouse.cli.console import count_of, print_json, print_line, progress_bar
from streamhouse.cli.options import json_option, run_async
from streamhouse.cli.settings_options import effective_settings, settings_options

if TYPE_CHECKING:
    from streamhouse.log.verify_report import Finding, Report


@click.group(short_help="Check a whole cluster.")
def cluster() -> None:
    """Check a whole cluster.

    \b
    Examples:
      streamhouse cluster verify --metadata postgresql://user@host/db --objects s3://bucket/prefix
    """


@cluster.command(short_help="Check that no log has a gap and every object is there.")
@click.option("--deep", is_flag=True, help="Read every object and check its content, too.")
@json_option
@settings_options(
    "data_dir",
    "metadata",
    "objects",
    "s3_endpoint",
    "s3_region",
    "s3_access_key_id",
    "s3_secret_access_key",
    "s3_session_token",
    "s3_path_style",
    "garbage_grace",
)
def verify(deep: bool, as_json: bool, config_file: str | None, **given: str | bool | None) -> int:
    """Check metadata store and object store against each other; exit code 1 if something is wrong.

    The log of every partition must be without gaps, overlaps and epochs that go back (I3); every segment and every WAL
    object must be there with the right size, with --deep also with the right content (I7). An object that nothing
    refers to is only noted, once it is older than the garbage grace. Agents may go on working meanwhile.

    \b
    Examples:
      streamhouse cluster verify
      streamhouse cluster verify --metadata postgresql://user@host/db --objects s3://bucket/prefix --deep
      streamhouse cluster verify --config streamhouse.toml --json
    """
    from streamhouse.cli.metadata_store import opened_metadata
    from streamhouse.cli.object_store import opened_objects
    from streamhouse.log.verify import Verification
    from streamhouse.runtime.clock import SystemClock

    settings = effective_settings(config_file, given).settings

    async def work() -> Report:
        async with opened_metadata(settings) as metadata, opened_objects(settings) as objects:
            placements = await metadata.list_placements()
            offsets = sum(placement.durable_end - placement.log_start_offset for placement in placements)
            with progress_bar("checking offsets", offsets) as bar:
                verification = Verification(
                    metadata=metadata,
                    objects=objects,
                    oldest_upload_ms=SystemClock().now_ms() - settings.garbage_grace,
                    deep=deep,
                    checked=bar.advance,
                )
                return await verification.run(placements)

    report = run_async(work())
    if as_json:
        print_json(_report_as_json(report))
    else:
        _print_report(report)
    return 1 if report.violations else 0


def _print_report(report: Report) -> None:
    for finding in report.findings:
        print_line(f"{finding.severity.value} {finding.invariant.value} {finding.subject}: {finding.message}")
    checked = (
        f"{count_of(report.partitions, 'partition')}, {count_of(report.segments, 'segment')},"
        f" {count_of(report.wal_objects, 'WAL object')}"
    )
    read = f", {report.bytes_read:,} bytes read" if report.bytes_read else ""
    found = f"{count_of(len(report.violations), 'violation')}, {count_of(len(report.notes), 'note')}"
    print_line(f"checked {checked}{read}: {found}")


def _report_as_json(report: Report) -> dict[str, object]:
    return {
        "partitions": report.partitions,
        "segments": report.segments,
        "wal_objects": report.wal_objects,
        "bytes_read": report.bytes_read,
        "violations": [_finding_as_json(finding) for finding in report.violations],
        "notes": [_finding_as_json(finding) for finding in report.notes],
    }


def _finding_as_json(finding: Finding) -> dict[str, object]:
    return {"invariant": finding.invariant.value, "subject": finding.subject, "message": finding.message}
