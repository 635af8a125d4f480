"""One consumer group in this process's memory: the state machine that nodes run, by the rules of their Flume ports.

No node hears of it. It is for seeing how members, generations and partitions go together, and for tests of programs
that are told of them; a running group is joined with `GroupConsumer` and shown by `streamhouse group describe`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from streamhouse.client.flume.errors import RebalanceNeeded, UnknownMember
from streamhouse.core.groups.assignors.range import range_leader
from streamhouse.core.groups.classic_messages import LeavingMember
from streamhouse.core.groups.consumer import ConsumerGroup
from streamhouse.core.groups.consumer_heartbeat import (
    JOIN_EPOCH,
    ConsumerLimits,
    HeartbeatReply,
    HeartbeatRequest,
    TopicIdPartition,
)
from streamhouse.core.groups.consumer_target import Topics
from streamhouse.model.errors import InvalidInput, StaleGeneration
from streamhouse.runtime.clock import Clock, SystemClock
from streamhouse.runtime.entropy import new_uuid
from streamhouse.wire.flume.groups import NEW_MEMBER, AssignedPartition

ASSIGNOR = "range"
DEFAULT_SESSION_TIMEOUT_MS = 10_000
_REBALANCE_TIMEOUT_MS = 45_000


class Joined(NamedTuple):
    member_id: str
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """`state` is `stable`, `unrevoked` while it has to give partitions up by joining again, or `unreleased` while it
    waits for some that others have to give up."""

    id: str
    state: str
    last_heartbeat_ms: int
    assignments: tuple[AssignedPartition, ...]


class _Known:
    """What a member was told when it joined last, what the group has said since, and when it was heard of."""

    def __init__(self, topics: tuple[str, ...]) -> None:
        self.topics = topics
        self.epoch = self.held_epoch = JOIN_EPOCH
        self.assigned: frozenset[TopicIdPartition] = frozenset()
        self.held: frozenset[TopicIdPartition] = frozenset()
        self.last_heartbeat_ms = 0


class Group:
    """`member_id, generation = Group("analytics").join()`

    `topics` says which topics there are, each time that it matters."""

    def __init__(
        self,
        group_id: str,
        *,
        topics: Callable[[], Topics] = dict,
        session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS,
        clock: Clock | None = None,
    ) -> None:
        self.group_id = group_id
        self._topics = topics
        self._clock = clock or SystemClock()
        limits = ConsumerLimits(session_timeout_ms=session_timeout_ms, heartbeat_interval_ms=session_timeout_ms)
        self._machine = ConsumerGroup(group_id, limits=limits)
        self._known: dict[str, _Known] = {}

    @property
    def generation(self) -> int:
        """The newest that there is; a member has it once it has joined again."""
        return self._machine.group_epoch

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(sorted(self._known))

    @property
    def leader_id(self) -> str:
        """The first member alphabetically, which has nothing to do here; nobody in a group without members."""
        return range_leader(self._known) if self._known else ""

    def join(self, member_id: str = NEW_MEMBER, topics: Sequence[str] | None = None) -> Joined:
        """As a new member, or again: then it has given up what it lost, and takes what it is given."""
        self._look_at_topics()
        if not member_id:
            self.expire_members()
            known = _Known(tuple(topics or ()))
            member_id = str(new_uuid())
        else:
            known = self._find(member_id)
            known.topics = known.topics if topics is None else tuple(topics)
        self._beat(member_id, known, known.assigned)
        self._known[member_id] = known
        known.held, known.held_epoch = known.assigned, known.epoch
        return Joined(member_id, known.epoch)

    def heartbeat(self, member_id: str, generation: int) -> None:
        """StaleGeneration if the member has joined again since, RebalanceNeeded if it has to, UnknownMember if it is
        none."""
        self._look_at_topics()
        known = self._find(member_id)
        if generation != known.held_epoch:
            raise StaleGeneration(f"generation {generation} is not {known.held_epoch}", hint="join again")
        self._beat(member_id, known, known.held)
        if (known.epoch, known.assigned) != (known.held_epoch, known.held):
            raise RebalanceNeeded(f"generation {generation} has ended", hint="join again, with the member id")

    def leave(self, member_id: str) -> None:
        """Its partitions go to others, who join again for them."""
        self._find(member_id)
        self._machine.leave([LeavingMember(member_id=member_id)], self._clock.monotonic_ms())
        del self._known[member_id]

    def expire_members(self, timeout_ms: int | None = None) -> list[str]:
        """Remove the members that were not heard of for so long, or for the session's time-out."""
        now_ms = self._clock.monotonic_ms()
        if timeout_ms is None:
            self._machine.tick(now_ms)
            there = {member.member_id for member in self._machine.describe().members}
            silent = [member_id for member_id in self.members if member_id not in there]
        else:
            silent = [each for each in self.members if now_ms - self._known[each].last_heartbeat_ms >= timeout_ms]
            self._machine.leave([LeavingMember(member_id=member_id) for member_id in silent], now_ms)
        for member_id in silent:
            del self._known[member_id]
        return silent

    def get_member(self, member_id: str) -> Member | None:
        known = self._known.get(member_id)
        if known is None:
            return None
        (member,) = (each for each in self._machine.stored().members if each.member_id == member_id)
        return Member(
            id=member_id,
            state=member.state.value,
            last_heartbeat_ms=known.last_heartbeat_ms,
            assignments=self._by_name(known.held),
        )

    def assignments(self, member_id: str) -> tuple[AssignedPartition, ...]:
        """What it has since it joined last."""
        return self._by_name(self._find(member_id).held)

    def _look_at_topics(self) -> None:
        self._machine.topics_changed(self._topics(), self._clock.monotonic_ms())

    def _beat(self, member_id: str, known: _Known, owned: frozenset[TopicIdPartition]) -> None:
        now_ms = self._clock.monotonic_ms()
        request = HeartbeatRequest(
            member_id=member_id,
            member_epoch=known.epoch,
            rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=known.topics,
            server_assignor=ASSIGNOR,
            owned=owned,
        )
        reply = self._machine.heartbeat(request, self._topics(), now_ms).reply
        if not isinstance(reply, HeartbeatReply):
            raise InvalidInput(f"the group refuses member {member_id!r}: {reply}")
        known.last_heartbeat_ms = now_ms
        known.epoch = reply.member_epoch
        if reply.assignment is not None:
            known.assigned = frozenset(reply.assignment)

    def _find(self, member_id: str) -> _Known:
        self.expire_members()
        try:
            return self._known[member_id]
        except KeyError:
            raise UnknownMember(f"{member_id!r} is no member of {self.group_id!r}", hint="join anew") from None

    def _by_name(self, partitions: frozenset[TopicIdPartition]) -> tuple[AssignedPartition, ...]:
        names: dict[UUID, str] = {shape.topic_id: name for name, shape in self._topics().items()}
        return tuple(
            sorted(AssignedPartition(names[topic_id], number) for topic_id, number in partitions if topic_id in names)
        )
