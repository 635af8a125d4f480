"""The plans of all agents together: nobody takes what another takes, and they come to rest where all is as desired."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from streamhouse.core.placement.assignment import Assignment, Candidate
from streamhouse.core.placement.rebalance import Plan, plan

AGENT_IDS = [f"agent-{number}" for number in range(5)]
ZONES = ["", "a", "b"]
GROUPS = ["default", "batch"]
TOPICS = ["orders", "clicks"]
Key = tuple[str, int]

_examples = settings(max_examples=150, deadline=None, database=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    key: Key
    agent_group: str
    zone: str
    pinned_to: str
    holder: str | None
    bound_to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    candidates: list[Candidate]
    partitions: list[Partition]

    @property
    def live(self) -> list[str]:
        return [candidate.agent_id for candidate in self.candidates]

    @property
    def holders(self) -> dict[Key, str]:
        return {one.key: one.holder for one in self.partitions if one.holder is not None}

    @property
    def bound_to(self) -> dict[Key, str]:
        return {one.key: one.bound_to for one in self.partitions}

    def desired(self, candidates: list[Candidate] | None = None) -> dict[Key, str | None]:
        assignment = Assignment(self.candidates if candidates is None else candidates)
        return {
            one.key: assignment.ringed_owner(
                *one.key, agent_group=one.agent_group, zone=one.zone, pinned_to=one.pinned_to
            )
            for one in self.partitions
        }


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Any agents, alive or not, hold what they hold. A disk that holds records is that of the live lease's holder."""
    candidates = [
        Candidate(agent_id=agent_id, zone=draw(st.sampled_from(ZONES)), agent_group=draw(st.sampled_from(GROUPS)))
        for agent_id in draw(st.lists(st.sampled_from(AGENT_IDS), max_size=5, unique=True))
    ]
    partitions = []
    for topic in TOPICS:
        group, zone = draw(st.sampled_from(GROUPS)), draw(st.sampled_from(ZONES))
        for number in range(draw(st.integers(0, 6))):
            holder = draw(st.none() | st.sampled_from(AGENT_IDS))
            partitions.append(
                Partition(
                    key=(topic, number),
                    agent_group=group,
                    zone=zone,
                    pinned_to=draw(st.just("") | st.sampled_from(AGENT_IDS)),
                    holder=holder,
                    bound_to=draw(st.sampled_from(["", holder] if holder else ["", *AGENT_IDS])),
                )
            )
    return Cluster(candidates=candidates, partitions=partitions)


def plans(
    cluster: Cluster, holders: Mapping[Key, str], bound_to: Mapping[Key, str], agent_ids: list[str]
) -> dict[str, Plan[Key]]:
    """Each agent's plan, from owners that it worked out on its own, having heard of the agents in another order."""
    made = {}
    for turn, me in enumerate(agent_ids):
        heard = cluster.candidates[turn:] + cluster.candidates[:turn]
        held = {key for key, holder in holders.items() if holder == me}
        made[me] = plan(me, cluster.desired(heard), held, holders, bound_to)
    return made


@_examples
@given(clusters())
def test_every_agent_works_out_the_same_owners(cluster: Cluster) -> None:
    assert cluster.desired(cluster.candidates[::-1]) == cluster.desired()


@_examples
@given(clusters())
def test_a_partition_has_an_owner_exactly_if_its_pin_or_its_group_is_alive(cluster: Cluster) -> None:
    groups = {candidate.agent_id: candidate.agent_group for candidate in cluster.candidates}
    desired = cluster.desired()
    for one in cluster.partitions:
        owner = desired[one.key]
        if one.pinned_to in groups:
            assert owner == one.pinned_to
        elif one.agent_group in groups.values():
            assert owner is not None
            assert groups[owner] == one.agent_group
        else:
            assert owner is None


@_examples
@given(clusters())
def test_no_two_agents_plan_for_one_key_and_none_plans_what_it_may_not(cluster: Cluster) -> None:
    desired, holders, bound_to = cluster.desired(), cluster.holders, cluster.bound_to
    made = plans(cluster, holders, bound_to, AGENT_IDS)
    acquired = [key for one in made.values() for key in one.acquire]
    given_away = [key for one in made.values() for key, _ in one.hand_over]
    assert len(set(acquired)) == len(acquired)
    assert len(set(given_away)) == len(given_away)
    assert not set(acquired) & set(given_away)
    for me, mine in made.items():
        for key in mine.acquire:
            assert key not in holders
            assert (bound_to[key] or desired[key]) == me
        for key, to in mine.hand_over:
            assert holders[key] == me != to
            assert desired[key] == to


@_examples
@given(clusters())
def test_the_order_of_a_plan_is_that_of_the_partitions(cluster: Cluster) -> None:
    order = [one.key for one in cluster.partitions]
    for made in plans(cluster, cluster.holders, cluster.bound_to, AGENT_IDS).values():
        assert list(made.acquire) == sorted(made.acquire, key=order.index)
        assert list(made.hand_over) == sorted(made.hand_over, key=lambda move: order.index(move[0]))


@_examples
@given(clusters())
def test_plans_that_are_carried_out_come_to_rest_with_every_partition_where_it_should_be(cluster: Cluster) -> None:
    desired = cluster.desired()
    holders = {key: agent_id for key, agent_id in cluster.holders.items() if agent_id in cluster.live}
    bound_to = cluster.bound_to
    for _ in range(2):  # what is bound to a disk is taken by its agent first, and handed over after that
        for me, mine in plans(cluster, holders, bound_to, cluster.live).items():
            for key in mine.acquire:
                holders[key] = me
            for key, to in mine.hand_over:
                holders[key], bound_to[key] = to, ""
    for key, owner in desired.items():
        if owner is not None and bound_to[key] in ("", *cluster.live):
            assert holders[key] == owner
    made = plans(cluster, holders, bound_to, cluster.live)
    assert all(not one.acquire and not one.hand_over for one in made.values())
