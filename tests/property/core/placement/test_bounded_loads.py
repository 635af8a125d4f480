"""Bounded loads: whatever happens to topics and agents, nobody owns more than the caps say, and little moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from math import ceil

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from streamhouse.core.placement.assignment import Assignment, Candidate
from streamhouse.core.placement.bounded_loads import (
    TopicOwners,
    decide,
    group_cap,
    is_settled,
    remembered,
    topic_cap,
)
from streamhouse.core.placement.ring import Ring, partition_key

Key = tuple[str, int]
_examples = settings(max_examples=100, deadline=None, database=None)


def agent(number: int, zone: str = "", agent_group: str = "default") -> Candidate:
    return Candidate(agent_id=f"agent-{number}", zone=zone, agent_group=agent_group)


class Model:
    """What is stored: owners, and the agents among whom they were chosen. `follow` is what any agent's round does."""

    def __init__(self) -> None:
        self.owners: dict[str, dict[int, str]] = {}
        self.formers: dict[str, dict[int, str]] = {}
        self.agents: list[Candidate] = []
        self.decided_among: frozenset[Candidate] = frozenset()

    @property
    def topics(self) -> list[TopicOwners]:
        return [
            TopicOwners(name=name, agent_group="default", zone="", owners=owners, formers=self.formers.get(name, {}))
            for name, owners in self.owners.items()
        ]

    @property
    def count(self) -> int:
        return sum(len(owners) for owners in self.owners.values())

    @property
    def loads(self) -> Counter[str]:
        return Counter(owner for owners in self.owners.values() for owner in owners.values())

    def follow(self) -> set[Key]:
        """The partitions that were taken from an owner."""
        assignment = Assignment(self.agents)
        changes = decide(assignment, self.topics, self.decided_among)
        moved = {(name, number) for name, number in changes if self.owners[name][number]}
        agent_ids = {candidate.agent_id for candidate in self.agents}
        for (name, number), owner in changes.items():
            owned, formers = self.owners[name][number], self.formers.setdefault(name, {})
            formers[number] = remembered(owned, formers.get(number, ""), owner, agent_ids)
            self.owners[name][number] = owner
        self.decided_among = assignment.candidates
        assert is_settled(assignment, self.topics, self.decided_among), "one decision is all that there is to decide"
        assert decide(assignment, self.topics, self.decided_among) == {}
        return moved

    def check_topics(self) -> None:
        for name, owners in self.owners.items():
            mean = Fraction(len(owners), len(self.agents))
            assert max(Counter(owners.values()).values()) <= ceil(mean), name

    def check_evenness(self) -> None:
        for name, owners in self.owners.items():
            loads = Counter(owners.values())
            has = [loads[candidate.agent_id] for candidate in self.agents]
            assert max(has) - min(has) <= 1, name

    def check_group(self) -> None:
        assert max(self.loads.values(), default=0) <= ceil(Fraction(5, 4) * Fraction(self.count, len(self.agents)))


sizes = st.lists(st.integers(1, 30) | st.sampled_from([1, 3, 6, 12]), min_size=1, max_size=40)


def cluster_of(agents: int, topics: Iterable[int]) -> Model:
    """Made topic by topic, as clusters are."""
    model = Model()
    model.agents = [agent(number) for number in range(agents)]
    for turn, partitions in enumerate(topics):
        model.owners[f"topic-{turn}"] = dict.fromkeys(range(partitions), "")
        assert model.follow() == set()
    return model


def test_six_partitions_on_three_agents_are_two_each_whatever_the_topic_is_called() -> None:
    model = cluster_of(3, [6] * 200)
    for owners in model.owners.values():
        assert sorted(Counter(owners.values()).values()) == [2, 2, 2]
    assert set(model.loads.values()) == {400}


@_examples
@given(st.integers(1, 12), sizes)
def test_no_agent_owns_more_than_the_caps_of_topics_that_were_made_one_by_one(agents: int, topics: list[int]) -> None:
    model = cluster_of(agents, topics)
    model.check_topics()
    model.check_group()


