"""Flume's API keys and error codes. Keys 0 to 6 are its document's; 7 is ours."""

from __future__ import annotations

from enum import IntEnum


class ApiKey(IntEnum):
    PRODUCE = 0
    FETCH = 1
    JOIN_GROUP = 2
    LEAVE_GROUP = 3
    HEARTBEAT = 4
    OFFSET_COMMIT = 5
    OFFSET_FETCH = 6
    ASSIGNMENT = 7
    """The document says that partitions are divided, and not how a member learns which are its own."""


class ErrorCode(IntEnum):
    NONE = 0
    UNKNOWN = 1
    TOPIC_NOT_FOUND = 2
    OFFSET_OUT_OF_RANGE = 3
    UNKNOWN_MEMBER = 4
    STALE_GENERATION = 5
    REBALANCE_NEEDED = 6
