"""The nodes of the cluster as clients know them: where each is, which one leads a partition or coordinates a group."""

from __future__ import annotations

from typing import NamedTuple

from streamhouse.cluster.view import ClusterView
from streamhouse.core.placement.shards import shard_of
from streamhouse.metadata.cluster import AgentRow
from streamhouse.model.names import TopicPartition


class Node(NamedTuple):
    """`rack` is the agent's zone."""

    node_id: int
    host: str
    port: int
    rack: str


class LeaderNode(NamedTuple):
    node: Node
    epoch: int


class Nodes:
    def __init__(self, view: ClusterView) -> None:
        self._view = view

    def all(self) -> list[Node]:
        """By node id."""
        return sorted(_node(agent) for agent in self._view.reachable)

    @property
    def registered_ids(self) -> frozenset[int]:
        """Of every node that there is, also of those that are not heard of."""
        return frozenset(agent.node_id for agent in self._view.agents.values())

    @property
    def hosts(self) -> frozenset[str]:
        """The names or addresses that clients are told of every node that there is."""
        return frozenset(_node(agent).host for agent in self._view.agents.values() if agent.info.kafka_address)

    @property
    def is_alone(self) -> bool:
        """Whether there is no other node that a client could ask."""
        return len(self._view.heard_of) <= 1

    @property
    def controller_id(self) -> int:
        """Any node does what Kafka's controller does; the first is named."""
        nodes = self.all()
        return nodes[0].node_id if nodes else -1

    def leader_of(self, partition: TopicPartition) -> LeaderNode | None:
        location = self._view.leader_of(partition)
        if location is None or not location.agent.info.kafka_address:
            return None
        return LeaderNode(_node(location.agent), location.epoch)

    def peer_that_leads(self, partition: TopicPartition) -> tuple[str, str] | None:
        """The leader's agent id, and where other nodes reach it."""
        location = self._view.leader_of(partition)
        if location is None or not location.agent.info.address:
            return None
        return location.agent.info.agent_id, location.agent.info.address

    def peers(self) -> list[tuple[str, str]]:
        """Every node that is heard of and that other nodes can ask: its agent id, and where."""
        return [(agent.info.agent_id, agent.info.address) for agent in self._view.heard_of if agent.info.address]

    def awaited(self, partition: TopicPartition) -> int | None:
        """The node whose disk may hold acknowledged records of a partition, so that nobody else may lead it."""
        placement = self._view.placements.get(partition)
        agent = None if placement is None else self._view.agents.get(placement.wal_agent_id)
        return None if agent is None else agent.node_id

    def coordinator_of(self, group_id: str) -> Node | None:
        agent = self._view.coordinator_of(shard_of(group_id))
        return None if agent is None or not agent.info.kafka_address else _node(agent)

    def nearer_to(self, rack: str, leader_node_id: int) -> Node | None:
        """A node in the reader's zone, if the leader is not: always the same one, so that its cache serves many."""
        nodes = self.all()
        if any(node.node_id == leader_node_id and node.rack == rack for node in nodes):
            return None
        return next((node for node in nodes if node.rack == rack), None)


def _node(agent: AgentRow) -> Node:
    host, _, port = agent.info.kafka_address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    return Node(agent.node_id, host, int(port), agent.info.zone)