@_examples
@given(st.integers(1, 12), sizes)
def test_nor_of_topics_that_were_made_at_once(agents: int, topics: list[int]) -> None:
    model = Model()
    model.agents = [agent(number) for number in range(agents)]
    model.owners = {f"topic-{turn}": dict.fromkeys(range(count), "") for turn, count in enumerate(topics)}
    model.follow()
    model.check_topics()
    model.check_group()


@_examples
@given(st.integers(1, 12), sizes)
def test_an_agent_that_comes_moves_at_most_a_quarter_more_than_on_the_plain_ring(
    agents: int, topics: list[int]
) -> None:
    """Which gives it the mean, by expectation; and nobody else anything."""
    model = cluster_of(agents, topics)
    model.agents = [*model.agents, agent(agents)]
    before = {(name, number): owner for name, owners in model.owners.items() for number, owner in owners.items()}
    moved = model.follow()
    after = {(name, number): owner for name, owners in model.owners.items() for number, owner in owners.items()}
    assert moved == {key for key in before if before[key] != after[key]}
    assert len(moved) <= ceil(Fraction(5, 4) * Fraction(model.count, agents + 1))
    model.check_topics()
    model.check_group()


@_examples
@given(st.integers(2, 12), sizes, st.data())
def test_an_agent_that_goes_moves_at_most_a_quarter_more_than_on_the_plain_ring(
    agents: int, topics: list[int], data: st.DataObject
) -> None:
    """What it had, and nothing else unless a cap asks for it."""
    model = cluster_of(agents, topics)
    gone = data.draw(st.sampled_from(model.agents))
    had = model.loads[gone.agent_id]
    model.agents = [candidate for candidate in model.agents if candidate != gone]
    moved = model.follow()
    assert had <= len(moved) <= ceil(Fraction(5, 4) * Fraction(model.count, agents))
    model.check_topics()
    model.check_group()


@_examples
@given(st.integers(1, 12), sizes)
def test_an_agent_that_comes_and_goes_again_leaves_everything_as_it_was(agents: int, topics: list[int]) -> None:
    model = cluster_of(agents, topics)
    before = {name: dict(owners) for name, owners in model.owners.items()}
    few, many = model.agents, [*model.agents, agent(agents)]
    for model.agents in (many, few):
        model.follow()
    assert model.owners == before


def test_agents_that_are_taken_for_gone_meanwhile_leave_another_layout_that_is_settled_and_as_even() -> None:
    """What one of them had before is remembered, and no longer history: such a layout is not the one before."""
    model = cluster_of(3, [9] * 200 + [24])
    before = {name: dict(owners) for name, owners in model.owners.items()}
    first, second, third, newcomer = *model.agents, agent(3)
    for model.agents in (
        [first, second, third, newcomer],
        [second, third, newcomer],
        [third, newcomer],
        [first, third, newcomer],
        [first, second, third, newcomer],
        [first, second, third],
    ):
        model.follow()
        model.check_topics()
        model.check_group()
    assert model.owners != before


def test_an_agent_that_goes_and_comes_again_gets_back_what_it_had() -> None:
    model = cluster_of(4, [6] * 50 + [1] * 40)
    before = {name: dict(owners) for name, owners in model.owners.items()}
    many, few = model.agents, model.agents[:-1]
    for model.agents in (few, many):
        model.follow()
    moved = sum(
        before[name][number] != owner for name, owners in model.owners.items() for number, owner in owners.items()
    )
    assert moved <= 2, "what is left of the division, and no more"


@settings(max_examples=15, deadline=None, database=None)
@given(st.integers(2, 6), st.integers(1, 3), st.integers(10, 50), st.integers(1, 3), st.data())
def test_after_restarts_of_all_agents_the_next_that_comes_moves_no_more_than_before_them(
    agents: int, each: int, topics: int, restarts: int, data: st.DataObject
) -> None:
    """Equal topics that the newcomer makes divisible: all their caps become smaller at once."""
    model = cluster_of(agents, [each * (agents + 1)] * topics)
    everybody = model.agents
    for restarted in restarts * data.draw(st.permutations(everybody)):
        for model.agents in ([candidate for candidate in everybody if candidate != restarted], everybody):
            model.follow()
            model.check_evenness()
    model.agents = [*everybody, agent(agents)]
    assert len(model.follow()) == each * topics
    model.check_evenness()
    model.check_group()


