"""Records one by one, for doors whose clients send and read rows and do not choose the node: every such door appends
and reads through this, so that a key has one partition and a limit one value whatever the door."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import count, repeat
from typing import NamedTuple

from streamhouse.broker.forwarding import DEFAULT_TIMEOUT_MS, Forwarder
from streamhouse.broker.measures import DoorMeasures
from streamhouse.broker.topics import Topics
from streamhouse.client.peer import EARLIEST, LATEST, FoundOffset, Produced
from streamhouse.core.partitioner import partition_for_key
from streamhouse.format.batch import read_header
from streamhouse.format.columns import Columns
from streamhouse.format.plain_batch import encode_plain_batch
from streamhouse.format.records import columns_of, encode_columns
from streamhouse.format.row_reading import RowsRead, read_rows
from streamhouse.format.rows import Record
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import (
    AlreadyExists,
    InvalidInput,
    NotFound,
    StreamHouseError,
    Unavailable,
    UnreadableRecords,
)
from streamhouse.model.topic import Topic
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.measures import stopwatch_s

__all__ = ["EARLIEST", "LATEST", "NewRecord", "NotTried", "ReadRecords", "RecordDoor", "StoredRecord"]

MAX_TIMESTAMP_MS = 2**53
"""Beyond what JSON's numbers and most languages' dates can say."""
_DEFAULT_READ_BYTES = 2**20


class NewRecord(NamedTuple):
    """Without a partition the key decides; without a key, the records of one call go to one partition, those of the
    next to the next."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class StoredRecord(NamedTuple):
    partition: int
    offset: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRecords:
    """`next_offset` is where to read on, which after gaps is not the last record's offset plus one."""

    records: list[Record]
    next_offset: int
    log_start_offset: int
    high_watermark: int


class AppendedRun(NamedTuple):
    """Neighbouring records that went the same way."""

    record_count: int
    outcome: Produced | StreamHouseError


class NotTried(Unavailable):
    """A record that was held back to keep the order, because one before it was refused."""


