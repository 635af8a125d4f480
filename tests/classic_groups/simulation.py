"""Twenty clients, a lossy network and a coordinator that restarts, all from one seed.

Every message takes its time and may be lost; clients crash, pause and come back; the coordinator dies between storing
and answering, or at any other time, and comes back with what it stored. The watcher sees every answer as it is given
and every commit as it is accepted, and fails at the first that breaks a promise.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

from classic_groups.client import PARTITIONS, SimulatedClient
from classic_groups.watcher import Watcher
from streamhouse.core.groups.classic import ClassicGroup
from streamhouse.core.groups.classic_messages import (
    ClassicLimits,
    ClassicReply,
    JoinRequest,
    LeavingMember,
    MemberClaim,
    SyncRequest,
)
from streamhouse.core.groups.classic_rebalance import ClassicState
from streamhouse.core.groups.outcome import GroupError, Outcome, Ticket

LIMITS = ClassicLimits(new_member_join_timeout_ms=30_000)

Request = JoinRequest | SyncRequest | list[LeavingMember]
Deliver = Callable[[ClassicReply], None]


@dataclass(frozen=True)
class Faults:
    loss: float = 0.1
    crashes: int = 15
    pauses: int = 15
    leaves: int = 10
    restarts: int = 6
    dies_before_answering: float = 0.05


class Simulation:
    def __init__(self, seed: int, faults: Faults, *, clients: int = 20) -> None:
        self.random = Random(seed)
        self.faults = faults
        self.now_ms = 0
        self.calm = False
        self.watcher = Watcher()
        self.clients = [
            SimulatedClient(self, f"c{number:02}", f"i{number:02}" if number % 3 == 0 else None)
            for number in range(clients)
        ]
        self._group = ClassicGroup("g", limits=LIMITS)
        self._stored = self._group.stored()
        self._waiting: dict[Ticket, Deliver] = {}
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._scheduled = 0
        self._tickets = 0
        self._ids = 0

    @property
    def group(self) -> ClassicGroup:
        return self._group

    def storm(self, duration_ms: int) -> None:
        """Clients come, and everything that can go wrong does, at times that the seed says."""
        for client in self.clients:
            self.after(self.random.randrange(duration_ms // 4), client.start)
        for count, misfortune in (
            (self.faults.crashes, lambda: self._someone().crash(self.random.randrange(20_000))),
            (self.faults.pauses, lambda: self._someone().pause(self.random.randrange(30_000))),
            (self.faults.leaves, lambda: self._someone().leave(self.random.randrange(10_000))),
            (self.faults.restarts, self.restart),
        ):
            for _ in range(count):
                self.after(self.random.randrange(duration_ms), misfortune)
        self.run(duration_ms)

    def run(self, duration_ms: int) -> None:
        """Let time pass: the next message, or the group's next deadline, whichever comes first."""
        end_ms = self.now_ms + duration_ms
        while True:
            event_ms = self._events[0][0] if self._events else end_ms + 1
            deadline_ms = self._group.next_deadline()
            if deadline_ms is not None and deadline_ms <= min(event_ms, end_ms):
                self.now_ms = max(self.now_ms, deadline_ms)
                self._carry_out(self._group.tick(self.now_ms))
            elif event_ms <= end_ms:
                self.now_ms, _, event = heapq.heappop(self._events)
                event()
            else:
                self.now_ms = end_ms
                return

    def after(self, delay_ms: int, event: Callable[[], None]) -> None:
        self._scheduled += 1
        heapq.heappush(self._events, (self.now_ms + delay_ms, self._scheduled, event))

    def new_member_id(self, client: str) -> str:
        self._ids += 1
        return f"{client}-{self._ids}"

    # The network

    def send(self, request: Request, deliver: Deliver) -> None:
        self._travel(lambda: self._receive(request, deliver))

    def heartbeat(self, claim: MemberClaim, deliver: Callable[[GroupError | None], None]) -> None:
        def receive() -> None:
            error = self._group.heartbeat(claim, self.now_ms)
            self._travel(lambda: deliver(error))

        self._travel(receive)

    def commit(self, claim: MemberClaim, client: str, partitions: frozenset[int]) -> None:
        def receive() -> None:
            if self._group.check_commit(claim, self.now_ms) is None:
                self.watcher.commit_accepted(client, claim.generation, partitions, self._group.generation)

        self._travel(receive)

    def _travel(self, arrive: Callable[[], None]) -> None:
        if self.calm or self.random.random() >= self.faults.loss:
            self.after(self.random.randint(1, 20 if self.calm else 400), arrive)

    # The coordinator

    def restart(self) -> None:
        """What waited is never answered; the clients' own time-outs must cope."""
        self._waiting.clear()
        self._group = ClassicGroup.restore(self._stored, self.now_ms, LIMITS)

    def _receive(self, request: Request, deliver: Deliver) -> None:
        self._tickets += 1
        ticket = Ticket(self._tickets)
        self._waiting[ticket] = deliver
        match request:
            case JoinRequest():
                self._carry_out(self._group.join(ticket, request, self.now_ms))
            case SyncRequest():
                self._carry_out(self._group.sync(ticket, request, self.now_ms))
            case leaving:
                self._carry_out(self._group.leave(ticket, leaving, self.now_ms))

    def _carry_out(self, outcome: Outcome[ClassicReply]) -> None:
        """Decide → store → reply, with a chance to die in between."""
        if outcome.persist:
            self._stored = self._group.stored()
            if not self.calm and self.random.random() < self.faults.dies_before_answering:
                self.restart()
                return
        for answer in outcome.answers:
            deliver = self._waiting.pop(answer.ticket)  # a KeyError here is a ticket that was answered twice
            self.watcher.answered(answer.reply, self._group.generation)
            self._travel(partial(deliver, answer.reply))

    def _someone(self) -> SimulatedClient:
        return self.random.choice(self.clients)

    # The end

    def settle(self) -> None:
        """No more faults. Everybody who lives must be in the group soon, and then nothing may stir."""
        self.calm = True
        for client in self.clients:
            client.wake()
        self.run(120_000)
        generation = self._group.generation
        self.run(60_000)
        seen = self._group.describe()
        living = {client.member_id for client in self.clients if client.alive}
        assert seen.state is ClassicState.STABLE, f"the group is {seen.state.value}"
        assert {member.member_id for member in seen.members} == living
        assert self._group.generation == generation, "the group stirs without a reason"
        assert [client.member_id for client in self.clients if client.leads] == [seen.leader]
        owned = [number for client in self.clients for number in client.partitions]
        assert sorted(owned) == list(range(PARTITIONS))
        assert not self._waiting, "a request waits for ever"
