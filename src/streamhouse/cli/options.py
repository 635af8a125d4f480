"""Options that several commands share, and how a command's coroutine is run."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click

from streamhouse.cli.usage import refusing_as_usage
from streamhouse.model.errors import InvalidConfig
from streamhouse.model.names import check_agent_id, check_group_id, check_topic_name
from streamhouse.model.units import parse_duration_ms, parse_size_bytes

Command = TypeVar("Command", bound=Callable[..., Any])
Result = TypeVar("Result")

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
BOOTSTRAP_VARIABLE = "STREAMHOUSE_BOOTSTRAP"
BOOTSTRAP_METAVAR = "HOST:PORT"


def json_option(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")(command)


def bootstrap_option(command: Command) -> Command:
    return click.option(
        "--bootstrap",
        envvar=BOOTSTRAP_VARIABLE,
        default=DEFAULT_BOOTSTRAP,
        show_default=True,
        callback=as_nodes,
        metavar=BOOTSTRAP_METAVAR,
        help="Node to ask first, by its Kafka or HTTP address; several are separated by commas."
        f"  [{BOOTSTRAP_VARIABLE}]",
    )(command)


def as_addresses(ctx: click.Context, param: click.Parameter, text: str) -> str:
    """An option's callback: the text as it is, if it is HOST:PORT, or several."""
    from streamhouse.client.address import parse_bootstrap

    with refusing_as_usage(param.opts[0]):
        parse_bootstrap(text)
    return text


def as_nodes(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """An option's callback: the text as it is, if it is HOST:PORT or http://HOST:PORT, or several."""
    if text is not None:
        from streamhouse.client.node import check_bootstrap

        with refusing_as_usage(param.opts[0]):
            check_bootstrap(text)
    return text


def as_topic_name(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """An argument's callback: no topic has a name like another one."""
    if text is not None:
        with refusing_as_usage():
            check_topic_name(text)
    return text


def as_topic_names(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        as_topic_name(ctx, param, text)
    return texts


def as_agent_id(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    if text is not None:
        with refusing_as_usage():
            check_agent_id(text)
    return text


def as_group_id(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    if text is not None:
        with refusing_as_usage():
            check_group_id(text)
    return text


def run_async(work: Coroutine[Any, Any, Result]) -> Result:
    import asyncio

    return asyncio.run(work)


def parse_assignments(texts: tuple[str, ...], what: str) -> dict[str, str]:
    """`NAME=VALUE` arguments, each name once."""
    assignments: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise click.UsageError(f"{text!r} is not a {what}; write NAME=VALUE")
        if name in assignments:
            raise click.UsageError(f"{what} {name!r} is given twice")
        assignments[name] = value
    return assignments


def data_dir_option(command: Command) -> Command:
    return click.option(
        "--data-dir",
        envvar="STREAMHOUSE_DATA_DIR",
        default="./streamhouse-data",
        show_default=True,
        type=click.Path(path_type=Path),
        help="The node's data directory.  [STREAMHOUSE_DATA_DIR]",
    )(command)


def as_duration_ms(ctx: click.Context, param: click.Parameter, text: str) -> int:
    """An option's callback: `30s` becomes milliseconds."""
    return _parsed(parse_duration_ms, text)


def as_size_bytes(ctx: click.Context, param: click.Parameter, text: str) -> int:
    """An option's callback: `8MiB` becomes bytes."""
    return _parsed(parse_size_bytes, text)


def _parsed(parse: Callable[[str], int], text: str) -> int:
    try:
        return parse(text)
    except InvalidConfig as problem:
        raise click.BadParameter(str(problem)) from None
