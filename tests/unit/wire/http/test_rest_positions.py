"""Positions as text, and text that is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamhouse.model.errors import InvalidInput
from streamhouse.wire.http.rest.positions import Range, positions_of, positions_text, ranges_of, ranges_text

PARTITIONS = st.integers(0, 2**31 - 1)
OFFSETS = st.integers(0, 2**63 - 1)


@given(st.dictionaries(PARTITIONS, OFFSETS, min_size=1))
def test_positions_come_back(positions: dict[int, int]) -> None:
    assert positions_of(positions_text(positions)) == positions


PARTS = st.dictionaries(PARTITIONS, st.tuples(OFFSETS, OFFSETS), min_size=1)


@given(st.lists(PARTS, min_size=1, max_size=2))
def test_ranges_come_back(parts: list[dict[int, Range]]) -> None:
    assert ranges_of(ranges_text(parts)) == tuple(parts)


@given(PARTS)
def test_a_part_of_which_nothing_is_left_is_left_out(part: dict[int, Range]) -> None:
    assert ranges_of(ranges_text([{}, part])) == (part,)


@pytest.mark.parametrize(
    "text", ["", "0", "0:", ":1", "0:-1", "0:1,", "a:b", "0:1;1:2", "\u0660:\u0661", "0:9223372036854775808"]
)
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a position"):
        positions_of(text)


@pytest.mark.parametrize(
    "text", ["", "0:1", "0:1-", "0:1-x", "0:-1-2", "0:1-2,", "0:1-9223372036854775808", "0:1-2/", "0:1-2/0:2-3/0:3-4"]
)
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a place to go on"):
        ranges_of(text)
