"""`streamhouse wal …`: look into a node's write-ahead log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamhouse.cli.console import print_error, print_json, print_line, print_table
from streamhouse.cli.options import data_dir_option, json_option
from streamhouse.cli.usage import refusing_as_usage

if TYPE_CHECKING:
    from streamhouse.cli.wal_report import WalFileReport


@click.group(short_help="Look into the write-ahead log.")
def wal() -> None:
    """Look into a node's write-ahead log.

    \b
    Examples:
      streamhouse wal show
      streamhouse wal show --data-dir /var/lib/streamhouse --entries
    """


@wal.command(short_help="Check and list the WAL's files and entries.")
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path(exists=True, path_type=Path))
@data_dir_option
@click.option("--entries", is_flag=True, help="List every entry.")
@json_option
def show(files: tuple[Path, ...], data_dir: Path, entries: bool, as_json: bool) -> int:
    """Check every entry and say what each file holds and how it ends; nothing is changed.

    A file ends in unused space, or in a torn tail: an entry that a crash cut off before it was acknowledged, which
    recovery leaves out. Damage before entries that were synced makes this command fail with exit code 1.

    \b
    Examples:
      streamhouse wal show
      streamhouse wal show --entries streamhouse-data/wal/00000000000000000001.wal
      streamhouse wal show --data-dir /var/lib/streamhouse --json
    """
    from streamhouse.cli.wal_report import inspect_wal

    with refusing_as_usage():
        paths = files or _files_of(data_dir)
    reports = inspect_wal(paths)
    if as_json:
        print_json({"files": [_as_json(report, entries) for report in reports]})
    else:
        _print_files(reports)
        if entries:
            print_line("")
            _print_entries(reports)
    damaged = [report for report in reports if not report.is_sound]
    for report in damaged:
        print_error(
            f"{report.path.name} is damaged at byte {report.end}: {report.problem}"
            " (restore it from a copy; records before that byte are intact)"
        )
    return 1 if damaged else 0


def _files_of(data_dir: Path) -> list[Path]:
    from streamhouse.log.wal_files import wal_paths
    from streamhouse.model.errors import NotFound

    directory = data_dir / "wal"
    if not directory.is_dir():
        raise NotFound(f"there is no WAL in {str(data_dir)!r}", hint="give --data-dir, or the files themselves")
    return [path for _, path in wal_paths(directory)]


def _print_files(reports: list[WalFileReport]) -> None:
    if not reports:
        print_line("the WAL is empty")
        return
    print_table(
        ("file", "bytes", "first position", "batches", "marks", "valid to byte", "ending"),
        [
            (
                report.path.name,
                report.size_bytes,
                report.first_position,
                len(report.batches),
                len(report.mark_positions),
                report.end,
                report.ending.value,
            )
            for report in reports
        ],
    )


def _print_entries(reports: list[WalFileReport]) -> None:
    rows: list[tuple[object, ...]] = []
    for report in reports:
        found: list[tuple[int, tuple[object, ...]]] = [
            (
                batch.position,
                (
                    "batch",
                    str(batch.topic_id),
                    batch.partition,
                    batch.base_offset,
                    batch.end_offset - 1,
                    batch.end - batch.start,
                ),
            )
            for batch in report.batches
        ]
        found += [(position, ("mark", None, None, None, None, None)) for position in report.mark_positions]
        rows += [(position, *entry) for position, entry in sorted(found)]
    print_table(("position", "entry", "topic id", "partition", "first offset", "last offset", "bytes"), rows)


def _as_json(report: WalFileReport, entries: bool) -> dict[str, object]:
    summary: dict[str, object] = {
        "path": str(report.path),
        "size_bytes": report.size_bytes,
        "first_position": report.first_position,
        "batches": len(report.batches),
        "marks": len(report.mark_positions),
        "valid_bytes": report.end,
        "ending": report.ending.value,
        "problem": report.problem,
    }
    if entries:
        summary["entries"] = [
            {
                "position": batch.position,
                "topic_id": str(batch.topic_id),
                "partition": batch.partition,
                "base_offset": batch.base_offset,
                "end_offset": batch.end_offset,
                "size_bytes": batch.end - batch.start,
            }
            for batch in report.batches
        ]
        summary["mark_positions"] = list(report.mark_positions)
    return summary
