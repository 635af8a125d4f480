"""What an agent's row says beyond its columns, and which Kafka node id it gets."""

from __future__ import annotations

import json
from dataclasses import dataclass

from streamhouse.metadata.checks import check_text
from streamhouse.metadata.cluster import AgentInfo
from streamhouse.model.errors import AlreadyExists, InvalidInput

_MAX_NODE_ID = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDetails:
    """The `metadata` of an agent's row. One that somebody made by hand has none, or anything else."""

    node_id: int
    kafka_address: str
    is_draining: bool

    def to_json(self) -> str:
        return json.dumps({"node_id": self.node_id, "kafka_address": self.kafka_address, "draining": self.is_draining})

    @classmethod
    def from_json(cls, text: str) -> AgentDetails:
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            found = {}
        node_id, kafka_address = found.get("node_id"), found.get("kafka_address")
        return cls(
            node_id=node_id if type(node_id) is int else 0,
            kafka_address=kafka_address if isinstance(kafka_address, str) else "",
            is_draining=found.get("draining") is True,
        )


def check_agent(info: AgentInfo, node_id: int) -> None:
    check_text("agent id", info.agent_id)
    check_text("address", info.address)
    check_text("Kafka address", info.kafka_address)
    check_text("zone", info.zone)
    check_text("agent group", info.agent_group)
    if not info.agent_id:
        raise InvalidInput("an agent needs an id")
    if not 0 <= node_id <= _MAX_NODE_ID:
        raise InvalidInput(f"{node_id} is not a node id")


def choose_node_id(agent_id: str, asked: int, *, own: int | None, holder: str | None, unused: int) -> int:
    """`own`: what this agent had before; `holder`: who has the id that is asked for; `unused`: above all ids so far."""
    if asked:
        if holder not in (None, agent_id):
            raise AlreadyExists(
                f"node id {asked} is that of agent {holder!r}", hint="ask for another, or for any with 0"
            )
        return asked
    if own is not None:
        return own
    if unused > _MAX_NODE_ID:
        raise InvalidInput("all node ids are used up", hint="ask for one that no agent has")
    return unused