def test_after_restarts_of_all_agents_again_and_again_every_one_has_what_it_had() -> None:
    model = cluster_of(4, [6] * 30 + [1] * 20)
    before = {name: dict(owners) for name, owners in model.owners.items()}
    everybody = model.agents
    for restarted in 3 * everybody:
        for model.agents in ([candidate for candidate in everybody if candidate != restarted], everybody):
            model.follow()
        moved = sum(
            before[name][number] != owner for name, owners in model.owners.items() for number, owner in owners.items()
        )
        assert moved <= 2, "what is left of the division, and no more"


def test_the_movement_is_that_of_the_ring_and_no_more_where_there_is_much_to_count() -> None:
    """Counted against the plain ring itself, on the same ids and topics."""
    for agents in (2, 3, 5, 9):
        model = cluster_of(agents, [6] * 150 + [1] * 100)
        keys = [partition_key(name, number) for name, owners in model.owners.items() for number in owners]
        ids = [candidate.agent_id for candidate in model.agents]
        few, many = Ring(ids), Ring([*ids, f"agent-{agents}"])
        ring_moves = sum(1 for key in keys if few.owner(key) != many.owner(key))
        model.agents = [*model.agents, agent(agents)]
        assert len(model.follow()) <= 1.25 * ring_moves
        model.agents = model.agents[:-1]
        assert len(model.follow()) <= 1.25 * ring_moves


@_examples
@given(st.integers(1, 8), sizes, st.data())
def test_creating_growing_and_deleting_a_topic_moves_nothing_else(
    agents: int, topics: list[int], data: st.DataObject
) -> None:
    model = cluster_of(agents, topics)
    for turn in range(data.draw(st.integers(1, 10))):
        names = sorted(model.owners)
        before = {name: dict(owners) for name, owners in model.owners.items()}
        if not names or data.draw(st.booleans()):
            name = f"new-{turn}"
            model.owners[name] = dict.fromkeys(range(data.draw(st.integers(1, 12))), "")
        else:
            name = data.draw(st.sampled_from(names))
            if data.draw(st.booleans()):
                del model.owners[name]
            else:
                has = len(model.owners[name])
                model.owners[name] |= dict.fromkeys(range(has, has + data.draw(st.integers(1, 12))), "")
        assert model.follow() == set()
        assert {other: model.owners.get(other) for other in before if other != name} == {
            other: owners for other, owners in before.items() if other != name
        }
        model.check_topics()


def test_growing_topics_may_leave_an_agent_over_its_groups_cap_until_the_next_comes() -> None:
    """The second partition of a topic may not go where the first is, and nothing else may move."""
    model = cluster_of(2, [1] * 100)
    for owners in model.owners.values():
        if owners[0] == "agent-1":
            owners[1] = ""
            assert model.follow() == set()
    assert model.loads == {"agent-0": 100, "agent-1": 50}
    assert model.loads["agent-0"] > group_cap(150, 2)
    model.agents = [*model.agents, agent(2)]
    assert len(model.follow()) == 50
    assert set(model.loads.values()) == {50}


def test_an_agent_that_comes_to_a_zone_takes_its_part_of_the_topics_that_it_may_lead_and_no_more() -> None:
    """The agents of another zone have most of what the group has, and it can relieve them of none of that."""
    few = [agent(0, "quiet"), agent(1, "busy"), agent(2, "busy")]
    zones = {f"busy-{turn}": "busy" for turn in range(40)} | {f"wide-{turn}": "" for turn in range(24)}
    owners = dict.fromkeys(zones, "")
    for candidates, before in ((few, ()), ([*few, agent(3, "quiet")], few)):
        asked = [
            TopicOwners(name=name, agent_group="default", zone=zone, owners={0: owners[name]})
            for name, zone in zones.items()
        ]
        changes = decide(Assignment(candidates), asked, before)
        owners |= {name: owner for (name, _), owner in changes.items()}
    assert Counter(owners.values()) == {"agent-0": 18, "agent-1": 20, "agent-2": 20, "agent-3": 6}


