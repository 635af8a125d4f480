"""Partitions are spread evenly over real agents, and nothing moves but for an agent that comes or goes."""

from __future__ import annotations

from collections import Counter
from math import ceil

from faults.cluster.steady import assert_unmoved_but_for, decisions, needs_steady_leases
from faults.workload import create_topic
from node.cluster import Cluster
from node.wait import eventually

TOPICS = 6
PARTITIONS = 6


def led(cluster: Cluster, topics: list[str]) -> dict[tuple[str, int], str]:
    """Who holds the lease of each partition, and is its owner; the rest are left out."""
    rows = cluster.storage.query("SELECT topic, partition_id, owner_agent_id FROM partitions")
    owners = {(topic, number): owner for topic, number, owner in rows}
    return {
        (lease.topic, lease.partition): lease.agent
        for lease in cluster.leases()
        if lease.is_live and lease.topic in topics and owners.get((lease.topic, lease.partition)) == lease.agent
    }


def come_to_rest(cluster: Cluster, topics: list[str], count: int) -> dict[tuple[str, int], str]:
    """As it is when every partition is led by its owner, and nothing is on its way."""
    cluster.wait_led()
    return eventually(
        lambda: (
            (found := led(cluster, topics))
            and len(found) == count
            and not cluster.storage.query(
                "SELECT transfer_id FROM partition_transfers WHERE state IN ('pending', 'accepted')"
            )
            and found
        ),
        "every partition to be led by its owner",
    )


@needs_steady_leases
def test_three_agents_lead_two_of_six_and_a_fourth_gets_its_part(cluster: Cluster) -> None:
    topics = [cluster.new_topic() for _ in range(TOPICS)]
    for topic in topics:
        create_topic(cluster.bootstrap, topic, PARTITIONS)
    before = come_to_rest(cluster, topics, TOPICS * PARTITIONS)
    for topic in topics:
        assert Counter(agent for (name, _), agent in before.items() if name == topic) == dict.fromkeys(
            cluster.agents, 2
        )

    create_topic(cluster.bootstrap, another := cluster.new_topic(), 5)
    assert come_to_rest(cluster, [*topics, another], TOPICS * PARTITIONS + 5).items() >= before.items()

    everything = len(cluster.leases())
    since = decisions(cluster)
    new = cluster.add("a4", "z4")
    try:
        cluster.wait_led()
        after = eventually(
            lambda: (found := come_to_rest(cluster, topics, TOPICS * PARTITIONS)) != before and found,
            "the new agent to get something",
        )
        moved = {key for key in before if before[key] != after[key]}
        gets = {after[key] for key in moved}
        assert_unmoved_but_for(cluster, since, 1, gets == {"a4"}, f"{gets} get something")
        assert len(cluster.led_by(new)) <= ceil(1.25 * everything / 4)
        for topic in topics:
            assert max(Counter(agent for (name, _), agent in after.items() if name == topic).values()) == 2
    finally:
        cluster.remove(new)
    gone = come_to_rest(cluster, topics, TOPICS * PARTITIONS)
    others = {key for key in after if after[key] != gone[key]}.symmetric_difference(
        key for key in after if after[key] == "a4"
    )
    assert_unmoved_but_for(cluster, since, 2, not others, f"{others} moved as well")
    for topic in topics:
        assert Counter(agent for (name, _), agent in gone.items() if name == topic) == dict.fromkeys(cluster.agents, 2)
