"""The WAL in the object store: one object for the batches of all partitions that were appended in a window of time.

An object is durable once it is uploaded and the metadata store has committed its ranges; only then are owners told.
Several uploads are under way at a time, commits are made in the order in which the objects were sealed."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from itertools import takewhile

from streamhouse.log.wal import WalOwner
from streamhouse.log.wal_gathering import Gathering
from streamhouse.log.wal_measures import WalMeasures
from streamhouse.log.wal_object_writer import SealedObject, WalObjectWriter
from streamhouse.log.wal_state import ObjectWalState, WalObjectState
from streamhouse.metadata.wal_objects import WalObjectStore
from streamhouse.model.errors import NotLeader, StorageUnavailable
from streamhouse.objects.store import ObjectStore
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.measures import stopwatch_s
from streamhouse.runtime.tasks import TaskGroup

_log = logging.getLogger(__name__)
_SLOW_BYTES_PER_MS = 2 * 2**20 // 1_000
"""At least so much is expected of the way to the store."""


class ObjectWal:
    def __init__(
        self,
        *,
        agent_id: str,
        objects: ObjectStore,
        store: WalObjectStore,
        clock: Clock,
        garbage_grace_ms: int,
        fenced: Callable[[WalOwner, NotLeader], None],
        idle_window_ms: int = 10,
        busy_window_ms: int = 250,
        object_bytes: int = 8 * 2**20,
        max_in_flight: int = 4,
        close_timeout_ms: int = 2_000,
    ) -> None:
        """`fenced` is called once for an owner of which something was refused: it must be replaced by one that knows
        what the store has. Nothing of what it appended after that becomes durable."""
        self.measures = WalMeasures()
        self._writer = WalObjectWriter(
            agent_id=agent_id, objects=objects, store=store, clock=clock, garbage_grace_ms=garbage_grace_ms
        )
        self._clock = clock
        self._report_fenced = fenced
        self._idle_window_ms = idle_window_ms
        self._busy_window_ms = busy_window_ms
        self._object_bytes = object_bytes
        self._max_in_flight = max_in_flight
        self._close_timeout_ms = close_timeout_ms
        self._tasks = TaskGroup("object-wal")
        self._gathered: deque[Gathering] = deque()
        """Oldest first; all but the last are as large as an object gets, and wait for those in flight."""
        self._in_flight: deque[SealedObject] = deque()
        self._stored_at_ms = clock.monotonic_ms()
        self._sealed_at_ms = clock.monotonic_ms() - busy_window_ms
        self._alarm: asyncio.Task[None] | None = None
        self._alarm_at_ms = 0
        self._is_committing = False
        self._refusals: dict[WalOwner, NotLeader] = {}
        self._closed = False

    @property
    def keys_under_way(self) -> set[str]:
        """Objects that may be stored and are not committed yet."""
        return self._writer.keys_under_way

    def state(self) -> ObjectWalState:
        return ObjectWalState(
            gathered_batches=sum(len(run.batches) for gathering in self._gathered for run in gathering.runs),
            gathered_bytes=sum(gathering.size_bytes for gathering in self._gathered),
            in_flight=tuple(
                WalObjectState(
                    key=sealed.key,
                    size_bytes=sealed.encoded.size_bytes,
                    partition_count=len({run.partition for run in sealed.runs}),
                    is_stored=sealed.is_finished and sealed.problem is None,
                )
                for sealed in self._in_flight
            ),
        )

    def overdue_ms(self) -> int:
        """For how long nothing has been stored although there was something to store; what its size explains is not
        counted."""
        for sealed in self._in_flight:
            if sealed.is_wanted and not sealed.is_finished:
                waiting_ms = self._clock.monotonic_ms() - max(sealed.sealed_at_ms, self._stored_at_ms)
                return max(0, waiting_ms - sealed.encoded.size_bytes // _SLOW_BYTES_PER_MS)
        return 0

    def check_writable(self) -> None:
        if self._closed:
            raise StorageUnavailable("the WAL is closed: this agent is stopping")

    def append(self, owner: WalOwner, batch: memoryview, end_offset: int) -> None:
        assert not self._closed, "appends are refused before they come here"
        refusal = self._refusals.get(owner)
        if refusal is not None:
            asyncio.get_running_loop().call_soon(owner.not_durable, refusal)
            return
        is_new = not self._gathered or self._gathered[-1].size_bytes >= self._object_bytes
        now_ms = self._clock.monotonic_ms()
        if is_new:
            self._gathered.append(Gathering(now_ms, stopwatch_s()))
        gathering = self._gathered[-1]
        gathering.add(owner, batch, end_offset, now_ms)
        if is_new or gathering.size_bytes >= self._object_bytes:
            self._seal_what_is_due()

    def kick(self) -> None:
        """Wait no longer for more to come; for those who wait to give a partition up, not for every request."""
        while self._gathered and len(self._in_flight) < self._max_in_flight:
            self._seal(self._gathered.popleft())
        self._seal_what_is_due()

    def covered(self, owner: WalOwner, end_offset: int) -> None:
        """Nothing: the metadata store knows which ranges its segments cover."""

    def forget(self, owner: WalOwner) -> None:
        self._disown(owner)
        self._refusals.pop(owner, None)
        self._seal_what_is_due()

    async def close(self) -> None:
        """What cannot be finished in time is reported as not durable; it may still turn out to be."""
        self._closed = True
        self._seal_what_is_due()
        try:
            async with asyncio.timeout(self._close_timeout_ms / 1000):
                await self._tasks.wait()
        except TimeoutError:
            _log.error("stopped before everything that was appended could be stored; none of that was acknowledged")
        finally:
            await self._tasks.cancel()
            self._give_up()

    # --- sealing ---

    def _seal_what_is_due(self) -> None:
        """Seal as much as may be; if that has to wait for time and nothing else, come back then."""
        while self._gathered and len(self._in_flight) < self._max_in_flight:
            now_ms, due_at_ms = self._clock.monotonic_ms(), self._due_at_ms(self._gathered[0])
            if due_at_ms > now_ms:
                self._wake_at(due_at_ms, now_ms)
                return
            self._seal(self._gathered.popleft())
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _due_at_ms(self, gathering: Gathering) -> int:
        """While batches keep coming, or an upload is under way, objects become fewer and larger: each is a PUT that
        costs money. When no more come, as when clients have sent what they may before an answer, waiting would gather
        nothing."""
        if self._closed or gathering.size_bytes >= self._object_bytes:
            return 0
        busy_until_ms = self._sealed_at_ms + self._busy_window_ms
        if not self._in_flight:
            busy_until_ms = min(busy_until_ms, gathering.last_ms + self._idle_window_ms)
        return max(gathering.since_ms + self._idle_window_ms, busy_until_ms)

    def _wake_at(self, due_at_ms: int, now_ms: int) -> None:
        if self._alarm is not None:
            if self._alarm_at_ms <= due_at_ms:
                return  # it looks again when it rings
            self._alarm.cancel()
        self._alarm_at_ms = due_at_ms
        self._alarm = self._tasks.start(self._wake_after(due_at_ms - now_ms), "window")

    async def _wake_after(self, wait_ms: int) -> None:
        await self._clock.sleep_ms(wait_ms)
        self._alarm = None
        self._seal_what_is_due()

    def _seal(self, gathering: Gathering) -> None:
        sealed = self._writer.seal(gathering.runs)
        self._sealed_at_ms = self._clock.monotonic_ms()
        sealed.handed_over_s = gathering.since_s
        self._in_flight.append(sealed)
        self._tasks.start(self._upload(sealed), "upload").add_done_callback(lambda _: self._upload_ended(sealed))

    # --- storing ---

    async def _upload(self, sealed: SealedObject) -> None:
        try:
            await self._writer.upload(sealed)
            self._stored_at_ms = self._clock.monotonic_ms()
        except Exception as problem:
            _log.exception("WAL object %s cannot be stored", sealed.key)
            self.measures.failures += 1
            sealed.problem = problem
        sealed.is_finished = True
        self._commit_what_is_finished()

    def _upload_ended(self, sealed: SealedObject) -> None:
        """However that was, also by a cancellation that nobody here asked for: one that never finished would hold up
        everything behind it for ever."""
        if not sealed.is_finished and not self._closed:
            sealed.problem = StorageUnavailable("the upload broke off")
            sealed.is_finished = True
            self._commit_what_is_finished()

    def _commit_what_is_finished(self) -> None:
        if not self._is_committing:
            self._is_committing = True
            self._tasks.start(self._commit_finished(), "commit").add_done_callback(self._commit_ended)

    def _commit_ended(self, commit: asyncio.Task[None]) -> None:
        """If it broke off, nobody knows what the store has, and whoever was not told yet would never be."""
        if self._closed or not (commit.cancelled() or commit.exception()):
            return
        for sealed in self._in_flight:
            if sealed.is_finished and sealed.problem is None:
                sealed.problem = StorageUnavailable("the commit broke off")
        self._commit_what_is_finished()

    async def _commit_finished(self) -> None:
        """In the order of sealing: an object that is stored waits for those before it."""
        try:
            while self._in_flight and self._in_flight[0].is_finished:
                if self._in_flight[0].problem is not None:
                    settled = [self._in_flight[0]]
                    self._refuse_all(settled, self._in_flight[0].problem)
                else:
                    settled = list(takewhile(lambda item: item.is_finished and not item.problem, self._in_flight))
                    await self._commit(settled)
                for sealed in settled:
                    self._in_flight.popleft()
                    self._writer.release(sealed)
                self._seal_what_is_due()
        finally:
            self._is_committing = False

    async def _commit(self, finished: list[SealedObject]) -> None:
        try:
            answers = await self._writer.commit(finished)
        except Exception as problem:
            # Nobody knows what the store has now, so every owner starts again from what it says.
            _log.exception("%d WAL objects cannot be registered", len(finished))
            self.measures.failures += 1
            self._refuse_all(finished, problem)
            return
        now_s = stopwatch_s()
        for sealed in finished:
            batches = sum(len(run.batches) for run in sealed.runs)
            self.measures.synced(now_s - sealed.handed_over_s, batches, sealed.encoded.size_bytes)
        for run, refusal in answers:
            if run.owner is None:
                continue
            if refusal is None:
                run.owner.durable(run.end_offset)
            else:
                self._fence(run.owner, refusal)

    # --- owners ---

    def _refuse_all(self, refused: list[SealedObject], problem: Exception) -> None:
        for sealed in refused:
            for run in sealed.runs:
                if run.owner is not None:
                    self._fence(run.owner, problem)

    def _fence(self, owner: WalOwner, problem: Exception) -> None:
        self._disown(owner)
        refusal = NotLeader(f"this agent no longer leads {owner.partition}: {problem}")
        self._refusals[owner] = refusal
        self._report_fenced(owner, refusal)
        owner.not_durable(refusal)

    def _disown(self, owner: WalOwner) -> None:
        """Drop what is gathered of it, and tell it nothing of what is in flight."""
        for gathering in self._gathered:
            gathering.drop(owner)
        self._gathered = deque(gathering for gathering in self._gathered if gathering.runs)
        for sealed in self._in_flight:
            sealed.disown(owner)

    def _give_up(self) -> None:
        runs = [run for sealed in self._in_flight for run in sealed.runs]
        runs += [run for gathering in self._gathered for run in gathering.runs]
        self._in_flight.clear()
        self._gathered.clear()
        owners = dict.fromkeys(run.owner for run in runs if run.owner is not None)
        for owner in owners:
            owner.not_durable(StorageUnavailable("the agent stopped before the records could be stored"))
