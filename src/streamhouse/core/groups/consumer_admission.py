"""Which of the two group protocols a group id is open to: one at a time, and another only when nobody is in it.

Kafka can convert a group with members in it (`group.consumer.migration.policy`); with that disabled it refuses as is
done here. Committed offsets belong to the group id, so an empty group changes its kind without losing them."""

from __future__ import annotations

from enum import Enum

from streamhouse.core.groups.outcome import GroupError


class GroupKind(Enum):
    """A group's kind, as ListGroups names it."""

    CLASSIC = "Classic"
    CONSUMER = "Consumer"


def join_refusal(*, joining: GroupKind, existing: GroupKind | None, has_members: bool) -> GroupError | None:
    """Why a first JoinGroup or a heartbeat with epoch 0 is refused; None: it may go on, converting an empty group."""
    if existing is None or existing is joining or not has_members:
        return None
    return GroupError.GROUP_ID_NOT_FOUND if joining is GroupKind.CONSUMER else GroupError.INCONSISTENT_GROUP_PROTOCOL


def member_refusal(*, asking: GroupKind, existing: GroupKind | None) -> GroupError | None:
    """Why a request of a member that says it has joined is refused; None: the group's own rules decide.

    For a group that is not here, Kafka's GROUP_ID_NOT_FOUND is fatal to librdkafka; UNKNOWN_MEMBER_ID makes every
    client join again, which is what a group that was forgotten needs."""
    return None if existing is asking else GroupError.UNKNOWN_MEMBER_ID
