"""Adoption: what a sink has staged as objects becomes records of the log, once for each batch of the sink.

The first try of a batch that gets its row in the metadata store is the one that counts. Its objects are appended with
the producer id and epoch of that row, so whoever finishes what was begun, here or elsewhere, once or again, stores
every record once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol
from uuid import UUID

from streamhouse.broker.sequenced_append import SequencedAppend
from streamhouse.broker.staged_batches import StagedBatches
from streamhouse.broker.staged_rules import check_staged_records
from streamhouse.broker.topics import Topics
from streamhouse.core.producer_state import EXPIRY_MS
from streamhouse.format.object_keys import (
    StagingKey,
    manifest_key,
    manifest_unique,
    parse_staged_object_key,
    parse_staging_key,
    staging_prefix,
)
from streamhouse.format.staging import (
    Manifest,
    StagedObject,
    StagedRun,
    count_records,
    decode_manifest,
    encode_manifest,
)
from streamhouse.metadata.sinks import NewSinkBatch, SinkBatch, SinkStore
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import (
    AlreadyExists,
    CorruptData,
    InvalidInput,
    NotFound,
    OutcomeUnknown,
    SequenceRefused,
    StreamHouseError,
    Unavailable,
)
from streamhouse.model.names import check_sink_id
from streamhouse.model.topic import Topic
from streamhouse.objects.store import ObjectStore
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.tasks import TaskGroup

_log = logging.getLogger(__name__)

CLAIM_MS = 15_000
"""A batch that nobody has worked on for so long is anybody's to finish."""
_KEEP_CLAIM_MS = 5_000
# Callers ask again; an answer that takes longer than this may not find its way back.
_LONGEST_ANSWER_MS = 20_000
_PARTITIONS_AT_ONCE = 16
# What was read once as garbage may have been damaged on its way.
_READS = 2
_KEYS_BYTES = 4
# After that, leaders may have forgotten what they have of a producer's batches.
_LONGEST_PAUSE_MS = EXPIRY_MS // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """`is_repeat`: the records are those of an earlier try."""

    is_repeat: bool
    record_count: int


class Leaders(Protocol):
    """The part of a `Forwarder` that is needed here."""

    async def produce(self, topic: Topic, partition: int, batch: Buffer, *, is_admitted: bool) -> object: ...


