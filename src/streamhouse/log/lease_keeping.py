"""What goes on for as long as an engine leads: leases are renewed, lost ones taken again, and waiters looked after.

Each is a task of its own, so that none waits for another; renewals come first."""

from __future__ import annotations

import logging

from streamhouse.log.leadership import Leadership
from streamhouse.model.errors import Unavailable
from streamhouse.runtime.clock import Clock

_log = logging.getLogger(__name__)
_SOONER = 4


async def keep_leases(leadership: Leadership, clock: Clock, interval_ms: int) -> None:
    """Renew until cancelled, an interval after the last renewal began, and sooner if that failed. While the store is
    away leaders run out of lease and refuse writes by themselves."""
    due_ms = clock.monotonic_ms() + interval_ms
    while True:
        await clock.sleep_ms(max(0, due_ms - clock.monotonic_ms()))
        due_ms = clock.monotonic_ms() + interval_ms
        try:
            await leadership.extend()
        except Unavailable as problem:
            _log.warning("cannot renew leases, trying again: %s", problem)
            due_ms = clock.monotonic_ms() + interval_ms // _SOONER


async def retake_leases(leadership: Leadership, clock: Clock, interval_ms: int) -> None:
    """Runs until cancelled, beside `keep_leases`, which it must not hold up: it reads what others may have written."""
    while True:
        await clock.sleep_ms(interval_ms)
        if leadership.has_lost:
            try:
                await leadership.take_again()
            except Unavailable as problem:
                _log.warning("cannot take lost leases again, trying again: %s", problem)


async def watch_leases(leadership: Leadership, clock: Clock, interval_ms: int) -> None:
    """Runs until cancelled, beside `keep_leases`, which may wait for the store for longer than a lease lasts."""
    while True:
        await clock.sleep_ms(interval_ms)
        leadership.send_waiters_on()
        leadership.wake_rested()
