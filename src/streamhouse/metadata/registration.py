"""What an agent's row says beyond its columns, and which Kafka node id it gets."""

from __future__ import annotations

import json
from dataclasses import dataclass

from streamhouse.core.placement.store_access import StoreAccess
from streamhouse.metadata.checks import check_text
from streamhouse.metadata.cluster import AgentInfo
from streamhouse.model.errors import AlreadyExists, InvalidInput

_MAX_NODE_ID = 2**31 - 1
_MAX_PORT = 65_535
_DURABILITIES = ("", "wal", "object")
_KNOWN_ACCESS = {access.value: access for access in StoreAccess}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDetails:
    """The `metadata` of an agent's row. One that somebody made by hand has none, or anything else."""

    node_id: int
    kafka_address: str
    is_draining: bool
    store_access: StoreAccess = StoreAccess.USUAL
    durability: str = ""

    def to_json(self) -> str:
        return json.dumps(
            {
                "node_id": self.node_id,
                "kafka_address": self.kafka_address,
                "draining": self.is_draining,
                "store_access": self.store_access.value,
                "durability": self.durability,
            }
        )

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
            node_id=node_id if type(node_id) is int and 0 <= node_id <= _MAX_NODE_ID else 0,
            kafka_address=kafka_address if isinstance(kafka_address, str) and _is_address(kafka_address) else "",
            is_draining=found.get("draining") is True,
            store_access=_KNOWN_ACCESS.get(str(found.get("store_access")), StoreAccess.USUAL),
            durability=str(said) if (said := found.get("durability")) in _DURABILITIES else "",
        )


def _is_address(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return host != "" and port.isascii() and port.isdigit() and int(port) <= _MAX_PORT


class TakenOver:
    """What a transaction that grants leases learns of those who held them before."""

    __slots__ = ("_agent_id", "_lapsed")

    def __init__(self, agent_id: str) -> None:
        self._agent_id = agent_id
        self._lapsed: dict[str, int] = {}

    def from_holder(self, agent_id: str, lease_expires_at_ms: int) -> None:
        """A lease that was released, or never held, is stored as expired at time 0, and says nothing of its holder."""
        if lease_expires_at_ms > 0 and agent_id != self._agent_id:
            self._lapsed[agent_id] = max(lease_expires_at_ms, self._lapsed.get(agent_id, 0))

    @property
    def lapsed(self) -> dict[str, int]:
        """When the last lease of each ran out that is taken over now; in the order in which agents' rows are locked."""
        return dict(sorted(self._lapsed.items()))


def check_agent(info: AgentInfo, node_id: int) -> None:
    check_text("agent id", info.agent_id)
    check_text("address", info.address)
    check_text("Kafka address", info.kafka_address)
    check_text("zone", info.zone)
    check_text("agent group", info.agent_group)
    check_durability(info.durability)
    if not info.agent_id:
        raise InvalidInput("an agent needs an id")
    if not 0 <= node_id <= _MAX_NODE_ID:
        raise InvalidInput(f"{node_id} is not a node id")


def check_durability(durability: str) -> None:
    if durability not in _DURABILITIES:
        raise InvalidInput(f"{durability[:100]!r} is not a durability", hint="wal or object")


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
