"""Byte budgets: who waits is called once there is room, and pressure is told each time it comes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamhouse.log.budget import ByteBudget


def test_a_budget_is_full_when_all_of_it_is_used() -> None:
    budget = ByteBudget(100)

    budget.take(99)
    assert not budget.is_full
    budget.take(1)
    assert budget.is_full


def test_taking_more_than_there_is_is_not_refused() -> None:
    budget = ByteBudget(100)

    budget.take(500)

    assert budget.used_bytes == 500


def test_those_who_wait_are_called_once_when_a_quarter_is_free() -> None:
    budget = ByteBudget(100)
    called: list[str] = []
    budget.take(100)
    budget.when_free(lambda: called.append("first"))
    budget.when_free(lambda: called.append("second"))

    budget.give_back(24)
    assert called == []
    budget.give_back(1)
    assert called == ["first", "second"]
    budget.give_back(75)
    assert called == ["first", "second"]


def test_who_was_forgotten_is_not_called() -> None:
    budget = ByteBudget(100)
    called: list[str] = []

    def resume() -> None:
        called.append("resumed")

    budget.take(100)
    budget.when_free(resume)
    budget.forget(resume)
    budget.give_back(100)

    assert called == []


def test_who_is_called_may_fill_it_and_wait_again() -> None:
    budget = ByteBudget(100)
    called: list[int] = []

    def resume() -> None:
        called.append(budget.used_bytes)
        budget.take(100)
        budget.when_free(resume)

    budget.take(100)
    budget.when_free(resume)
    budget.give_back(100)
    assert called == [0]
    budget.give_back(100)

    assert called == [0, 0]


def test_giving_back_more_than_was_taken_is_our_own_bug() -> None:
    budget = ByteBudget(100)
    budget.take(1)

    with pytest.raises(AssertionError):
        budget.give_back(2)


def test_little_room_is_less_than_a_quarter() -> None:
    budget = ByteBudget(100)

    budget.take(75)
    assert not budget.has_little_room()
    budget.take(1)
    assert budget.has_little_room()


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 60)), max_size=60))
def test_whoever_waits_is_called_as_soon_as_a_quarter_is_free_and_never_before(steps: list[tuple[bool, int]]) -> None:
    budget = ByteBudget(100)
    waiting = False

    def resume() -> None:
        nonlocal waiting
        assert budget.used_bytes <= 75
        waiting = False

    for takes, size in steps:
        if takes:
            budget.take(size)
        else:
            budget.give_back(min(size, budget.used_bytes))
            assert not waiting or budget.used_bytes > 75
        if budget.is_full and not waiting:
            waiting = True
            budget.when_free(resume)
