"""Makes WAL objects durable by a create-only PUT and a metadata transaction, as long as it takes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from uuid import UUID

from streamhouse.format.object_keys import wal_object_key
from streamhouse.format.wal_object import BatchRun, EncodedWalObject, encode_wal_object
from streamhouse.log.creating import create_own
from streamhouse.log.wal import WalOwner
from streamhouse.log.wal_gathering import OwnedRun
from streamhouse.metadata.wal_objects import WalCommit, WalObjectStore, WalRange
from streamhouse.model.errors import Unavailable
from streamhouse.objects.store import ObjectStore
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.entropy import new_uuid
from streamhouse.runtime.retry import backoff_ms

_log = logging.getLogger(__name__)


class SealedObject:
    """An object on its way: its runs will not change any more, except that an owner may lose interest in its own.

    `is_finished` says that its upload has ended, well or with `problem`."""

    __slots__ = (
        "commit_id",
        "encoded",
        "handed_over_s",
        "is_finished",
        "key",
        "named_at_ms",
        "problem",
        "runs",
        "sealed_at_ms",
    )

    def __init__(self, runs: Sequence[OwnedRun], commit_id: UUID, sealed_at_ms: int) -> None:
        self.runs = runs
        self.encoded: EncodedWalObject = encode_wal_object(
            [BatchRun(run.partition, run.epoch, run.base_offset, run.end_offset, run.batches) for run in runs]
        )
        self.commit_id = commit_id
        self.sealed_at_ms = sealed_at_ms
        self.key = ""
        self.named_at_ms = 0
        self.handed_over_s = 0.0
        self.is_finished = False
        self.problem: Exception | None = None

    @property
    def is_wanted(self) -> bool:
        return any(run.owner is not None for run in self.runs)

    def disown(self, owner: WalOwner) -> None:
        for run in self.runs:
            if run.owner is owner:
                run.owner = None


class WalObjectWriter:
    def __init__(
        self, *, agent_id: str, objects: ObjectStore, store: WalObjectStore, clock: Clock, garbage_grace_ms: int
    ) -> None:
        self._agent_id = agent_id
        self._objects = objects
        self._store = store
        self._clock = clock
        # Whoever removes objects that nobody committed waits for the whole grace period (rule 9).
        self._committable_ms = garbage_grace_ms // 2
        self._last_name_ms = 0
        self.keys_under_way: set[str] = set()

    def seal(self, runs: Sequence[OwnedRun]) -> SealedObject:
        sealed = SealedObject(runs, new_uuid(), self._clock.monotonic_ms())
        self._name(sealed)
        return sealed

    def release(self, sealed: SealedObject) -> None:
        """It is settled."""
        self.keys_under_way.discard(sealed.key)

    async def upload(self, sealed: SealedObject) -> None:
        """Until it is stored or nobody wants it; Fenced if its key belongs to another object."""
        for wait_ms in backoff_ms():
            if not sealed.is_wanted:
                return
            try:
                await create_own(self._objects, sealed.key, sealed.encoded.parts, partial(self._is_ours, sealed))
                return
            except Unavailable as problem:
                _log.warning("cannot upload %s, trying again: %s", sealed.key, problem)
                await self._clock.sleep_ms(wait_ms)

    async def commit(self, sealed: Iterable[SealedObject]) -> list[tuple[OwnedRun, Exception | None]]:
        """Register uploaded objects in one transaction, in order; what became of each run that is still wanted."""
        # Decided once: a try whose answer was lost and its repeat are about the same ranges.
        chosen = [(item, [run for run in item.runs if run.owner is not None]) for item in sealed]
        for wait_ms in backoff_ms():
            for item, _ in chosen:
                await self._keep_committable(item)
            chosen = [(item, runs) for item, runs in chosen if item.is_wanted]
            if not chosen:
                return []
            try:
                answers = await self._store.commit_wal_objects([self._commit_of(item, runs) for item, runs in chosen])
            except Unavailable as problem:
                _log.warning("cannot register %d WAL objects, trying again: %s", len(chosen), problem)
                await self._clock.sleep_ms(wait_ms)
            else:
                return [
                    settled
                    for (_, runs), answer in zip(chosen, answers, strict=True)
                    for settled in zip(runs, answer, strict=True)
                ]
        raise AssertionError("the waits are endless")

    def _name(self, sealed: SealedObject) -> None:
        """Give it a key that sorts behind those of all objects before it, also if the wall clock was set back."""
        self._last_name_ms = max(self._clock.now_ms(), self._last_name_ms + 1)
        sealed.key = wal_object_key(self._agent_id, self._last_name_ms, new_uuid())
        sealed.named_at_ms = self._clock.monotonic_ms()
        self.keys_under_way.add(sealed.key)

    async def _keep_committable(self, sealed: SealedObject) -> None:
        """An object that waited too long for its commit may be taken for garbage by others: it is uploaded again.

        The commit id stays, so if a commit of the old key did take effect, its repeat says so."""
        while sealed.is_wanted and self._clock.monotonic_ms() - sealed.named_at_ms > self._committable_ms:
            self.keys_under_way.discard(sealed.key)
            self._name(sealed)
            await self.upload(sealed)

    async def _is_ours(self, sealed: SealedObject) -> bool:
        """By size, and by directory and footer, in which the checksums of all ranges are."""
        tail = sealed.encoded.tail
        return await self._objects.get_suffix(sealed.key, len(tail)) == (tail, sealed.encoded.size_bytes)

    def _commit_of(self, sealed: SealedObject, runs: Sequence[OwnedRun]) -> WalCommit:
        chosen = set(runs)
        return WalCommit(
            object_key=sealed.key,
            commit_id=sealed.commit_id,
            agent_id=self._agent_id,
            size_bytes=sealed.encoded.size_bytes,
            ranges=tuple(
                WalRange(
                    partition=entry.partition,
                    epoch=entry.epoch,
                    base_offset=entry.base_offset,
                    end_offset=entry.end_offset,
                    position=entry.position,
                    size_bytes=entry.size_bytes,
                    checksum=entry.checksum,
                    object_key=sealed.key,
                )
                for run, entry in zip(sealed.runs, sealed.encoded.entries, strict=True)
                if run in chosen
            ),
        )
