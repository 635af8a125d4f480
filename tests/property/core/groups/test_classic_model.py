"""A classic group against a model of it that knows no tickets, timers or answers, only who is where in a rebalance."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from classic_groups.driver import GroupDriver
from streamhouse.core.groups.classic_messages import LeavingMember
from streamhouse.core.groups.outcome import GroupError, Ticket

INSTANCES = ("a", "b")


@dataclass
class ModelMember:
    metadata: bytes
    instance: str | None
    waits: bool = False


@dataclass
class Model:
    """Members in the order they came; the first leads unless it is said otherwise."""

    phase: str = "Empty"
    generation: int = 0
    members: dict[str, ModelMember] = field(default_factory=dict)
    promised: list[str] = field(default_factory=list)
    leader: str | None = None

    def who_is(self, instance: str | None) -> str | None:
        return next((name for name, one in self.members.items() if instance and one.instance == instance), None)

    def come(self, name: str, metadata: bytes, instance: str | None) -> None:
        if name in self.promised:
            self.promised.remove(name)
        self.members[name] = ModelMember(metadata, instance)
        self.leader = self.leader or name
        self.ask_again(name)

    def come_back(self, old: str, new: str, metadata: bytes) -> None:
        self.members = {new if name == old else name: one for name, one in self.members.items()}
        self.members[new] = ModelMember(metadata, self.members[new].instance)
        self.leader = new if self.leader == old else self.leader
        if self.phase != "Stable":
            self.ask_again(new)

    def ask_again(self, name: str) -> None:
        self._shake()
        self.members[name].waits = True
        self.gather()

    def go(self, *names: str) -> None:
        for name in names:
            del self.members[name]
            if self.leader == name:
                self.leader = next(iter(self.members), None)
        if names:
            self._shake()
        self.gather()

    def gather(self) -> None:
        if self.phase == "PreparingRebalance" and not self.promised and all(m.waits for m in self.members.values()):
            self.generation += 1
            self.phase = "CompletingRebalance" if self.members else "Empty"
            for member in self.members.values():
                member.waits = False

    def _shake(self) -> None:
        if self.phase != "PreparingRebalance":
            self.phase = "PreparingRebalance"
            for member in self.members.values():
                member.waits = False


class AgainstTheModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.driver = GroupDriver()
        self.model = Model()
        self.issued: dict[Ticket, str] = {}
        self.names = 0
        self.departed: list[str] = []

    def pick(self, index: int) -> str:
        return list(self.model.members)[index % len(self.model.members)]

    @rule(metadata=st.sampled_from([b"x", b"y"]), asked_first=st.booleans())
    def a_dynamic_member_comes(self, metadata: bytes, asked_first: bool) -> None:
        self.names += 1
        name = f"m{self.names}"
        ticket = self.driver.join(protocols=(("range", metadata),), requires_member_id=asked_first)
        self.issued[ticket] = name
        if asked_first:
            self.model.promised.append(name)
            assert self.driver.joined(ticket).error is GroupError.MEMBER_ID_REQUIRED
        else:
            self.model.come(name, metadata, None)

    @precondition(lambda self: self.model.promised)
    @rule(metadata=st.sampled_from([b"x", b"y"]))
    def a_promised_member_comes(self, metadata: bytes) -> None:
        name = self.model.promised[0]
        self.issued[self.driver.join(name, protocols=(("range", metadata),))] = name
        self.model.come(name, metadata, None)

    @rule(metadata=st.sampled_from([b"x", b"y"]), instance=st.sampled_from(INSTANCES))
    def a_static_member_comes(self, metadata: bytes, instance: str) -> None:
        self.names += 1
        name, old = f"m{self.names}", self.model.who_is(instance)
        ticket = self.driver.join(instance_id=instance, protocols=(("range", metadata),), requires_member_id=True)
        self.issued[ticket] = name
        if old is None:
            self.model.come(name, metadata, instance)
        else:
            self.departed.append(old)
            self.model.come_back(old, name, metadata)

    @precondition(lambda self: self.model.members)
    @rule(index=st.integers(0, 9), metadata=st.sampled_from([b"x", b"y"]))
    def a_member_joins_again(self, index: int, metadata: bytes) -> None:
        name = self.pick(index)
        member, phase = self.model.members[name], self.model.phase
        ticket = self.driver.join(name, instance_id=member.instance, protocols=(("range", metadata),))
        self.issued[ticket] = name
        same = member.metadata == metadata
        if (phase == "CompletingRebalance" and same) or (phase == "Stable" and same and name != self.model.leader):
            reply = self.driver.joined(ticket)
            assert (reply.error, reply.generation) == (None, self.model.generation)
        else:
            member.metadata = metadata
            self.model.ask_again(name)

    @precondition(lambda self: self.model.members)
    @rule(index=st.integers(0, 9))
    def a_member_syncs(self, index: int) -> None:
        name = self.pick(index)
        assignments = {member: f"{self.model.generation}-{member}".encode() for member in self.model.members}
        ticket = self.driver.sync(name, assignments=assignments if name == self.model.leader else None)
        self.issued[ticket] = name
        match self.model.phase:
            case "PreparingRebalance":
                assert self.driver.synced(ticket).error is GroupError.REBALANCE_IN_PROGRESS
            case "CompletingRebalance" if name == self.model.leader:
                self.model.phase = "Stable"
                for member in self.model.members.values():
                    member.waits = False
            case "CompletingRebalance":
                self.model.members[name].waits = True
            case _:
                assert self.driver.synced(ticket).error is None

    @precondition(lambda self: self.model.members)
    @rule(index=st.integers(0, 9), count=st.integers(1, 3), abruptly=st.booleans())
    def members_leave(self, index: int, count: int, abruptly: bool) -> None:
        names = sorted({self.pick(index + step) for step in range(1 if abruptly else count)})
        if abruptly:
            self.driver.disconnect(names[0])
        else:
            leaving = [LeavingMember(member_id=name, instance_id=self.model.members[name].instance) for name in names]
            assert [one.error for one in self.driver.leave(*leaving).members] == [None] * len(names)
        self.departed += names
        self.model.go(*names)

    @precondition(lambda self: self.model.promised)
    @rule()
    def a_promised_member_does_not_come(self) -> None:
        name = self.model.promised.pop(0)
        self.driver.leave(name)
        self.departed.append(name)
        self.model.gather()

    @precondition(lambda self: self.departed)
    @rule(index=st.integers(0, 99))
    def somebody_of_the_past_calls(self, index: int) -> None:
        name = self.departed[index % len(self.departed)]
        assert self.driver.heartbeat(name) is GroupError.UNKNOWN_MEMBER_ID
        assert self.driver.commit(name) is GroupError.UNKNOWN_MEMBER_ID
        assert self.driver.joined(self.driver.join(name)).error is GroupError.UNKNOWN_MEMBER_ID
        assert self.driver.synced(self.driver.sync(name)).error is GroupError.UNKNOWN_MEMBER_ID

    @invariant()
    def the_group_is_where_the_model_is(self) -> None:
        seen = self.driver.group.describe()
        assert (seen.state.value, seen.generation) == (self.model.phase, self.model.generation)
        assert seen.leader == self.model.leader
        assert [one.member_id for one in seen.members] == list(self.model.members)

    @invariant()
    def those_wait_who_should_each_with_one_request(self) -> None:
        waiting = sorted(name for ticket, name in self.issued.items() if self.driver.waits(ticket))
        assert waiting == sorted(name for name, member in self.model.members.items() if member.waits)

    @invariant()
    def what_was_assigned_is_of_this_generation(self) -> None:
        if self.model.phase == "Stable":
            for member in self.driver.group.describe().members:
                generation, owner = member.assignment.decode().split("-")
                assert int(generation) == self.model.generation
                assert owner == member.member_id or self.model.members[member.member_id].instance is not None

    @invariant()
    def only_the_present_generation_commits_and_fetches(self) -> None:
        for name in self.model.members:
            assert self.driver.commit(name, self.model.generation - 1) is GroupError.ILLEGAL_GENERATION
            assert self.driver.fetch(name, self.model.generation - 1) is GroupError.ILLEGAL_GENERATION
            commits = self.driver.commit(name) is None
            assert commits == (self.model.phase in ("PreparingRebalance", "Stable"))
            assert (self.driver.fetch(name) is None) == (self.model.phase == "Stable")


AgainstTheModel.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestAgainstTheModel = AgainstTheModel.TestCase
