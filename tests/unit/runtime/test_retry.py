"""Waits between attempts double up to a limit, each with jitter."""

from __future__ import annotations

from itertools import islice

from streamhouse.runtime.retry import backoff_ms


def test_each_wait_lies_between_half_of_its_step_and_its_step() -> None:
    steps = [50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000]

    for _ in range(50):
        for wait_ms, step_ms in zip(islice(backoff_ms(), len(steps)), steps, strict=True):
            assert step_ms / 2 <= wait_ms <= step_ms


def test_waits_are_not_all_the_same() -> None:
    assert len({next(backoff_ms()) for _ in range(20)}) > 1


def test_the_first_wait_and_the_limit_can_be_chosen() -> None:
    waits = list(islice(backoff_ms(first_ms=10, limit_ms=15), 20))

    assert 5 <= waits[0] <= 10
    assert all(7.5 <= wait_ms <= 15 for wait_ms in waits[1:])
