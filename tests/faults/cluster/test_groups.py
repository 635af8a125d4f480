"""Group coordinators are leased: when one dies or sleeps, another goes on with the offsets that it had committed."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaException, TopicPartition
from kafka.protocol.consumer.group import OffsetFetchRequest, OffsetFetchResponse
from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse

from faults.workload import create_topic
from group_members.member import Member, wait_for_one_owner_each
from node.admin import QUICK
from node.cluster import Agent, Cluster
from node.raw import RawConnection
from node.wait import HUNG_SECONDS, eventually

PARTITIONS = 4
NOT_COORDINATOR = 16
COORDINATOR_LOADING = 14
COORDINATOR_NOT_AVAILABLE = 15
SENT_ON = {NOT_COORDINATOR, COORDINATOR_LOADING, COORDINATOR_NOT_AVAILABLE}

pytestmark = pytest.mark.parametrize("durability", ["object"])


@pytest.fixture
def topic(cluster: Cluster) -> str:
    topic = cluster.new_topic()
    create_topic(cluster.bootstrap, topic, PARTITIONS)
    cluster.wait_led(topic)
    return topic


def coordinator_of(cluster: Cluster, group: str) -> Agent:
    """Whom the agents that answer name, as soon as they name one that answers."""

    def named() -> Agent | None:
        asked = next(agent for agent in cluster.agents.values() if agent.answers)
        request = FindCoordinatorRequest(version=3, key=group, key_type=0)
        with RawConnection(asked.address) as raw:
            answer = raw.call(request, FindCoordinatorResponse)
        if answer.error_code:
            assert answer.error_code == COORDINATOR_NOT_AVAILABLE
            return None
        agents = {agent.address: agent for agent in cluster.agents.values()}
        named = agents[answer.host, answer.port]
        return named if named.answers else None

    return eventually(named, f"a coordinator of {group}", pause=0.05)


def fill(cluster: Cluster, topic: str, first: int, count: int) -> set[str]:
    # What is sent again, because its lease lapsed before it was acknowledged, is to be stored once.
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, **QUICK})
    values = {str(number) for number in range(first, first + count)}
    for value in sorted(values):
        producer.produce(topic, value, partition=int(value) % PARTITIONS)
    assert producer.flush(HUNG_SECONDS) == 0
    return values


def committed(cluster: Cluster, group: str, topic: str) -> dict[int, int]:
    """What the group's coordinator says; asked again while there is none."""

    def answer() -> tuple[dict[int, int]] | None:
        with RawConnection(coordinator_of(cluster, group).address) as raw:
            error, offsets = fetch_offsets(raw, group, topic)
        assert error == 0 or error in SENT_ON, f"offset fetch answered with {error}"
        return (offsets,) if error == 0 else None

    return eventually(answer, f"the offsets of {group}", pause=0.05)[0]


def fetch_offsets(raw: RawConnection, group: str, topic: str) -> tuple[int, dict[int, int]]:
    """The error code, and the offsets of the partitions that have one."""
    wanted = OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=list(range(PARTITIONS)))
    request = OffsetFetchRequest(version=7, group_id=group, topics=[wanted], require_stable=False)
    answer: Any = raw.call(request, OffsetFetchResponse)
    found = [at for name in answer.topics for at in name.partitions]
    error = answer.error_code or max((at.error_code for at in found), default=0)
    return error, {at.partition_index: at.committed_offset for at in found if at.committed_offset >= 0}


def wait_told(members: list[Member], sent: set[str]) -> None:
    """What members have read is heard of beside what they have committed."""
    eventually(lambda: {value for member in members for value in member.values} == sent, "all to be told as read")


@pytest.mark.parametrize(
    "kinds", [("confluent", "aiokafka"), ("consumer-protocol", "consumer-protocol"), ("aiokafka", "consumer-protocol")]
)
def test_members_go_on_when_their_coordinator_is_killed(cluster: Cluster, topic: str, kinds: tuple[str, ...]) -> None:
    group = f"{topic}-members"
    sent = fill(cluster, topic, 0, 200)
    with ExitStack() as ending:
        members = [ending.enter_context(Member(kind, cluster.bootstrap, group, topic)) for kind in kinds]
        wait_for_one_owner_each(members, PARTITIONS)
        eventually(lambda: sum(committed(cluster, group, topic).values()) == 200, "all to be committed", pause=0.1)
        before = committed(cluster, group, topic)
        victim = coordinator_of(cluster, group)
        victim.kill9()
        assert coordinator_of(cluster, group) is not victim
        assert committed(cluster, group, topic) == before, "offsets were lost with the coordinator"
        sent |= fill(cluster, topic, 200, 200)
        eventually(lambda: sum(committed(cluster, group, topic).values()) == 400, "the group to go on", pause=0.1)
        wait_told(members, sent)
        wait_for_one_owner_each(members, PARTITIONS)
        victim.start()
        sent |= fill(cluster, topic, 400, 100)
        eventually(lambda: sum(committed(cluster, group, topic).values()) == 500, "the group to go on again", pause=0.1)
        wait_told(members, sent)


def test_a_coordinator_that_slept_takes_no_commits_and_tells_no_old_offsets(cluster: Cluster, topic: str) -> None:
    group = f"{topic}-zombie"
    commit(cluster, group, topic, 10)
    zombie = coordinator_of(cluster, group)
    with RawConnection(zombie.address) as raw:
        assert fetch_offsets(raw, group, topic) == (0, {0: 10})
        zombie.pause()
        successor = coordinator_of(cluster, group)
        assert successor is not zombie
        commit(cluster, group, topic, 20)
        zombie.resume()
        for _ in range(20):
            error, offsets = fetch_offsets(raw, group, topic)
            assert error in SENT_ON or (error, offsets) == (0, {0: 20}), f"old offsets were told: {offsets}"
    assert committed(cluster, group, topic) == {0: 20}


def commit(cluster: Cluster, group: str, topic: str, offset: int) -> None:
    """As a consumer without a subscription does it, of the agents that answer."""
    live = [agent for agent in cluster.agents.values() if agent.answers]
    settings = {"bootstrap.servers": cluster.bootstrap_of(live), "group.id": group, "socket.timeout.ms": 2000, **QUICK}
    consumer = confluent_kafka.Consumer(settings)
    try:

        def done() -> bool:
            try:
                consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
            except KafkaException as problem:
                if problem.args[0].retriable() or problem.args[0].code() < 0:
                    return False
                raise
            return True

        eventually(done, "the commit")
    finally:
        consumer.close()


def test_groups_spread_over_the_agents_and_move_when_one_drains(cluster: Cluster, topic: str) -> None:
    groups = [f"{topic}-group-{number}" for number in range(30)]
    for group in groups[:6]:
        commit(cluster, group, topic, 7)
    # A cluster that was healed leads every partition, and may still be about to give the shards back.
    eventually(
        lambda: {coordinator_of(cluster, group) for group in groups} == set(cluster.agents.values()),
        "every agent to coordinate some of thirty groups",
        pause=0.1,
    )
    victim = coordinator_of(cluster, groups[0])
    assert victim.terminate() == 0
    for group in groups[:6]:
        assert coordinator_of(cluster, group) is not victim
        assert committed(cluster, group, topic) == {0: 7}
