"""What each partition gets of a limited micro-batch."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streamhouse.core.admission import share, whole_within
from streamhouse.core.scan_plan import TailPiece


def test_a_limit_is_split_in_proportion_to_what_waits() -> None:
    assert share({"a": 900, "b": 100}, 100) == {"a": 90, "b": 10}


def test_all_is_taken_where_the_limit_is_not_reached() -> None:
    assert share({"a": 9, "b": 0, "c": 1}, 10) == {"a": 9, "b": 0, "c": 1}


def test_a_small_backlog_does_not_starve_beside_a_large_one() -> None:
    assert share({"large": 1_000_000, "small": 1}, 10) == {"large": 9, "small": 1}


def test_a_limit_below_one_for_each_goes_to_those_who_wait_longest() -> None:
    assert share({"a": 5, "b": 7, "c": 6}, 2) == {"a": 0, "b": 1, "c": 1}


def test_a_backlog_below_zero_is_none() -> None:
    assert share({"recreated": -90, "a": 10}, 5) == {"recreated": 0, "a": 5}


@given(st.dictionaries(st.integers(), st.integers(0, 10**6), max_size=20), st.integers(1, 10**6))
def test_shares_are_exactly_the_limit_and_never_more_than_waits(backlogs: dict[int, int], limit: int) -> None:
    shares = share(backlogs, limit)
    assert shares.keys() == backlogs.keys()
    assert sum(shares.values()) == min(limit, sum(backlogs.values()))
    assert all(0 <= shares[name] <= size for name, size in backlogs.items())
    if limit >= len(backlogs):
        assert all(shares[name] for name, size in backlogs.items() if size)


def test_only_whole_pieces_fit_in_a_budget() -> None:
    pieces = [
        TailPiece(topic="orders", partition=0, start=number, end=number + 1, size_bytes=100) for number in range(3)
    ]
    assert [whole_within(pieces, budget) for budget in (0, 99, 100, 250, 300, 1_000)] == [0, 0, 1, 2, 3, 3]
