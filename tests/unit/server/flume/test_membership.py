"""Until when a membership is good for reading, as a matter of what was heard when."""

from __future__ import annotations

from streamhouse.client.address import Address
from streamhouse.client.cluster import Cluster
from streamhouse.client.group_member import GroupMember, Membership
from streamhouse.client.groups_admin import GroupPartition
from streamhouse.server.flume.membership import Joined

HELD, LOST = GroupPartition("orders", 0), GroupPartition("orders", 1)


def joined(*, session_ms: int = 10, longest_session_ms: int = 45) -> Joined:
    """At 100, with one partition."""
    member = GroupMember(Cluster([Address("127.0.0.1", 1)]), "group", ["orders"])
    member.membership = Membership(3, (HELD,))
    found = Joined(member, ("orders",))
    found.begin_session(session_ms, longest_session_ms)
    found.heard_from(100)
    found.vouched_for(100)
    return found


def test_it_reads_what_it_holds_until_its_session_ends() -> None:
    member = joined()
    assert member.may_read(HELD, 109)
    assert not member.may_read(LOST, 109)
    assert not member.may_read(HELD, 110)


def test_a_client_that_beats_is_not_enough_where_the_group_does_not_answer() -> None:
    """The group may have expelled it meanwhile: it hears nothing of the member either."""
    member = joined()
    for now_ms in range(105, 160, 5):
        member.heard_from(now_ms)
    assert member.may_read(HELD, 144)
    assert not member.may_read(HELD, 145)
    member.vouched_for(150)
    assert member.may_read(HELD, 160)


def test_no_session_is_longer_than_the_group_would_wait() -> None:
    member = joined(session_ms=1000)
    member.vouched_for(1000)
    assert member.may_read(HELD, 144)
    assert not member.may_read(HELD, 145)


def test_what_the_group_changes_counts_when_it_is_taken() -> None:
    member = joined()
    member.member.membership = Membership(4, (HELD, LOST))
    assert not member.is_current
    assert not member.may_read(HELD, 101)
    assert member.holds(HELD)
    member.take()
    assert member.may_read(HELD, 101)
    assert member.may_read(LOST, 101)


def test_one_that_has_ended_or_is_in_doubt_reads_nothing() -> None:
    member = joined()
    member.doubted()
    assert not member.may_read(HELD, 101)
    member.vouched_for(101)
    assert member.may_read(HELD, 101)
    member.end()
    assert not member.may_read(HELD, 101)
