"""A client of a classic group as Kafka's are: joins, syncs, heartbeats, commits, and starts again when told to."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from classic_groups.watcher import client_of
from streamhouse.core.groups.assignors.assignment import Subscription
from streamhouse.core.groups.assignors.sticky import assign_sticky
from streamhouse.core.groups.classic_messages import (
    ClassicReply,
    JoinReply,
    JoinRequest,
    LeavingMember,
    MemberClaim,
    SyncReply,
    SyncRequest,
)
from streamhouse.core.groups.outcome import GroupError

if TYPE_CHECKING:
    from classic_groups.simulation import Simulation

PARTITIONS = 30
SESSION_MS = 10_000
REBALANCE_MS = 15_000
HEARTBEAT_MS = 3_000
_REQUEST_MS = REBALANCE_MS + 5_000
_BACK_OFF_MS = 500


class SimulatedClient:
    def __init__(self, simulation: Simulation, name: str, instance_id: str | None) -> None:
        self.name = name
        self.instance_id = instance_id
        self.alive = False
        self.member_id = ""
        self.generation = -1
        self.leads = False
        self.partitions: frozenset[int] = frozenset()
        self._simulation = simulation
        self._paused_until_ms = 0
        self._life = 0  # what was sent by, or scheduled for, an earlier life is nobody's business now
        self._attempt = 0

    # What happens to it

    def start(self) -> None:
        if not self.alive:
            self.alive = True
            self._life += 1
            self._join()
            self._later(HEARTBEAT_MS, self._beat)

    def crash(self, for_ms: int) -> None:
        self._forget()
        self.alive = False
        self._life += 1
        self._simulation.after(for_ms, self.start)

    def leave(self, for_ms: int) -> None:
        if self.member_id:
            leaving = [LeavingMember(member_id=self.member_id, instance_id=self.instance_id)]
            self._simulation.send(leaving, lambda reply: None)
        self.crash(for_ms)

    def pause(self, for_ms: int) -> None:
        self._paused_until_ms = self._simulation.now_ms + for_ms

    def wake(self) -> None:
        self._paused_until_ms = 0

    # What it does

    def _join(self) -> None:
        self.leads = False
        self.partitions = frozenset()
        request = JoinRequest(
            member_id=self.member_id,
            new_member_id=self._simulation.new_member_id(self.name),
            instance_id=self.instance_id,
            client_id=self.name,
            client_host="/127.0.0.1",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=(("sticky", self.name.encode()),),
        )
        self._ask(request, self._joined)

    def _joined(self, reply: ClassicReply) -> None:
        assert isinstance(reply, JoinReply)
        if reply.error is not None:
            if reply.error is GroupError.MEMBER_ID_REQUIRED:
                self.member_id = reply.member_id
            self._start_again(reply.error)
            return
        self.member_id, self.generation = reply.member_id, reply.generation
        self.leads = reply.leader == reply.member_id
        assigns = self.leads and not reply.skip_assignment
        claim = self._claim()
        self._ask(SyncRequest(claim=claim, assignments=self._assign(reply) if assigns else {}), self._synced)

    def _assign(self, reply: JoinReply) -> dict[str, bytes]:
        members = {member.member_id: Subscription(topics=("t",)) for member in reply.members}
        return {
            member_id: json.dumps(
                {
                    "generation": reply.generation,
                    "client": client_of(member_id),
                    "partitions": [number for _, number in mine],
                }
            ).encode()
            for member_id, mine in assign_sticky(members, {"t": PARTITIONS}, {}).items()
        }

    def _synced(self, reply: ClassicReply) -> None:
        assert isinstance(reply, SyncReply)
        if reply.error is not None:
            self._start_again(reply.error)
        elif reply.assignment:
            self.partitions = frozenset(json.loads(reply.assignment)["partitions"])

    def _beat(self) -> None:
        if self.generation >= 0:
            life, attempt = self._life, self._attempt
            self._simulation.heartbeat(self._claim(), partial(self._beaten, life, attempt))
            if self.partitions:
                self._simulation.commit(self._claim(), self.name, self.partitions)
        self._later(HEARTBEAT_MS, self._beat)

    def _beaten(self, life: int, attempt: int, error: GroupError | None) -> None:
        if error is not None:
            self._when_awake(life, lambda: self._start_again(error) if attempt == self._attempt else None)

    def _start_again(self, error: GroupError) -> None:
        match error:
            case GroupError.UNKNOWN_MEMBER_ID:
                self._forget()
            case GroupError.FENCED_INSTANCE_ID:
                raise AssertionError("the only client of this instance was fenced")
            case _:
                self.generation = -1
        if error in (GroupError.NOT_COORDINATOR, GroupError.COORDINATOR_NOT_AVAILABLE):
            self._attempt += 1
            self._later(_BACK_OFF_MS, self._join)
        else:
            self._join()

    def _forget(self) -> None:
        self.member_id, self.generation, self.leads, self.partitions = "", -1, False, frozenset()

    def _claim(self) -> MemberClaim:
        return MemberClaim(member_id=self.member_id, generation=self.generation, instance_id=self.instance_id)

    # Messages and time

    def _ask(self, request: JoinRequest | SyncRequest, take: Callable[[ClassicReply], None]) -> None:
        """One request at a time: whatever was asked before no longer counts. Without an answer it joins again."""
        self._attempt += 1
        life, attempt = self._life, self._attempt

        def answered(reply: ClassicReply) -> None:
            self._when_awake(life, lambda: take_if_awaited(reply))

        def take_if_awaited(reply: ClassicReply) -> None:
            if attempt == self._attempt:
                self._attempt += 1
                take(reply)

        def time_is_up() -> None:
            if attempt == self._attempt:
                self._join()

        self._simulation.send(request, answered)
        self._later(_REQUEST_MS, time_is_up)

    def _later(self, delay_ms: int, event: Callable[[], None]) -> None:
        life = self._life
        self._simulation.after(delay_ms, lambda: self._when_awake(life, event))

    def _when_awake(self, life: int, event: Callable[[], None]) -> None:
        if life != self._life:
            return
        sleep_ms = self._paused_until_ms - self._simulation.now_ms
        if sleep_ms > 0:
            self._simulation.after(sleep_ms, lambda: self._when_awake(life, event))
        else:
            event()
