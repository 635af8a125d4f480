"""What a shell is answered when it asks for completions: quickly, and never with an error of ours on its line."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from streamhouse.cli.options import BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from streamhouse.client.cluster import Cluster

COMPLETE_VARIABLE = "_STREAMHOUSE_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
_PATIENCE_S = 1.0
_MOST_NAMES = 1_000


def answer_shell(command: click.Command, instruction: str) -> int:
    """To the script that `streamhouse completion` prints; its variables say what is typed so far."""
    # Whatever goes wrong, warnings and tracebacks do not belong into what somebody is typing.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    from click.shell_completion import shell_complete

    from streamhouse.cli.shell_completion import use_own

    use_own()
    code = 1
    with suppress(Exception):
        code = shell_complete(command, {}, "streamhouse", COMPLETE_VARIABLE, instruction)
    with suppress(OSError):
        sys.stdout.flush()
    return code


def complete_topics(context: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """An argument's or option's `shell_complete`."""

    async def names(cluster: Cluster) -> list[str]:
        return [topic.name for topic in await cluster.all_topics()]

    return _from_cluster(context, names, incomplete)


def complete_groups(context: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    async def names(cluster: Cluster) -> list[str]:
        from streamhouse.client.groups_admin import GroupsAdmin

        return [group.group_id for group in await GroupsAdmin(cluster).list_groups()]

    return _from_cluster(context, names, incomplete)


def complete_agents(context: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    async def names(bootstrap: str) -> list[str]:
        from streamhouse.client.node import http_endpoint
        from streamhouse.client.rest import RestClient

        with RestClient(await http_endpoint(bootstrap)) as client:
            return [agent.agent_id for agent in client.agents()]

    return _within_patience(context, names, incomplete)


def complete_files(context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """The shell knows them."""
    return _by_shell("file", incomplete)


def complete_directories(context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    return _by_shell("dir", incomplete)


def _by_shell(kind: str, incomplete: str) -> list[CompletionItem[str]]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type=kind)]


def _from_cluster(context: click.Context, ask: Callable[[Cluster], Awaitable[list[str]]], incomplete: str) -> list[str]:
    async def names(bootstrap: str) -> list[str]:
        from streamhouse.client.cluster import Cluster

        async with Cluster.connect(bootstrap) as cluster:
            return await ask(cluster)

    return _within_patience(context, names, incomplete)


def _within_patience(context: click.Context, ask: Callable[[str], Awaitable[list[str]]], incomplete: str) -> list[str]:
    """None of a node that is not there or too slow. On a thread that the process does not wait for: even looking up a
    host's name may hang."""
    bootstrap = context.params.get("bootstrap") or os.environ.get(BOOTSTRAP_VARIABLE) or DEFAULT_BOOTSTRAP
    found: list[str] = []
    import asyncio

    def look() -> None:
        async def work() -> None:
            names = await ask(str(bootstrap))
            found.extend([name for name in names if name.startswith(incomplete)][:_MOST_NAMES])

        with suppress(Exception):
            asyncio.run(work())

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(_PATIENCE_S)
    return found
