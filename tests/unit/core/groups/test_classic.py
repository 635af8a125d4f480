"""The rules of a classic group, one by one: joining, syncing, generations and leaders."""

from __future__ import annotations

import pytest

from classic_groups.driver import RANGE, REBALANCE_MS, SESSION_MS, GroupDriver
from streamhouse.core.groups.classic_messages import ClassicLimits
from streamhouse.core.groups.classic_rebalance import ClassicState
from streamhouse.core.groups.outcome import GroupError

STICKY_FIRST = (("sticky", b"s"), ("range", b"r"))
RANGE_FIRST = (("range", b"r"), ("sticky", b"s"))


@pytest.fixture
def driver() -> GroupDriver:
    return GroupDriver()


def test_the_first_member_leads_generation_one_and_sees_the_members(driver: GroupDriver) -> None:
    reply = driver.joined(driver.join())
    assert (reply.error, reply.generation, reply.leader, reply.member_id) == (None, 1, "m1", "m1")
    assert (reply.protocol_type, reply.protocol_name) == ("consumer", "range")
    assert [(one.member_id, one.metadata) for one in reply.members] == [("m1", b"topics")]
    assert driver.group.state is ClassicState.COMPLETING


def test_a_generation_is_stored_before_its_members_hear_of_it(driver: GroupDriver) -> None:
    driver.join()
    assert driver.persisted == 1
    assert driver.group.stored().generation == 1


def test_a_new_generation_voids_every_earlier_assignment(driver: GroupDriver) -> None:
    driver.stable_with(1)
    driver.join("m1")
    assert [member.assignment for member in driver.stored.members] == [b""]


def test_an_unknown_member_is_told_its_id_and_joins_with_it(driver: GroupDriver) -> None:
    told = driver.joined(driver.join(requires_member_id=True))
    assert (told.error, told.member_id) == (GroupError.MEMBER_ID_REQUIRED, "m1")
    assert driver.group.state is ClassicState.EMPTY
    assert driver.joined(driver.join("m1", requires_member_id=True)).generation == 1


def test_a_member_id_that_is_not_used_in_time_lapses(driver: GroupDriver) -> None:
    driver.join(requires_member_id=True)
    driver.advance(SESSION_MS)
    assert driver.joined(driver.join("m1")).error is GroupError.UNKNOWN_MEMBER_ID


def test_the_join_phase_waits_for_ids_that_were_given_out(driver: GroupDriver) -> None:
    (leader,) = driver.stable_with(1)
    driver.join(requires_member_id=True)
    rejoin = driver.join(leader)
    assert driver.waits(rejoin)
    newcomer = driver.join("m2")
    assert driver.joined(rejoin).generation == driver.joined(newcomer).generation == 2


def test_a_lapsed_id_lets_the_join_phase_end(driver: GroupDriver) -> None:
    (leader,) = driver.stable_with(1)
    driver.join(requires_member_id=True)
    rejoin = driver.join(leader)
    driver.advance(SESSION_MS)
    assert driver.joined(rejoin).generation == 2


def test_an_id_that_leaves_before_it_joins_lets_the_join_phase_end(driver: GroupDriver) -> None:
    (leader,) = driver.stable_with(1)
    driver.join(requires_member_id=True)
    rejoin = driver.join(leader)
    assert driver.leave("m2").members[0].error is None
    assert driver.joined(rejoin).generation == 2


def test_an_id_that_leaves_a_stable_group_disturbs_nobody(driver: GroupDriver) -> None:
    driver.stable_with(1)
    driver.join(requires_member_id=True)
    driver.leave("m2")
    assert driver.group.state is ClassicState.STABLE


def test_an_id_that_nobody_was_given_is_refused(driver: GroupDriver) -> None:
    assert driver.joined(driver.join("made-up")).error is GroupError.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001])
