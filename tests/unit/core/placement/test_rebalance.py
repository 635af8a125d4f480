"""What an agent takes, what it hands over and to whom, and what it leaves alone."""

from __future__ import annotations

import pytest

from streamhouse.core.placement.rebalance import Plan, plan


def planned(
    *, acquire: tuple[str, ...] = (), hand_over: tuple[tuple[str, str], ...] = (), ask_for: tuple[str, ...] = ()
) -> Plan[str]:
    return Plan(acquire=acquire, hand_over=hand_over, ask_for=ask_for)


NOTHING = planned()


@pytest.mark.parametrize(
    ("owner", "is_held", "holder", "expected"),
    [
        ("me", False, None, planned(acquire=("p",))),
        ("me", False, "other", planned(ask_for=("p",))),  # it has to hand it over, or to let it run out
        ("me", False, "me", planned(acquire=("p",))),  # held by an earlier process of mine
        ("me", True, "me", NOTHING),
        ("me", True, None, NOTHING),
        ("other", True, "me", planned(hand_over=(("p", "other"),))),
        ("other", True, None, planned(hand_over=(("p", "other"),))),
        ("other", False, None, NOTHING),
        ("other", False, "other", NOTHING),
        ("other", False, "me", planned(acquire=("p",))),  # nobody else can take it: to be handed over next
        (None, True, "me", NOTHING),  # kept, for lack of anybody who should have it
        (None, False, None, NOTHING),
        (None, False, "other", NOTHING),
    ],
)
def test_one_key(owner: str | None, is_held: bool, holder: str | None, expected: Plan[str]) -> None:
    holders = {} if holder is None else {"p": holder}
    assert plan("me", {"p": owner}, {"p"} if is_held else (), holders) == expected


@pytest.mark.parametrize(
    ("owner", "bound_to", "is_held", "holder", "expected"),
    [
        ("me", "", False, None, planned(acquire=("p",))),
        ("me", "me", False, None, planned(acquire=("p",))),
        ("me", "other", False, None, NOTHING),  # it waits for that agent's disk
        ("other", "me", False, None, planned(acquire=("p",))),  # to drain it, and hand it over
        (None, "me", False, None, planned(acquire=("p",))),
        ("other", "me", False, "me", planned(acquire=("p",))),
        ("other", "me", False, "other", NOTHING),
        ("other", "me", True, "me", planned(hand_over=(("p", "other"),))),
        ("me", "me", True, "me", NOTHING),
    ],
)
def test_one_key_that_may_be_bound_to_a_disk(
    owner: str | None, bound_to: str, is_held: bool, holder: str | None, expected: Plan[str]
) -> None:
    holders = {} if holder is None else {"p": holder}
    assert plan("me", {"p": owner}, {"p"} if is_held else (), holders, {"p": bound_to}) == expected


def test_a_held_key_that_nobody_asks_about_is_kept() -> None:
    assert plan("me", {}, {"deleted"}, {"deleted": "me"}) == NOTHING


def test_a_plan_is_in_the_order_of_what_is_desired() -> None:
    desired = {9: "me", 2: "b", 7: "me", 1: "a", 8: "c"}
    assert plan("me", desired, {8, 1, 2}, {}) == Plan(acquire=(9, 7), hand_over=((2, "b"), (1, "a"), (8, "c")))
