"""Why a group refuses, as Kafka's codes: the other half of `errors.py`."""

from __future__ import annotations

from streamhouse.core.groups.outcome import GroupError
from streamhouse.groups.coordinator import Description
from streamhouse.model.errors import MetadataUnavailable, StaleEpoch, StreamHouseError
from streamhouse.model.names import check_group_id
from streamhouse.server.kafka.errors import code_of
from streamhouse.wire.kafka.codes import ErrorCode


def group_code(refusal: GroupError | None) -> ErrorCode:
    """Their names are the same; what has none is no error."""
    return ErrorCode.NONE if refusal is None else ErrorCode[refusal.name]


def coordinator_code(problem: StreamHouseError) -> ErrorCode:
    """What went wrong while a group was asked: a lost lease is for the client to find the new coordinator."""
    if isinstance(problem, StaleEpoch):
        return ErrorCode.NOT_COORDINATOR
    if isinstance(problem, MetadataUnavailable):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code_of(problem)


def not_of_kind(kind: str, group_id: str, found: Description | GroupError | None) -> tuple[ErrorCode, str]:
    """There is no such group of this kind, or this node does not coordinate it and cannot say."""
    if isinstance(found, GroupError) and found is not GroupError.GROUP_ID_NOT_FOUND:
        return group_code(found), group_code(found).meaning
    return ErrorCode.GROUP_ID_NOT_FOUND, f"there is no {kind} group {group_id[:300]!r}"


def is_group_id(group_id: str) -> bool:
    try:
        check_group_id(group_id)
    except StreamHouseError:
        return False
    return True
