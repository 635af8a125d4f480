"""What every assignor promises, for any subscriptions: one owner each, in balance, and sticky where it says so."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamhouse.core.groups.assignors.assignment import Assignment, Assignor, Subscription
from streamhouse.core.groups.assignors.names import ASSIGNORS
from streamhouse.core.groups.assignors.sticky import assign_sticky

Members = Mapping[str, Subscription[str]]

TOPICS = ["t", "u", "v", "w"]
MEMBERS = [f"m{number}" for number in range(7)]
COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9))
SUBSCRIPTIONS = st.lists(st.sampled_from([*TOPICS, "missing"]), max_size=5).map(
    lambda topics: Subscription(topics=tuple(topics))
)
MIXED = st.dictionaries(st.sampled_from(MEMBERS), SUBSCRIPTIONS)
EQUAL = st.builds(
    lambda members, subscription: dict.fromkeys(members, subscription),
    st.lists(st.sampled_from(MEMBERS), min_size=1, unique=True),
    SUBSCRIPTIONS,
)
every_assignor = pytest.mark.parametrize("assign", ASSIGNORS.values(), ids=ASSIGNORS.keys())


@st.composite
def histories(draw: st.DrawFn, members: st.SearchStrategy[Members]) -> tuple[Members, dict[str, int], Assignment[str]]:
    """A group as it is now, and the assignment that it had when it was another."""
    before = draw(st.sampled_from(list(ASSIGNORS.values())))(draw(members), draw(COUNTS), {})
    return draw(members), draw(COUNTS), before


def owners(assignment: Assignment[str]) -> dict[tuple[str, int], str]:
    owned: dict[tuple[str, int], str] = {}
    for member, mine in assignment.items():
        assert list(mine) == sorted(mine)
        for partition in mine:
            assert partition not in owned, f"{partition} has two owners"
            owned[partition] = member
    return owned


@every_assignor
@given(histories(MIXED))
def test_every_partition_of_a_subscribed_topic_has_exactly_one_owner_who_subscribes(
    assign: Assignor, history: tuple[Members, dict[str, int], Assignment[str]]
) -> None:
    members, counts, before = history
    assignment = assign(members, counts, before)
    assert list(assignment) == sorted(members)
    wanted = {topic for subscription in members.values() for topic in subscription.topics}
    owned = owners(assignment)
    assert set(owned) == {(topic, number) for topic in wanted for number in range(counts.get(topic, 0))}
    assert all(topic in members[member].topics for (topic, _), member in owned.items())


@every_assignor
@given(histories(EQUAL))
def test_with_equal_subscriptions_nobody_has_more_than_one_partition_more(
    assign: Assignor, history: tuple[Members, dict[str, int], Assignment[str]]
) -> None:
    members, counts, before = history
    assignment = assign(members, counts, before)
    # Range divides each topic by itself, so there it holds for each topic.
    for topic in TOPICS if assign is ASSIGNORS["range"] else [None]:
        loads = [sum(topic in (None, name) for name, _ in mine) for mine in assignment.values()]
        assert max(loads) - min(loads) <= 1


@every_assignor
@given(histories(MIXED))
def test_the_order_in_which_members_and_topics_are_given_does_not_matter(
    assign: Assignor, history: tuple[Members, dict[str, int], Assignment[str]]
) -> None:
    members, counts, before = history
    backwards = {name: members[name] for name in reversed(list(members))}
    counts_backwards = {name: counts[name] for name in reversed(list(counts))}
    before_backwards = {name: before[name][::-1] for name in reversed(list(before))}
    assert assign(members, counts, before) == assign(backwards, counts_backwards, before_backwards)


@given(histories(EQUAL))
def test_sticky_moves_only_what_balance_demands(history: tuple[Members, dict[str, int], Assignment[str]]) -> None:
    members, counts, before = history
    after = owners(assign_sticky(members, counts, before))
    kept = sum(after.get(partition) == member for partition, member in owners(before).items())
    # The most that any balanced assignment can keep: the fullest members get the larger shares.
    valid = sorted((sum(one in after for one in before.get(member, ())) for member in members), reverse=True)
    share, larger = divmod(len(after), len(members))
    assert kept == sum(min(had, share + (place < larger)) for place, had in enumerate(valid))


@given(histories(MIXED))
def test_sticky_leaves_a_balanced_assignment_alone(history: tuple[Members, dict[str, int], Assignment[str]]) -> None:
    members, counts, before = history
    once = assign_sticky(members, counts, before)
    assert assign_sticky(members, counts, once) == once


@settings(max_examples=60, deadline=None)
@given(
    st.fixed_dictionaries(dict.fromkeys(MEMBERS[:4], SUBSCRIPTIONS)),
    st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 2), max_size=3),
)
def test_sticky_is_as_even_as_any_assignment_can_be(members: Members, counts: dict[str, int]) -> None:
    """Compared with every possible assignment of a small group."""
    assignment = assign_sticky(members, counts, {})
    loads = sorted((len(mine) for mine in assignment.values()), reverse=True)
    choices = [
        [member for member in members if topic in members[member].topics]
        for topic, count in counts.items()
        for _ in range(count)
    ]
    possible = product(*(choice for choice in choices if choice))
    assert loads == min(sorted((owner.count(member) for member in members), reverse=True) for owner in possible)


@every_assignor
def test_fifty_members_over_two_hundred_partitions_are_settled_while_nobody_waits(assign: Assignor) -> None:
    """A group that grows one by one, each topic with one partition: the most pools, the most moves."""
    topics = tuple(f"t{number:03}" for number in range(200))
    assignment: Assignment[str] = {}
    for size in range(1, 51):
        members = {f"m{number:02}": Subscription(topics=topics) for number in range(size)}
        assignment = assign(members, dict.fromkeys(topics, 1), assignment)
    assert len(owners(assignment)) == 200
