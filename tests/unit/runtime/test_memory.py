"""Memory that is not filled: as much as was asked for, and its owner's to write."""

from __future__ import annotations

import pytest

from streamhouse.runtime import memory


def test_it_is_the_compiled_one_here() -> None:
    assert memory.COMPILED


@pytest.mark.parametrize("size_bytes", [0, 1, 61, 100_000, 5_000_000])
def test_it_has_the_size_that_was_asked_for_and_keeps_what_is_written(size_bytes: int) -> None:
    first, second = memory.unfilled(size_bytes), memory.unfilled(size_bytes)
    memoryview(first)[:] = b"a" * size_bytes
    memoryview(second)[:] = b"b" * size_bytes

    assert first == b"a" * size_bytes
    assert second == b"b" * size_bytes


def test_less_than_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="less than no bytes"):
        memory.unfilled(-1)
