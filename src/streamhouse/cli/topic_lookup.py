"""A topic that a command is about: there, or the error that says which one may have been meant."""

from __future__ import annotations

from streamhouse.cli.console import count_of, print_note
from streamhouse.cli.suggestion import nearest
from streamhouse.client.cluster import Cluster, TopicLeaders
from streamhouse.model.errors import NotFound


async def find_topic(cluster: Cluster, name: str) -> TopicLeaders:
    try:
        return await cluster.topic(name)
    except NotFound as problem:
        raise _not_found(problem, await _similar(cluster, name)) from None


async def find_or_make_topic(cluster: Cluster, name: str, *, timeout_ms: int) -> None:
    """What the brokers make for us is said on stderr: a mistyped name is a topic, too."""
    try:
        await cluster.topic(name)
        return
    except NotFound:
        similar = await _similar(cluster, name)
    try:
        made = await cluster.retrying(lambda: cluster.topic(name, create=True), timeout_ms=timeout_ms)
    except NotFound as problem:
        raise _not_found(problem, similar) from None
    _note_made(name, len(made.partitions), similar)


async def note_made_topic(cluster: Cluster, name: str, partition_count: int) -> None:
    """Of one that was made a moment ago, and stays."""
    _note_made(name, partition_count, await _similar(cluster, name))


def _note_made(name: str, partition_count: int, similar: str | None) -> None:
    meant = f"; did you mean {similar!r}?" if similar else ""
    print_note(f"there was no topic {name!r}: made it, with {count_of(partition_count, 'partition')}{meant}")


async def _similar(cluster: Cluster, name: str) -> str | None:
    return nearest(name, [topic.name for topic in await cluster.all_topics() if topic.name != name])


def _not_found(problem: NotFound, similar: str | None) -> NotFound:
    return NotFound(problem.message, hint=f"did you mean {similar!r}?" if similar else problem.hint)