class Adoption:
    def __init__(
        self, *, sinks: SinkStore, objects: ObjectStore, topics: Topics, leaders: Leaders, clock: Clock
    ) -> None:
        self._sinks = sinks
        self._objects = objects
        self._topics = topics
        self._leaders = leaders
        self._clock = clock
        self._tasks = TaskGroup("adoption")
        self._under_way: dict[StagingKey, asyncio.Task[StreamHouseError | None]] = {}

    async def adopt(self, sink_id: str, batch_id: int, staged: Sequence[StagedObject]) -> Adopted:
        """Append what was staged, or what an earlier try of the batch has staged if that got further, and return when
        it is durable. After a while OutcomeUnknown says that it is still under way: ask again."""
        check_sink_id(sink_id)
        batch = await self._sinks.find_sink_batch(sink_id, batch_id)
        if batch is None:
            batch = await self._begin(sink_id, batch_id, staged)
        if batch.has_failed:
            raise _given_up(batch)
        if not batch.is_done:
            await self._finish_soon(batch)
        self._tasks.start(self._clear(sink_id, batch_id), "clear")
        return Adopted(is_repeat=not _is_try(batch.manifest_key, staged), record_count=batch.record_count)

    async def abandon(self, keys: Sequence[str]) -> list[str]:
        """Remove staged objects, those that a batch which was begun needs excepted; returns what was removed."""
        batches: dict[StagingKey, list[str]] = {}
        for key in keys:
            owner = parse_staging_key(key)
            if owner is None:
                raise InvalidInput(f"{key[:300]!r} is not the key of a staged object")
            batches.setdefault(owner, []).append(key)
        removed: list[str] = []
        for owner, its_keys in batches.items():
            if await self._sinks.abandon_staged_objects(owner.sink_id, owner.batch_id, its_keys):
                await self._objects.delete(its_keys)
                removed += its_keys
        return removed

    async def resume(self, batch: SinkBatch) -> None:
        """Finish a batch that somebody else has begun, and then left."""
        await self._finish(batch)
        await self._clear(batch.sink_id, batch.batch_id)

    async def close(self) -> None:
        """What is under way is left to others."""
        await self._tasks.cancel()

    # --- beginning ---

    async def _check(self, sink_id: str, batch_id: int, staged: Sequence[StagedObject]) -> Manifest:
        """That all objects are there and make sense: what was begun must be possible to finish."""
        highest: dict[str, int] = {}
        for run in (run for item in staged for run in item.runs):
            highest[run.topic] = max(run.partition, highest.get(run.topic, 0))
        topics = {name: await self._topics.look_up(name, highest[name]) for name in sorted(highest)}
        sizes = {item.key: item.size_bytes async for item in self._objects.list(staging_prefix(sink_id))}
        for item in staged:
            if parse_staged_object_key(item.key) != (sink_id, batch_id):
                raise InvalidInput(f"{item.key[:300]!r} was not staged for batch {batch_id} of sink {sink_id!r}")
            if item.key not in sizes:
                raise NotFound(f"there is no staged object {item.key!r}", hint="run the batch again")
            for run in item.runs:
                _check_run(run, topics[run.topic], item.key, sizes[item.key])
        if len({item.key for item in staged}) < len(staged):
            raise InvalidInput("a staged object is named twice")
        rules = {name: self._topics.rules_of(topic) for name, topic in topics.items()}
        await check_staged_records(self._objects, staged, rules, self._clock.now_ms())
        return Manifest(
            sink_id=sink_id,
            batch_id=batch_id,
            topics={name: topic.topic_id for name, topic in topics.items()},
            objects=list(staged),
        )

    async def _begin(self, sink_id: str, batch_id: int, staged: Sequence[StagedObject]) -> SinkBatch:
        try:
            manifest = await self._check(sink_id, batch_id, staged)
        except NotFound:
            # An earlier try that is done by now has cleared all objects of the batch away, also ours.
            batch = await self._sinks.find_sink_batch(sink_id, batch_id)
            if batch is None:
                raise
            return batch
        content = encode_manifest(manifest)
        key = manifest_key(sink_id, batch_id, _identity(staged, content))
        try:
            await self._objects.create(key, [content])
        except AlreadyExists:
            pass  # an earlier call with these very objects; whoever reads it compares it with its key
        return await self._sinks.begin_sink_batch(
            NewSinkBatch(
                sink_id=sink_id,
                batch_id=batch_id,
                manifest_key=key,
                object_keys=tuple(item.key for item in staged),
                record_count=count_records(staged),
            )
        )

    # --- finishing ---

    async def _finish_soon(self, batch: SinkBatch) -> None:
        """Callers come and go; the work goes on."""
        key = StagingKey(batch.sink_id, batch.batch_id)
        task = self._under_way.get(key)
        if task is None:
            task = self._tasks.start(self._try_to_finish(batch), f"{batch.sink_id}/{batch.batch_id}")
            self._under_way[key] = task
            task.add_done_callback(lambda _: self._under_way.pop(key))
        try:
            async with asyncio.timeout(_LONGEST_ANSWER_MS / 1000):
                problem = await asyncio.shield(task)
            if problem is not None:
                raise problem
        except TimeoutError:
            raise OutcomeUnknown(
                f"batch {batch.batch_id} of sink {batch.sink_id!r} is being adopted", hint="ask again"
            ) from None

    async def _try_to_finish(self, batch: SinkBatch) -> StreamHouseError | None:
        """What went wrong is for those who wait."""
        try:
            await self._finish(batch)
        except StreamHouseError as problem:
            return problem
        return None

    async def _finish(self, batch: SinkBatch) -> None:
        try:
            await self._append_or_fail(batch)
        except NotFound:
            # Somebody else has finished it, or given it up, and cleared up.
            latest = await self._sinks.find_sink_batch(batch.sink_id, batch.batch_id)
            if latest is None or not latest.is_done:
                raise
            if latest.has_failed:
                raise _given_up(latest) from None

    async def _append_or_fail(self, batch: SinkBatch) -> None:
        """What nobody will ever be able to finish is given up, so that it is not tried for ever."""
        if batch.age_ms > _LONGEST_PAUSE_MS:
            await self._sinks.fail_sink_batch(batch.sink_id, batch.batch_id)
            raise SequenceRefused(
                f"batch {batch.batch_id} of sink {batch.sink_id!r} was begun {batch.age_ms // 3_600_000} hours ago; "
                "leaders may have forgotten what they have of it",
                hint="compare the topic with the source, and write what is missing with another sinkId",
            )
        for _ in range(_READS - 1):
            try:
                return await self._append_once(batch)
            except (CorruptData, InvalidInput) as problem:
                _log.warning("batch %d of sink %s is read again: %s", batch.batch_id, batch.sink_id, problem)
        try:
            await self._append_once(batch)
        except (CorruptData, InvalidInput) as problem:
            _log.error("batch %d of sink %s is given up: %s", batch.batch_id, batch.sink_id, problem)
            await self._sinks.fail_sink_batch(batch.sink_id, batch.batch_id)
            raise

    async def _append_once(self, batch: SinkBatch) -> None:
        keeping = self._tasks.start(self._keep_claim(batch), "claim")
        try:
            await self._append(batch, await self._read_manifest(batch))
        finally:
            keeping.cancel()
        await self._sinks.finish_sink_batch(batch.sink_id, batch.batch_id)

    async def _read_manifest(self, batch: SinkBatch) -> Manifest:
        """As a node has written it, which its key in the row tells."""
        content = await self._objects.get(batch.manifest_key)
        manifest = decode_manifest(content)
        identities = (_identity(manifest.objects, content), _identity_of_keys(manifest.objects))
        owner = (batch.sink_id, batch.batch_id)
        is_own = all(parse_staged_object_key(item.key) == owner for item in manifest.objects)
        if manifest_unique(batch.manifest_key) not in identities or not is_own:
            raise CorruptData(f"{batch.manifest_key!r} is not what a node has written there")
        return manifest

    async def _keep_claim(self, batch: SinkBatch) -> None:
        while True:
            await self._clock.sleep_ms(_KEEP_CLAIM_MS)
            try:
                await self._sinks.keep_sink_batch(batch.sink_id, batch.batch_id)
            except Unavailable as problem:
                _log.warning("the claim to a sink's batch could not be kept: %s", problem)

    async def _append(self, batch: SinkBatch, manifest: Manifest) -> None:
        runs: dict[tuple[str, int], list[tuple[str, StagedRun]]] = {}
        for item in manifest.objects:
            for run in item.runs:
                runs.setdefault((run.topic, run.partition), []).append((item.key, run))
        topics = await self._topics_of(manifest)
        batches = StagedBatches(self._objects, manifest.objects)
        turn = asyncio.Semaphore(_PARTITIONS_AT_ONCE)

        async def append_to(topic: Topic, partition: int, its_runs: Sequence[tuple[str, StagedRun]]) -> None:
            async with turn:
                append = SequencedAppend(
                    # What was begun was judged then, and must not be refused half way.
                    lambda data: self._leaders.produce(topic, partition, data, is_admitted=True),
                    batch.producer_id,
                    batch.producer_epoch,
                )
                await append.append_all(_in_order(batches, its_runs))

        work = [
            append_to(topics[name], partition, its_runs)
            for (name, partition), its_runs in runs.items()
            if name in topics
        ]
        outcomes = await asyncio.gather(*work, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _topics_of(self, manifest: Manifest) -> dict[str, Topic]:
        """Those that are still there: of one that was deleted meanwhile, nobody will miss the records."""
        runs = (run for item in manifest.objects for run in item.runs)
        if not all(self._knows(manifest.topics[run.topic], run.partition) for run in runs):
            await self._topics.refresh()
        found: dict[str, Topic] = {}
        for name, topic_id in manifest.topics.items():
            topic = self._topics.find_id(topic_id)
            if topic is None:
                _log.warning("topic %s was deleted while sink %s wrote to it", name, manifest.sink_id)
            else:
                found[name] = topic
        return found

    def _knows(self, topic_id: UUID, partition: int) -> bool:
        topic = self._topics.find_id(topic_id)
        return topic is not None and partition < topic.partition_count

    # --- clearing up ---

    async def _clear(self, sink_id: str, batch_id: int) -> None:
        """A batch that is done needs none of its objects any more, whichever try they are of."""
        try:
            staged = [item.key async for item in self._objects.list(staging_prefix(sink_id))]
            keys = [key for key in staged if parse_staging_key(key) == (sink_id, batch_id)]
            if keys:
                await self._objects.delete(keys)
        except StreamHouseError as problem:
            _log.warning("staged objects are left for later: %s", problem)


async def _in_order(batches: StagedBatches, runs: Sequence[tuple[str, StagedRun]]) -> AsyncIterator[memoryview]:
    for key, run in runs:
        async for batch in batches.read(key, run):
            yield batch


def _given_up(batch: SinkBatch) -> InvalidInput:
    return InvalidInput(
        f"batch {batch.batch_id} of sink {batch.sink_id!r} was given up: what was staged for it cannot become records",
        hint="compare the topic with the source, and write what is missing with another sinkId",
    )


def _check_run(run: StagedRun, topic: Topic, key: str, size_bytes: int) -> None:
    if not 0 <= run.partition < topic.partition_count:
        raise NotFound(f"there is no partition {run.partition} of {topic.name}")
    if not 0 <= run.start_byte < run.end_byte <= size_bytes or run.record_count < 1:
        raise InvalidInput(f"bytes [{run.start_byte}, {run.end_byte}) of {key!r} are not a run of record batches")


def _identity(staged: Sequence[StagedObject], manifest: bytes) -> UUID:
    """What a manifest's key says of it: which objects it names, so that a call that was repeated is told from another
    try of the batch; and its content, so that nobody can put another in its place."""
    return UUID(bytes=_identity_of_keys(staged).bytes[:_KEYS_BYTES] + sha256(manifest).digest()[: 16 - _KEYS_BYTES])


def _identity_of_keys(staged: Sequence[StagedObject]) -> UUID:
    """All that the key of a manifest said in earlier versions."""
    return UUID(bytes=sha256("\n".join(item.key for item in staged).encode("utf-8", "replace")).digest()[:16])


def _is_try(key: str, staged: Sequence[StagedObject]) -> bool:
    """Whether the manifest with that key names these objects."""
    return manifest_unique(key).bytes[:_KEYS_BYTES] == _identity_of_keys(staged).bytes[:_KEYS_BYTES]
