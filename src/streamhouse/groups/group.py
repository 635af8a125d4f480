"""The owner of one group: a task with a mailbox. It decides, stores what must be stored, and only then replies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from streamhouse.core.groups.classic import ClassicGroup
from streamhouse.core.groups.classic_messages import ClassicLimits, ClassicReply
from streamhouse.core.groups.consumer import ConsumerGroup
from streamhouse.core.groups.consumer_heartbeat import ConsumerLimits
from streamhouse.core.groups.consumer_target import Topics
from streamhouse.core.groups.embedded import EmbeddedProtocol
from streamhouse.core.groups.group_kind import GroupKind
from streamhouse.core.groups.migration import to_classic_group, to_consumer_group
from streamhouse.core.groups.outcome import GroupError, Outcome, Refusal, Ticket
from streamhouse.groups.snapshot import Machine, from_row, generation_of, is_empty, kind_of, to_row
from streamhouse.metadata.groups import GroupRow
from streamhouse.model.errors import StaleEpoch, StreamHouseError
from streamhouse.runtime.clock import Clock

_log = logging.getLogger(__name__)
_MAILBOX_SIZE = 10_000
_READ_AGAIN_SECONDS = 1.0
_PAUSE_MS = 100
T = TypeVar("T")


class Shard(Protocol):
    """Where a group's changes are stored: under the lease of its shard."""

    def check_live(self) -> None:
        """StaleEpoch once the lease may have run out."""

    async def save(self, row: GroupRow) -> None: ...

    async def load(self, group_id: str) -> GroupRow | None: ...


