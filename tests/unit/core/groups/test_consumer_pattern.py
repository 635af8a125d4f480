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
        (r"\pL+", ["orders", "Orders"], ["orders1", "a-b"]),
        (r"\p{L}\p{Nd}\P{Lu}", ["a1b", "A1-"], ["11b", "a1B"]),
        (r"\p{Latin}+\p{Common}", ["ab-", "ab7"], ["ab", "abc"]),
        (r"\p{Greek}|\p{^Greek}x|\PZy", ["ax", "-y"], ["a", "x"]),
        (r"[\pN\p{Pd}]+", ["1-2"], ["a", "1_2"]),
        (r"[^\pN]+", ["a-b"], ["a1"]),
        (r"(?i)\p{Lu}\P{Lu}", ["a-", "B1"], ["ab", "aB"]),
        (r"\Qa.b*\E", [], ["a.b", "aab"]),
        (r"\Qa.b\Ec+", ["a.bcc"], ["axbc", "a.b"]),
        (r"\Qa.b\E*", ["a.", "a.bb"], ["a.ba.b"]),
        (r"\Qa.b", ["a.b"], ["axb"]),
        (r"(?i)\Qa-b\E", ["A-b"], ["Axb"]),
        (r"a\Q\E{2}", ["aa"], ["a"]),
        (r"\borders\b.*", ["orders", "orders-eu"], ["orders_eu", "my-orders"]),
        (r".*\Beu", ["_eu", "xeu"], ["eu", "x-eu"]),
        (r"\b^a$\b", ["a"], ["b"]),
        (r"\x61\x{62}\143\055", ["abc-"], ["abc"]),
        (r"[\x61-\x{63}]+", ["abc"], ["d"]),
        (r"[[:^digit:][:upper:]]+", ["aB-"], ["1"]),
        (r"[[:a]+", ["a"], ["b"]),
        ("(?s)(?mU-i:A.b)(?i-s)C", ["A-bc", "A-bC"], ["a-bc"]),
        ("(?i)a(?-i)b|c(?i:(?-i:d)e)", ["Ab", "cdE"], ["aB", "cDe"]),
        ("(?P<1>a)(?<two>b)", ["ab"], ["a"]),
        ("a{01}", [], ["a"]),
    ],
)
def test_a_pattern_takes_whole_names(pattern: str, taken: list[str], left: list[str]) -> None:
    matches = TopicPattern(pattern).matches
    assert [name for name in (*taken, *left) if matches(name)] == taken


@pytest.mark.parametrize(
    "pattern",
    [
        *("(", ")", "a)", "(?:a", "[", "[a", "[a-", "[]", "[z-a]", r"[a-\d]", "[[:nothing:]]", "\\", "[\\"),
        *("*", "+a", "a**", "a*+", "a{2}{3}", "a{2,1}", "a{1001}", "(?", "(?x)a", "(?<=a)b", "(?!a)"),
        *(r"\1", r"\8", r"\Z", r"\C", r"\E", r"a\E", r"[\Qa\E]", r"\p", r"\pX", r"\p{Klingon}", r"\p{L", r"\pé"),
        *(r"\x", r"\x{}", r"\x{110000}", r"\xg0", r"\é", r"[\b]", r"\Q\E*", "(?-)a", "(?i-:a)", "(?P<a>x)(?P<a>y)"),
        *("(?P=name)", "(?P>name)", "a{1234567890123}", "(" * 60 + ")" * 60),
    ],
)
def test_what_is_not_a_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput):
        TopicPattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("a(b", "no ')' for the group '(b' at character 2"),
        ("ab)c", "an unmatched ')' at character 3"),
        ("x[a-", "no ']' for the set '[a-' at character 2"),
        ("*a", "nothing before the repetition '*' at character 1"),
        ("ba**", "a repetition of a repetition '**' at character 3"),
        ("a{2,1}", "a repetition whose end is before its start '{2,1}' at character 2"),
        ("a{1001}", "a repetition of more than 1000 times '{1001}' at character 2"),
        ("[z-a]", "a range that is none: 'z-a' at character 2"),
        ("[[:nothing:]]", "an unknown character class '[:nothing:]' at character 2"),
        (r"\p{Klingon}", r"an unknown Unicode class '\p{Klingon}' at character 1"),
        (r"a\y", r"an unknown escape '\y' at character 2"),
        (r"(a)\1", r"a backreference, which RE2 does not have: '\1' at character 4"),
        ("a(?!b)", "a lookahead, which RE2 does not have: '(?!' at character 2"),
        ("(?<=b)a", "a lookbehind, which RE2 does not have: '(?<=' at character 1"),
        ("(?#b)a", "a group of an unknown kind '(?#' at character 1"),
        ("(?P<a>x)(?P<a>y)", "two groups of one name '(?P<a>' at character 9"),
        ("ab\\", r"a backslash at its end '\' at character 3"),
    ],
)
def test_what_is_wrong_with_a_pattern_is_said_and_where(pattern: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        TopicPattern(pattern)
    assert refused.value.message == f"the topic pattern '{pattern}' has {problem}"


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
