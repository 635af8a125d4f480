"""Waits for the leaders of partitions that were just made, so that whoever made them finds them led."""

from __future__ import annotations

from collections.abc import Iterable

from streamhouse.cluster.view import ClusterView
from streamhouse.model.names import TopicPartition
from streamhouse.runtime.clock import Clock


class FirstLeaders:
    def __init__(self, view: ClusterView, clock: Clock) -> None:
        self._view = view
        self._clock = clock

    async def wait(self, partitions: Iterable[TopicPartition], agent_group: str, timeout_ms: int) -> None:
        """Until agents lead all of these as far as this node knows, the time is over, or no agent of the group is there
        to lead them. It asks nothing of the metadata store: each look at the cluster tells all who wait."""
        until_ms = self._clock.monotonic_ms() + timeout_ms
        missing = list(partitions)
        while missing := [partition for partition in missing if self._view.leader_of(partition) is None]:
            left_ms = until_ms - self._clock.monotonic_ms()
            if left_ms <= 0 or not any(agent.info.agent_group == agent_group for agent in self._view.live):
                return
            await self._view.next_look(left_ms)
