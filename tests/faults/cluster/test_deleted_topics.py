"""A topic that was deleted through one agent: whoever asks another whether it is gone does not bring it back."""

from __future__ import annotations

import pytest

from faults.workload import create_topic
from node.admin import delete_topic
from node.cluster import Agent, Cluster
from node.raw import RawConnection
from node.wait import eventually

UNKNOWN = 3


def answered(agent: Agent, topic: str) -> int:
    """The code of a Metadata request that may create topics, as a client's does."""
    with RawConnection(agent.address) as raw:
        (found,) = raw.metadata(topic, create=True).topics
    return int(found.error_code)


@pytest.mark.parametrize("durability", ["object"])
def test_a_topic_that_is_deleted_stays_so_for_all_who_look(cluster: Cluster) -> None:
    topic = cluster.new_topic()
    create_topic(cluster.bootstrap, topic, 3)
    cluster.wait_led(topic)

    delete_topic(cluster.bootstrap, topic)

    for agent in cluster.agents.values():
        # One that has not heard of it yet says that it is there, which creates nothing.
        eventually(lambda agent=agent: answered(agent, topic) == UNKNOWN, f"{agent.name} to know that it is gone")
    for agent in cluster.agents.values():
        assert answered(agent, topic) == UNKNOWN
    assert cluster.storage.query(f"SELECT 1 FROM topics WHERE name = '{topic}'") == []
    create_topic(cluster.bootstrap, topic, 2)
    cluster.wait_led(topic)
