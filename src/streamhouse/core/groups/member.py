"""One member of a classic group: what it told the group, what it waits for, and when it is given up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from streamhouse.core.groups.outcome import Ticket

Protocols: TypeAlias = tuple[tuple[str, bytes], ...]
"""The protocols that a member speaks, preferred first, each with the metadata that it sends under it."""


@dataclass(slots=True, kw_only=True)
class Member:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    expires_ms: int
    assignment: bytes = b""
    joining: Ticket | None = None
    syncing: Ticket | None = None
    is_new: bool = False

    @property
    def deadline_ms(self) -> int | None:
        """A member that waits for its group cannot be blamed for silence, unless it never heard its member id."""
        waits = self.joining is not None or self.syncing is not None
        return None if waits and not self.is_new else self.expires_ms

    def seen(self, now_ms: int) -> None:
        self.expires_ms = now_ms + self.session_timeout_ms

    def metadata(self, protocol_name: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")
