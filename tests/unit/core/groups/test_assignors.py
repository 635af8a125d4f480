"""How partitions are divided: by range, by round robin, and so that little moves."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import pytest

from streamhouse.core.groups.assignors.assignment import Assignment, Assignor, Subscription
from streamhouse.core.groups.assignors.names import ASSIGNORS
from streamhouse.core.groups.assignors.range import assign_range, range_leader
from streamhouse.core.groups.assignors.round_robin import assign_round_robin
from streamhouse.core.groups.assignors.sticky import assign_sticky


def subscribed(**topics: str) -> dict[str, Subscription[str]]:
    return {member: Subscription(topics=tuple(names.split())) for member, names in topics.items()}


def shown(assignment: Assignment[str]) -> dict[str, str]:
    return {member: " ".join(f"{topic}{number}" for topic, number in mine) for member, mine in assignment.items()}


def test_range_gives_the_remainder_to_the_first_members_alphabetically() -> None:
    assignment = assign_range(subscribed(c="t", a="t", b="t"), {"t": 5}, {})
    assert shown(assignment) == {"a": "t0 t1", "b": "t2 t3", "c": "t4"}


def test_range_divides_each_topic_among_its_own_subscribers() -> None:
    assignment = assign_range(subscribed(a="t u", b="t", c="u"), {"t": 3, "u": 3}, {})
    assert shown(assignment) == {"a": "t0 t1 u0 u1", "b": "t2", "c": "u2"}


def test_the_first_member_alphabetically_leads() -> None:
    assert range_leader(["m2", "m10", "m1"]) == "m1"


def test_round_robin_deals_all_partitions_in_turn() -> None:
    assignment = assign_round_robin(subscribed(b="t u", a="u t"), {"t": 3, "u": 2}, {})
    assert shown(assignment) == {"a": "t0 t2 u1", "b": "t1 u0"}


def test_round_robin_passes_those_who_do_not_subscribe() -> None:
    assignment = assign_round_robin(subscribed(a="t", b="t u", c="u"), {"t": 2, "u": 3}, {})
    assert shown(assignment) == {"a": "t0", "b": "t1 u1", "c": "u0 u2"}


def test_sticky_starts_even() -> None:
    assert shown(assign_sticky(subscribed(a="t", b="t"), {"t": 5}, {})) == {"a": "t0 t2 t4", "b": "t1 t3"}


def test_sticky_gives_a_newcomer_its_share_and_moves_nothing_else() -> None:
    before = assign_sticky(subscribed(a="t", b="t"), {"t": 6}, {})
    after = assign_sticky(subscribed(a="t", b="t", c="t"), {"t": 6}, before)
    assert shown(before) == {"a": "t0 t2 t4", "b": "t1 t3 t5"}
    assert shown(after) == {"a": "t0 t2", "b": "t1 t3", "c": "t4 t5"}


def test_sticky_shares_out_what_a_member_leaves_behind_and_moves_nothing_else() -> None:
    before = assign_sticky(subscribed(a="t", b="t", c="t"), {"t": 6}, {})
    after = assign_sticky(subscribed(a="t", c="t"), {"t": 6}, before)
    assert shown(before) == {"a": "t0 t3", "b": "t1 t4", "c": "t2 t5"}
    assert shown(after) == {"a": "t0 t1 t3", "c": "t2 t4 t5"}


def test_sticky_evens_out_from_the_fullest_so_that_no_more_moves_than_needed() -> None:
    before = {"a": tuple(("t", number) for number in range(6)), "b": tuple(("t", number) for number in range(6, 12))}
    after = assign_sticky(subscribed(a="t", b="t", c="t", d="t"), {"t": 12}, before)
    assert [len(mine) for mine in after.values()] == [3, 3, 3, 3]
    assert all(set(after[member]) <= set(before[member]) for member in before)


def test_sticky_passes_load_on_through_a_member_in_between() -> None:
    members = subscribed(a="t", b="t u", c="u")
    before: Mapping[str, tuple[tuple[str, int], ...]] = {"a": (("t", 0), ("t", 1), ("t", 2)), "b": (("u", 0), ("u", 1))}
    after = assign_sticky(members, {"t": 3, "u": 2}, before)
    assert sorted(len(mine) for mine in after.values()) == [1, 2, 2]


def test_sticky_forgets_what_may_no_longer_be_owned() -> None:
    before = {"a": (("gone", 0), ("t", 0), ("t", 9)), "b": (("t", 0), ("u", 0)), "left": (("t", 1),)}
    assert shown(assign_sticky(subscribed(a="t u", b="t"), {"t": 2, "u": 1}, before)) == {"a": "t0 u0", "b": "t1"}


@pytest.mark.parametrize("assign", ASSIGNORS.values(), ids=ASSIGNORS.keys())
def test_members_without_partitions_are_named_too(assign: Assignor) -> None:
    assignment = assign(subscribed(a="t", b="t", c="missing", d=""), {"t": 1, "empty": 0}, {})
    assert shown(assignment) == {"a": "t0", "b": "", "c": "", "d": ""}


@pytest.mark.parametrize("assign", ASSIGNORS.values(), ids=ASSIGNORS.keys())
def test_nobody_gets_nothing(assign: Assignor) -> None:
    assert assign(subscribed(), {"t": 3}, {}) == {}


@pytest.mark.parametrize("assign", ASSIGNORS.values(), ids=ASSIGNORS.keys())
def test_topics_may_be_named_by_their_ids(assign: Assignor) -> None:
    topic = UUID(int=7)
    members = {"a": Subscription(topics=(topic,)), "b": Subscription(topics=(topic,))}
    assert assign(members, {topic: 2}, {}) == {"a": ((topic, 0),), "b": ((topic, 1),)}
