"""What all nodes do, for whoever watches the cluster from one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from streamhouse.broker.nodes import Nodes
from streamhouse.client.peer import NodeWork, Peer, Peers
from streamhouse.model.errors import StreamHouseError

_TIMEOUT_MS = 1_500
"""Who watches wants to see the others, not to wait for one."""


class ClusterWork:
    def __init__(self, agent_id: str, own: Callable[[], NodeWork], peers: Peers, nodes: Nodes) -> None:
        self.agent_id = agent_id
        self.own = own
        """What this node does, now."""
        self._peers = peers
        self._nodes = nodes

    async def others(self) -> Mapping[str, NodeWork]:
        """By agent; those that do not answer are left out."""
        agents = {agent: self._peers.at(agent, at) for agent, at in self._nodes.peers() if agent != self.agent_id}
        told = await asyncio.gather(*(_ask(peer) for peer in agents.values()))
        return {agent: work for agent, work in zip(agents, told, strict=True) if work is not None}


async def _ask(peer: Peer) -> NodeWork | None:
    try:
        return await peer.work(timeout_ms=_TIMEOUT_MS)
    except StreamHouseError:
        return None
