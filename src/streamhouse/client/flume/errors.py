"""What Flume's error codes mean to a client."""

from __future__ import annotations

from streamhouse.model.errors import Fenced, NotFound, OffsetOutOfRange, StaleGeneration, StreamHouseError
from streamhouse.wire.flume.codes import ErrorCode


class UnknownMember(Fenced):
    """The group has forgotten this member: join as a new one."""


class RebalanceNeeded(Fenced):
    """The group's partitions are being divided anew: join again."""


_KINDS: dict[int, tuple[type[StreamHouseError], str]] = {
    ErrorCode.TOPIC_NOT_FOUND: (NotFound, "there is no such topic or partition"),
    ErrorCode.OFFSET_OUT_OF_RANGE: (OffsetOutOfRange, "the log holds no such offset"),
    ErrorCode.UNKNOWN_MEMBER: (UnknownMember, "the group does not know this member"),
    ErrorCode.STALE_GENERATION: (StaleGeneration, "the group has gone on without this member"),
    ErrorCode.REBALANCE_NEEDED: (RebalanceNeeded, "the group divides its partitions anew"),
}


def raise_for(code: int, what: str) -> None:
    """Does nothing for code 0."""
    if code != ErrorCode.NONE:
        kind, meaning = _KINDS.get(code, (StreamHouseError, f"the broker refused it with code {code}"))
        raise kind(f"{what}: {meaning}")
