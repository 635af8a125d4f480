"""Where partitions end, as far as anybody has said since this node started: what all pages go by, so that none of them
has less than another, or than before, when an agent is gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from streamhouse.client.peer import NodeWork
from streamhouse.cluster.state import ClusterState, leader_of, waits_for
from streamhouse.metadata.cluster import Placement
from streamhouse.model.names import TopicPartition


class _Told(NamedTuple):
    epoch: int
    end: int


class KnownEnds:
    """A partition's leader knows best, and what it said stays when it is gone, for it was durable."""

    def __init__(self) -> None:
        self._told: dict[TopicPartition, _Told] = {}

    def update(self, state: ClusterState, work: Mapping[str, NodeWork]) -> dict[TopicPartition, int]:
        """`work` is what nodes said at that time; partitions that are no more are forgotten."""
        others: dict[TopicPartition, int] = {}
        for node in work.values():
            for partition, end in node.ends.items():
                others[partition] = max(end, others.get(partition, 0))
        told: dict[TopicPartition, _Told] = {}
        for placement in state.placements:
            newest = self._newest(placement, work.get(leader_of(placement) or ""), others)
            if newest is not None:
                told[placement.partition] = newest
        self._told = told
        return {placement.partition: self.of(placement) for placement in state.placements}

    def note(self, partition: TopicPartition, epoch: int, end: int) -> None:
        """What a leader has just said."""
        self._told[partition] = self._grown(partition, epoch, end)

    def of(self, placement: Placement) -> int:
        told = self._told.get(placement.partition)
        return placement.durable_end if told is None else max(told.end, placement.durable_end)

    def unheard(self, placement: Placement) -> str | None:
        """The agent that may have records of the partition and has never told: then only what the metadata store knows
        is counted."""
        return None if placement.partition in self._told else leader_of(placement) or waits_for(placement)

    def missing(self, state: ClusterState, answered: Iterable[str]) -> list[str]:
        """Agents that did not answer, and without whose records the ends are."""
        unheard = {agent_id for each in state.placements if (agent_id := self.unheard(each)) is not None}
        return sorted(unheard - set(answered))

    def _newest(
        self, placement: Placement, leader: NodeWork | None, others: Mapping[TopicPartition, int]
    ) -> _Told | None:
        partition = placement.partition
        known = self._told.get(partition)
        if leader is not None and partition in leader.ends:
            return self._grown(partition, placement.epoch, leader.ends[partition])
        if partition not in others:
            return known
        return _Told(placement.epoch, max(others[partition], 0 if known is None else known.end))

    def _grown(self, partition: TopicPartition, epoch: int, end: int) -> _Told:
        """Less than before only where somebody gave up the records of a disk that was lost; then its epoch is newer."""
        known = self._told.get(partition)
        if known is None or known.epoch < epoch:
            return _Told(epoch, end)
        return _Told(known.epoch, max(known.end, end))
