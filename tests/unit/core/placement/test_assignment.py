"""Who should lead a partition: a pin first, then the ring of the group in the zone, then the ring of the group."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from streamhouse.core.placement import assignment as module
from streamhouse.core.placement.assignment import Assignment, Candidate
from streamhouse.core.placement.ring import Ring, partition_key, shard_key

NUMBERS = range(300)


def agent(agent_id: str, zone: str = "", agent_group: str = "default") -> Candidate:
    return Candidate(agent_id=agent_id, zone=zone, agent_group=agent_group)


CLUSTER = (
    agent("agent-1", "a"),
    agent("agent-2", "b"),
    agent("agent-3", "a"),
    agent("batch-1", "b", "batch"),
    agent("batch-2", "c", "batch"),
)


def desired(
    candidates: Iterable[Candidate], *, agent_group: str = "default", zone: str = "", pinned_to: str = ""
) -> list[str | None]:
    assignment = Assignment(candidates)
    return [
        assignment.ringed_owner("orders", number, agent_group=agent_group, zone=zone, pinned_to=pinned_to)
        for number in NUMBERS
    ]


def ringed(*agent_ids: str) -> list[str | None]:
    ring = Ring(agent_ids)
    return [ring.owner(partition_key("orders", number)) for number in NUMBERS]


def test_without_a_zone_the_ring_of_the_group_decides() -> None:
    assert desired(CLUSTER) == ringed("agent-1", "agent-2", "agent-3")
    assert desired(CLUSTER, agent_group="batch") == ringed("batch-1", "batch-2")


def test_only_agents_of_the_preferred_zone_are_chosen_while_one_is_there() -> None:
    assert desired(CLUSTER, zone="a") == ringed("agent-1", "agent-3")
    assert set(desired(CLUSTER, zone="b")) == {"agent-2"}


def test_a_zone_where_only_other_groups_have_agents_is_empty() -> None:
    assert desired(CLUSTER, zone="c") == ringed("agent-1", "agent-2", "agent-3")


def test_a_zone_that_lost_its_last_agent_leaves_it_to_the_whole_group() -> None:
    survivors = [candidate for candidate in CLUSTER if candidate.zone != "a"]
    assert set(desired(survivors, zone="a")) == {"agent-2"}


def test_a_group_without_agents_gets_no_owner_from_another_group() -> None:
    assert set(desired(CLUSTER, agent_group="absent")) == {None}
    assert set(desired([], zone="a")) == {None}


@pytest.mark.parametrize("pinned_to", ["agent-2", "batch-1"])
def test_a_pin_stands_over_ring_zone_and_group(pinned_to: str) -> None:
    assert set(desired(CLUSTER, zone="a", pinned_to=pinned_to)) == {pinned_to}


def test_a_pin_to_an_agent_that_is_gone_leaves_it_to_the_ring() -> None:
    assert desired(CLUSTER, zone="a", pinned_to="agent-9") == desired(CLUSTER, zone="a")


def test_a_pin_gives_an_owner_to_a_group_without_agents() -> None:
    assert set(desired(CLUSTER, agent_group="absent", pinned_to="agent-1")) == {"agent-1"}


def test_shards_are_placed_over_all_agents_whatever_their_group() -> None:
    assignment = Assignment(CLUSTER)
    ring = Ring(candidate.agent_id for candidate in CLUSTER)
    placed = [assignment.desired_shard_owner(number) for number in NUMBERS]
    assert placed == [ring.owner(shard_key(number)) for number in NUMBERS]
    assert set(placed) == {candidate.agent_id for candidate in CLUSTER}


def test_shards_have_no_owner_without_agents() -> None:
    assert Assignment([]).desired_shard_owner(0) is None


def test_each_ring_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[list[str]] = []

    class CountedRing(Ring):
        def __init__(self, agent_ids: Iterable[str]) -> None:
            ids = list(agent_ids)
            built.append(ids)
            super().__init__(ids)

    monkeypatch.setattr(module, "Ring", CountedRing)
    assignment = Assignment(CLUSTER)
    for number in range(20):
        for zone in ("", "a", "c"):
            assignment.ringed_owner("orders", number, agent_group="default", zone=zone, pinned_to="")
        assignment.desired_shard_owner(number)
    everybody = [candidate.agent_id for candidate in CLUSTER]
    assert sorted(built) == sorted([["agent-1", "agent-2", "agent-3"], ["agent-1", "agent-3"], everybody])
