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


def counted(topics: list[str], leaders: dict[tuple[str, int], str]) -> list[Counter[str]]:
    """Of each topic, how many partitions each agent leads."""
    return [Counter(agent for (name, _), agent in leaders.items() if name == topic) for topic in topics]


def are_two_each(cluster: Cluster, topics: list[str], leaders: dict[tuple[str, int], str]) -> bool:
    return all(counts == dict.fromkeys(cluster.agents, 2) for counts in counted(topics, leaders))


@needs_steady_leases
def test_three_agents_lead_two_of_six_and_a_fourth_gets_its_part(cluster: Cluster) -> None:
    topics = [cluster.new_topic() for _ in range(TOPICS)]
    for topic in topics:
        create_topic(cluster.bootstrap, topic, PARTITIONS)
    # An agent that a busy machine kept from its heartbeat meanwhile has its part as soon as it is heard of again.
    before = eventually(
        lambda: are_two_each(cluster, topics, found := come_to_rest(cluster, topics, TOPICS * PARTITIONS)) and found,
        "two partitions of each topic on each agent",
    )

    since = decisions(cluster)
    create_topic(cluster.bootstrap, another := cluster.new_topic(), 5)
    beside = come_to_rest(cluster, [*topics, another], TOPICS * PARTITIONS + 5)
    is_unmoved = beside.items() >= before.items()
    assert_unmoved_but_for(cluster, since, 1, is_unmoved, f"{another} was made, and others moved")

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
        got = len(cluster.led_by(new))
        is_within = got <= ceil(1.25 * everything / 4)
        assert_unmoved_but_for(cluster, since, 1, is_within, f"the new agent got {got} of {everything}")
        most = {max(counts.values()) for counts in counted(topics, after)}
        assert_unmoved_but_for(cluster, since, 1, most == {2}, f"one agent leads {most} of a topic")
    finally:
        cluster.remove(new)
    gone = come_to_rest(cluster, topics, TOPICS * PARTITIONS)
    others = {key for key in after if after[key] != gone[key]}.symmetric_difference(
        key for key in after if after[key] == "a4"
    )
    assert_unmoved_but_for(cluster, since, 2, not others, f"{others} moved as well")
    assert_unmoved_but_for(cluster, since, 2, are_two_each(cluster, topics, gone), "they are not two each again")
