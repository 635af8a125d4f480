"""Histograms: every value in its bucket, and quantiles that follow from them."""

from __future__ import annotations

import pytest

from streamhouse.runtime.measures import BYTES, COUNTS, SECONDS, Histogram


def test_a_value_is_counted_where_it_is_not_above_the_bound() -> None:
    values = Histogram((1.0, 10.0))
    for value in (0.0, 1.0, 1.1, 10.0, 11.0):
        values.observe(value)
    assert values.counts == [2, 2, 1]
    assert (values.count, values.total) == (5, pytest.approx(23.1))


def test_several_values_at_once_are_several_values() -> None:
    once, often = Histogram(), Histogram()
    once.observe(0.3, 7)
    for _ in range(7):
        often.observe(0.3)
    assert (once.counts, once.count) == (often.counts, 7)
    assert once.total == pytest.approx(often.total)


def test_quantiles_are_within_the_bucket_of_the_value_and_none_without_values() -> None:
    values = Histogram((1.0, 2.0, 4.0))
    assert values.quantile(0.5) is None
    values.observe(1.5, 99)
    values.observe(3.0)
    median, last = values.quantile(0.5), values.quantile(1.0)
    assert median is not None
    assert 1.0 <= median <= 2.0
    assert last == 4.0
    values.observe(100.0, 1000)
    assert values.quantile(0.9) == 4.0, "what is above all bounds counts as the last of them"


def test_a_quantile_since_an_earlier_moment_leaves_out_what_was_before() -> None:
    values = Histogram((1.0, 2.0))
    values.observe(0.5, 1000)
    before = list(values.counts)
    values.observe(1.5)
    since = values.quantile(0.5, before)
    assert since is not None
    assert since > 1.0


@pytest.mark.parametrize("bounds", [SECONDS, BYTES, COUNTS])
def test_the_usual_bounds_rise(bounds: tuple[float, ...]) -> None:
    assert list(bounds) == sorted(set(bounds))
