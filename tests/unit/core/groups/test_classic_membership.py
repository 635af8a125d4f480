"""How members of a classic group live and go: sessions, leaving, static members, commits, restarts and the end."""

from __future__ import annotations

import pytest

from classic_groups.driver import REBALANCE_MS, SESSION_MS, GroupDriver
from streamhouse.core.groups.classic_messages import LeavingMember
from streamhouse.core.groups.classic_rebalance import ClassicState
from streamhouse.core.groups.outcome import GroupError


@pytest.fixture
def driver() -> GroupDriver:
    return GroupDriver()


def static_pair(driver: GroupDriver) -> None:
    """A stable group of two static members: m1 (instance a, leader) and m2 (instance b)."""
    driver.join(instance_id="a")
    driver.join(instance_id="b")
    driver.join("m1", instance_id="a")
    driver.settle(["m1", "m2"])
    assert driver.group.state is ClassicState.STABLE


# Sessions


def test_a_heartbeat_keeps_a_member(driver: GroupDriver) -> None:
    (member,) = driver.stable_with(1)
    for _ in range(5):
        driver.advance(SESSION_MS - 1)
        assert driver.heartbeat(member) is None


def test_a_silent_member_is_removed_after_its_session_time_out(driver: GroupDriver) -> None:
    driver.stable_with(2)
    driver.advance(SESSION_MS - 1)
    assert driver.heartbeat("m1") is None
    driver.advance(1)
    assert driver.heartbeat("m1") is GroupError.REBALANCE_IN_PROGRESS
    assert driver.heartbeat("m2") is GroupError.UNKNOWN_MEMBER_ID


def test_several_sessions_that_end_together_cause_one_rebalance(driver: GroupDriver) -> None:
    driver.stable_with(3)
    generation = driver.group.generation
    driver.advance(SESSION_MS)
    assert (driver.group.state, driver.group.generation) == (ClassicState.EMPTY, generation + 1)


def test_every_request_is_a_sign_of_life(driver: GroupDriver) -> None:
    driver.stable_with(2)
    for sign_of_life in (driver.sync, driver.join, driver.commit, driver.heartbeat):
        driver.advance(SESSION_MS - 1)
        driver.heartbeat("m1")
        sign_of_life("m2")
    assert driver.group.state is ClassicState.STABLE


def test_a_member_that_waits_for_the_others_does_not_lose_its_session(driver: GroupDriver) -> None:
    driver.stable_with(2)
    waiting = driver.join("m1")
    for _ in range(5):
        driver.advance(SESSION_MS - 1)
        driver.heartbeat("m2")
    assert driver.waits(waiting)
    assert driver.joined(driver.join("m2")).error is None


def test_a_member_that_waits_for_the_leaders_assignment_does_not_lose_its_session(driver: GroupDriver) -> None:
    driver.stable_with(1)
    driver.join()
    driver.join("m1")
    waiting = driver.sync("m2")
    for _ in range(3):
        driver.advance(SESSION_MS - 1)
        assert driver.heartbeat("m1") is None
    driver.sync("m1", assignments={"m2": b"late"})
    assert driver.synced(waiting).assignment == b"late"
    driver.advance(SESSION_MS - 1)
    assert driver.heartbeat("m2") is None


def test_a_newcomer_that_waits_too_long_is_given_up() -> None:
    driver = GroupDriver(new_member_join_timeout_ms=20_000)
    driver.stable_with(1)
    newcomer = driver.join()
    for _ in range(4):
        assert driver.waits(newcomer)
        driver.heartbeat("m1")
        driver.advance(5_000)
    assert driver.joined(newcomer).error is GroupError.UNKNOWN_MEMBER_ID
    assert driver.joined(driver.join("m1")).generation == 2


