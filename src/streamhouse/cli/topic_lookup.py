"""A topic that a command is about: there, or the error that says which one may have been meant."""

from __future__ import annotations

from collections.abc import Iterable

from streamhouse.cli.console import count_of, print_note
from streamhouse.cli.suggestion import nearest, no_such_topic
from streamhouse.client.cluster import Cluster, TopicLeaders
from streamhouse.model.errors import NotFound


async def find_topic(cluster: Cluster, name: str) -> TopicLeaders:
    try:
        return await cluster.topic(name)
    except NotFound:
        raise no_such_topic(name, await _others(cluster, name)) from None


async def find_or_make_topic(cluster: Cluster, name: str, *, timeout_ms: int) -> None:
    """What the brokers make for us is said on stderr: a mistyped name is a topic, too."""
    try:
        await cluster.topic(name)
        return
    except NotFound:
        others = await _others(cluster, name)
    try:
        made = await cluster.retrying(lambda: cluster.topic(name, create=True), timeout_ms=timeout_ms)
    except NotFound:
        raise no_such_topic(name, others) from None
    _note_made(name, len(made.partitions), others)


async def note_made_topic(cluster: Cluster, name: str, partition_count: int) -> None:
    """Of one that was made a moment ago, and stays."""
    _note_made(name, partition_count, await _others(cluster, name))


def _note_made(name: str, partition_count: int, others: Iterable[str]) -> None:
    similar = nearest(name, others)
    meant = f"; did you mean {similar!r}?" if similar else ""
    print_note(f"there was no topic {name!r}: made it, with {count_of(partition_count, 'partition')}{meant}")


async def _others(cluster: Cluster, name: str) -> list[str]:
    return [topic.name for topic in await cluster.all_topics() if topic.name != name]
