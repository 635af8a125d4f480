"""The one place where errors become Flume's codes, of which there are few: what has none of its own is UNKNOWN."""

from __future__ import annotations

from streamhouse.model.errors import NotFound, OffsetOutOfRange, StaleGeneration, StreamHouseError
from streamhouse.wire.flume.codes import ErrorCode


class UnknownMember(StreamHouseError):
    """Whoever asks is no member of the group, or not one that joined on this connection."""


def code_of(problem: StreamHouseError) -> ErrorCode:
    match problem:
        case NotFound():
            return ErrorCode.TOPIC_NOT_FOUND
        case OffsetOutOfRange():
            return ErrorCode.OFFSET_OUT_OF_RANGE
        case UnknownMember():
            return ErrorCode.UNKNOWN_MEMBER
        case StaleGeneration():
            return ErrorCode.STALE_GENERATION
    return ErrorCode.UNKNOWN
