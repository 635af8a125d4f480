"""A ring of samples: the newest are kept, pauses are gaps, and its memory never grows."""

from __future__ import annotations

import pytest

from streamhouse.core.history import History, trend


def test_the_newest_samples_are_kept_in_order() -> None:
    history = History(["in", "out"], 3, longest_pause_ms=100)
    for number in range(1, 6):
        history.add(number * 10, {"in": number, "out": None})

    samples = history.samples()

    assert samples.times_ms == [30, 40, 50]
    assert samples.series == {"in": [3.0, 4.0, 5.0], "out": [None, None, None]}
    assert history.samples(since_ms=45).times_ms == [50]
    assert len(history) == 3


def test_a_pause_is_a_gap() -> None:
    history = History(["in"], 10, longest_pause_ms=30)
    history.add(10, {"in": 1})
    history.add(40, {"in": 2})
    history.add(100, {"in": 3})

    assert history.samples() == ([10, 40, 41, 100], {"in": [1.0, 2.0, None, 3.0]})


def test_a_clock_that_is_set_back_leaves_out_what_is_yet_to_come_by_it_and_no_more() -> None:
    history = History(["in"], 4, longest_pause_ms=30)
    for number in range(1, 7):
        history.add(number * 10, {"in": number})
    history.add(45, {"in": 7})
    assert history.samples() == ([30, 40, 45], {"in": [3.0, 4.0, 7.0]})
    history.add(55, {"in": 8})
    history.add(65, {"in": 9})
    assert history.samples() == ([40, 45, 55, 65], {"in": [4.0, 7.0, 8.0, 9.0]})

    history.add(5, {"in": 10})
    assert history.samples() == ([5], {"in": [10.0]})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], None),
        ([1, None, None, 2], None),
        ([0, 0, 0], "steady"),
        ([0, 10, 20], "growing"),
        ([100, 50, 0], "falling"),
        ([1000, 1010, 1050], "steady"),
        ([1000, None, 1100, 1200], "growing"),
        ([0, 1, 0, 1, 1, 0], "steady"),
    ],
)
def test_a_trend_is_the_last_third_beside_the_first(values: list[float | None], expected: str | None) -> None:
    assert trend(values) == expected
