"""`streamhouse consume`: prints a topic's records, up to the end or forever."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from streamhouse.cli.completing import complete_groups, complete_topics
from streamhouse.cli.console import print_note
from streamhouse.cli.options import as_group_id, as_topic_name, bootstrap_option, run_async
from streamhouse.cli.record_format import TEMPLATE_HELP, Renderer, record_renderer
from streamhouse.cli.start_offset import OFFSET_HELP, StartKind, StartOffset, parse_start_offset
from streamhouse.cli.usage import refusing_as_usage
from streamhouse.model.errors import NotFound

if TYPE_CHECKING:
    from streamhouse.client.consumer import ConsumedRecord, Consumer

_POLL_WAIT_MS = 500


@click.command(short_help="Read records.")
@click.argument("topic", callback=as_topic_name, shell_complete=complete_topics)
@click.option(
    "--partition", "-p", "partitions", type=click.IntRange(min=0), multiple=True, help="Only this one; repeatable."
)
@click.option("--offset", "offset_text", metavar="OFFSET", help=f"Where to start: {OFFSET_HELP}.")
@click.option(
    "--from-beginning", is_flag=True, help="From the earliest record; of a --group, where it has committed nothing."
)
@click.option(
    "--group",
    "-g",
    metavar="NAME",
    callback=as_group_id,
    shell_complete=complete_groups,
    help="Read as a member of this consumer group: commit what is printed, and go on there.",
)
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
    group: str | None,
    follow: bool,
    max_messages: int | None,
    format_text: str,
    as_json: bool,
    escape: bool | None,
    bootstrap: str,
) -> int:
    """Print a topic's records: by default from the earliest to the end as it is now, or with --follow the new ones.

    With --group it is a member of a consumer group: it shares the topic's partitions with the other members, begins
    where the group has committed (else as without a group), commits what it has printed, and leaves when it ends.

    \b
    Examples:
      streamhouse consume orders
      streamhouse consume orders --follow --format "%p:%o %k %v"
      streamhouse consume orders --partition 0 --offset 100 --max-messages 10 --json
      streamhouse consume orders --offset @2026-01-31T12:00:00Z
      streamhouse consume orders --offset -5 --format full
      streamhouse consume orders --group billing --follow --from-beginning
    """
    if from_beginning and offset_text is not None:
        raise click.UsageError("--from-beginning and --offset exclude each other")
    if group is not None and offset_text is not None:
        raise click.UsageError("--group goes on where the group is; `streamhouse group reset` moves it, not --offset")
    if group is not None and partitions:
        raise click.UsageError("--group has its partitions assigned; --partition is for reading without one")
    if as_json and _is_typed("format_text") and format_text != "json":
        raise click.UsageError("--json and --format exclude each other")
    escape = sys.stdout.isatty() if escape is None else escape
    default = StartOffset(StartKind.LATEST if follow and not from_beginning else StartKind.EARLIEST)
    with refusing_as_usage():
        start = default if offset_text is None else parse_start_offset(offset_text)
        render = record_renderer("json" if as_json else format_text, escape=escape)
    if group is None:
        run_async(_consume(bootstrap, topic, partitions, start, follow, max_messages, render))
        return 0
    from streamhouse.cli.consume_group import GroupReading, consume_as_member

    reading = GroupReading(
        bootstrap=bootstrap,
        group=group,
        topic=topic,
        from_earliest=default.kind is StartKind.EARLIEST,
        follows=follow,
        max_messages=max_messages,
    )
    return run_async(consume_as_member(reading, lambda records: _print(records, render)))


def _is_typed(parameter: str) -> bool:
    return click.get_current_context().get_parameter_source(parameter) is ParameterSource.COMMANDLINE


async def _consume(
    bootstrap: str,
    topic: str,
    partitions: tuple[int, ...],
    start: StartOffset,
    follow: bool,
    max_messages: int | None,
    render: Renderer,
) -> None:
    from streamhouse.cli.consume_start import find_start
    from streamhouse.cli.topic_lookup import find_topic
    from streamhouse.client.admin import Admin
    from streamhouse.client.cluster import Cluster
    from streamhouse.client.consumer import Consumer

    async with Cluster.connect(bootstrap) as cluster:
        admin = Admin(cluster)
        chosen = _chosen_partitions(topic, len((await find_topic(cluster, topic)).partitions), partitions)
        ends = await admin.latest_offsets(topic, chosen)
        first = await find_start(admin, topic, chosen, start, ends, waits=follow)
        for note in first.notes:
            print_note(note)
        consumer = Consumer(cluster, topic, first.positions, stop_at=None if follow else ends)
        await _print_records(consumer, first.wanted, max_messages, render)


def _chosen_partitions(topic: str, count: int, partitions: tuple[int, ...]) -> list[int]:
    for partition in partitions:
        if partition >= count:
            raise NotFound(f"{topic} has no partition {partition}", hint=f"it has 0 to {count - 1}")
    return sorted(set(partitions)) or list(range(count))


async def _print_records(consumer: Consumer, wanted: int, max_messages: int | None, render: Renderer) -> None:
    """Those from offset `wanted` on."""
    left = max_messages
    while left != 0 and not consumer.at_end():
        polled = await consumer.poll(max_wait_ms=_POLL_WAIT_MS)
        records = [record for record in polled if record.offset >= wanted][:left]
        _print(records, render)
        left = None if left is None else left - len(records)


def _print(records: Sequence[ConsumedRecord], render: Renderer) -> None:
    sys.stdout.buffer.write(b"".join(map(render, records)))
    sys.stdout.buffer.flush()
