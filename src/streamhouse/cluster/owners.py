"""One agent's part in choosing who should own each partition.

What is chosen is stored, by a transaction that only the first of those who choose at once carries out; the others take
what it chose. So agents that see different moments do not pull at a partition from two sides."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Protocol
from uuid import UUID

from streamhouse.cluster.view import ClusterView
from streamhouse.core.placement.assignment import Assignment, Candidate
from streamhouse.core.placement.bounded_loads import TopicOwners, decide, is_settled
from streamhouse.metadata.cluster import AgentRow, Placement, PlacementStore
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import Topic

_TRIES = 3
_QUICK = 2_000
"""So many partitions are decided about within some milliseconds; more are not to hold the event loop."""


class TopicConfigs(Protocol):
    """The topics, and the configs that say which agents may lead them."""

    def find_id(self, topic_id: UUID) -> Topic | None: ...

    def config_of(self, topic: Topic) -> Mapping[str, str]: ...


class Owners:
    def __init__(self, store: PlacementStore, view: ClusterView, topics: TopicConfigs) -> None:
        self._store = store
        self._view = view
        self._topics = topics
        self._assignment = Assignment(())

    def assignment(self) -> Assignment:
        """Of those that the view has as alive; its rings are kept for as long as these are the same."""
        live = frozenset(candidate_of(agent) for agent in self._view.live)
        if live != self._assignment.candidates:
            self._assignment = Assignment(live)
        return self._assignment

    async def settle(self) -> Assignment:
        """See to it that the view has owners for all that may have one, as far as there are agents."""
        for _ in range(_TRIES):
            assignment = self.assignment()
            topics, ids = self._free(assignment)
            version, before = self._view.owner_decision.version, self._view.owner_decision.agents
            if not assignment.candidates or is_settled(assignment, topics, before):
                break
            if sum(len(topic.owners) for topic in topics) <= _QUICK:
                changes = decide(assignment, topics, before)
            else:
                changes = await asyncio.to_thread(decide, assignment, topics, before)
            if version == 0:
                changes = _owners_of(topics) | changes
            owners = {TopicPartition(ids[topic], number): owner for (topic, number), owner in changes.items()}
            if await self._store.decide_owners(version, assignment.candidates, owners):
                self._view.note_owners(version + 1, assignment.candidates, owners)
                break
            await self._view.refresh()
        return self.assignment()

    def _free(self, assignment: Assignment) -> tuple[list[TopicOwners], dict[str, UUID]]:
        """The topics with those of their partitions that any of their agents could own, and the topics' ids."""
        found: dict[UUID, dict[int, str]] = {}
        formers: dict[UUID, dict[int, str]] = {}
        for partition, placement in self._view.placements.items():
            if self._is_free(assignment, placement):
                found.setdefault(partition.topic_id, {})[partition.partition] = self._owner(placement)
                if placement.former_owner:
                    formers.setdefault(partition.topic_id, {})[partition.partition] = placement.former_owner
        topics: list[TopicOwners] = []
        ids: dict[str, UUID] = {}
        for topic_id, owners in found.items():
            topic = self._topics.find_id(topic_id)
            if topic is None:
                continue  # made since the topics were looked at: the next round sees it
            config = self._topics.config_of(topic)
            ids[topic.name] = topic_id
            topics.append(
                TopicOwners(
                    name=topic.name,
                    agent_group=config["streamhouse.agent.group"],
                    zone=config["streamhouse.zone"],
                    owners=owners,
                    formers=formers.get(topic_id, {}),
                )
            )
        return topics, ids

    def _owner(self, placement: Placement) -> str:
        """Before anything was decided, as where the ring alone placed partitions, it is whoever leads: then only those
        move that a cap is against."""
        is_first = self._view.owner_decision.version == 0 and not placement.owner
        return placement.agent_id if is_first and placement.lease_left_ms > 0 else placement.owner

    def _is_free(self, assignment: Assignment, placement: Placement) -> bool:
        """Whether any agent of its topic could own it: not if it is pinned to one that is there, nor if the disk of one
        that is not there may hold records of it.

        One that drains is there for as long as it leads it. One that died is not, though of its leases the first to run
        out has shown it and the others are live yet."""
        if placement.pinned_to and assignment.is_live(placement.pinned_to):
            return False
        disk = placement.wal_agent_id
        if not disk or assignment.is_live(disk):
            return True
        agent = self._view.agents.get(disk)
        is_draining = agent is not None and agent.is_draining
        return is_draining and placement.agent_id == disk and placement.lease_left_ms > 0


def _owners_of(topics: Iterable[TopicOwners]) -> dict[tuple[str, int], str]:
    return {(topic.name, number): owner for topic in topics for number, owner in topic.owners.items() if owner}


def candidate_of(agent: AgentRow) -> Candidate:
    return Candidate(agent_id=agent.info.agent_id, zone=agent.info.zone, agent_group=agent.info.agent_group)