@_examples
@given(sizes, st.lists(st.sampled_from(["", "a", "b"]), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_every_agent_comes_to_the_same_decision(topics: list[int], zones: list[str], random: object) -> None:
    """Whatever the order in which it heard of agents and topics."""
    candidates = [agent(number, zone) for number, zone in enumerate(zones)]
    asked = [
        TopicOwners(
            name=f"topic-{turn}",
            agent_group="default",
            zone=["", "a", "c"][turn % 3],
            owners=dict.fromkeys(range(size), ""),
        )
        for turn, size in enumerate(topics)
    ]
    here = decide(Assignment(candidates), asked, ())
    there = decide(Assignment(candidates[::-1]), asked[::-1], ())
    assert here == there


@_examples
@given(sizes, st.lists(st.sampled_from(["", "a", "b"]), min_size=1, max_size=6))
def test_a_topic_of_a_zone_is_even_over_the_agents_of_that_zone(topics: list[int], zones: list[str]) -> None:
    candidates = [agent(number, zone) for number, zone in enumerate(zones)]
    assignment = Assignment(candidates)
    for turn, size in enumerate(topics):
        zone = ["", "a", "c"][turn % 3]
        asked = [TopicOwners(name=f"t-{turn}", agent_group="default", zone=zone, owners=dict.fromkeys(range(size), ""))]
        chosen = Counter(decide(assignment, asked, ()).values())
        allowed = [candidate.agent_id for candidate in candidates if candidate.zone == zone] if zone else []
        allowed = allowed or [candidate.agent_id for candidate in candidates]
        assert set(chosen) <= set(allowed)
        assert max(chosen.values()) <= topic_cap(size, len(allowed))


class AnyHistory(RuleBasedStateMachine):
    """Topics and agents come and go in any order. Caps of topics always hold. That of the group, the bound on what
    moves, and evenness to one partition hold too until topics are deleted or grow, which moves nothing and may leave an
    agent with more than its cap."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.model.agents = [agent(0)]
        self.made = 0
        self.has_resized = False

    @rule(partitions=st.integers(1, 20))
    def create(self, partitions: int) -> None:
        self.made += 1
        self.model.owners[f"topic-{self.made}"] = dict.fromkeys(range(partitions), "")
        assert self.model.follow() == set()

    @precondition(lambda self: self.model.owners)
    @rule(data=st.data(), more=st.integers(1, 10))
    def grow(self, data: st.DataObject, more: int) -> None:
        owners = self.model.owners[data.draw(st.sampled_from(sorted(self.model.owners)))]
        owners |= dict.fromkeys(range(len(owners), len(owners) + more), "")
        assert self.model.follow() == set()
        self.has_resized = True

    @precondition(lambda self: self.model.owners)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        del self.model.owners[data.draw(st.sampled_from(sorted(self.model.owners)))]
        assert self.model.follow() == set()
        self.has_resized = True

    @precondition(lambda self: len(self.model.agents) < 8)
    @rule(data=st.data())
    def join(self, data: st.DataObject) -> None:
        absent = [each for each in map(agent, range(8)) if each not in self.model.agents]
        self._comes(data.draw(st.sampled_from(absent)))

    @precondition(lambda self: len(self.model.agents) > 1)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        self._goes(data.draw(st.sampled_from(self.model.agents)))

    @precondition(lambda self: len(self.model.agents) > 1)
    @rule(data=st.data())
    def restart(self, data: st.DataObject) -> None:
        restarted = data.draw(st.sampled_from(self.model.agents))
        self._goes(restarted)
        self._comes(restarted)

    def _comes(self, newcomer: Candidate) -> None:
        self.model.agents = [*self.model.agents, newcomer]
        moved = self.model.follow()
        if not self.has_resized:
            assert len(moved) <= group_cap(self.model.count, len(self.model.agents))

    def _goes(self, gone: Candidate) -> None:
        had = self.model.loads[gone.agent_id]
        may_move = max(had, group_cap(self.model.count, len(self.model.agents)))
        self.model.agents = [candidate for candidate in self.model.agents if candidate != gone]
        assert had <= len(self.model.follow()) <= may_move

    @invariant()
    def caps_hold(self) -> None:
        self.model.check_topics()
        if not self.has_resized:
            self.model.check_group()
            self.model.check_evenness()


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(max_examples=60, stateful_step_count=30, deadline=None, database=None)
