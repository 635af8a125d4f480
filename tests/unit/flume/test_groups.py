"""Groups and coordinators in memory: the document's examples, and what a node's Flume port does as well."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from streamhouse.core.groups.consumer_target import TopicShape
from streamhouse.flume import (
    Coordinator,
    CoordinatorConfig,
    Group,
    GroupConsumer,
    OffsetStore,
    Producer,
    RebalanceNeeded,
    TopicManager,
    UnknownMember,
    default_coordinator_config,
)
from streamhouse.model.errors import StaleGeneration, Unavailable, Unsupported
from streamhouse.testing import Broker
from streamhouse.testing.clock import MovableClock

ORDERS = {"orders": TopicShape(UUID(int=1), 3)}


def partitions(group: Group, member_id: str) -> list[int]:
    return [partition for _, partition in group.assignments(member_id)]


def test_the_documents_group() -> None:
    clock = MovableClock()
    group = Group("analytics", session_timeout_ms=3_600_000, clock=clock)
    member_id, generation = group.join("")
    group.heartbeat(member_id, generation)
    member = group.get_member(member_id)
    assert member is not None
    assert (member.id, member.state, member.assignments) == (member_id, "stable", ())
    assert member.last_heartbeat_ms <= clock.monotonic_ms()
    with pytest.raises(StaleGeneration):
        group.heartbeat(member_id, generation - 1)
    group.leave(member_id)
    assert group.get_member(member_id) is None
    with pytest.raises(UnknownMember):
        group.leave(member_id)

    silent, _ = group.join("")
    clock.pass_time(600_000)
    lively, _ = group.join("")
    assert group.expire_members(300_000) == [silent]
    assert group.members == (lively,)


def test_a_member_that_joins_makes_the_other_join_again_and_gets_what_it_gives_up() -> None:
    group = Group("analytics", topics=lambda: ORDERS)
    first, generation = group.join(topics=["orders"])
    assert partitions(group, first) == [0, 1, 2]
    second, _ = group.join(topics=["orders"])
    assert partitions(group, second) == [], "nobody has a partition before the other has given it up"
    assert group.generation > generation
    with pytest.raises(RebalanceNeeded):
        group.heartbeat(first, generation)
    assert partitions(group, first) == [0, 1, 2]
    _, newer = group.join(first)
    assert newer > generation
    with pytest.raises(StaleGeneration):
        group.heartbeat(first, generation)
    group.join(second)
    shares = {member: partitions(group, member) for member in (first, second)}
    assert [shares[member] for member in sorted(shares)] == [[0, 1], [2]], "range, the remainder to the first"
    assert group.leader_id == min(first, second)


def test_partitions_of_who_leaves_or_goes_silent_go_to_the_others() -> None:
    clock = MovableClock()
    group = Group("analytics", topics=lambda: ORDERS, clock=clock)
    first, _ = group.join(topics=["orders"])
    second, _ = group.join(topics=["orders"])
    group.join(first)
    group.join(second)
    group.leave(first)
    group.join(second)
    assert partitions(group, second) == [0, 1, 2]
    clock.pass_time(10_000)
    with pytest.raises(UnknownMember):
        group.heartbeat(second, group.generation)
    assert group.members == ()
    assert group.leader_id == ""


def test_a_topic_that_grows_makes_members_join_again() -> None:
    topics = dict(ORDERS)
    group = Group("analytics", topics=lambda: topics)
    member, generation = group.join(topics=["orders"])
    topics["orders"] = TopicShape(UUID(int=1), 4)
    with pytest.raises(RebalanceNeeded):
        group.heartbeat(member, generation)
    group.join(member)
    assert partitions(group, member) == [0, 1, 2, 3]


@pytest.fixture
def stored(broker: Broker, tmp_path: Path) -> Path:
    with Producer(broker.flume_address) as producer:
        producer.produce("orders", b"x")
    with GroupConsumer(broker.flume_address, "analytics", ["orders"]) as consumer:
        consumer.seek("orders", 0, 1)
        consumer.commit()
    return tmp_path


def test_the_documents_coordinator_as_far_as_it_reads(stored: Path) -> None:
    offset_store, topic_manager = OffsetStore(stored), TopicManager(stored)
    config = default_coordinator_config()
    assert config == CoordinatorConfig(session_timeout_ms=10_000)
    coordinator = Coordinator(config, offset_store, topic_manager)
    coordinator.start()
    result = coordinator.join_group("analytics", "", ["orders"])
    assert result.generation > 0
    assert result.members == (result.member_id,)
    assert result.leader_id == result.member_id
    assert coordinator.get_assignments("analytics", result.member_id) == tuple(("orders", n) for n in range(3))
    coordinator.heartbeat("analytics", result.member_id, result.generation)
    assert coordinator.fetch_offset("analytics", "orders", 0) == 1
    with pytest.raises(Unsupported, match="through a Flume port"):
        coordinator.commit_offset("analytics", "orders", 0, 100)
    assert coordinator.fetch_offset("analytics", "orders", 0) == 1
    coordinator.leave_group("analytics", result.member_id)
    with pytest.raises(UnknownMember):
        coordinator.get_assignments("analytics", result.member_id)
    coordinator.stop()
    with pytest.raises(Unavailable, match="not started"):
        coordinator.join_group("analytics", "", ["orders"])


def test_a_stranger_joins_with_a_new_id(stored: Path) -> None:
    with Coordinator(CoordinatorConfig(), OffsetStore(stored), TopicManager(stored)) as coordinator:
        with pytest.raises(UnknownMember):
            coordinator.join_group("analytics", "me", ["orders"])
        joined = coordinator.join_group("analytics", "", ["orders"])
        with pytest.raises(UnknownMember):
            coordinator.join_group("analytics", "me", ["orders"])
        assert coordinator.join_group("analytics", joined.member_id, ["orders"]).member_id == joined.member_id
