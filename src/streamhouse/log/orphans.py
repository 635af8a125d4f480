"""Objects that nothing refers to, and for how long that has been so."""

from __future__ import annotations

from collections.abc import Iterable

from streamhouse.runtime.clock import Clock


class OrphanWatch:
    """Counts on the clock that only goes forward. By a wall clock that was set, an object that another agent is about
    to register would look old; found without a reference for the whole grace period, it has been there for longer than
    anybody still registers it (rule 9)."""

    def __init__(self, clock: Clock, grace_ms: int) -> None:
        self._clock = clock
        self._grace_ms = grace_ms
        self._found_at_ms: dict[str, int] = {}

    def outlived(self, orphans: Iterable[str]) -> list[str]:
        """Given all orphans that there are now: those that an earlier search had found, at least the grace period ago.
        What is not among them was registered or is gone, and is forgotten."""
        now_ms = self._clock.monotonic_ms()
        earlier = self._found_at_ms
        self._found_at_ms = {key: earlier.get(key, now_ms) for key in orphans}
        return [key for key in self._found_at_ms if key in earlier and now_ms - earlier[key] >= self._grace_ms]