class Group:
    """Requests are coroutines that run one after the other; each may change the machine and must then `settle`."""

    def __init__(
        self,
        group_id: str,
        row: GroupRow | None,
        *,
        shard: Shard,
        clock: Clock,
        topics: Callable[[], Topics],
        classic_limits: ClassicLimits,
        consumer_limits: ConsumerLimits,
        embedded: EmbeddedProtocol,
        rebalanced: Callable[[], None] = lambda: None,
    ) -> None:
        """`rebalanced` is called when a new generation is stored."""
        self.group_id = group_id
        self._rebalanced = rebalanced
        self._shard = shard
        self._clock = clock
        self._topics = topics
        self.classic_limits = classic_limits
        self.consumer_limits = consumer_limits
        self._embedded = embedded
        self._mailbox: asyncio.Queue[tuple[Callable[[], Coroutine[Any, Any, Any]], asyncio.Future[Any]]] = (
            asyncio.Queue(_MAILBOX_SIZE)
        )
        self._waiting: dict[Ticket, tuple[asyncio.Future[ClassicReply], ClassicReply]] = {}
        self._next_ticket = 0
        self._is_busy = False
        self._is_over = False
        self.is_unread = False
        self._stored_generation = row.generation if row is not None else 0
        self._empty_since_ms = row.empty_since_ms if row is not None else None
        self.machine: Machine | None = self._restored(row)

    @property
    def now_ms(self) -> int:
        """Time-outs are counted on the clock that only goes forward."""
        return self._clock.monotonic_ms()

    @property
    def kind(self) -> GroupKind | None:
        return kind_of(self.machine) if self.machine is not None else None

    @property
    def has_members(self) -> bool:
        return self.machine is not None and not is_empty(self.machine)

    @property
    def is_idle(self) -> bool:
        """Nobody is in it and nobody waits for it."""
        return not (self.has_members or self._waiting or self._is_busy) and self._mailbox.empty()

    @property
    def generation(self) -> int | None:
        """What a commit is checked against in the store; None for a group that never had members."""
        return generation_of(self.machine) if self.machine is not None else None

    # --- from outside ---

    async def ask(self, request: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a request when it is its turn."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        await self._mailbox.put((request, done))
        if self._is_over:
            self._turn_away()
        return await done

    async def own(self) -> None:
        """The task: runs until cancelled, and then leaves nobody waiting."""
        try:
            await self._attempt(self.topics_changed)  # since it was stored
            while True:
                await self._attempt(self._serve_next)
        finally:
            self.end()

    def end(self) -> None:
        """This agent no longer coordinates the group: nobody is left waiting, and nobody will wait again."""
        self._is_over = True
        self._let_go()
        self._turn_away()

    def _turn_away(self) -> None:
        """Making room lets in those who waited for it, who find that it is over and do the same."""
        while not self._mailbox.empty():
            _, done = self._mailbox.get_nowait()
            _fail(done, self._not_ours())

    async def _serve_next(self) -> None:
        try:
            async with asyncio.timeout(self._seconds_to_deadline()):
                request, done = await self._mailbox.get()
        except TimeoutError:
            await self.tick()
            return
        self._is_busy = True
        try:
            self._shard.check_live()
            if self.is_unread:
                await self._read_again()
            result = await request()
        except Exception as problem:
            if not isinstance(problem, StreamHouseError):
                self.mistrust()
            _fail(done, problem)
        except asyncio.CancelledError:
            _fail(done, self._not_ours())
            raise
        else:
            if not done.done():
                done.set_result(result)
        finally:
            self._is_busy = False

    def _not_ours(self) -> StaleEpoch:
        return StaleEpoch(f"this agent no longer coordinates group {self.group_id!r}")

    def _let_go(self) -> None:
        """Whoever waits is told to look for the coordinator again."""
        if isinstance(self.machine, ClassicGroup):
            try:
                self._deliver(self.machine.unload(self.now_ms))
            except Exception:
                # It may be let go because it is broken. Those who wait are known here as well.
                _log.exception("group %r could not say who waits for it", self.group_id)
        # Those whose answers were due with what is not stored now: the machine no longer knows that they wait.
        for future, refusal in self._waiting.values():
            if not future.done():
                future.set_result(refusal)
        self._waiting.clear()

    # --- inside the task ---

    def become(self, kind: GroupKind) -> Machine:
        """The machine for a protocol, which replaces an empty one of the other; generations go on."""
        if self.machine is None or kind_of(self.machine) is not kind:
            generation = self.generation or self._stored_generation
            self.machine = (
                ClassicGroup(self.group_id, generation, self.classic_limits)
                if kind is GroupKind.CLASSIC
                else ConsumerGroup(self.group_id, generation, self.consumer_limits)
            )
        return self.machine

    def as_consumer_group(self) -> ConsumerGroup | Refusal:
        """What the group, a classic one with members, would be in the other protocol. It stays what it is."""
        assert isinstance(self.machine, ClassicGroup)
        if not self.consumer_limits.migration.allows_upgrade:
            return Refusal(GroupError.GROUP_ID_NOT_FOUND, "classic members are in this group: stop them first")
        converted = to_consumer_group(self.machine.standing(), self._topics(), self._embedded)
        if converted is None:
            return Refusal(
                GroupError.GROUP_ID_NOT_FOUND,
                "classic members that are no consumers, or name too many topics, are in this group: stop them first",
            )
        upgraded = ConsumerGroup.restore(converted, self.now_ms, self.consumer_limits)
        upgraded.topics_changed(self._topics(), self.now_ms)
        return upgraded

    async def become_consumer_group(self, upgraded: ConsumerGroup) -> None:
        """Go on as `as_consumer_group` said; classic members that wait are told to join again, once that is stored."""
        assert isinstance(self.machine, ClassicGroup)
        outcome = self.machine.retire(self.now_ms)
        self.machine = upgraded
        await self.store()
        self._deliver(outcome)

    def expect(self, refusal: ClassicReply) -> tuple[Ticket, asyncio.Future[ClassicReply]]:
        """A ticket for a request whose answer may come later; `refusal` is the answer if the group is let go first."""
        self._next_ticket += 1
        ticket = Ticket(self._next_ticket)
        future: asyncio.Future[ClassicReply] = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = (future, refusal)
        return ticket, future

    async def settle(self, outcome: Outcome[ClassicReply]) -> None:
        """Store, then answer."""
        if outcome.persist:
            await self.store()
        self._deliver(outcome)

    async def store(self) -> None:
        """If it cannot be stored, the group goes back to what is. A consumer group that has only classic members left
        is stored, and goes on, as a classic one."""
        assert self.machine is not None
        if isinstance(self.machine, ConsumerGroup) and self.machine.ends_as_classic:
            converted = to_classic_group(self.machine.stored(), self._topics(), self._embedded)
            self.machine = ClassicGroup.restore(converted, self.now_ms, self.classic_limits)
        if not is_empty(self.machine):
            self._empty_since_ms = None
        elif self._empty_since_ms is None:
            self._empty_since_ms = self._clock.now_ms()
        try:
            await self._shard.save(to_row(self.group_id, self.machine, self._empty_since_ms))
        except Exception:
            self.mistrust()
            raise
        generation = generation_of(self.machine)
        if generation != self._stored_generation:
            self._stored_generation = generation
            self._rebalanced()

    def mistrust(self) -> None:
        """What is in memory has not happened: it is read again before anybody else is served."""
        self._let_go()
        self.machine = None
        self.is_unread = True

    async def topics_changed(self) -> None:
        """A new epoch is stored at once: commits are checked against what is stored."""
        if isinstance(self.machine, ConsumerGroup) and self.machine.topics_changed(self._topics(), self.now_ms):
            await self.store()

    async def _read_again(self) -> None:
        row = await self._shard.load(self.group_id)
        if row is not None:
            self._stored_generation = row.generation
            self._empty_since_ms = row.empty_since_ms
        self.machine = self._restored(row)
        self.is_unread = False
        await self.topics_changed()

    def _restored(self, row: GroupRow | None) -> Machine | None:
        return None if row is None else from_row(row, self.now_ms, self.classic_limits, self.consumer_limits)

    async def tick(self) -> None:
        """Do all that is due by now."""
        if self.is_unread:
            self._shard.check_live()
            await self._read_again()
        elif isinstance(self.machine, ClassicGroup):
            await self.settle(self.machine.tick(self.now_ms))
        elif isinstance(self.machine, ConsumerGroup) and self.machine.tick(self.now_ms):
            await self.store()

    async def _attempt(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """The group outlives whatever goes wrong: without its task it would be found here, and never answer."""
        try:
            await work()
        except StreamHouseError as problem:
            _log.warning("group %r: %s", self.group_id, problem)
            await self._clock.sleep_ms(_PAUSE_MS)
        except Exception:
            _log.exception("group %r is read again after an error that nobody expected", self.group_id)
            self.mistrust()
            await self._clock.sleep_ms(_PAUSE_MS)

    def _seconds_to_deadline(self) -> float | None:
        if self.is_unread:
            return _READ_AGAIN_SECONDS
        if self.machine is None:
            return None
        deadline_ms = (
            self.machine.next_deadline() if isinstance(self.machine, ClassicGroup) else self.machine.next_deadline_ms()
        )
        return None if deadline_ms is None else max(0, deadline_ms - self.now_ms) / 1000

    def _deliver(self, outcome: Outcome[ClassicReply]) -> None:
        for answer in outcome.answers:
            future, _ = self._waiting.pop(answer.ticket, (None, None))
            if future is not None and not future.done():
                future.set_result(answer.reply)


def _fail(done: asyncio.Future[Any], problem: Exception) -> None:
    if not done.done():
        done.set_exception(problem)