def test_a_session_time_out_outside_the_limits_is_refused(driver: GroupDriver, session_ms: int) -> None:
    assert driver.joined(driver.join(session_ms=session_ms)).error is GroupError.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize(
    ("protocol_type", "protocols"), [("", RANGE), ("consumer", ()), ("connect", RANGE), ("consumer", (("other", b""),))]
)
def test_a_member_that_shares_no_protocol_with_the_group_is_refused(
    driver: GroupDriver, protocol_type: str, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    driver.stable_with(1)
    reply = driver.joined(driver.join(protocol_type=protocol_type, protocols=protocols))
    assert reply.error is GroupError.INCONSISTENT_GROUP_PROTOCOL
    assert driver.group.state is ClassicState.STABLE


def test_the_first_member_must_have_a_protocol(driver: GroupDriver) -> None:
    assert driver.joined(driver.join(protocols=())).error is GroupError.INCONSISTENT_GROUP_PROTOCOL
    assert driver.joined(driver.join(protocol_type="")).error is GroupError.INCONSISTENT_GROUP_PROTOCOL


def test_an_empty_group_may_change_its_protocol_type(driver: GroupDriver) -> None:
    driver.leave(*driver.stable_with(1))
    assert driver.joined(driver.join(protocol_type="connect")).protocol_type == "connect"


def test_members_vote_among_the_protocols_that_all_of_them_speak() -> None:
    driver = GroupDriver(initial_rebalance_delay_ms=100)
    tickets = [
        driver.join(protocols=STICKY_FIRST),
        driver.join(protocols=RANGE_FIRST),
        driver.join(protocols=(("unknown", b""), *RANGE_FIRST)),
    ]
    driver.advance(200)
    leader, *others = (driver.joined(ticket) for ticket in tickets)
    assert [leader.protocol_name, *(reply.protocol_name for reply in others)] == ["range"] * 3
    assert [one.metadata for one in leader.members] == [b"r", b"r", b"r"]
    assert [reply.members for reply in others] == [(), ()]


def test_members_may_speak_a_great_many_protocols(driver: GroupDriver) -> None:
    """Each with each compared, these would take an hour."""
    driver.join(protocols=tuple((f"first-{number}", b"") for number in range(300_000)))
    reply = driver.joined(driver.join(protocols=tuple((f"second-{number}", b"") for number in range(300_000))))
    assert reply.error is GroupError.INCONSISTENT_GROUP_PROTOCOL


def test_a_second_member_makes_the_first_rejoin(driver: GroupDriver) -> None:
    (first,) = driver.stable_with(1)
    second = driver.join()
    assert driver.waits(second)
    assert driver.group.state is ClassicState.PREPARING
    assert driver.heartbeat(first) is GroupError.REBALANCE_IN_PROGRESS
    rejoined = driver.joined(driver.join(first))
    assert rejoined.generation == driver.joined(second).generation == 2
    assert rejoined.leader == driver.joined(second).leader == first
    assert len(rejoined.members) == 2
    assert driver.joined(second).members == ()


def test_followers_wait_for_the_leaders_assignment(driver: GroupDriver) -> None:
    driver.stable_with(1)
    tickets = [driver.join(), driver.join("m1")]
    assert [driver.joined(ticket).error for ticket in tickets] == [None, None]
    follower = driver.sync("m2")
    assert driver.waits(follower)
    stored_before = driver.persisted
    leader = driver.sync("m1", assignments={"m1": b"one", "m2": b"two"})
    assert driver.synced(leader).assignment == b"one"
    assert driver.synced(follower).assignment == b"two"
    assert driver.persisted == stored_before + 1
    assert driver.group.state is ClassicState.STABLE


def test_a_sync_after_the_leaders_gets_its_assignment_at_once(driver: GroupDriver) -> None:
    members = driver.stable_with(2)
    reply = driver.synced(driver.sync(members[1], protocol_type="consumer", protocol_name="range"))
    assert (reply.assignment, reply.protocol_type, reply.protocol_name) == (b"part-of-m2", "consumer", "range")


def test_a_member_that_the_leader_forgets_gets_an_empty_assignment(driver: GroupDriver) -> None:
    driver.stable_with(1)
    driver.join()
    driver.join("m1")
    driver.sync("m1", assignments={"m1": b"all", "stranger": b"lost"})
    assert driver.synced(driver.sync("m2")).assignment == b""


@pytest.mark.parametrize(
    ("member_id", "generation", "protocol", "error"),
    [
        ("stranger", 1, ("consumer", "range"), GroupError.UNKNOWN_MEMBER_ID),
        ("m1", 0, ("consumer", "range"), GroupError.ILLEGAL_GENERATION),
        ("m1", 2, ("consumer", "range"), GroupError.ILLEGAL_GENERATION),
        ("m1", 1, ("connect", "range"), GroupError.INCONSISTENT_GROUP_PROTOCOL),
        ("m1", 1, ("consumer", "sticky"), GroupError.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_sync_that_does_not_fit_the_generation_is_refused(
    driver: GroupDriver, member_id: str, generation: int, protocol: tuple[str, str], error: GroupError
) -> None:
    driver.join()
    ticket = driver.sync(member_id, generation, protocol_type=protocol[0], protocol_name=protocol[1])
    assert driver.synced(ticket).error is error
    assert driver.group.state is ClassicState.COMPLETING


def test_a_sync_during_the_join_phase_is_told_to_rejoin(driver: GroupDriver) -> None:
    (leader,) = driver.stable_with(1)
    driver.join()
    assert driver.synced(driver.sync(leader)).error is GroupError.REBALANCE_IN_PROGRESS


def test_a_newcomer_during_the_sync_phase_sends_those_who_wait_back(driver: GroupDriver) -> None:
    driver.stable_with(1)
    driver.join()
    driver.join("m1")
    waiting = driver.sync("m2")
    driver.join()
    assert driver.synced(waiting).error is GroupError.REBALANCE_IN_PROGRESS
    assert driver.group.state is ClassicState.PREPARING


def test_a_follower_that_rejoins_unchanged_hears_of_the_current_generation(driver: GroupDriver) -> None:
    driver.stable_with(2)
    reply = driver.joined(driver.join("m2"))
    assert (reply.generation, reply.leader, reply.members) == (2, "m1", ())
    assert driver.group.state is ClassicState.STABLE


def test_a_leader_that_rejoins_starts_a_rebalance(driver: GroupDriver) -> None:
    driver.stable_with(2)
    assert driver.waits(driver.join("m1"))
    assert driver.group.state is ClassicState.PREPARING


def test_a_follower_with_new_metadata_starts_a_rebalance(driver: GroupDriver) -> None:
    driver.stable_with(2)
    changed = driver.join("m2", protocols=(("range", b"other topics"),))
    assert driver.waits(changed)
    leader = driver.joined(driver.join("m1"))
    assert [one.metadata for one in leader.members] == [b"topics", b"other topics"]


def test_a_rebalance_that_is_asked_for_has_every_member_join_again(driver: GroupDriver) -> None:
    driver.group.rebalance(driver.now_ms)
    assert driver.group.state is ClassicState.EMPTY
    driver.stable_with(2)
    generation = driver.group.generation
    for _ in range(2):
        driver.group.rebalance(driver.now_ms)
    assert driver.group.state is ClassicState.PREPARING
    driver.join("m1")
    assert driver.joined(driver.join("m2")).generation == generation + 1


def test_a_repeated_join_in_the_sync_phase_is_answered_again(driver: GroupDriver) -> None:
    first = driver.joined(driver.join())
    assert driver.joined(driver.join("m1")) == first
    assert driver.group.state is ClassicState.COMPLETING


def test_new_metadata_in_the_sync_phase_starts_a_rebalance(driver: GroupDriver) -> None:
    driver.join()
    assert driver.joined(driver.join("m1", protocols=(("range", b"other"),))).generation == 2


def test_a_join_that_a_newer_one_supersedes_is_answered(driver: GroupDriver) -> None:
    driver.stable_with(2)
    older = driver.join("m2", protocols=(("range", b"other"),))
    newer = driver.join("m2", protocols=(("range", b"another"),))
    assert driver.joined(older).error is GroupError.REBALANCE_IN_PROGRESS
    assert driver.waits(newer)


def test_a_sync_that_a_newer_one_supersedes_is_answered(driver: GroupDriver) -> None:
    driver.stable_with(1)
    driver.join()
    driver.join("m1")
    older, newer = driver.sync("m2"), driver.sync("m2")
    assert driver.synced(older).error is GroupError.REBALANCE_IN_PROGRESS
    assert driver.waits(newer)


def test_when_the_leader_leaves_the_next_who_came_leads(driver: GroupDriver) -> None:
    driver.stable_with(3)
    driver.leave("m1")
    second, third = driver.join("m2"), driver.join("m3")
    assert driver.joined(second).leader == driver.joined(third).leader == "m2"
    assert [one.member_id for one in driver.joined(second).members] == ["m2", "m3"]


def test_a_leader_that_does_not_rejoin_is_replaced_by_one_who_did(driver: GroupDriver) -> None:
    driver.stable_with(3)
    third = driver.join("m3", protocols=(("range", b"new"),))
    driver.advance(SESSION_MS - 1)
    for member in ("m1", "m2"):
        driver.heartbeat(member)
    driver.advance(SESSION_MS)
    assert driver.joined(third).leader == "m3"
    assert driver.group.describe().members[0].member_id == "m3"


def test_who_does_not_rejoin_within_the_rebalance_time_out_is_removed(driver: GroupDriver) -> None:
    driver.stable_with(2)
    newcomer = driver.join()
    leader = driver.join("m1")
    for _ in range(REBALANCE_MS // 5_000):
        assert driver.waits(leader)
        assert driver.heartbeat("m2") is GroupError.REBALANCE_IN_PROGRESS
        driver.advance(5_000)
    assert driver.joined(leader).generation == driver.joined(newcomer).generation == 3
    assert [one.member_id for one in driver.joined(leader).members] == ["m1", "m3"]
    assert driver.heartbeat("m2") is GroupError.UNKNOWN_MEMBER_ID


def test_the_rebalance_time_out_is_that_of_the_most_patient_member(driver: GroupDriver) -> None:
    driver.join(rebalance_ms=20_000)
    driver.settle(["m1"])
    patient = driver.join(rebalance_ms=40_000)
    for _ in range(8):
        assert driver.waits(patient)
        driver.heartbeat("m1")
        driver.advance(5_000)
    assert driver.joined(patient).leader == "m2"


def test_a_client_without_a_rebalance_time_out_gets_its_session_time_out(driver: GroupDriver) -> None:
    driver.join(rebalance_ms=-1)
    assert driver.group.stored().members[0].rebalance_timeout_ms == SESSION_MS


def test_the_last_member_that_leaves_ends_the_generation(driver: GroupDriver) -> None:
    members = driver.stable_with(1)
    stored_before = driver.persisted
    driver.leave(*members)
    assert (driver.group.state, driver.group.generation) == (ClassicState.EMPTY, 2)
    assert driver.persisted == stored_before + 1


def test_a_group_takes_no_more_members_than_it_may() -> None:
    driver = GroupDriver(max_size=2)
    driver.stable_with(2)
    refused = driver.joined(driver.join())
    assert (refused.error, refused.member_id) == (GroupError.GROUP_MAX_SIZE_REACHED, "")
    assert driver.group.state is ClassicState.STABLE


def test_of_more_members_than_may_rejoin_the_last_is_turned_away() -> None:
    driver = GroupDriver(max_size=2)
    driver.stable_with(2)
    driver.limits = ClassicLimits(initial_rebalance_delay_ms=0, max_size=1)
    driver.restart()
    leader = driver.join("m1")
    assert driver.joined(driver.join("m2")).error is GroupError.GROUP_MAX_SIZE_REACHED
    assert [one.member_id for one in driver.joined(leader).members] == ["m1"]


def test_who_waits_already_may_ask_again_in_a_full_group() -> None:
    driver = GroupDriver(max_size=2, initial_rebalance_delay_ms=3_000)
    driver.join()
    driver.join()
    again = driver.join("m1")
    assert driver.waits(again)
    driver.advance(6_000)
    assert driver.joined(again).error is None


def test_ids_that_are_not_used_are_limited_too() -> None:
    driver = GroupDriver(max_size=2)
    for _ in range(2):
        driver.join(requires_member_id=True)
    assert driver.joined(driver.join(requires_member_id=True)).error is GroupError.GROUP_MAX_SIZE_REACHED
    assert driver.waits(driver.join("m1", requires_member_id=True))


def test_the_first_members_gather_for_the_initial_delay() -> None:
    driver = GroupDriver(initial_rebalance_delay_ms=3_000)
    first = driver.join()
    driver.advance(2_999)
    assert driver.waits(first)
    driver.advance(1)
    assert driver.joined(first).generation == 1


def test_the_initial_delay_grows_while_members_come() -> None:
    driver = GroupDriver(initial_rebalance_delay_ms=3_000)
    tickets = [driver.join()]
    driver.advance(2_000)
    tickets.append(driver.join())
    driver.advance(3_999)
    assert [driver.waits(ticket) for ticket in tickets] == [True, True]
    driver.advance(1)
    assert [driver.joined(ticket).generation for ticket in tickets] == [1, 1]


def test_the_initial_delay_grows_no_further_than_the_rebalance_time_out() -> None:
    driver = GroupDriver(initial_rebalance_delay_ms=3_000)
    tickets = [driver.join(rebalance_ms=10_000)]
    for _ in range(9):
        driver.advance(1_000)
        tickets.append(driver.join(rebalance_ms=10_000))
    assert all(driver.waits(ticket) for ticket in tickets)
    driver.advance(1_000)
    assert {driver.joined(ticket).generation for ticket in tickets} == {1}


def test_if_all_leave_while_the_first_gather_the_group_is_empty_at_once() -> None:
    driver = GroupDriver(initial_rebalance_delay_ms=3_000)
    first = driver.join()
    driver.leave("m1")
    assert driver.joined(first).error is GroupError.UNKNOWN_MEMBER_ID
    assert driver.group.state is ClassicState.EMPTY
    assert driver.group.next_deadline() is None