class RecordDoor:
    def __init__(
        self,
        topics: Topics,
        forwarder: Forwarder,
        clock: Clock,
        threads: Executor,
        *,
        auto_create_topics: bool,
        measures: DoorMeasures | None = None,
    ) -> None:
        """Rows are made on the `threads`. `measures` are those of the listener whose clients come through here."""
        self.measures = measures or DoorMeasures()
        self._topics = topics
        self._forwarder = forwarder
        self._clock = clock
        self._threads = threads
        self._auto_create_topics = auto_create_topics
        self._turns = count()

    def at(self, measures: DoorMeasures) -> RecordDoor:
        """The same for another listener."""
        return RecordDoor(
            self._topics,
            self._forwarder,
            self._clock,
            self._threads,
            auto_create_topics=self._auto_create_topics,
            measures=measures,
        )

    async def topic(self, name: str, partition: int = 0) -> Topic:
        """Also one that another node made, or gave that partition, a moment ago."""
        return await self._topics.look_up(name, partition)

    def as_known_now(self, topic: Topic) -> Topic:
        """The same topic, which may have grown since it was looked up."""
        return self._topics.find_id(topic.topic_id) or topic

    async def topic_to_write(self, name: str, *, partition_count: int | None = None) -> Topic:
        """The same; created if need be and allowed, as it is when a Kafka producer names it first."""
        try:
            return await self.topic(name)
        except NotFound:
            if not self._auto_create_topics:
                raise
        try:
            return await self._topics.create(name, partition_count, {})
        except AlreadyExists:
            return self._topics.get(name)

    async def append(
        self, topic: Topic, records: Sequence[NewRecord], *, timeout_ms: int = DEFAULT_TIMEOUT_MS
    ) -> list[StoredRecord | StreamHouseError]:
        """What became of each record, in their order. Records of one partition keep their order: when some of them are
        refused, for another reason than what they are themselves, those that follow are not tried. What may be stored
        without anybody knowing is OutcomeUnknown."""
        by_partition, outcomes = _place(topic, records, keyless=self.next_partition(topic))
        now_ms = self._clock.now_ms()
        if len(records) == 1 and by_partition and not records[0].headers and records[0].value is not None:
            return [await self._append_plain(topic, next(iter(by_partition)), records[0], now_ms, timeout_ms)]
        appends = [
            self._append(
                topic, partition, indexes, [_row(records[index], now_ms) for index in indexes], outcomes, timeout_ms
            )
            for partition, indexes in by_partition.items()
        ]
        if len(appends) == 1:  # most often, and it needs no task
            await appends[0]
        else:
            await asyncio.gather(*appends)
        return [outcomes[index] for index in range(len(records))]

    async def _append_plain(
        self, topic: Topic, partition: int, record: NewRecord, now_ms: int, timeout_ms: int
    ) -> StoredRecord | StreamHouseError:
        """What most calls with one record are, and worth a shorter way: without columns in between."""
        timestamp_ms = now_ms if record.timestamp_ms is None else record.timestamp_ms
        batch, _ = encode_plain_batch([(record.key, record.value or b"")], timestamp_ms)
        try:
            stored = await self._produce(topic, partition, batch, 1, timeout_ms)
        except StreamHouseError as refusal:
            return refusal
        stamp_ms = stored.append_time_ms
        return StoredRecord(partition, stored.base_offset, stamp_ms if stamp_ms >= 0 else timestamp_ms)

    async def _append(
        self,
        topic: Topic,
        partition: int,
        indexes: Sequence[int],
        rows: Sequence[Record],
        outcomes: dict[int, StoredRecord | StreamHouseError],
        timeout_ms: int,
    ) -> None:
        """`rows` are the records at the `indexes`."""
        at = 0
        for run in await self.append_columns(topic, partition, columns_of(rows), timeout_ms=timeout_ms):
            part, part_rows = indexes[at : at + run.record_count], rows[at : at + run.record_count]
            at += run.record_count
            if isinstance(run.outcome, StreamHouseError):
                outcomes.update(dict.fromkeys(part, run.outcome))
                continue
            stamp_ms = run.outcome.append_time_ms
            times_ms = repeat(stamp_ms) if stamp_ms >= 0 else (row.timestamp_ms for row in part_rows)
            offsets = count(run.outcome.base_offset)
            outcomes.update(zip(part, map(StoredRecord, repeat(partition), offsets, times_ms), strict=False))

    async def append_columns(
        self, topic: Topic, partition: int, columns: Columns, *, timeout_ms: int = DEFAULT_TIMEOUT_MS
    ) -> list[AppendedRun]:
        """The same for records of one partition that are columns already: what became of each run of them, in order.

        They may be of several callers, so that those that the topic does not take are refused alone. However many
        batches they become, all of them have `timeout_ms` together."""
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        if not self._topics.has_rules(topic):
            return await self._append_rows(topic, partition, columns, None, deadline_ms)
        runs: list[AppendedRun] = []
        problem: StreamHouseError | None = None
        for rows, refusal in self._topics.rules_of(topic).divide(columns, self._clock.now_ms()):
            if refusal is not None:
                self.measures.produces_refused += 1
                runs.append(AppendedRun(len(rows), refusal))
            elif problem is not None:
                runs.append(AppendedRun(len(rows), _not_tried(problem)))
            else:
                tried = await self._append_rows(topic, partition, columns, rows, deadline_ms)
                problem = next((run.outcome for run in tried if isinstance(run.outcome, StreamHouseError)), None)
                runs += tried
        return runs

    async def _append_rows(
        self, topic: Topic, partition: int, columns: Columns, rows: range | None, deadline_ms: int
    ) -> list[AppendedRun]:
        problem: StreamHouseError | None = None
        runs: list[AppendedRun] = []
        limit_bytes = int(self._topics.config_of(topic)["max.message.bytes"])
        for batch in encode_columns(columns, max_batch_bytes=limit_bytes, rows=rows):
            record_count = read_header(batch).record_count
            if problem is not None:
                runs.append(AppendedRun(record_count, _not_tried(problem)))
                continue
            try:
                stored = await self._produce(topic, partition, batch, record_count, self._left_ms(deadline_ms))
            except StreamHouseError as refusal:
                problem = refusal
                runs.append(AppendedRun(record_count, refusal))
            else:
                runs.append(AppendedRun(record_count, stored))
        return runs

    def _left_ms(self, deadline_ms: int) -> int:
        left_ms = deadline_ms - self._clock.monotonic_ms()
        if left_ms <= 0:
            raise Unavailable("no time was left to store it", hint="send it again")
        return left_ms

    async def _produce(
        self, topic: Topic, partition: int, batch: Buffer, record_count: int, timeout_ms: int
    ) -> Produced:
        begun_s = stopwatch_s()
        try:
            stored = await self._forwarder.produce(topic, partition, batch, timeout_ms=timeout_ms)
        except StreamHouseError:
            self.measures.produces_refused += 1
            raise
        finally:
            self.measures.produce_seconds.observe(stopwatch_s() - begun_s)
        self.measures.produced(record_count, len(batch))
        return stored

    def next_partition(self, topic: Topic) -> int:
        """Where records without a key go: those of one call to one partition, those of the next to the next."""
        return next(self._turns) % topic.partition_count

    async def read(
        self,
        topic: Topic,
        partition: int,
        offset: int,
        *,
        max_records: int,
        max_bytes: int = _DEFAULT_READ_BYTES,
        max_wait_ms: int = 0,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
    ) -> ReadRecords:
        """The records from an offset on, as many as one answer may cost; none if nothing came within `max_wait_ms`.
        OffsetOutOfRange if the offset was deleted or is beyond the end, UnreadableRecords if what is there cannot be
        given as rows."""
        begun_s = stopwatch_s()
        try:
            fetched = await self._forwarder.fetch(
                topic,
                partition,
                offset,
                max_bytes=max_bytes,
                min_bytes=1,
                max_wait_ms=max_wait_ms,
                timeout_ms=timeout_ms,
            )
        except StreamHouseError:
            self.measures.fetches_refused += 1
            raise
        finally:
            self.measures.fetch_seconds.observe(stopwatch_s() - begun_s)
        self.measures.fetched_bytes += len(fetched.batches)
        rows = RowsRead([], offset)
        if fetched.batches:
            reading = partial(read_rows, fetched.batches, offset, max_records=max_records)
            try:
                rows = await asyncio.get_running_loop().run_in_executor(self._threads, reading)
            except UnreadableRecords as problem:
                raise problem.at(topic.name, partition) from None
        self.measures.fetched_records += len(rows.records)
        return ReadRecords(
            records=rows.records,
            next_offset=rows.next_offset,
            log_start_offset=fetched.log_start_offset,
            high_watermark=fetched.high_watermark,
        )

    async def offset_at(self, topic: Topic, partition: int, timestamp_ms: int) -> FoundOffset:
        """The offset at a time, or EARLIEST, or LATEST; and where the log begins and ends."""
        return await self._forwarder.offset_at(topic, partition, timestamp_ms)

    async def ends(self, topic: Topic) -> Mapping[int, FoundOffset | StreamHouseError]:
        """Where every partition begins and ends, or why that is not known now."""
        found = await asyncio.gather(
            *(self.offset_at(topic, partition, LATEST) for partition in range(topic.partition_count)),
            return_exceptions=True,
        )
        ends: dict[int, FoundOffset | StreamHouseError] = {}
        for partition, end in enumerate(found):
            if isinstance(end, BaseException) and not isinstance(end, StreamHouseError):
                raise end
            ends[partition] = end
        return ends


