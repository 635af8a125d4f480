"""The hash ring over REST: where agents and partitions are on it, who is to lead each partition, and who does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from streamhouse.broker.topics import Topics
from streamhouse.cluster.state import AgentState, ClusterState, leader_of, name_of, waits_for
from streamhouse.core.placement.assignment import Assignment, Candidate
from streamhouse.core.placement.ring import Ring, partition_key, point
from streamhouse.metadata.cluster import Placement
from streamhouse.server.http.rest.paging import page
from streamhouse.server.http.rest.positions import after_name
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.http.rest.watch import ClusterWatch
from streamhouse.wire.http.rest import console as api

_WHOLE = 2**64
_DIGITS = 9
"""Enough for a screen: the points of ten million partitions are that far apart."""

_EXAMPLE = api.RingAnswer(
    agents=[
        api.RingAgent(
            agent_id="agent-1",
            state="live",
            zone="eu-1a",
            agent_group="default",
            positions=[0.003817204, 0.514902233],
            share=0.34,
            owns=2,
        )
    ],
    partitions=[
        api.RingPartition(
            topic="orders",
            partition=0,
            position=0.271828183,
            owner="agent-1",
            leader="agent-1",
            epoch=3,
            lease_left_ms=28_700,
            pinned_to=None,
            waits_for=None,
        )
    ],
)


def add_ring(rest: Rest, topics: Topics, watch: ClusterWatch) -> None:
    rest.route(
        "GET",
        f"{API}/ring",
        _RingRoutes(topics, watch).ring,
        summary="Where agents and partitions are on the hash ring",
        tag="cluster",
        query=api.RingQuery,
        answer=api.RingAnswer,
        answer_example=_EXAMPLE,
    )


class _Places:
    """What follows from who is alive, and is kept as long as that stays."""

    def __init__(self, live: frozenset[Candidate]) -> None:
        self.live = live
        self.assignment = Assignment(live)
        self.positions: dict[str, list[float]] = {candidate.agent_id: [] for candidate in live}
        self.shares: dict[str, float] = dict.fromkeys(self.positions, 0.0)
        vnodes = Ring(self.positions).positions()
        before = vnodes[-1][0] - _WHOLE if vnodes else 0
        for place, agent_id in vnodes:
            self.positions[agent_id].append(_fraction(place))
            self.shares[agent_id] += (place - before) / _WHOLE
            before = place


class _RingRoutes:
    def __init__(self, topics: Topics, watch: ClusterWatch) -> None:
        self._topics = topics
        self._watch = watch
        self._places = _Places(frozenset())
        self._counted: tuple[ClusterState, Counter[str | None]] | None = None

    async def ring(self, call: Call) -> api.RingAnswer:
        asked: api.RingQuery = call.query
        state = await self._watch.state()
        states = state.states()
        places = self._places_of(state, states)
        owns = self._owns_in(state, places.assignment)
        after = after_name(asked.after)
        found = (
            placement
            for placement in state.placements
            if (placement.topic, placement.partition.partition) > after and asked.topic in ("", placement.topic)
        )
        placements, following = page(found, asked.limit, name_of)
        return api.RingAnswer(
            agents=[
                api.RingAgent(
                    agent_id=agent.info.agent_id,
                    state=states[agent.info.agent_id].value,
                    zone=agent.info.zone,
                    agent_group=agent.info.agent_group,
                    positions=places.positions.get(agent.info.agent_id, []),
                    share=round(places.shares.get(agent.info.agent_id, 0.0), _DIGITS),
                    owns=owns[agent.info.agent_id],
                )
                for agent in state.agents
            ],
            partitions=[self._partition(placement, places.assignment) for placement in placements],
            next=following,
        )

    def _places_of(self, state: ClusterState, states: Mapping[str, AgentState]) -> _Places:
        live = frozenset(
            Candidate(agent_id=agent.info.agent_id, zone=agent.info.zone, agent_group=agent.info.agent_group)
            for agent in state.agents
            if states[agent.info.agent_id] is AgentState.LIVE
        )
        if live != self._places.live:
            self._places = _Places(live)
        return self._places

    def _owns_in(self, state: ClusterState, assignment: Assignment) -> Counter[str | None]:
        """Counted once for all pages of one look."""
        if self._counted is None or self._counted[0] is not state:
            self._counted = (state, Counter(self._owner(placement, assignment) for placement in state.placements))
        return self._counted[1]

    def _partition(self, placement: Placement, assignment: Assignment) -> api.RingPartition:
        number = placement.partition.partition
        return api.RingPartition(
            topic=placement.topic,
            partition=number,
            position=_position(placement.topic, number),
            owner=self._owner(placement, assignment),
            leader=leader_of(placement),
            epoch=placement.epoch,
            lease_left_ms=max(0, placement.lease_left_ms),
            pinned_to=placement.pinned_to or None,
            waits_for=waits_for(placement),
        )

    def _owner(self, placement: Placement, assignment: Assignment) -> str | None:
        """None also for a topic that this node has not heard of yet, and while nobody has chosen one."""
        topic = self._topics.find_id(placement.partition.topic_id)
        if topic is None:
            return None
        config = self._topics.config_of(topic)
        return assignment.owner(
            placement.owner,
            agent_group=config["streamhouse.agent.group"],
            zone=config["streamhouse.zone"],
            pinned_to=placement.pinned_to,
        )


@lru_cache(maxsize=16_384)
def _position(topic: str, partition: int) -> float:
    return _fraction(point(partition_key(topic, partition)))


def _fraction(place: int) -> float:
    return round(place / _WHOLE, _DIGITS)
