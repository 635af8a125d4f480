"""`streamhouse cluster …`: check that metadata and objects agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from streamhouse.cli.console import count_of, print_json, print_line, print_note
from streamhouse.cli.options import json_option, run_async
from streamhouse.cli.where import place_of, place_options

if TYPE_CHECKING:
    from streamhouse.cli.verification import Verified


@click.group(short_help="Check a whole cluster.")
def cluster() -> None:
    """Check a whole cluster.

    \b
    Examples:
      streamhouse cluster verify
      streamhouse cluster verify --bootstrap a1.example.com:9092 --deep
    """


@cluster.command(short_help="Check that no log has a gap and every object is there.")
@click.option("--deep", is_flag=True, help="Read every object and check its content, too.")
@json_option
@place_options(
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
def verify(
    deep: bool, as_json: bool, bootstrap: str | None, config_file: str | None, **given: str | bool | None
) -> int:
    """Check metadata store and object store against each other; exit code 1 if something is wrong.

    The log of every partition must be without gaps, overlaps and epochs that go back (I3); every segment and every WAL
    object must be there with the right size, with --deep also with the right content (I7). An object that nothing
    refers to is only noted, once it is older than the garbage grace. Agents may go on working meanwhile.

    A node does it, one at a time, with its own access to both stores. Who has that too, or has no node, gives
    --metadata and --objects, and it is done here.

    \b
    Examples:
      streamhouse cluster verify
      streamhouse cluster verify --bootstrap a1.example.com:9092 --deep
      streamhouse cluster verify --metadata postgresql://user@host/db --objects s3://bucket/prefix --deep
      streamhouse cluster verify --config streamhouse.toml --json
    """
    from streamhouse.cli.verification import verify_here, verify_through

    place = place_of(bootstrap, config_file, given)
    if place.endpoint:
        is_given = given["garbage_grace"] is not None
        verified = verify_through(place.endpoint, deep, place.settings.garbage_grace if is_given else None)
    else:
        verified = run_async(verify_here(place.settings, deep))
    if as_json:
        print_json(_as_json(verified))
    else:
        _print(verified)
    return 1 if verified.report.violations else 0


def _print(verified: Verified) -> None:
    report, findings = verified
    for finding in findings:
        print_line(f"{finding.severity} {finding.invariant} {finding.subject}: {finding.message}")
    left_out = report.violations + report.notes - len(findings)
    if left_out:
        print_note(f"{count_of(left_out, 'finding')} more are counted and not shown")
    checked = (
        f"{count_of(report.partitions, 'partition')}, {count_of(report.segments, 'segment')},"
        f" {count_of(report.wal_objects, 'WAL object')}"
    )
    read = f", {report.bytes_read:,} bytes read" if report.bytes_read else ""
    found = f"{count_of(report.violations, 'violation')}, {count_of(report.notes, 'note')}"
    print_line(f"checked {checked}{read}: {found}")


def _as_json(verified: Verified) -> dict[str, object]:
    report, findings = verified
    by_severity: dict[str, list[dict[str, str]]] = {"violation": [], "note": []}
    for finding in findings:
        by_severity[finding.severity].append(
            {"invariant": finding.invariant, "subject": finding.subject, "message": finding.message}
        )
    return {
        "partitions": report.partitions,
        "segments": report.segments,
        "wal_objects": report.wal_objects,
        "bytes_read": report.bytes_read,
        "violations": by_severity["violation"],
        "notes": by_severity["note"],
    }
