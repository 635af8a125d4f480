"""`streamhouse produce`: writes one record, or one for each line of the standard input."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from streamhouse.cli.completing import complete_topics
from streamhouse.cli.console import Progress, print_line, print_note, progress_bar
from streamhouse.cli.options import (
    as_duration_ms,
    as_topic_name,
    bootstrap_option,
    json_option,
    parse_assignments,
    run_async,
)

if TYPE_CHECKING:
    import asyncio

    from streamhouse.client.partition_sender import Delivered, ProducerOptions

_ACKS = ("all", "1", "0")
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_MAX_LINE_BYTES = 64 * 1024 * 1024
_MAX_UNREPORTED = 10_000


@dataclass(frozen=True, slots=True)
class _Input:
    key: bytes | None
    value: bytes | None


@click.command(short_help="Write records.")
@click.argument("topic", callback=as_topic_name, shell_complete=complete_topics)
@click.option("--message", "-m", help="The record's value; without it, every line of stdin is a record.")
@click.option("--key", "-k", help="The record's key, which decides its partition.")
@click.option("--null", "is_null", is_flag=True, help="A record without a value: a tombstone for its key.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="Header; may be repeated.")
@click.option("--partition", "-p", type=click.IntRange(min=0), help="Write to this partition.")
@click.option("--key-separator", metavar="TEXT", help="Split each line of stdin into key and value at this.")
@click.option("--compression", type=click.Choice(_CODECS), default="none", show_default=True)
@click.option("--acks", type=click.Choice(_ACKS), default="all", show_default=True, help="Who must have the records.")
@click.option("--timeout", callback=as_duration_ms, default="60s", show_default=True, help="How long to try.")
@json_option
@bootstrap_option
def produce(
    topic: str,
    message: str | None,
    key: str | None,
    is_null: bool,
    headers: tuple[str, ...],
    partition: int | None,
    key_separator: str | None,
    compression: str,
    acks: str,
    timeout: int,
    as_json: bool,
    bootstrap: str,
) -> None:
    """Write one record (--message), or one for each line of stdin, and say where each went.

    A topic that does not exist is made if the broker makes topics by itself; then that is said on stderr.

    \b
    Examples:
      streamhouse produce orders --key 42 --message '{"total": 9.5}' --header source=web
      printf '42:created\\n42:paid\\n' | streamhouse produce orders --key-separator :
      streamhouse produce events --compression zstd < events.jsonl
      streamhouse produce orders --key 42 --null
    """
    if is_null and message is not None:
        raise click.UsageError("--null and --message exclude each other")
    single = is_null or message is not None
    if single and key_separator is not None:
        raise click.UsageError("--key-separator is for lines of stdin, not for --message or --null")
    if not single and key is not None and key_separator is not None:
        raise click.UsageError("--key and --key-separator exclude each other")
    if key_separator == "":
        raise click.UsageError("--key-separator must not be empty")
    header_pairs = [(name, _bytes(value)) for name, value in parse_assignments(headers, "header").items()]
    fixed_key = None if key is None else _bytes(key)
    if single:
        inputs = _one(_Input(fixed_key, None if message is None else _bytes(message)))
    else:
        separator = None if key_separator is None else _bytes(key_separator)
        inputs = _lines(fixed_key, separator)
    report = _Report(as_json=as_json, prints_each=single or as_json)
    options = _options(compression, acks, timeout, single=single)
    try:
        run_async(_produce(bootstrap, topic, inputs, header_pairs, partition, options, report))
    finally:
        report.finish()


class _Report:
    """One line for a single record; for many, a line per partition at the end, or a JSON object per record."""

    def __init__(self, *, as_json: bool, prints_each: bool) -> None:
        self.prints_each = prints_each
        self._as_json = as_json
        self._ranges: dict[int, tuple[int, int | None, int | None]] = {}

    def add(self, delivered: Delivered) -> None:
        if self._as_json:
            import json

            print(json.dumps({"partition": delivered.partition, "offset": delivered.offset}))
        elif self.prints_each:
            print_line(f"partition {delivered.partition} offset {_shown(delivered.offset)}")
        else:
            count, first, _ = self._ranges.get(delivered.partition, (0, delivered.offset, None))
            self._ranges[delivered.partition] = (count + 1, first, delivered.offset)

    def finish(self) -> None:
        for partition, (count, first, last) in sorted(self._ranges.items()):
            records = "1 record" if count == 1 else f"{count:,} records"
            print_line(f"partition {partition} offsets {_shown(first)} to {_shown(last)}: {records}")


async def _produce(
    bootstrap: str,
    topic: str,
    inputs: AsyncIterator[list[_Input]],
    headers: list[tuple[str, bytes]],
    partition: int | None,
    options: ProducerOptions,
    report: _Report,
) -> None:
    from streamhouse.cli.topic_lookup import find_or_make_topic
    from streamhouse.client.cluster import Cluster
    from streamhouse.client.producer import Producer

    on_their_way: deque[asyncio.Future[Delivered]] = deque()

    async def report_done(progress: Progress, *, leave: int) -> None:
        while len(on_their_way) > leave or (on_their_way and on_their_way[0].done()):
            report.add(await on_their_way.popleft())
            progress.advance(1)

    async with Cluster.connect(bootstrap) as cluster, Producer(cluster, options) as producer:
        # A bar would write over what is typed, and over a result that is printed for each record.
        visible = not report.prints_each and not sys.stdin.isatty()
        with progress_bar(f"producing to {topic}", None, visible=visible) as progress:
            is_found = False
            async for several in inputs:
                if several and not is_found:
                    await find_or_make_topic(cluster, topic, timeout_ms=options.delivery_timeout_ms)
                    is_found = True
                for record in several:
                    sent = await producer.send(
                        topic, key=record.key, value=record.value, headers=headers, partition=partition
                    )
                    sent.add_done_callback(_acknowledge_failure)
                    on_their_way.append(sent)
                    await report_done(progress, leave=_MAX_UNREPORTED)
            await producer.flush()
            await report_done(progress, leave=0)


def _acknowledge_failure(sent: asyncio.Future[Delivered]) -> None:
    """The first failure ends the command; asyncio should not complain that nobody looked at the others."""
    if not sent.cancelled():
        sent.exception()


def _options(compression: str, acks: str, timeout_ms: int, *, single: bool) -> ProducerOptions:
    from streamhouse.client.partition_sender import Acks, ProducerOptions
    from streamhouse.format.compression import Codec

    return ProducerOptions(
        acks=Acks.ALL if acks == "all" else Acks(int(acks)),
        codec=Codec[compression.upper()],
        idempotent=acks == "all",
        linger_ms=0 if single else 5,
        delivery_timeout_ms=timeout_ms,
    )


async def _one(record: _Input) -> AsyncIterator[list[_Input]]:
    yield [record]


async def _lines(key: bytes | None, separator: bytes | None) -> AsyncIterator[list[_Input]]:
    from streamhouse.cli.stdin_lines import read_lines

    if sys.stdin.isatty():
        print_note("one record a line; end with Ctrl-D")
    async for lines in read_lines(sys.stdin.fileno(), max_line_bytes=_MAX_LINE_BYTES):
        yield [_split(line, separator) if separator else _Input(key, line) for line in lines]


def _split(line: bytes, separator: bytes) -> _Input:
    from streamhouse.model.errors import InvalidInput

    key, found, value = line.partition(separator)
    if not found:
        raise InvalidInput(
            f"the line {line[:80]!r} has no {separator.decode(errors='replace')!r}",
            hint="every line must be KEY, separator, VALUE",
        )
    return _Input(key, value)


def _bytes(argument: str) -> bytes:
    """What was typed, also where it is not text in this terminal's encoding."""
    return argument.encode("utf-8", "surrogateescape")


def _shown(offset: int | None) -> str:
    return "unknown" if offset is None else str(offset)