def _place(
    topic: Topic, records: Sequence[NewRecord], *, keyless: int
) -> tuple[dict[int, list[int]], dict[int, StoredRecord | StreamHouseError]]:
    """Which records go to each partition, by their indexes, and why others go nowhere."""
    by_partition: dict[int, list[int]] = {}
    refusals: dict[int, StoredRecord | StreamHouseError] = {}
    for index, (_, key, _, partition, timestamp_ms) in enumerate(records):
        if partition is None:
            partition = keyless if key is None else partition_for_key(key, topic.partition_count)
        elif not 0 <= partition < topic.partition_count:
            refusals[index] = NotFound(
                f"{topic.name} has no partition {partition}", hint=f"it has 0 to {topic.partition_count - 1}"
            )
            continue
        if timestamp_ms is not None and not 0 <= timestamp_ms <= MAX_TIMESTAMP_MS:
            refusals[index] = InvalidInput(f"{timestamp_ms} is not a time", hint="milliseconds since 1970")
            continue
        by_partition.setdefault(partition, []).append(index)
    return by_partition, refusals


def _not_tried(problem: StreamHouseError) -> NotTried:
    return NotTried(f"not tried, after: {problem.message}")


def _row(record: NewRecord, now_ms: int) -> Record:
    value, key, headers, _, timestamp_ms = record
    return Record(0, now_ms if timestamp_ms is None else timestamp_ms, key, value, headers)
