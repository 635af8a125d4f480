"""Durations and sizes, as people write them and as they are shown."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamhouse.model.errors import InvalidConfig
from streamhouse.model.units import parse_duration_ms, parse_size_bytes, show_duration, show_size


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("250ms", 250),
        ("30s", 30_000),
        ("5m", 300_000),
        ("2h", 7_200_000),
        ("7d", 604_800_000),
        ("0s", 0),
        ("1.5s", 1_500),
        (" 2 h ", 7_200_000),
        ("10S", 10_000),
        ("0.5ms", 0),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text: str, expected: int) -> None:
    assert parse_duration_ms(text) == expected


@pytest.mark.parametrize(
    "text", ["", "10", "s", "-1s", "+1s", "1e3s", "1 2s", "1y", "1.s", ".5s", "0x10s", "1s1s", "∞"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfig):
        parse_duration_ms(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("17", 17),
        ("17b", 17),
        ("64KiB", 65_536),
        ("8MiB", 8 * 2**20),
        ("2GiB", 2**31),
        ("1kb", 1_000),
        ("1MB", 10**6),
        ("1gb", 10**9),
        ("1.5 MiB", 3 * 2**19),
    ],
)
def test_a_size_is_a_number_with_or_without_a_unit(text: str, expected: int) -> None:
    assert parse_size_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "MiB", "-1", "1TiB", "1e6", "1 000", "ten"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfig):
        parse_size_bytes(text)


@pytest.mark.parametrize("parse", [parse_duration_ms, parse_size_bytes])
def test_a_number_too_large_for_any_machine_is_refused_and_not_a_crash(parse: Callable[[str], int]) -> None:
    with pytest.raises(InvalidConfig):
        parse("9" * 400 + ("d" if parse is parse_duration_ms else "GiB"))


@example(2**53 + 1)
@given(st.integers(0, 2**62))
def test_a_duration_that_is_shown_is_read_back_to_the_millisecond(ms: int) -> None:
    assert parse_duration_ms(show_duration(ms)) == ms


@example(2**53 + 1)
@given(st.integers(0, 2**62))
def test_a_size_that_is_shown_is_read_back_to_the_byte(size_bytes: int) -> None:
    assert parse_size_bytes(show_size(size_bytes)) == size_bytes


@pytest.mark.parametrize(
    ("ms", "text"), [(0, "0ms"), (999, "999ms"), (1_000, "1s"), (90_000, "90s"), (3_600_000, "1h"), (86_400_000, "1d")]
)
def test_a_duration_is_shown_in_the_largest_unit_that_is_exact(ms: int, text: str) -> None:
    assert show_duration(ms) == text


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0"), (1_000, "1000"), (1_024, "1KiB"), (2**21, "2MiB"), (2**31, "2GiB")]
)
def test_a_size_is_shown_in_the_largest_unit_that_is_exact(size: int, text: str) -> None:
    assert show_size(size) == text
