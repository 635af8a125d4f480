"""Topic patterns against Python's own matcher, on names and patterns small enough for it."""

from __future__ import annotations

import contextlib
import re

from hypothesis import given
from hypothesis import strategies as st

from streamhouse.core.groups.consumer_pattern import TopicPattern
from streamhouse.model.errors import InvalidInput

_ATOMS = st.sampled_from(
    ["a", "b", "B", "-", r"\.", ".", "[ab]", "[^a]", "[a-c_]", r"\d", r"\w", "^", "$", "1", r"\b", r"\B"]
)


def _extend(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    repeats = st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?"])
    return st.one_of(
        st.lists(parts, max_size=3).map("".join),
        st.lists(parts, min_size=1, max_size=3).map(lambda options: f"({'|'.join(options)})"),
        st.tuples(parts, repeats).map(lambda both: f"(?:{both[0]}){both[1]}"),
    )


_PATTERNS = st.recursive(_ATOMS, _extend, max_leaves=8)
_NAMES = st.text("abBc1._-", min_size=1, max_size=7)


@given(pattern=_PATTERNS, names=st.lists(_NAMES, min_size=1, max_size=5))
def test_a_pattern_takes_what_pythons_matcher_takes(pattern: str, names: list[str]) -> None:
    compiled = TopicPattern(pattern)
    oracle = re.compile(pattern)
    for name in names:
        assert compiled.matches(name) == (oracle.fullmatch(name) is not None), name


@given(pattern=_PATTERNS, name=_NAMES)
def test_a_pattern_without_regard_to_case_takes_what_pythons_matcher_takes(pattern: str, name: str) -> None:
    oracle = re.compile(pattern, re.IGNORECASE)
    assert TopicPattern(f"(?i){pattern}").matches(name) == (oracle.fullmatch(name) is not None)


@given(text=st.text(r"ab1.*+?|()[]{}^$\-,:<>PpLQEidwzx", max_size=20), name=_NAMES)
def test_any_text_is_a_pattern_or_is_refused(text: str, name: str) -> None:
    with contextlib.suppress(InvalidInput):
        assert TopicPattern(text).matches(name) in (True, False)
