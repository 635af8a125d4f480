"""A broker made as it was when it was new, while clients may still be connected: for the next test that shares it."""

from __future__ import annotations

from streamhouse.app.node import Node
from streamhouse.core.groups.classic_messages import LeavingMember
from streamhouse.core.groups.outcome import GroupError
from streamhouse.format.object_keys import STAGING_PREFIX
from streamhouse.metadata.configs import ConfigKind, Configured
from streamhouse.metadata.store import MetadataStore
from streamhouse.objects.store import ObjectStore

_AT_ONCE = 1_000
_MOST_TRIES = 100
"""At a group whose members come back while it is deleted."""
_OF_ANY_TIME_MS = -100 * 365 * 24 * 3_600_000
"""An age that everything has, also what was done when a test had moved the clock on."""


async def empty(node: Node, metadata: MetadataStore, objects: ObjectStore) -> None:
    """Topics, groups, configs and sinks go. Members that are still there find that they are unknown, and join a new
    group."""
    await node.engine.leadership.renew()  # they may have been made to run out
    await node.broker.groups.outlast(0)
    await _end_members_over_http(node)
    await _delete_topics(node)
    await _delete_groups(node)
    await _delete_configs(node)
    await _forget_sinks(metadata, objects)
    while keys := await metadata.list_garbage(0, _AT_ONCE):
        await objects.delete(keys)
        await metadata.forget_garbage(keys)


async def _end_members_over_http(node: Node) -> None:
    """The node keeps them for callers that are between two requests, and would join again for whom nobody is left."""
    if node.doors.http is not None:
        await node.doors.http.end_memberships()


async def _delete_topics(node: Node) -> None:
    topics = node.broker.topics
    await topics.refresh()
    for topic in list(topics):
        await topics.delete(topic)


async def _delete_groups(node: Node) -> None:
    groups = node.broker.groups
    found = groups.all_groups()
    for group in [] if isinstance(found, GroupError) else found:
        for _ in range(_MOST_TRIES):
            described = groups.describe(group.group_id)
            if described is not None and not isinstance(described, GroupError) and described.members:
                leaving = [
                    LeavingMember(member_id=one.member_id, instance_id=one.instance_id) for one in described.members
                ]
                await groups.leave(group.group_id, leaving)
            if await groups.delete(group.group_id) is not GroupError.NON_EMPTY_GROUP:
                break


async def _delete_configs(node: Node) -> None:
    configs = node.broker.configs
    for kind in ConfigKind:
        for name in configs.configured(kind):
            await configs.change(Configured(kind, name), lambda own: dict.fromkeys(own))


async def _forget_sinks(metadata: MetadataStore, objects: ObjectStore) -> None:
    """With their batches, or a test's first would be taken for an earlier test's, which is done."""
    while begun := await metadata.claim_sink_batches(_OF_ANY_TIME_MS, _AT_ONCE):
        for batch in begun:
            await metadata.fail_sink_batch(batch.sink_id, batch.batch_id)
    await metadata.prune_sink_batches(_OF_ANY_TIME_MS, _OF_ANY_TIME_MS)
    await objects.delete([item.key async for item in objects.list(STAGING_PREFIX)])
