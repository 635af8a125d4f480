"""How much of each partition's backlog a limited micro-batch takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

Name = TypeVar("Name")


def share(backlogs: Mapping[Name, int], limit: int) -> dict[Name, int]:
    """What each may have of `limit`, in proportion to its backlog and never more than that.

    Nobody starves while there is one for each: a small backlog gets a one that its proportion would not give it. All
    shares together are exactly the limit, or everything if that is less."""
    waiting = {name: size for name, size in backlogs.items() if size > 0}
    total = sum(waiting.values())
    shares = dict.fromkeys(backlogs, 0)
    if total <= limit:
        return shares | waiting
    largest_first = sorted(waiting, key=lambda name: -waiting[name])
    # One each, as far as that goes; then the rest in proportion to what is left.
    for name in largest_first[:limit]:
        shares[name] = 1
    spare = limit - sum(shares.values())
    left = total - sum(shares.values())
    if spare:
        for name in largest_first:
            shares[name] += spare * (waiting[name] - 1) // left
        # What rounding down left over is fewer than one for each, and the largest have room for it.
        for name in largest_first[: limit - sum(shares.values())]:
            shares[name] += 1
    return shares


class Sized(Protocol):
    """A stretch of a log, up to an offset."""

    @property
    def end(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...


def whole_within(pieces: Sequence[Sized], budget_bytes: int) -> int:
    """How many of the first pieces fit in the budget."""
    for count, piece in enumerate(pieces):
        budget_bytes -= piece.size_bytes
        if budget_bytes < 0:
            return count
    return len(pieces)
