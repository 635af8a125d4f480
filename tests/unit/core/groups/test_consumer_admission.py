"""One group id, two protocols: who may come in."""

from __future__ import annotations

import pytest

from streamhouse.core.groups.consumer_admission import GroupKind, join_refusal, member_refusal
from streamhouse.core.groups.outcome import GroupError


@pytest.mark.parametrize("joining", GroupKind)
@pytest.mark.parametrize("existing", [None, *GroupKind])
def test_an_empty_group_is_open_to_both_protocols(joining: GroupKind, existing: GroupKind | None) -> None:
    assert join_refusal(joining=joining, existing=existing, has_members=False) is None


@pytest.mark.parametrize("kind", GroupKind)
def test_a_group_with_members_is_open_to_its_own_protocol(kind: GroupKind) -> None:
    assert join_refusal(joining=kind, existing=kind, has_members=True) is None
    assert member_refusal(asking=kind, existing=kind) is None


def test_a_classic_join_to_a_consumer_group_with_members_is_inconsistent() -> None:
    refusal = join_refusal(joining=GroupKind.CLASSIC, existing=GroupKind.CONSUMER, has_members=True)
    assert refusal is GroupError.INCONSISTENT_GROUP_PROTOCOL


def test_a_consumer_heartbeat_finds_no_group_where_a_classic_one_has_members() -> None:
    refusal = join_refusal(joining=GroupKind.CONSUMER, existing=GroupKind.CLASSIC, has_members=True)
    assert refusal is GroupError.GROUP_ID_NOT_FOUND


def test_a_member_of_a_group_that_is_gone_or_converted_is_told_to_join_again() -> None:
    for existing in (None, GroupKind.CLASSIC):
        assert member_refusal(asking=GroupKind.CONSUMER, existing=existing) is GroupError.UNKNOWN_MEMBER_ID
