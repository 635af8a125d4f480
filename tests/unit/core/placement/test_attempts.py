"""What fails is tried again later and later, and what has changed is tried at once."""

from __future__ import annotations

from streamhouse.core.placement.attempts import LONGEST_WAIT_MS, STUCK_AFTER, Attempts, wait_ms


def test_each_failure_in_a_row_doubles_the_wait_up_to_a_limit() -> None:
    assert [wait_ms(failures) for failures in range(1, 6)] == [1_000, 2_000, 4_000, 8_000, 16_000]
    assert wait_ms(10) == wait_ms(10_000) == LONGEST_WAIT_MS


def test_what_has_not_failed_may_be_tried() -> None:
    attempts: Attempts[str] = Attempts()
    assert attempts.may_try("p", 0)
    assert attempts.next_try_ms(0) is None


def test_what_has_failed_may_be_tried_when_its_wait_is_over() -> None:
    attempts: Attempts[str] = Attempts()
    attempts.failed("p", "b", "slow", 5_000)
    attempts.failed("q", "b", "slow", 5_500)
    assert [attempts.may_try("p", now_ms) for now_ms in (5_000, 5_999, 6_000)] == [False, False, True]
    assert attempts.next_try_ms(5_200) == 800
    assert attempts.next_try_ms(7_000) == 0


def test_failures_are_counted_for_one_destination() -> None:
    attempts: Attempts[str] = Attempts()
    for _ in range(4):
        attempts.failed("p", "b", "slow", 0)
    assert not attempts.may_try("p", wait_ms(4) - 1)
    attempts.failed("p", "c", "slow", 0)
    assert attempts.may_try("p", wait_ms(1))


def test_what_is_no_longer_wanted_or_wanted_elsewhere_is_forgotten() -> None:
    attempts: Attempts[str] = Attempts()
    for key in "pqr":
        attempts.failed(key, "b", "slow", 0)
    attempts.keep({"p": "b", "q": "c"})
    assert [attempts.may_try(key, 0) for key in "pqr"] == [False, True, True]


def test_what_fails_often_enough_is_stuck_with_its_last_reason() -> None:
    attempts: Attempts[str] = Attempts()
    for number in range(STUCK_AFTER):
        assert attempts.stuck == {}
        attempts.failed("p", "b", f"reason {number}", 0)
    (failing,) = attempts.stuck.values()
    assert (failing.to_agent_id, failing.failures, failing.reason) == ("b", STUCK_AFTER, f"reason {STUCK_AFTER - 1}")
