"""The ring that places partitions: consistent hashing, so that every agent works out the same owners on its own and a
change of agents moves only what it has to.

Points are FNV-1a (64 bit) with Murmur3's finaliser: FNV alone leaves the points of `agent-1:vn0` and `agent-1:vn1` near
each other. They are the same in every process and every version, or agents would disagree about who owns what."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable

VNODES_PER_AGENT = 150

_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3
_UINT64 = 0xFFFFFFFFFFFFFFFF


def fnv1a_64(data: bytes) -> int:
    digest = _FNV_OFFSET
    for byte in data:
        digest = ((digest ^ byte) * _FNV_PRIME) & _UINT64
    return digest


def fmix64(digest: int) -> int:
    """Murmur3's 64-bit finaliser: every bit of the input reaches every bit of the output."""
    digest ^= digest >> 33
    digest = (digest * 0xFF51AFD7ED558CCD) & _UINT64
    digest ^= digest >> 33
    digest = (digest * 0xC4CEB9FE1A85EC53) & _UINT64
    return digest ^ (digest >> 33)


def point(text: str) -> int:
    """Where on the ring a text lies: 0 to 2^64 - 1."""
    return fmix64(fnv1a_64(text.encode()))


def partition_key(topic: str, partition: int) -> str:
    return f"{topic}:{partition}"


def shard_key(shard: int) -> str:
    """The key of a shard of group coordinators."""
    return f"__groups:{shard}"


class Ring:
    """Agents at their points. Building one hashes every vnode, so keep it for as long as the agents are the same."""

    __slots__ = ("_owners", "_points")

    def __init__(self, agent_ids: Iterable[str]) -> None:
        # Sorted with the agent's id second, so that agents agree also where two vnodes share a point.
        vnodes = sorted(
            (point(f"{agent_id}:vn{number}"), agent_id)
            for agent_id in set(agent_ids)
            for number in range(VNODES_PER_AGENT)
        )
        self._points = [place for place, _ in vnodes]
        self._owners = [agent_id for _, agent_id in vnodes]

    def owner(self, key: str) -> str | None:
        """The agent of the first vnode at or after the key's point, clockwise; None if there are no agents."""
        if not self._points:
            return None
        place = bisect_left(self._points, point(key))
        return self._owners[place if place < len(self._owners) else 0]

    def first(self, key: str, among: Collection[str]) -> str | None:
        """The agent of the first vnode at or after the key's point that is one of these; None if none of them is on the
        ring."""
        if len(among) == 1:
            (only,) = among
            return only
        start = bisect_left(self._points, point(key))
        for place in range(start, start + len(self._owners)):
            owner = self._owners[place % len(self._owners)]
            if owner in among:
                return owner
        return None

    def positions(self) -> list[tuple[int, str]]:
        """Every vnode as (point, agent id), clockwise from 0."""
        return list(zip(self._points, self._owners, strict=True))
