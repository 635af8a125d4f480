"""Consumers of both protocols that read, commit what they have read, and give partitions up as their protocol says.

What they own is what they would read from at this moment. A partition that is new to a client is read from what is
committed; one that it gives up is committed before."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from consumer_protocol.client import Client
from streamhouse.core.groups.assignors.assignment import Subscription
from streamhouse.core.groups.assignors.sticky import assign_sticky
from streamhouse.core.groups.classic_messages import JoinReply, JoinRequest, LeavingMember, MemberClaim, SyncRequest
from streamhouse.core.groups.consumer_heartbeat import HeartbeatReply, TopicIdPartition
from streamhouse.core.groups.named_partitions import identify, name
from streamhouse.core.groups.outcome import GroupError
from streamhouse.groups.coordinator import GroupCoordinator
from streamhouse.metadata.groups import CommittedOffset
from streamhouse.model.names import TopicPartition
from streamhouse.server.kafka.embedded_protocol import KafkaEmbeddedProtocol
from streamhouse.wire.kafka.messages import consumer_protocol_subscription as subscriptions

if TYPE_CHECKING:
    from mixed_groups.simulation import Simulation

SESSION_MS = 10_000
REBALANCE_MS = 15_000
BEAT_MS = 2_000
GROUP = "g"
_EMBEDDED = KafkaEmbeddedProtocol()
_AWAY = (GroupError.NOT_COORDINATOR, GroupError.COORDINATOR_NOT_AVAILABLE, GroupError.COORDINATOR_LOAD_IN_PROGRESS)


class Lost(Exception):
    """No answer came."""


async def _beat(claim: MemberClaim, coordinator: GroupCoordinator) -> GroupError | None:
    return await coordinator.heartbeat(GROUP, claim)


class Consumer:
    """What both kinds have in common: partitions with positions, and commits under a claim."""

    def __init__(self, simulation: Simulation, instance_id: str | None) -> None:
        self.simulation = simulation
        self.instance_id = instance_id
        self.positions: dict[TopicIdPartition, int] = {}
        self.stopping = False
        self.arrives_not_before = 0.0

    @property
    def claim(self) -> MemberClaim:
        raise NotImplementedError

    @property
    def owned(self) -> frozenset[TopicIdPartition]:
        raise NotImplementedError

    async def ask(self, request: Any) -> Any:
        return await self.simulation.ask(self, request)

    async def read(self, partitions: Iterable[TopicIdPartition]) -> None:
        """All that is there, and commit it. A refusal is no concern here: the next heartbeat says what is wrong."""
        mine = [partition for partition in partitions if partition in self.positions]
        for partition in mine:
            self.positions[partition] = self.simulation.end_of(partition)
        await self.commit(mine)

    async def commit(self, partitions: Iterable[TopicIdPartition]) -> None:
        offsets = {
            TopicPartition(*partition): CommittedOffset(offset=self.positions[partition], leader_epoch=-1, metadata="")
            for partition in partitions
        }
        claim = self.claim
        if offsets:
            await self.ask(lambda coordinator: coordinator.commit(GROUP, claim, offsets))

    async def place(self) -> None:
        """Positions for what is new, from what is committed; none for what is gone."""
        for gone in set(self.positions) - self.owned:
            del self.positions[gone]
        fresh = self.owned - set(self.positions)
        if fresh:
            committed = await self.ask(lambda coordinator: coordinator.committed(GROUP, None, -1))
            if isinstance(committed, dict):
                for partition in fresh & self.owned:
                    found = committed.get(TopicPartition(*partition))
                    self.positions[partition] = 0 if found is None else found.offset


class ClassicConsumer(Consumer):
    def __init__(self, simulation: Simulation, instance_id: str | None, *, cooperative: bool) -> None:
        super().__init__(simulation, instance_id)
        self._cooperative = cooperative
        self._owned: frozenset[TopicIdPartition] = frozenset()
        self._member_id = ""
        self._generation = -1

    @property
    def claim(self) -> MemberClaim:
        return MemberClaim(member_id=self._member_id, generation=self._generation, instance_id=self.instance_id)

    @property
    def owned(self) -> frozenset[TopicIdPartition]:
        return self._owned

    async def run(self) -> None:
        while not self.stopping:
            try:
                if await self._join():
                    await self._work()
            except Lost:
                continue
        try:
            await self.commit(set(self._owned) & set(self.positions))
            leaving = [LeavingMember(member_id=self._member_id, instance_id=self.instance_id)]
            if self.instance_id is None:
                await self.ask(lambda coordinator: coordinator.leave(GROUP, leaving))
        except Lost:
            pass
        self._owned = frozenset()

    async def _join(self) -> bool:
        """Whether it has an assignment to work on now."""
        if not self._cooperative:
            await self.read(self._owned)
            self._owned = frozenset()
        request = JoinRequest(
            member_id=self._member_id,
            new_member_id=self.simulation.new_id("classic"),
            client_id="c",
            client_host="h",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=(("sticky", self._subscription()),),
            instance_id=self.instance_id,
        )
        joined = await self.ask(lambda coordinator: coordinator.join(GROUP, request))
        if joined.error is not None:
            if joined.error is GroupError.MEMBER_ID_REQUIRED:
                self._member_id = joined.member_id
            else:
                await self._refused(joined.error)
            return False
        self._member_id, self._generation = joined.member_id, joined.generation
        leads = joined.leader == joined.member_id and not joined.skip_assignment
        sync = SyncRequest(claim=self.claim, assignments=self._assign(joined) if leads else {})
        synced = await self.ask(lambda coordinator: coordinator.sync(GROUP, sync))
        if synced.error is not None:
            await self._refused(synced.error)
            return False
        return await self._take(identify(_EMBEDDED.read_assignment(synced.assignment), self.simulation.topics))

    async def _take(self, assigned: frozenset[TopicIdPartition]) -> bool:
        """A cooperative member gives up what it must, and joins again to say so."""
        given_up = self._owned - assigned
        if given_up:
            await self.read(given_up)
        self._owned = assigned
        await self.place()
        return not given_up

    async def _work(self) -> None:
        while not self.stopping:
            await self.simulation.sleep_ms(BEAT_MS)
            await self.read(self._owned)
            error = await self.ask(partial(_beat, self.claim))
            if error is not None:
                await self._refused(error)
                if error not in _AWAY:
                    return
            await self.place()

    async def _refused(self, error: GroupError) -> None:
        match error:
            case GroupError.REBALANCE_IN_PROGRESS:
                pass
            case GroupError.UNKNOWN_MEMBER_ID | GroupError.ILLEGAL_GENERATION:
                self._owned = frozenset()
                self._generation = -1
                if error is GroupError.UNKNOWN_MEMBER_ID:
                    self._member_id = ""
            case GroupError.FENCED_INSTANCE_ID:
                self._owned = frozenset()
                self.stopping = True
            case _:
                assert error in _AWAY, error
                await self.simulation.sleep_ms(200)

    def _subscription(self) -> bytes:
        owned = name(self._owned, self.simulation.topics) if self._cooperative else []
        message = subscriptions.ConsumerProtocolSubscription(
            topics=list(self.simulation.topics),
            owned_partitions=[
                subscriptions.TopicPartition(topic=topic, partitions=[partition]) for topic, partition in owned
            ],
        )
        return b"\x00\x01" + b"".join(subscriptions.encode(message, 1))

    def _assign(self, joined: JoinReply) -> dict[str, bytes]:
        """As a leader: spread evenly, and of what others have not given up, nothing yet."""
        topics = self.simulation.topics
        owned: dict[str, frozenset[TopicIdPartition]] = {}
        for member in joined.members:
            subscription = _EMBEDDED.read_subscription(member.metadata)
            assert subscription is not None
            owned[member.member_id] = identify(subscription.owned, topics)
        target = assign_sticky(
            {member_id: Subscription(topics=tuple(shape.topic_id for shape in topics.values())) for member_id in owned},
            dict(topics.values()),
            {member_id: tuple(sorted(partitions)) for member_id, partitions in owned.items()},
        )
        return {
            member_id: _EMBEDDED.write_assignment(
                name(
                    [
                        partition
                        for partition in partitions
                        if not any(partition in theirs for other, theirs in owned.items() if other != member_id)
                    ],
                    topics,
                ),
                joined.members[0].metadata,
            )
            for member_id, partitions in target.items()
        }


class NewerConsumer(Consumer):
    def __init__(self, simulation: Simulation, instance_id: str | None) -> None:
        super().__init__(simulation, instance_id)
        self.client = Client(
            member_id=simulation.new_id("newer"), names=tuple(simulation.topics), instance_id=instance_id
        )

    @property
    def claim(self) -> MemberClaim:
        return MemberClaim(member_id=self.client.member_id, generation=self.client.epoch)

    @property
    def owned(self) -> frozenset[TopicIdPartition]:
        return self.client.owned

    async def run(self) -> None:
        client = self.client
        while not self.stopping:
            try:
                await self._beat()
                await self.read(client.owned - client.to_revoke)
            except Lost:
                client.hear_nothing()
        client.owned, client.to_revoke = frozenset(), frozenset()
        goodbye = client.farewell()
        try:
            await self.ask(lambda coordinator: coordinator.consumer_heartbeat(GROUP, goodbye))
        except Lost:
            pass

    async def _beat(self) -> None:
        client = self.client
        request = client.heartbeat()
        reply = await self.ask(lambda coordinator: coordinator.consumer_heartbeat(GROUP, request))
        if reply in _AWAY:
            client.hear_nothing()
            await self.simulation.sleep_ms(200)
            return
        client.hear(request, reply)
        if client.fatal is not None:
            assert client.fatal in (GroupError.UNRELEASED_INSTANCE_ID, GroupError.FENCED_INSTANCE_ID), client.fatal
            self.stopping = client.fatal is GroupError.FENCED_INSTANCE_ID
            client.fatal = None
        if client.to_revoke:
            await self.read(client.to_revoke)
            client.finish_revoking()
            return
        await self.place()
        if isinstance(reply, HeartbeatReply) and not client.must_report:
            await self.simulation.sleep_ms(BEAT_MS)
