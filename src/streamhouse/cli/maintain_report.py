"""What maintenance jobs did, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from streamhouse.cli.console import count_of, print_json, print_line, print_table
from streamhouse.model.units import show_size
from streamhouse.spark.jobs.export.job import ExportReport
from streamhouse.spark.jobs.rebuild import RebuildReport
from streamhouse.spark.jobs.swap import Swap
from streamhouse.spark.jobs.verify import Finding, Report


def print_swaps(swaps: Sequence[Swap], *, as_json: bool, dry_run: bool) -> None:
    if as_json:
        print_json({"dry_run": dry_run, "rewritten": [asdict(swap) for swap in swaps]})
        return
    if not swaps:
        print_line("nothing to do")
        return
    print_table(
        ("partition", "offsets", "segments", "records", "bytes"),
        [
            (
                f"{swap.topic}/{swap.partition}",
                f"{swap.base_offset} to {swap.end_offset - 1}",
                _change(swap.segments_before, swap.segments_after),
                _change(swap.records_before, swap.records_after),
                _change(swap.bytes_before, swap.bytes_after),
            )
            for swap in swaps
        ],
    )
    dropped = sum(swap.records_before - swap.records_after for swap in swaps)
    segments = sum(swap.segments_before for swap in swaps)
    verb = "would be rewritten" if dry_run else "rewritten"
    print_line(f"{count_of(segments, 'segment')} {verb}, {count_of(dropped, 'record')} left out")


def print_export(topic: str, report: ExportReport, *, as_json: bool, dry_run: bool) -> None:
    if as_json:
        print_json({"topic": topic, "dry_run": dry_run, **asdict(report)})
        return
    if report.partitions:
        print_table(
            ("partition", "from", "to", "deleted before"),
            [(f"{topic}/{each.partition}", each.start, each.end - 1, each.lost) for each in report.partitions],
        )
    if dry_run:
        print_line(f"{count_of(len(report.partitions), 'partition')} would be exported")
        return
    print_line(
        f"exported {count_of(report.rows, 'record')} to {count_of(report.files, 'file')}, "
        f"{show_size(report.bytes_written)}"
    )


def print_verification(report: Report, *, as_json: bool, dry_run: bool) -> None:
    notes = [finding for finding in report.findings if finding not in report.violations]
    if as_json:
        print_json(
            {
                "dry_run": dry_run,
                "partitions": report.partitions,
                "segments": report.segments,
                "wal_objects": report.wal_objects,
                "records": report.records,
                "bytes_read": report.bytes_read,
                "violations": [_finding_as_json(finding) for finding in report.violations],
                "notes": [_finding_as_json(finding) for finding in notes],
            }
        )
        return
    for finding in report.findings:
        print_line(f"{finding.severity.value} {finding.subject}: {finding.message}")
    looked_at = (
        f"{count_of(report.partitions, 'partition')}, {count_of(report.segments, 'segment')}, "
        f"{count_of(report.wal_objects, 'WAL object')}"
    )
    if dry_run:
        print_line(f"{looked_at} to check")
        return
    print_line(
        f"checked {looked_at}, {count_of(report.records, 'record')}: "
        f"{count_of(len(report.violations), 'violation')}, {count_of(len(notes), 'note')}"
    )


def print_rebuilt(report: RebuildReport, *, as_json: bool, restored: bool) -> None:
    topics = report.metadata.topics
    if as_json:
        print_json(
            {
                "restored": restored,
                "topics": [
                    {
                        "name": topic.name,
                        "topic_id": str(topic.topic_id),
                        "partitions": [
                            {
                                "partition": each.partition,
                                "log_start_offset": each.log_start_offset,
                                "committed_end": each.next_offset,
                                "durable_end": each.durable_end,
                                "segments": len(each.segments),
                                "wal_ranges": len(each.ranges),
                            }
                            for each in topic.partitions
                        ],
                    }
                    for topic in topics
                ],
                "missing": [
                    {"topic": each.topic, "partition": each.partition, "start": each.gap.start, "end": each.gap.end}
                    for each in report.missing
                ],
                "damaged": [asdict(each) for each in report.damaged],
                "unknown_objects": report.strangers,
            }
        )
        return
    print_table(
        ("partition", "from", "committed to", "durable to", "segments", "WAL ranges"),
        [
            (
                f"{topic.name}/{each.partition}",
                each.log_start_offset,
                each.next_offset,
                each.durable_end,
                len(each.segments),
                len(each.ranges),
            )
            for topic in topics
            for each in topic.partitions
        ],
    )
    for damaged in report.damaged:
        print_line(f"damaged and left out: {damaged.key}: {damaged.problem}")
    for missing in report.missing:
        print_line(f"missing: {missing.topic}/{missing.partition} offsets {missing.gap.start} to {missing.gap.end - 1}")
    if report.strangers:
        print_line(f"left alone: {count_of(report.strangers, 'object')} of topics that nothing describes")
    print_line(f"{'restored' if restored else 'found'} {count_of(len(topics), 'topic')}")


def _change(before: int, after: int | None) -> str:
    return f"{before} -> {'?' if after is None else after}"


def _finding_as_json(finding: Finding) -> dict[str, str]:
    return {"subject": finding.subject, "message": finding.message}
