"""Which durability topics have that say none themselves: that of the agents which lead them, whoever is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streamhouse.cluster.view import ClusterView
from streamhouse.metadata.cluster import AgentRow
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import Topic

DURABILITY = "streamhouse.durability"
MIXED = "mixed"
"""Some agents that lead the topic have one, and some the other."""


class LedDurability:
    def __init__(self, view: ClusterView) -> None:
        self._view = view

    def of(self, topic: Topic, config: Mapping[str, str]) -> str:
        """`config`: as it is by this node's own defaults, which count where no agent has told its."""
        if DURABILITY in topic.config:
            return config[DURABILITY]
        group = config["streamhouse.agent.group"]
        # Those that are silent will be back, or others like them: until then nothing is written any other way.
        told = _told_by(self._view.heard_of, group) or _told_by(self._view.agents.values(), group)
        if len(told) > 1:
            told = self._of_leaders(topic) or told
        return min(told, default=config[DURABILITY]) if len(told) < 2 else MIXED

    def _of_leaders(self, topic: Topic) -> set[str]:
        found = (
            self._view.leader_of(TopicPartition(topic.topic_id, number)) for number in range(topic.partition_count)
        )
        return {leader.agent.info.durability for leader in found if leader is not None and leader.agent.info.durability}


def _told_by(agents: Iterable[AgentRow], group: str) -> set[str]:
    return {agent.info.durability for agent in agents if agent.info.agent_group == group and agent.info.durability}
