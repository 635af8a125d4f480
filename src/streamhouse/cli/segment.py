"""`streamhouse segment …`: look into STRM segments, in files or in the object store."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamhouse.cli.completing import complete_files, complete_topics
from streamhouse.cli.console import print_error, print_facts, print_json, print_line, print_table
from streamhouse.cli.options import json_option
from streamhouse.cli.record_format import Renderer, record_as_json, record_renderer, show_timestamp
from streamhouse.cli.usage import refusing_as_usage
from streamhouse.cli.where import Place, place_of, place_options
from streamhouse.format.object_keys import SEGMENTS_PREFIX
from streamhouse.objects.checks import check_key, check_prefix

if TYPE_CHECKING:
    from streamhouse.cli.segment_report import SegmentReport
    from streamhouse.objects.store import ObjectInfo
    from streamhouse.wire.http.rest.stored_segments import StoredSegment

_STORE = (
    "data_dir",
    "objects",
    "s3_endpoint",
    "s3_region",
    "s3_access_key_id",
    "s3_secret_access_key",
    "s3_session_token",
    "s3_path_style",
)
_store_options = place_options(*_STORE)
_list_options = place_options("metadata", *_STORE)


@click.group(short_help="Look into segments.")
def segment() -> None:
    """Look into the STRM segments that a node keeps in its object store.

    \b
    Examples:
      streamhouse segment list orders
      streamhouse segment show ./streamhouse-data/objects/segments/…/….strm --records
    """


@segment.command("list", short_help="List the segments of a topic, or of an object store.")
@click.argument("topic", metavar="[TOPIC|PREFIX]", default=SEGMENTS_PREFIX, shell_complete=complete_topics)
@click.option(
    "--partition", "-p", "partitions", type=click.IntRange(min=0), multiple=True, help="Of this one only; repeatable."
)
@json_option
@_list_options
def list_segments(
    topic: str,
    partitions: tuple[int, ...],
    as_json: bool,
    bootstrap: str | None,
    config_file: str | None,
    **given: str | bool | None,
) -> None:
    """List the segments of TOPIC, as the metadata store has them; without a topic, all that the object store has.

    What has a '/' in it is a PREFIX of the object store's keys: then what is there is listed, also what no topic refers
    to any more.

    \b
    Examples:
      streamhouse segment list orders
      streamhouse segment list orders --partition 3 --bootstrap a1.example.com:9092
      streamhouse segment list
      streamhouse segment list segments/7b1f…/00003/ --objects s3://bucket/prefix
    """
    if "/" not in topic:
        from streamhouse.cli.topic_segments import find_segments, print_segments

        found = find_segments(place_of(bootstrap, config_file, given), topic, partitions)
        print_segments(topic, found, as_json=as_json)
        return
    if partitions:
        raise click.UsageError("--partition is for a TOPIC; the keys of one partition have a PREFIX of their own")
    with refusing_as_usage():
        check_prefix(topic)
    _list_objects(place_of(bootstrap, config_file, given), topic, as_json=as_json)


@segment.command(short_help="Check a segment and show what it holds.")
@click.argument("source", metavar="FILE|KEY", shell_complete=complete_files)
@click.option("--records", "with_records", is_flag=True, help="Print every record.")
@click.option("--format", "format_text", default="full", show_default=True, help="How, as in `streamhouse consume`.")
@json_option
@_store_options
def show(
    source: str,
    with_records: bool,
    format_text: str,
    as_json: bool,
    bootstrap: str | None,
    config_file: str | None,
    **given: str | bool | None,
) -> int:
    """Check a segment's header, footer, index and every block, and show what it holds; exit code 1 if it is damaged.

    FILE is a path; anything else is a KEY in the object store, which a node reads, or that --objects or --data-dir
    names.

    \b
    Examples:
      streamhouse segment show ./streamhouse-data/objects/segments/…/….strm
      streamhouse segment show segments/…/….strm --records --format "%o %k %v"
      streamhouse segment show segments/…/….strm --bootstrap a1.example.com:9092
      streamhouse segment show segments/…/….strm --objects s3://bucket/prefix --json
    """
    from streamhouse.cli.object_store import read_object
    from streamhouse.cli.segment_report import inspect_segment

    with refusing_as_usage():
        render = record_renderer(format_text, escape=sys.stdout.isatty())
    if Path(source).is_file():
        report = inspect_segment(source, Path(source).read_bytes())
    else:
        with refusing_as_usage():
            check_key(source)
        report = inspect_segment(source, read_object(place_of(bootstrap, config_file, given), source))
    if as_json:
        print_json(_segment_as_json(report, with_records))
    else:
        _print_segment(report)
        if with_records:
            _print_records(report, render)
    for block in report.damaged:
        print_error(f"block {block.number} at byte {block.position} is damaged: {block.problem}")
    return 1 if report.damaged else 0


def _list_objects(place: Place, prefix: str, *, as_json: bool) -> None:
    from streamhouse.cli.object_store import list_objects
    from streamhouse.format.object_keys import parse_segment_key

    objects = list_objects(place, prefix)
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


def _print_records(report: SegmentReport, render: Renderer) -> None:
    from streamhouse.cli.segment_report import segment_records

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


def _object_as_json(info: ObjectInfo | StoredSegment) -> dict[str, object]:
    return {"key": info.key, "size_bytes": info.size_bytes, "modified_at_ms": info.modified_at_ms}
