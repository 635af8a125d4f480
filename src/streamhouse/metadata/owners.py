"""Among which agents the owners of partitions were last chosen, as its row has it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from streamhouse.core.placement.assignment import Candidate
from streamhouse.metadata.checks import check_text
from streamhouse.model.names import TopicPartition


def agents_to_json(agents: Collection[Candidate]) -> str:
    return json.dumps(sorted([agent.agent_id, agent.zone, agent.agent_group] for agent in agents))


def agents_from_json(text: str) -> frozenset[Candidate]:
    """Nobody, if somebody wrote there by hand: then all agents count as just come."""
    try:
        return frozenset(
            Candidate(agent_id=str(agent_id), zone=str(zone), agent_group=str(agent_group))
            for agent_id, zone, agent_group in json.loads(text)
        )
    except (TypeError, ValueError):
        return frozenset()


def check_owners(agents: Collection[Candidate], owners: Mapping[TopicPartition, str]) -> None:
    for agent in agents:
        check_text("agent id", agent.agent_id)
        check_text("zone", agent.zone)
        check_text("agent group", agent.agent_group)
    for owner in set(owners.values()):
        check_text("agent id", owner)
