"""`streamhouse consume`: prints a topic's records, up to the end or forever."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from streamhouse.cli.options import bootstrap_option, run_async
from streamhouse.cli.record_format import TEMPLATE_HELP, Renderer, record_renderer
from streamhouse.cli.start_offset import OFFSET_HELP, StartKind, StartOffset, parse_start_offset

if TYPE_CHECKING:
    from streamhouse.client.admin import Admin
    from streamhouse.client.consumer import Consumer

_POLL_WAIT_MS = 500


@click.command(short_help="Read records.")
@click.argument("topic")
@click.option("--partition", "partitions", type=click.IntRange(min=0), multiple=True, help="Only this one; repeatable.")
@click.option("--offset", "offset_text", metavar="OFFSET", help=f"Where to start: {OFFSET_HELP}.")
@click.option("--from-beginning", is_flag=True, help="The same as --offset earliest.")
@click.option("--follow", "-f", is_flag=True, help="Wait for new records instead of stopping at the end.")
@click.option("--max-messages", "-n", type=click.IntRange(min=1), help="Stop after so many records.")
@click.option(
    "--format",
    "format_text",
    default="value",
    show_default=True,
    help=f"value, json, full, or a template: {TEMPLATE_HELP}.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json: one object a line.")
@click.option(
    "--escape/--no-escape",
    default=None,
    help="Show control characters as \\x1b; by default on a terminal, where they could do harm.",
)
@bootstrap_option
def consume(
    topic: str,
    partitions: tuple[int, ...],
    offset_text: str | None,
    from_beginning: bool,
    follow: bool,
    max_messages: int | None,
    format_text: str,
    as_json: bool,
    escape: bool | None,
    bootstrap: str,
) -> None:
    """Print a topic's records: by default from the earliest to the end as it is now, or with --follow the new ones.

    \b
    Examples:
      streamhouse consume orders
      streamhouse consume orders --follow --format "%p:%o %k %v"
      streamhouse consume orders --partition 0 --offset 100 --max-messages 10 --json
      streamhouse consume orders --offset @2026-01-31T12:00:00Z
      streamhouse consume orders --offset -5 --format full
    """
    if from_beginning and offset_text is not None:
        raise click.UsageError("--from-beginning and --offset exclude each other")
    default = StartOffset(StartKind.LATEST if follow and not from_beginning else StartKind.EARLIEST)
    start = default if offset_text is None else parse_start_offset(offset_text)
    escape = sys.stdout.isatty() if escape is None else escape
    render = record_renderer("json" if as_json else format_text, escape=escape)
    run_async(_consume(bootstrap, topic, partitions, start, follow, max_messages, render))


async def _consume(
    bootstrap: str,
    topic: str,
    partitions: tuple[int, ...],
    start: StartOffset,
    follow: bool,
    max_messages: int | None,
    render: Renderer,
) -> None:
    from streamhouse.client.admin import Admin
    from streamhouse.client.cluster import Cluster
    from streamhouse.client.consumer import Consumer

    async with Cluster.connect(bootstrap) as cluster:
        admin = Admin(cluster)
        chosen = await _chosen_partitions(admin, topic, partitions)
        ends = await admin.latest_offsets(topic, chosen)
        positions = await _start_positions(admin, topic, chosen, start, ends)
        consumer = Consumer(cluster, topic, positions, stop_at=None if follow else ends)
        await _print_records(consumer, max_messages, render)


async def _chosen_partitions(admin: Admin, topic: str, partitions: tuple[int, ...]) -> list[int]:
    from streamhouse.model.errors import NotFound

    count = await admin.partition_count(topic)
    for partition in partitions:
        if partition >= count:
            raise NotFound(f"{topic} has no partition {partition}", hint=f"it has 0 to {count - 1}")
    return sorted(set(partitions)) or list(range(count))


async def _start_positions(
    admin: Admin, topic: str, partitions: list[int], start: StartOffset, ends: dict[int, int]
) -> dict[int, int]:
    match start.kind:
        case StartKind.EARLIEST:
            return await admin.earliest_offsets(topic, partitions)
        case StartKind.LATEST:
            return dict(ends)
        case StartKind.OFFSET:
            return dict.fromkeys(partitions, start.value)
        case StartKind.LAST:
            first = await admin.earliest_offsets(topic, partitions)
            return {partition: max(first[partition], ends[partition] - start.value) for partition in partitions}
        case StartKind.TIMESTAMP:
            found = await admin.offsets_at(topic, partitions, start.value)
            # Nothing that new: then only what comes later is at or after that time.
            return {partition: ends[partition] if at is None else at for partition, at in found.items()}


async def _print_records(consumer: Consumer, max_messages: int | None, render: Renderer) -> None:
    printed = 0
    while not consumer.at_end():
        lines: list[bytes] = []
        for record in await consumer.poll(max_wait_ms=_POLL_WAIT_MS):
            lines.append(render(record))
            printed += 1
            if printed == max_messages:
                break
        sys.stdout.buffer.write(b"".join(lines))
        sys.stdout.buffer.flush()
        if printed == max_messages:
            return
