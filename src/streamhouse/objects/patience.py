"""How long a request to the store may take: as long as its own size explains, and that of what shares the link.

What is sent waits for other sending, and what is received for other receiving."""

from __future__ import annotations

_SECOND_TRY_S = 2.0
_SECOND_TRY_BYTES_PER_S = 4 * 2**20
_ATTEMPT_BYTES_PER_S = 2 * 2**20
_LIMIT_S = 8.0

SLOWEST_SENDING = 512 * 2**10
"""Bytes in a second of all that is under way together. An upload has to arrive, however thin the link is."""
SLOWEST_RECEIVING = 2 * 2**20
"""Readers wait, and should hear within seconds that there is no hope."""


class Traffic:
    """The requests of one store that are under way in one direction."""

    __slots__ = ("_under_way", "slowest_bytes_per_s")

    def __init__(self, slowest_bytes_per_s: int) -> None:
        self.slowest_bytes_per_s = slowest_bytes_per_s
        self._under_way: set[Patience] = set()

    def begin(self, size_bytes: int) -> Patience:
        patience = Patience(self, size_bytes)
        self._under_way.add(patience)
        return patience

    def end(self, patience: Patience) -> None:
        self._under_way.discard(patience)

    def shared_bytes(self, size_bytes: int) -> int:
        """What a fair link carries until one of that size has arrived: of each other one no more than that size."""
        return sum(min(size_bytes, other.size_bytes) * other.attempts for other in self._under_way)


class Patience:
    """One request's. `attempts`: how many of it there are at the moment, beside one another."""

    __slots__ = ("_most_bytes", "_traffic", "attempts", "size_bytes")

    def __init__(self, traffic: Traffic, size_bytes: int) -> None:
        self._traffic = traffic
        self._most_bytes = 0
        self.size_bytes = size_bytes
        self.attempts = 1

    def expect(self, size_bytes: int) -> None:
        """While the request is under way, when its answer says how much there is to come."""
        self.size_bytes = size_bytes

    def second_try_s(self) -> float:
        """When it is tried once more. By its own size alone: what makes many slow may be that all their connections
        are dead, and one that gets through shows it."""
        return _SECOND_TRY_S + self.size_bytes / _SECOND_TRY_BYTES_PER_S

    def attempt_s(self) -> float:
        """How long a second try has, the first time."""
        return _LIMIT_S + self.size_bytes / _ATTEMPT_BYTES_PER_S

    def limit_s(self) -> float:
        """When it is given up. It may move, never back: what has arrived meanwhile has taken its share as well."""
        self._most_bytes = max(self._most_bytes, self._traffic.shared_bytes(self.size_bytes))
        return _LIMIT_S + self._most_bytes / self._traffic.slowest_bytes_per_s
