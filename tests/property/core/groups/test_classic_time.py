"""A classic group under any sequence of requests, right and wrong, while time passes: what holds at every moment."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from classic_groups.driver import GroupDriver
from streamhouse.core.groups.classic_messages import JoinReply, LeavingMember
from streamhouse.core.groups.classic_rebalance import ClassicState
from streamhouse.core.groups.outcome import GroupError, Ticket

NAMES = st.sampled_from(["", "stranger", *(f"m{number}" for number in range(1, 10))])
INSTANCES = st.sampled_from([None, None, "a", "b"])
GENERATION_STEPS = st.sampled_from([0, 0, 0, 0, -1, 1])
COMMON = (("common", b"z"),)
PROTOCOLS = st.lists(
    st.tuples(st.sampled_from(["range", "sticky"]), st.sampled_from([b"x", b"y"])),
    max_size=3,
    unique_by=lambda protocol: protocol[0],
).map(lambda protocols: (*protocols, *COMMON)) | st.sampled_from([(), (("uncommon", b""),)])
SESSIONS_MS = st.sampled_from([6_000, 10_000, 45_000])
REBALANCES_MS = st.sampled_from([-1, 0, 1, 5_000, 30_000])
MAX_SIZE = 6
LONGEST_MS = 45_000 + 30_000 + 20_000 + 30_000


class AnythingGoes(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.driver = GroupDriver(
            initial_rebalance_delay_ms=3_000, new_member_join_timeout_ms=20_000, max_size=MAX_SIZE
        )
        self.tickets: list[Ticket] = []
        self.generation = 0

    @rule(
        name=NAMES,
        instance=INSTANCES,
        protocols=PROTOCOLS,
        session_ms=SESSIONS_MS,
        rebalance_ms=REBALANCES_MS,
        asked_first=st.booleans(),
    )
    def join(
        self,
        name: str,
        instance: str | None,
        protocols: tuple[tuple[str, bytes], ...],
        session_ms: int,
        rebalance_ms: int,
        asked_first: bool,
    ) -> None:
        ticket = self.driver.join(
            name,
            instance_id=instance,
            protocols=protocols,
            session_ms=session_ms,
            rebalance_ms=rebalance_ms,
            requires_member_id=asked_first,
        )
        self.tickets.append(ticket)

    @rule(name=NAMES, instance=INSTANCES, step=GENERATION_STEPS)
    def sync(self, name: str, instance: str | None, step: int) -> None:
        members = [member.member_id for member in self.driver.group.describe().members]
        generation = self.driver.group.generation + step
        owned = {member: f"{generation} {member}".encode() for member in members}
        ticket = self.driver.sync(name, generation, owned, instance_id=instance)
        self.tickets.append(ticket)

    @rule(count=st.integers(1, 6))
    def the_members_do_what_they_should(self, count: int) -> None:
        """So that groups get further than strangers alone would bring them."""
        members = self.driver.group.describe().members[:count]
        if self.driver.group.state is ClassicState.PREPARING:
            for member in members:
                ticket = self.driver.join(member.member_id, instance_id=member.instance_id, protocols=COMMON)
                self.tickets.append(ticket)
        else:
            for member in members:
                self.sync(member.member_id, member.instance_id, 0)

    @rule(name=NAMES, instance=INSTANCES, step=GENERATION_STEPS)
    def heartbeat_and_commit(self, name: str, instance: str | None, step: int) -> None:
        group = self.driver.group
        generation = group.generation + step
        beat = self.driver.heartbeat(name, generation, instance)
        commit = self.driver.commit(name, generation, instance)
        if step != 0:
            assert beat is not None
            assert commit is not None or (generation < 0 and group.state is ClassicState.EMPTY)
        if beat is None:
            assert commit in (None, GroupError.REBALANCE_IN_PROGRESS)

    @rule(names=st.lists(st.tuples(NAMES, INSTANCES), max_size=3))
    def leave(self, names: list[tuple[str, str | None]]) -> None:
        self.driver.leave(*(LeavingMember(member_id=name, instance_id=instance) for name, instance in names))

    @rule(name=NAMES)
    def disconnect(self, name: str) -> None:
        self.driver.disconnect(name)

    @rule(milliseconds=st.sampled_from([1, 500, 2_999, 5_000, 9_999, 31_000]))
    def time_passes(self, milliseconds: int) -> None:
        self.driver.advance(milliseconds)
        deadline_ms = self.driver.group.next_deadline()
        assert deadline_ms is None or deadline_ms > self.driver.now_ms

    @rule()
    def the_coordinator_restarts_with_what_it_stored(self) -> None:
        self.tickets = [ticket for ticket in self.tickets if not self.driver.waits(ticket)]
        self.driver.restart()

    @invariant()
    def generations_only_grow(self) -> None:
        assert self.driver.group.generation >= self.generation
        self.generation = self.driver.group.generation

    @invariant()
    def members_of_a_generation_agree_on_it(self) -> None:
        """Whoever was told of a generation was told the same, and its protocol is one that all its members speak."""
        told: dict[int, tuple[str | None, str | None]] = {}
        for reply in self.driver.replies.values():
            if isinstance(reply, JoinReply) and reply.error is None:
                assert reply.protocol_name is not None
                about = (reply.protocol_type, reply.protocol_name)
                assert told.setdefault(reply.generation, about) == about
                assert not reply.members or reply.leader == reply.member_id

    @invariant()
    def an_empty_group_has_no_members_and_any_other_a_leader_among_them(self) -> None:
        seen = self.driver.group.describe()
        members = [member.member_id for member in seen.members]
        assert len(members) == len(set(members))
        if seen.state is ClassicState.EMPTY:
            assert members == []
        elif members:
            assert seen.leader in members
        instances = [member.instance_id for member in seen.members if member.instance_id is not None]
        assert len(instances) == len(set(instances))

    @invariant()
    def no_generation_is_larger_than_the_group_may_be(self) -> None:
        """Static members that did not rejoin keep their places beyond it."""
        if self.driver.group.state in (ClassicState.COMPLETING, ClassicState.STABLE):
            dynamic = [member for member in self.driver.group.describe().members if member.instance_id is None]
            assert len(dynamic) <= MAX_SIZE

    def teardown(self) -> None:
        """If all fall silent, every request that waits is answered and the group empties itself."""
        self.driver.advance(10 * LONGEST_MS)
        assert [ticket for ticket in self.tickets if self.driver.waits(ticket)] == []
        assert self.driver.group.state is ClassicState.EMPTY
        assert self.driver.group.next_deadline() is None


AnythingGoes.TestCase.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
TestAnythingGoes = AnythingGoes.TestCase
