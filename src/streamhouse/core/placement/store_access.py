"""Who leads partitions whose records are durable only in the object store, while some agents do not reach it.

Every agent says of itself whether it does; the others see it, and come to the same answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

from streamhouse.core.placement.assignment import Assignment, Candidate


class StoreAccess(Enum):
    """What an agent says of its way to the object store. Most never have a reason to look."""

    USUAL = ""
    STALLED = "stalled"
    """Nothing of what it appended becomes durable, or nothing of what it is to lead can be read, and a probe fails too.
    It takes up nothing whose records are durable only in the store."""
    PROVEN = "proven"
    """Another one is stalled, and this one has just asked the store whether it could help."""
    RECOVERING = "recovering"
    """It was stalled, and for a short while it is not any more."""


def next_access(
    current: StoreAccess,
    *,
    is_overdue: bool,
    wrote_probe: bool,
    is_other_stalled: bool,
    recovered_for_ms: int,
    recovery_ms: int,
) -> StoreAccess:
    """After a probe of the store. `is_overdue`: what should long be durable, or read, is not. `recovered_for_ms`: how
    long every probe has succeeded by now."""
    if not wrote_probe:
        is_lost = is_overdue or current in (StoreAccess.STALLED, StoreAccess.RECOVERING)
        return StoreAccess.STALLED if is_lost else StoreAccess.USUAL
    if current in (StoreAccess.STALLED, StoreAccess.RECOVERING) and recovered_for_ms < recovery_ms:
        return StoreAccess.RECOVERING
    return StoreAccess.PROVEN if is_other_stalled else StoreAccess.USUAL


class StorePlacement:
    """The live agents, and what each says of its way to the store."""

    __slots__ = ("_access", "_proven", "_recovering")

    def __init__(self, agents: Iterable[tuple[Candidate, StoreAccess]]) -> None:
        agents = list(agents)
        self._access = {candidate.agent_id: access for candidate, access in agents}
        self._proven = Assignment(candidate for candidate, access in agents if access is StoreAccess.PROVEN)
        self._recovering = Assignment(candidate for candidate, access in agents if access is StoreAccess.RECOVERING)

    def access(self, agent_id: str) -> StoreAccess | None:
        """None of an agent that is not alive."""
        return self._access.get(agent_id)

    def owner(self, choice: str | None, holder: str, choose: Callable[[Assignment], str | None]) -> str | None:
        """Who should lead what `choice` would get if the store were no matter, and `holder` leads now ("" if nobody).
        `choose`: whom it would be among others.

        From one that is stalled it goes to one that has proven that it reaches the store; while there is none, nobody
        moves. To one that was stalled it comes back when that is long over, or at once if nobody else could lead it."""
        if choice is None or self.access(choice) in (StoreAccess.USUAL, StoreAccess.PROVEN):
            return choice
        stays = holder or choice
        if self.access(stays) is StoreAccess.STALLED:
            return choose(self._proven) or (None if holder else choose(self._recovering)) or stays
        return stays
