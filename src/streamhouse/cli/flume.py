"""`streamhouse flume`: the tools of Flume's document, with its flags and its output."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from streamhouse.cli.completing import complete_topics
from streamhouse.cli.console import announce, print_line, print_note
from streamhouse.cli.options import as_addresses, as_topic_name, run_async
from streamhouse.model.errors import NotFound, StreamHouseError, Unavailable

DEFAULT_PORT = 9092
"""That of Flume's document. The Flume port of `streamhouse serve`, which has a Kafka port there, is 9094."""
_DEFAULT_MAX_BYTES = 65_536


def _broker_option(command: click.decorators.FC) -> click.decorators.FC:
    return click.option(
        "--broker",
        envvar="STREAMHOUSE_FLUME_BROKER",
        default=f"localhost:{DEFAULT_PORT}",
        show_default=True,
        callback=as_addresses,
        metavar="HOST:PORT",
        help="Flume port to connect to.  [STREAMHOUSE_FLUME_BROKER]",
    )(command)


@click.group(short_help="The small binary protocol: a broker, and tools that write and read.")
def flume() -> None:
    """Flume's tools: one broker, one message, one partition.

    \b
    Examples:
      streamhouse flume broker --port 9092 --data ./data
      streamhouse flume produce --topic orders --key user-123 --message '{"item": "widget"}'
      streamhouse flume consume --topic orders --partition 1 --offset 0
    """


@flume.command()
@click.option("--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="0: a free one.")
@click.option("--data", type=click.Path(path_type=Path), default="./data", show_default=True, help="Data directory.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--partitions", type=click.IntRange(min=1), default=3, show_default=True, help="Of a topic that is written first."
)
def broker(port: int, data: Path, host: str, partitions: int) -> int:
    """Run a node whose Flume port is --port; its other ports are free ones, and all are in the line that says "ready".

    It is a node like that of `streamhouse serve`, so a topic can be read through every port.

    \b
    Examples:
      streamhouse flume broker
      streamhouse flume broker --port 9092 --data ./data
    """
    from streamhouse.app.run import serve
    from streamhouse.model.settings import Settings

    settings = Settings(
        host=host,
        data_dir=str(data),
        flume_port=port,
        flume_partitions=partitions,
        kafka_port=0,
        http_port=0,
        grpc_port=0,
    )
    return serve(settings, announce)


@flume.command()
@_broker_option
@click.option(
    "--topic",
    required=True,
    callback=as_topic_name,
    shell_complete=complete_topics,
    help="Created if it does not exist.",
)
@click.option("--message", required=True, help="The payload.")
@click.option("--key", help="Messages of one key go to one partition; without one they go to partition 0.")
@click.option("--partition", type=click.IntRange(min=0), help="Write to this partition, whatever the key.")
def produce(broker: str, topic: str, message: str, key: str | None, partition: int | None) -> None:
    """Write one message and say where it went.

    \b
    Examples:
      streamhouse flume produce --broker localhost:9092 --topic test --message "hello world"
      streamhouse flume produce --broker localhost:9092 --topic test --key user-123 --message event1
      streamhouse flume produce --topic test --partition 2 --message event2
    """
    run_async(_produce(broker, topic, _bytes(message), None if key is None else _bytes(key), partition))


async def _produce(broker: str, topic: str, payload: bytes, key: bytes | None, partition: int | None) -> None:
    from streamhouse.client.flume.producer import AsyncProducer

    is_there = await _is_there(broker, topic)
    async with AsyncProducer(broker) as producer:
        placed = await (await producer.send(topic, payload, key=key, partition=partition))
    if not is_there:
        print_note(f"there was no topic {topic!r}: made it")
    print_line(f"Produced to {topic} partition {placed.partition} at offset {placed.offset}")


async def _is_there(broker: str, topic: str) -> bool:
    """A write makes the topic and does not tell; a fetch tells, and makes none."""
    from streamhouse.client.flume.consumer import AsyncConsumer

    async with AsyncConsumer(broker, topic) as consumer:
        try:
            await consumer.fetch(1)
        except NotFound:
            return False
        except Unavailable:
            raise  # of a write it could not be said whether it was carried out
        except StreamHouseError:
            return True  # whatever is the matter, the write will say it
    return True


@flume.command()
@_broker_option
@click.option("--topic", required=True, callback=as_topic_name, shell_complete=complete_topics)
@click.option("--partition", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--offset", type=click.IntRange(min=0), default=0, show_default=True, help="Where to start.")
@click.option(
    "--max-bytes",
    type=click.IntRange(1, 2**31 - 1),
    default=_DEFAULT_MAX_BYTES,
    show_default=True,
    help="How much to ask the broker for at a time.",
)
def consume(broker: str, topic: str, partition: int, offset: int, max_bytes: int) -> None:
    """Print a partition's messages, from an offset to the end as it is now.

    \b
    Examples:
      streamhouse flume consume --broker localhost:9092 --topic test --partition 0 --offset 0
      streamhouse flume consume --topic orders --partition 1 --max-bytes 1048576
    """
    run_async(_consume(broker, topic, partition, offset, max_bytes))


async def _consume(broker: str, topic: str, partition: int, offset: int, max_bytes: int) -> None:
    from streamhouse.cli.escape import escape_bytes
    from streamhouse.client.flume.consumer import AsyncConsumer

    on_terminal = sys.stdout.isatty()
    async with AsyncConsumer(broker, topic, partition, offset) as consumer:
        while messages := await consumer.fetch(max_bytes):
            for message in messages:
                payload = escape_bytes(message.payload).encode() if on_terminal else message.payload
                sys.stdout.buffer.write(b"[%d] %b\n" % (message.offset, payload))
            sys.stdout.buffer.flush()


def _bytes(argument: str) -> bytes:
    """What was typed, also where it is not text in this terminal's encoding."""
    return argument.encode("utf-8", "surrogateescape")
