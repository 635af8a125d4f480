"""What one agent does to come from the leases that are held to those that should be.

A plan says what to try. Agents that see different moments may both try for one key: the store grants it to one."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)
"""A partition or a shard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Generic[KeyT]):
    """Keys to take leases of, keys to hand over with the agent that should have each, and keys that another holds and
    should hand over to me."""

    acquire: tuple[KeyT, ...]
    hand_over: tuple[tuple[KeyT, str], ...]
    ask_for: tuple[KeyT, ...] = ()


def plan(
    me: str,
    desired: Mapping[KeyT, str | None],
    held: Collection[KeyT],
    holders: Mapping[KeyT, str],
    bound_to: Mapping[KeyT, str] | None = None,
) -> Plan[KeyT]:
    """In the order of `desired`. What I hold stays mine while nobody else should have it, or it is gone from `desired`.

    `holders`: whose lease of a key is live. My own, where I do not hold the key, is left over from an earlier process
    of mine or came too late: nobody else can take it, so I do, and hand it over if need be. `bound_to`: the agent whose
    own disk is needed to lead a key, if it is not "". Only that agent takes it, also when another should have it, which
    then gets it handed over with nothing left on the disk."""
    mine = frozenset(held)
    bound_to = bound_to or {}
    acquire: list[KeyT] = []
    hand_over: list[tuple[KeyT, str]] = []
    ask_for: list[KeyT] = []
    for key, owner in desired.items():
        if key in mine:
            if owner is not None and owner != me:
                hand_over.append((key, owner))
        elif holders.get(key) == me or ((bound_to.get(key) or owner) == me and key not in holders):
            acquire.append(key)
        elif owner == me and key in holders:
            ask_for.append(key)
    return Plan(acquire=tuple(acquire), hand_over=tuple(hand_over), ask_for=tuple(ask_for))
