"""What a consumer of the classic protocol says in bytes that only consumers read: its subscription, its assignment.

A coordinator passes them on unread, until a group has members of both protocols. How they are written is known to those
who speak the protocol (`EmbeddedProtocol`); here they are values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
"""The protocol type under which members of a classic group speak so."""

NamedPartition: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedSubscription:
    """`owned` is what the member has not given up; one that gives everything up before it joins says nothing there."""

    topics: tuple[str, ...]
    owned: tuple[NamedPartition, ...] = ()
    rack_id: str | None = None


class EmbeddedProtocol(Protocol):
    def read_subscription(self, metadata: bytes) -> EmbeddedSubscription | None:
        """None if it is none, or names more than anybody reads."""

    def read_assignment(self, assignment: bytes) -> tuple[NamedPartition, ...]:
        """Nothing if it is none, or names more than anybody reads."""

    def write_assignment(self, partitions: Iterable[NamedPartition], metadata: bytes) -> bytes:
        """For the member that sent this subscription, in its version."""