def test_members_that_do_not_sync_in_time_are_removed(driver: GroupDriver) -> None:
    driver.stable_with(1)
    driver.join()
    driver.join("m1")
    waiting = driver.sync("m2")
    for _ in range(REBALANCE_MS // 5_000):
        assert driver.waits(waiting)
        driver.heartbeat("m1")
        driver.advance(5_000)
    assert driver.synced(waiting).error is GroupError.REBALANCE_IN_PROGRESS
    assert driver.heartbeat("m1") is GroupError.UNKNOWN_MEMBER_ID
    assert driver.joined(driver.join("m2")).leader == "m2"


def test_a_follower_that_never_syncs_is_removed_from_a_stable_group(driver: GroupDriver) -> None:
    driver.stable_with(1)
    driver.join()
    driver.join("m1")
    driver.sync("m1")
    for _ in range(REBALANCE_MS // 5_000):
        driver.heartbeat("m1")
        driver.heartbeat("m2")
        driver.advance(5_000)
    assert driver.heartbeat("m1") is GroupError.REBALANCE_IN_PROGRESS
    assert driver.heartbeat("m2") is GroupError.UNKNOWN_MEMBER_ID


def test_once_all_have_synced_nobody_is_late(driver: GroupDriver) -> None:
    driver.stable_with(2)
    for _ in range(2 * REBALANCE_MS // 5_000):
        assert driver.heartbeat("m1") is driver.heartbeat("m2") is None
        driver.advance(5_000)


@pytest.mark.parametrize(
    ("member_id", "generation", "error"),
    [
        ("m1", 0, GroupError.ILLEGAL_GENERATION),
        ("m1", 2, GroupError.ILLEGAL_GENERATION),
        ("stranger", 1, GroupError.UNKNOWN_MEMBER_ID),
        ("", -1, GroupError.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_heartbeat_of_another_generation_or_member_is_refused(
    driver: GroupDriver, member_id: str, generation: int, error: GroupError
) -> None:
    driver.stable_with(1)
    assert driver.heartbeat(member_id, generation) is error


def test_a_heartbeat_between_join_and_sync_is_fine(driver: GroupDriver) -> None:
    driver.join()
    assert driver.heartbeat("m1") is None


# Leaving


def test_members_leave_in_one_batch_and_each_gets_its_own_answer(driver: GroupDriver) -> None:
    driver.stable_with(3)
    reply = driver.leave("m1", "stranger", "m3", "m3")
    assert [one.error for one in reply.members] == [
        None,
        GroupError.UNKNOWN_MEMBER_ID,
        None,
        GroupError.UNKNOWN_MEMBER_ID,
    ]
    assert driver.joined(driver.join("m2")).generation == 4


def test_a_leave_of_strangers_disturbs_nobody(driver: GroupDriver) -> None:
    driver.stable_with(1)
    driver.leave("stranger")
    assert driver.group.state is ClassicState.STABLE


def test_whoever_leaves_while_waiting_to_join_is_answered(driver: GroupDriver) -> None:
    driver.stable_with(2)
    waiting = driver.join("m1")
    driver.leave("m1")
    reply = driver.joined(waiting)
    assert (reply.error, reply.member_id) == (GroupError.UNKNOWN_MEMBER_ID, "")


def test_whoever_leaves_while_waiting_for_its_assignment_is_answered(driver: GroupDriver) -> None:
    driver.stable_with(1)
    driver.join()
    driver.join("m1")
    waiting = driver.sync("m2")
    driver.leave("m2")
    assert driver.synced(waiting).error is GroupError.UNKNOWN_MEMBER_ID


def test_a_leave_completes_the_join_phase_that_waited_for_it(driver: GroupDriver) -> None:
    driver.stable_with(2)
    waiting = driver.join("m1")
    driver.leave("m2")
    assert driver.joined(waiting).generation == 3


def test_a_connection_that_ends_takes_its_member_along(driver: GroupDriver) -> None:
    driver.stable_with(2)
    driver.disconnect("m2")
    assert driver.heartbeat("m2") is GroupError.UNKNOWN_MEMBER_ID
    assert driver.joined(driver.join("m1")).generation == 3


def test_a_disconnect_of_a_stranger_changes_nothing(driver: GroupDriver) -> None:
    driver.stable_with(1)
    driver.disconnect("stranger")
    assert driver.group.state is ClassicState.STABLE


# Static members


def test_a_static_member_needs_no_second_round_trip(driver: GroupDriver) -> None:
    assert driver.joined(driver.join(instance_id="a", requires_member_id=True)).error is None


def test_a_static_member_that_returns_takes_its_old_place_without_a_rebalance(driver: GroupDriver) -> None:
    static_pair(driver)
    stored_before = driver.persisted
    reply = driver.joined(driver.join(instance_id="b", protocols=(("range", b"forgot what it owned"),)))
    assert (reply.error, reply.member_id, reply.generation, reply.leader) == (None, "m3", 2, "m1")
    assert driver.group.state is ClassicState.STABLE
    assert driver.persisted == stored_before + 1
    assert driver.synced(driver.sync("m3", instance_id="b")).assignment == b"part-of-m2"


def test_the_id_that_a_static_member_had_before_is_fenced(driver: GroupDriver) -> None:
    static_pair(driver)
    driver.join(instance_id="b")
    fenced = GroupError.FENCED_INSTANCE_ID
    assert driver.heartbeat("m2", instance_id="b") is fenced
    assert driver.commit("m2", instance_id="b") is fenced
    assert driver.synced(driver.sync("m2", instance_id="b")).error is fenced
    assert driver.joined(driver.join("m2", instance_id="b")).error is fenced
    leaving = LeavingMember(member_id="m2", instance_id="b")
    assert [one.error for one in driver.leave(leaving).members] == [fenced]
    assert driver.heartbeat("m2") is GroupError.UNKNOWN_MEMBER_ID


def test_a_static_leader_that_returns_leads_on_and_skips_the_assignment(driver: GroupDriver) -> None:
    static_pair(driver)
    reply = driver.joined(driver.join(instance_id="a"))
    assert (reply.leader, reply.skip_assignment) == ("m3", True)
    assert [one.member_id for one in reply.members] == ["m3", "m2"]
    assert driver.synced(driver.sync("m3")).assignment == b"part-of-m1"


def test_an_older_static_leader_that_returns_is_not_told_that_it_leads(driver: GroupDriver) -> None:
    static_pair(driver)
    reply = driver.joined(driver.join(instance_id="a", supports_skipping_assignment=False))
    assert (reply.leader, reply.skip_assignment, reply.members) == ("m1", False, ())


def test_a_static_member_that_changes_the_groups_protocol_starts_a_rebalance(driver: GroupDriver) -> None:
    both = (("range", b"r"), ("sticky", b"s"))
    driver.join(instance_id="a", protocols=both)
    driver.settle(["m1"])
    driver.join(instance_id="a", protocols=both[::-1])
    assert (driver.group.state, driver.group.generation) == (ClassicState.COMPLETING, 2)


def test_a_static_member_that_returns_during_the_join_phase_fences_its_waiting_past(driver: GroupDriver) -> None:
    static_pair(driver)
    past = driver.join("m1", instance_id="a")
    present = driver.join(instance_id="a")
    assert driver.joined(past).error is GroupError.FENCED_INSTANCE_ID
    driver.join("m2", instance_id="b")
    assert driver.joined(present).leader == "m3"


def test_a_static_member_that_returns_during_the_sync_phase_starts_again(driver: GroupDriver) -> None:
    static_pair(driver)
    driver.join("m1", instance_id="a")
    driver.join("m2", instance_id="b")
    past = driver.sync("m2", instance_id="b")
    present = driver.join(instance_id="b")
    assert driver.synced(past).error is GroupError.FENCED_INSTANCE_ID
    assert driver.waits(present)
    assert driver.joined(driver.join("m1", instance_id="a")).generation == 4


@pytest.mark.parametrize("syncs", [True, False])
def test_a_static_member_that_returns_before_it_synced_has_as_long_as_the_others(
    driver: GroupDriver, syncs: bool
) -> None:
    driver.join(instance_id="a")
    driver.join(instance_id="b")
    driver.join("m1", instance_id="a")
    driver.sync("m1")
    driver.join(instance_id="b")
    if syncs:
        driver.sync("m3")
    for _ in range(REBALANCE_MS // 5_000):
        driver.heartbeat("m1")
        driver.heartbeat("m3")
        driver.advance(5_000)
    assert driver.heartbeat("m3") is (None if syncs else GroupError.UNKNOWN_MEMBER_ID)


def test_a_static_member_that_does_not_rejoin_keeps_its_place_until_its_session_ends(driver: GroupDriver) -> None:
    driver.join(instance_id="a", session_ms=2 * REBALANCE_MS)
    driver.join(instance_id="b")
    driver.join("m1", instance_id="a", session_ms=2 * REBALANCE_MS)
    driver.settle(["m1", "m2"])
    rejoin = driver.join("m2", instance_id="b", protocols=(("range", b"new"),))
    driver.advance(REBALANCE_MS)
    reply = driver.joined(rejoin)
    assert (reply.generation, reply.leader) == (3, "m2")
    assert [one.instance_id for one in reply.members] == ["a", "b"]


def test_while_no_static_member_is_back_the_group_waits_for_their_sessions(driver: GroupDriver) -> None:
    long_ms = 3 * REBALANCE_MS
    for instance in ("a", "b"):
        driver.join(instance_id=instance, session_ms=long_ms)
    driver.join("m1", instance_id="a", session_ms=long_ms)
    driver.settle(["m1", "m2"])
    driver.join(session_ms=long_ms)
    driver.leave("m3")
    driver.advance(2 * REBALANCE_MS)
    assert (driver.group.state, len(driver.group.describe().members)) == (ClassicState.PREPARING, 2)
    driver.advance(REBALANCE_MS)
    assert driver.group.state is ClassicState.EMPTY


def test_impatient_static_members_do_not_keep_the_group_awake(driver: GroupDriver) -> None:
    driver.join(instance_id="a", rebalance_ms=1)
    driver.settle(["m1"])
    driver.join(rebalance_ms=1)
    driver.leave("m2")
    driver.advance(1)
    assert driver.group.state is ClassicState.PREPARING
    assert driver.group.next_deadline() == driver.now_ms + 1_000


def test_an_administrator_removes_a_static_member_by_its_instance(driver: GroupDriver) -> None:
    static_pair(driver)
    reply = driver.leave(
        LeavingMember(member_id="", instance_id="b"), LeavingMember(member_id="", instance_id="unknown")
    )
    assert [one.error for one in reply.members] == [None, GroupError.UNKNOWN_MEMBER_ID]
    assert driver.heartbeat("m2") is GroupError.UNKNOWN_MEMBER_ID


def test_an_instance_that_was_never_here_is_unknown(driver: GroupDriver) -> None:
    static_pair(driver)
    assert driver.heartbeat("m1", instance_id="c") is GroupError.UNKNOWN_MEMBER_ID


# Commits and fetches


def test_only_the_current_generation_commits(driver: GroupDriver) -> None:
    driver.stable_with(2)
    assert driver.commit("m1") is None
    assert driver.commit("m1", 1) is GroupError.ILLEGAL_GENERATION
    assert driver.commit("m1", -1) is GroupError.ILLEGAL_GENERATION
    assert driver.commit("stranger") is GroupError.UNKNOWN_MEMBER_ID


def test_members_may_commit_while_the_group_prepares_but_not_before_they_know_their_assignment(
    driver: GroupDriver,
) -> None:
    driver.stable_with(1)
    driver.join()
    assert driver.commit("m1") is None
    driver.join("m1")
    assert driver.commit("m1") is GroupError.REBALANCE_IN_PROGRESS


def test_commits_without_a_member_are_for_empty_groups_only(driver: GroupDriver) -> None:
    assert driver.commit("", -1) is None
    driver.stable_with(1)
    assert driver.commit("", -1) is GroupError.UNKNOWN_MEMBER_ID


def test_a_member_of_the_past_cannot_commit_to_an_empty_group(driver: GroupDriver) -> None:
    driver.stable_with(1)
    driver.leave("m1")
    assert driver.commit("m1", 1) is GroupError.UNKNOWN_MEMBER_ID


def test_only_a_member_with_a_standing_assignment_may_fetch(driver: GroupDriver) -> None:
    driver.stable_with(2)
    assert driver.fetch("m1") is None
    assert driver.fetch("m1", 1) is GroupError.ILLEGAL_GENERATION
    assert driver.fetch("stranger") is GroupError.UNKNOWN_MEMBER_ID
    driver.join()
    assert driver.fetch("m1") is GroupError.REBALANCE_IN_PROGRESS


# Restarts, descriptions and the end


def test_a_stable_group_comes_back_as_it_was(driver: GroupDriver) -> None:
    driver.stable_with(2)
    before = driver.group.describe()
    driver.restart()
    assert driver.group.describe() == before
    assert driver.heartbeat("m1") is driver.commit("m2") is None
    assert driver.synced(driver.sync("m2")).assignment == b"part-of-m2"


def test_a_group_that_stopped_between_join_and_sync_goes_on_from_there(driver: GroupDriver) -> None:
    driver.stable_with(1)
    driver.join()
    driver.join("m1")
    driver.restart()
    assert (driver.group.state, driver.group.generation) == (ClassicState.COMPLETING, 2)
    assert len(driver.joined(driver.join("m1")).members) == 2
    driver.settle(["m1", "m2"])
    assert driver.group.state is ClassicState.STABLE


def test_who_does_not_sync_after_a_restart_is_removed_in_time(driver: GroupDriver) -> None:
    driver.join()
    driver.restart()
    for _ in range(REBALANCE_MS // 5_000):
        assert driver.heartbeat("m1") is None
        driver.advance(5_000)
    assert driver.group.state is ClassicState.EMPTY


def test_who_led_leads_on_after_a_restart(driver: GroupDriver) -> None:
    driver.join(instance_id="a", session_ms=2 * REBALANCE_MS)
    driver.settle(["m1"])
    driver.join()
    driver.advance(REBALANCE_MS)
    driver.restart()
    assert driver.group.describe().leader == "m2"


def test_who_is_gone_after_a_restart_is_removed_after_a_whole_session(driver: GroupDriver) -> None:
    driver.stable_with(1)
    driver.advance(SESSION_MS - 1)
    driver.restart()
    driver.advance(SESSION_MS - 1)
    assert driver.group.state is ClassicState.STABLE
    driver.advance(1)
    assert driver.group.state is ClassicState.EMPTY


def test_static_members_and_the_generation_survive_a_restart(driver: GroupDriver) -> None:
    static_pair(driver)
    driver.restart()
    assert driver.joined(driver.join(instance_id="b")).generation == 2
    assert driver.heartbeat("m2", instance_id="b") is GroupError.FENCED_INSTANCE_ID


def test_an_empty_group_keeps_its_generation_and_protocol_type_over_a_restart(driver: GroupDriver) -> None:
    driver.leave(*driver.stable_with(1))
    driver.restart()
    assert (driver.group.state, driver.group.protocol_type) == (ClassicState.EMPTY, "consumer")
    assert driver.joined(driver.join()).generation == 3


def test_a_description_shows_metadata_and_assignments_of_a_stable_group_only(driver: GroupDriver) -> None:
    driver.join()
    early = driver.group.describe()
    assert (early.state.value, early.protocol_name, early.members[0].metadata) == ("CompletingRebalance", "", b"")
    driver.settle(["m1"])
    late = driver.group.describe()
    assert (late.state.value, late.protocol_type, late.protocol_name) == ("Stable", "consumer", "range")
    assert (late.members[0].metadata, late.members[0].assignment) == (b"topics", b"part-of-m1")
    assert (late.members[0].client_id, late.members[0].client_host) == ("client", "/127.0.0.1")


def test_only_an_empty_group_can_be_deleted_and_only_once(driver: GroupDriver) -> None:
    driver.stable_with(1)
    assert driver.group.delete(driver.now_ms) is GroupError.NON_EMPTY_GROUP
    driver.leave("m1")
    assert driver.group.delete(driver.now_ms) is None
    assert driver.group.delete(driver.now_ms) is GroupError.GROUP_ID_NOT_FOUND


def test_a_dead_group_sends_everybody_to_look_for_its_coordinator(driver: GroupDriver) -> None:
    driver.group.delete(driver.now_ms)
    gone = GroupError.COORDINATOR_NOT_AVAILABLE
    assert driver.joined(driver.join()).error is gone
    assert driver.synced(driver.sync("m1")).error is gone
    assert driver.leave("m1").error is gone
    assert driver.heartbeat("m1") is driver.commit("m1") is driver.fetch("m1") is gone


def test_a_group_that_is_given_up_answers_all_who_wait(driver: GroupDriver) -> None:
    driver.stable_with(2)
    joining = driver.join("m1")
    driver.unload()
    assert driver.joined(joining).error is GroupError.NOT_COORDINATOR
    assert (driver.group.state, driver.group.next_deadline()) == (ClassicState.DEAD, None)


@pytest.mark.parametrize(("protocol_type", "error"), [("consumer", None), ("connect", GroupError.NON_EMPTY_GROUP)])
def test_offsets_of_a_living_group_may_be_deleted_only_if_it_consumes(
    driver: GroupDriver, protocol_type: str, error: GroupError | None
) -> None:
    assert driver.group.check_offset_delete() is None
    driver.join(protocol_type=protocol_type)
    assert driver.group.check_offset_delete() is error
