"""A holder stops before the store would let another in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamhouse.core.placement.lease import writable_until_ms


@given(st.integers(0, 2**50), st.integers(1, 10**9))
def test_writing_ends_before_the_lease_does_counted_from_before_it_was_asked_for(asked_ms: int, ttl_ms: int) -> None:
    assert asked_ms <= writable_until_ms(asked_ms, ttl_ms) < asked_ms + ttl_ms


@pytest.mark.parametrize(("ttl_ms", "expected"), [(30_000, 27_000), (10, 9), (1, 0)])
def test_a_tenth_is_the_margin_and_never_less_than_a_millisecond(ttl_ms: int, expected: int) -> None:
    assert writable_until_ms(0, ttl_ms) == expected
