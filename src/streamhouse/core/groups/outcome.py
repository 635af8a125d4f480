"""What an event led to in a group: the answers that are due, and whether the new state must be stored before them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Generic, NewType, TypeVar

Ticket = NewType("Ticket", int)
"""Names one request that waits for its answer; given by the shell, never used twice for one group."""

ReplyT = TypeVar("ReplyT")


class GroupError(Enum):
    """Why a group refuses; each listener maps these to what its protocol says."""

    UNKNOWN_MEMBER_ID = auto()
    ILLEGAL_GENERATION = auto()
    REBALANCE_IN_PROGRESS = auto()
    FENCED_INSTANCE_ID = auto()
    UNRELEASED_INSTANCE_ID = auto()
    MEMBER_ID_REQUIRED = auto()
    INCONSISTENT_GROUP_PROTOCOL = auto()
    INVALID_SESSION_TIMEOUT = auto()
    GROUP_MAX_SIZE_REACHED = auto()
    COORDINATOR_LOAD_IN_PROGRESS = auto()
    COORDINATOR_NOT_AVAILABLE = auto()
    NOT_COORDINATOR = auto()
    FENCED_MEMBER_EPOCH = auto()
    STALE_MEMBER_EPOCH = auto()
    UNSUPPORTED_ASSIGNOR = auto()
    NON_EMPTY_GROUP = auto()
    GROUP_ID_NOT_FOUND = auto()
    GROUP_SUBSCRIBED_TO_TOPIC = auto()
    INVALID_REQUEST = auto()
    INVALID_REGULAR_EXPRESSION = auto()


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error that its name does not explain."""

    error: GroupError
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Generic[ReplyT]):
    """The reply to one waiting request; each ticket is answered exactly once."""

    ticket: Ticket
    reply: ReplyT


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[ReplyT]):
    """The effects of one event: if `persist`, the group's state is stored before any of the answers is given."""

    answers: tuple[Answer[ReplyT], ...] = ()
    persist: bool = False
