"""`streamhouse segment …`: look into STRM segments, in files or in the object store."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamhouse.cli.console import print_error, print_facts, print_json, print_line, print_table
from streamhouse.cli.options import json_option
from streamhouse.cli.record_format import record_as_json, record_renderer, show_timestamp
from streamhouse.cli.settings_options import effective_settings, settings_options

if TYPE_CHECKING:
    from streamhouse.cli.segment_report import SegmentReport
    from streamhouse.objects.store import ObjectInfo

_store_options = settings_options(
    "data_dir",
    "objects",
    "s3_endpoint",
    "s3_region",
    "s3_access_key_id",
    "s3_secret_access_key",
    "s3_session_token",
    "s3_path_style",
)


@click.group(short_help="Look into segments.")
def segment() -> None:
    """Look into the STRM segments that a node keeps in its object store.

    \b
    Examples:
      streamhouse segment list
      streamhouse segment show ./streamhouse-data/objects/segments/…/….strm --records
    """


@segment.command("list", short_help="List the segments in an object store.")
@click.argument("prefix", default="segments/")
@json_option
@_store_options
def list_segments(prefix: str, as_json: bool, config_file: str | None, **given: str | bool | None) -> None:
    """List the segments in an object store: of all topics, or those whose keys start with PREFIX.

    \b
    Examples:
      streamhouse segment list
      streamhouse segment list segments/7b1f…/00003/ --objects s3://bucket/prefix
    """
    from streamhouse.cli.object_store import list_objects
    from streamhouse.format.object_keys import parse_segment_key

    objects = list_objects(effective_settings(config_file, given).settings, prefix)
    found = [(info, key) for info in objects if (key := parse_segment_key(info.key)) is not None]
    if as_json:
        print_json([_object_as_json(info) for info, _ in found])
    elif not found:
        print_line("no segments; a node uploads one when it is full or old enough")
    else:
        print_table(
            ("partition", "base offset", "epoch", "bytes", "uploaded", "key"),
            [
                (
                    key.partition,
                    key.base_offset,
                    key.epoch,
                    info.size_bytes,
                    show_timestamp(info.modified_at_ms),
                    info.key,
                )
                for info, key in found
            ],
        )


@segment.command(short_help="Check a segment and show what it holds.")
@click.argument("source", metavar="FILE|KEY")
@click.option("--records", "with_records", is_flag=True, help="Print every record.")
@click.option("--format", "format_text", default="full", show_default=True, help="How, as in `streamhouse consume`.")
@json_option
@_store_options
def show(
    source: str,
    with_records: bool,
    format_text: str,
    as_json: bool,
    config_file: str | None,
    **given: str | bool | None,
) -> int:
    """Check a segment's header, footer, index and every block, and show what it holds; exit code 1 if it is damaged.

    FILE is a path; anything else is a KEY in the object store that --objects or --data-dir names.

    \b
    Examples:
      streamhouse segment show ./streamhouse-data/objects/segments/…/….strm
      streamhouse segment show segments/…/….strm --records --format "%o %k %v"
      streamhouse segment show segments/…/….strm --objects s3://bucket/prefix --json
    """
    from streamhouse.cli.object_store import read_object
    from streamhouse.cli.segment_report import inspect_segment

    if Path(source).is_file():
        report = inspect_segment(source, Path(source).read_bytes())
    else:
        report = inspect_segment(source, read_object(effective_settings(config_file, given).settings, source))
    if as_json:
        print_json(_segment_as_json(report, with_records))
    else:
        _print_segment(report)
        if with_records:
            _print_records(report, format_text)
    for block in report.damaged:
        print_error(f"block {block.number} at byte {block.position} is damaged: {block.problem}")
    return 1 if report.damaged else 0


def _print_segment(report: SegmentReport) -> None:
    footer = report.footer
    lineage = footer.lineage
    replaces = lineage and f"{lineage.base_offset} to {lineage.end_offset - 1}, as generation {lineage.generation}"
    print_facts(
        [
            ("segment", report.name),
            ("bytes", report.size_bytes),
            ("raw bytes", footer.raw_bytes),
            ("offsets", f"{footer.base_offset} to {footer.end_offset - 1}"),
            ("records", footer.record_count),
            ("time", f"{show_timestamp(footer.min_timestamp_ms)} to {show_timestamp(footer.max_timestamp_ms)}"),
            ("epoch", footer.epoch),
            *([("replaces", replaces)] if replaces else []),
            ("index", f"{footer.index_bytes} bytes at {footer.index_position}"),
        ]
    )
    print_line("")
    print_table(
        ("block", "first offset", "records", "batches", "position", "stored", "raw", "codec", "state"),
        [
            (
                block.number,
                block.first_offset,
                block.record_count,
                block.batch_count,
                block.position,
                block.stored_bytes,
                block.raw_bytes,
                block.codec,
                "ok" if block.problem is None else "damaged",
            )
            for block in report.blocks
        ],
    )


def _print_records(report: SegmentReport, format_text: str) -> None:
    from streamhouse.cli.segment_report import segment_records

    render = record_renderer(format_text, escape=sys.stdout.isatty())
    print_line("")
    sys.stdout.flush()
    for record in segment_records(report):
        sys.stdout.buffer.write(render(record))
    sys.stdout.buffer.flush()


def _segment_as_json(report: SegmentReport, with_records: bool) -> dict[str, object]:
    from streamhouse.cli.segment_report import segment_records

    document: dict[str, object] = {
        "name": report.name,
        "size_bytes": report.size_bytes,
        "footer": {
            **report.footer._asdict(),
            "lineage": None if report.footer.lineage is None else report.footer.lineage._asdict(),
        },
        "blocks": [
            {
                "block": block.number,
                "first_offset": block.first_offset,
                "record_count": block.record_count,
                "max_timestamp_ms": block.max_timestamp_ms,
                "position": block.position,
                "stored_bytes": block.stored_bytes,
                "raw_bytes": block.raw_bytes,
                "batch_count": block.batch_count,
                "codec": block.codec,
                "problem": block.problem,
            }
            for block in report.blocks
        ],
    }
    if with_records:
        document["records"] = [record_as_json(record) for record in segment_records(report)]
    return document


def _object_as_json(info: ObjectInfo) -> dict[str, object]:
    return {"key": info.key, "size_bytes": info.size_bytes, "modified_at_ms": info.modified_at_ms}
