"""Topic patterns: what they take, and that none of them can be made expensive."""

from __future__ import annotations

import pytest

from streamhouse.core.groups.consumer_pattern import MAX_REMEMBERED, TopicPattern
from streamhouse.model.errors import InvalidInput


@pytest.mark.parametrize(
    ("pattern", "taken", "left"),
    [
        ("orders", ["orders"], ["orders-eu", "my-orders", "Orders"]),
        ("^orders.*", ["orders", "orders-eu"], ["my-orders"]),
        ("^a$|^b.+", ["a", "bc"], ["b", "ab"]),
        (r"logs\.[a-c]\d{2,3}", ["logs.a12", "logs.c123"], ["logs.d12", "logs.a1", "logsxa12", "logs.a1234"]),
        ("(?:eu|us)-(?P<kind>x|y)?", ["eu-", "us-x"], ["eu", "eu-z"]),
        ("(?i)Orders_[^0-9]", ["orders_X", "ORDERS_x"], ["orders_5"]),
        ("a(?i:b)c", ["abc", "aBc"], ["Abc", "abC"]),
        ("[[:digit:]_.-]+", ["1_2.3-4"], ["a"]),
        ("[]a]", ["a"], ["b"]),
        (r"\w+\W\S", ["ab.c"], ["abc"]),
        (r"\Aa\z", ["a"], ["aa"]),
        ("a*?b+?", ["b", "aab", "abb"], ["a"]),
        ("a{0}b", ["b"], ["ab"]),
        ("x{,3}", [], ["x", "xxx"]),
        ("a#", [], ["a"]),
        ("", [], ["a"]),
        ("a||b", ["a", "b"], ["ab"]),
        ("(a$|ab)", ["a", "ab"], ["b"]),
        ("a^b", [], ["ab"]),
    ],
)
def test_a_pattern_takes_whole_names(pattern: str, taken: list[str], left: list[str]) -> None:
    matches = TopicPattern(pattern).matches
    assert [name for name in (*taken, *left) if matches(name)] == taken


@pytest.mark.parametrize(
    "pattern",
    [
        *("(", ")", "a)", "(?:a", "[", "[a", "[a-", "[]", "[z-a]", r"[a-\d]", "[[:nothing:]]", "\\", "[\\"),
        *("*", "+a", "a**", "a*+", "a{2}{3}", "a{2,1}", "a{1001}", "(?", "(?x)a", "(?<=a)b", "(?!a)", "(?P<1>a)"),
        *(r"\1", r"\b", r"\pL", "(?P=name)", "(" * 60 + ")" * 60),
    ],
)
def test_what_is_not_a_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput):
        TopicPattern(pattern)


@pytest.mark.parametrize("pattern", ["(a{1000}){1000}", "(((){1000}){1000}){1000}", "a" * 3_000, "(a|b|c){900}"])
def test_a_pattern_that_is_too_large_is_refused_before_it_costs_anything(pattern: str) -> None:
    with pytest.raises(InvalidInput, match="too"):
        TopicPattern(pattern)


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a*)*b", "a*" * 500 + "b", "(.*.*.*)*x"])
def test_a_pattern_that_stops_a_backtracking_matcher_is_answered(pattern: str) -> None:
    assert not TopicPattern(pattern).matches("a" * 249)


def test_a_pattern_with_very_many_states_forgets_instead_of_growing() -> None:
    pattern = TopicPattern("(a|b)*a(a|b){14}")
    names = [f"{number:020b}".replace("0", "a").replace("1", "b") for number in range(0, 2**20, 257)]
    assert [pattern.matches(name) for name in names] == [name[-15] == "a" for name in names]
    assert len(pattern._seen) <= MAX_REMEMBERED
