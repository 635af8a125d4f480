"""When a hand-over that failed is tried again: each failure in a row doubles the wait, so that what cannot succeed now
does not cost those who write ever anew."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

_FIRST_WAIT_MS = 1_000
LONGEST_WAIT_MS = 300_000
STUCK_AFTER = 3
"""So many failures in a row are no accident: somebody should look."""

KeyT = TypeVar("KeyT", bound=Hashable)
"""A partition or a shard."""


def wait_ms(failures: int) -> int:
    """After so many failures in a row."""
    doublings = min(failures - 1, LONGEST_WAIT_MS.bit_length())
    return min(_FIRST_WAIT_MS << doublings, LONGEST_WAIT_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """A hand-over to one agent that has failed as often as that in a row, for the reason that the last try gave."""

    to_agent_id: str
    failures: int
    reason: str
    not_before_ms: int


class Attempts(Generic[KeyT]):
    """What is known of the hand-overs that have failed since they were last possible. Times are of one clock."""

    __slots__ = ("_failing",)

    def __init__(self) -> None:
        self._failing: dict[KeyT, Failing] = {}

    def keep(self, wanted: Mapping[KeyT, str]) -> None:
        """Forget what is not to be handed over any more, or to another agent, for which nothing has failed yet."""
        self._failing = {
            key: failing for key, failing in self._failing.items() if wanted.get(key) == failing.to_agent_id
        }

    def wait_left_ms(self, key: KeyT, now_ms: int) -> int:
        failing = self._failing.get(key)
        return 0 if failing is None else max(0, failing.not_before_ms - now_ms)

    def may_try(self, key: KeyT, now_ms: int) -> bool:
        return self.wait_left_ms(key, now_ms) == 0

    def failed(self, key: KeyT, to_agent_id: str, reason: str, now_ms: int) -> None:
        before = self._failing.get(key)
        failures = before.failures + 1 if before is not None and before.to_agent_id == to_agent_id else 1
        self._failing[key] = Failing(
            to_agent_id=to_agent_id, failures=failures, reason=reason, not_before_ms=now_ms + wait_ms(failures)
        )

    def next_try_ms(self, now_ms: int) -> int | None:
        """How long until the first of them may be tried again; None if nothing is failing."""
        return min((self.wait_left_ms(key, now_ms) for key in self._failing), default=None)

    @property
    def stuck(self) -> dict[KeyT, Failing]:
        return {key: failing for key, failing in self._failing.items() if failing.failures >= STUCK_AFTER}
