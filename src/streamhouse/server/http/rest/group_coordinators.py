"""Consumer groups as their coordinators tell of them, each of which may be any agent, and may be away: then the others'
groups are known all the same, and whoever asks for one of its own is told within seconds who it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from streamhouse.client.address import parse_bootstrap
from streamhouse.client.cluster import Cluster
from streamhouse.client.groups_admin import CLASSIC, GroupDescription, GroupPartition, GroupsAdmin, GroupSummary
from streamhouse.cluster.state import ClusterState
from streamhouse.core.placement.shards import shard_of
from streamhouse.model.errors import MetadataUnavailable, StreamHouseError, Unavailable
from streamhouse.runtime.watched import Silence
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.watch import ClusterWatch, Seen

UNKNOWN = "unknown"
"""The state of a group whose coordinator does not tell of it."""
_PATIENCE_S = 15.0
_PATIENCE_WITHOUT_S = 5.0
"""While no agent is known to coordinate the group: it may be handed over at this moment."""
_GLANCE_S = 1.0
"""At an agent that does not answer what it does, or when the metadata store was silent for so long that it is away, and
not only busy: perhaps it answers this."""


class CoordinatedGroup(NamedTuple):
    """`coordinator` is None while there is none."""

    group_id: str
    state: str
    kind: str
    coordinator: str | None


class ListedGroups(NamedTuple):
    """By group id. What is stored of them is as it was before `metadata_silence`."""

    groups: Sequence[CoordinatedGroup]
    metadata_silence: Silence | None


class GroupCoordinators:
    def __init__(self, context: DoorContext, cluster: Cluster, watch: ClusterWatch) -> None:
        self.groups = GroupsAdmin(cluster)
        self._clock = context.broker.clock
        self._watch = watch
        self._stored = watch.also(context.metadata.list_groups, "groups")

    async def all(self) -> ListedGroups:
        """Those that are stored are there whoever is away; that of an agent that is away is UNKNOWN."""
        seen = await self.seen()
        if seen is None:
            listed = await self.groups.list_groups()
            return ListedGroups([CoordinatedGroup(each.group_id, each.state, each.kind, None) for each in listed], None)
        await self._stored.look()
        coordinators = _coordinators(seen.state)
        stored = () if self._stored.answer is None else self._stored.answer.value
        kinds = {row.group_id: row.protocol or CLASSIC for row in stored}
        found = {
            group_id: CoordinatedGroup(group_id, UNKNOWN, kind, coordinators.get(shard_of(group_id)))
            for group_id, kind in kinds.items()
        }
        asked = sorted(set(coordinators.values()))
        answers = await asyncio.gather(*(self._told(agent_id, seen) for agent_id in asked))
        for agent_id, told in zip(asked, answers, strict=True):
            for group in told:
                found[group.group_id] = CoordinatedGroup(group.group_id, group.state, group.kind, agent_id)
        silence = seen.metadata_silence or self._stored.silence
        return ListedGroups([found[group_id] for group_id in sorted(found)], silence)

    async def describe(self, group_id: str) -> GroupDescription:
        async with self.asked(group_id):
            return await self.groups.describe_group(group_id)

    async def committed(self, group_id: str) -> Mapping[GroupPartition, int]:
        async with self.asked(group_id):
            return await self.groups.committed_offsets(group_id)

    @asynccontextmanager
    async def asked(self, group_id: str) -> AsyncIterator[None]:
        """In the block the group's coordinator is asked for something. If it does not answer, that is said in seconds,
        and who it is; unless the metadata store is away, without which nobody can say who it is."""
        seen = await self.seen()
        agent_id = None if seen is None else _coordinators(seen.state).get(shard_of(group_id))
        patience_s = _PATIENCE_WITHOUT_S
        silence = None
        if seen is not None and agent_id is not None:
            patience_s, silence = self._patience_s(agent_id, seen), seen.unanswered(agent_id)
        try:
            async with asyncio.timeout(patience_s):
                yield
        except (Unavailable, TimeoutError) as problem:
            await self._watch.state()  # which refuses while the metadata store is away
            why = problem.message if isinstance(problem, Unavailable) else f"no answer within {patience_s:.0f} s"
            raise _away(group_id, agent_id, why if silence is None else silence.why) from None

    async def seen(self) -> Seen | None:
        """None while the metadata store has told this node of nothing yet."""
        try:
            return await self._watch.seen()
        except MetadataUnavailable:
            return None

    async def _told(self, agent_id: str, seen: Seen) -> Sequence[GroupSummary]:
        addresses = {each.info.agent_id: each.info.kafka_address for each in seen.state.agents}
        if not addresses.get(agent_id):
            return ()
        (address,) = parse_bootstrap(addresses[agent_id])
        try:
            async with asyncio.timeout(self._patience_s(agent_id, seen)):
                return await self.groups.groups_at(address)
        except (StreamHouseError, TimeoutError):
            return ()

    def _patience_s(self, agent_id: str, seen: Seen) -> float:
        silence = seen.metadata_silence
        is_away = silence is not None and self._clock.now_ms() - silence.since_ms >= 1000 * _PATIENCE_S
        return _GLANCE_S if is_away or seen.unanswered(agent_id) is not None else _PATIENCE_S


def _coordinators(state: ClusterState) -> dict[int, str]:
    """By shard, as their leases say."""
    return {each.shard: each.agent_id for each in state.shards if each.lease_left_ms > 0}


def _away(group_id: str, agent_id: str | None, why: str) -> Unavailable:
    if agent_id is None:
        return Unavailable(
            f"no agent coordinates group {group_id!r} now",
            hint="try again soon: a live agent takes it over when the lease of the one before has run out",
        )
    return Unavailable(
        f"agent {agent_id} coordinates group {group_id!r}, and does not answer: {why}",
        hint="look whether it runs and can be reached; another takes the group over when its lease has run out",
    )
