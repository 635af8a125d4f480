"""One `Consume` call: partitions of a topic, read side by side, and no further than the client has taken."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from streamhouse.broker.records import EARLIEST, ReadRecords, RecordDoor
from streamhouse.model.errors import InvalidInput, NotFound, OffsetOutOfRange
from streamhouse.model.topic import Topic
from streamhouse.server.grpc.public.messages import in_messages, record_messages, time_of
from streamhouse.server.grpc.public.streams import Answers
from streamhouse.wire.grpc import streamhouse_v1_pb2 as pb

MAX_PARTITIONS = 256
"""In one call: each has a read under way, perhaps at another node."""
_BUFFER_BYTES = 16 * 1024 * 1024
_LEAST_BYTES = _BUFFER_BYTES // MAX_PARTITIONS
_WAIT_MS = 5_000


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """How much one answer holds, about."""

    max_records: int
    max_bytes: int

    @staticmethod
    def of(max_records: int, max_bytes: int) -> AnswerLimits:
        """What a client asked for, within what we allow; 0 leaves it to us."""
        return AnswerLimits(min(max_records or 500, 10_000), min(max_bytes or 2**20, 16 * 2**20))


@dataclass(slots=True)
class _Reading:
    """`offset` is what is read next; with `stop`, the partition ends there."""

    partition: int
    offset: int
    stop: int | None

    @property
    def is_done(self) -> bool:
        return self.stop is not None and self.offset >= self.stop


class Consumption:
    def __init__(self, records: RecordDoor, answers: Answers[pb.ConsumeResponse]) -> None:
        self._records = records
        self._answers = answers
        # The readers wait here for their turn, each with what it has read and no more.
        self._turn = asyncio.Lock()
        self._topic: Topic
        self._limits: AnswerLimits
        self._follows_added: bool
        self._followed: int
        self._readers: asyncio.TaskGroup

    async def run(self, request: pb.ConsumeRequest) -> None:
        """For ever, or until the ends that the logs have now."""
        _check_count(len({each.partition for each in request.partitions}))
        highest = max((each.partition for each in request.partitions), default=0)
        self._topic = topic = await self._records.topic(request.topic, highest)
        wanted = AnswerLimits.of(request.max_records, request.max_bytes)
        readings = await self._start(topic, request)
        share_bytes = max(_LEAST_BYTES, min(wanted.max_bytes, _BUFFER_BYTES // len(readings)))
        self._limits = replace(wanted, max_bytes=share_bytes)
        self._follows_added = not request.until_end and (not request.partitions or request.follow_added)
        # To a client that named some, those beyond them are new: it may have heard nothing of them yet.
        self._followed = highest + 1 if request.partitions else topic.partition_count
        await self._answers.begin()
        try:
            async with asyncio.TaskGroup() as self._readers:
                for reading in readings:
                    self._readers.create_task(self._read_on(reading))
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None

    async def _start(self, topic: Topic, request: pb.ConsumeRequest) -> list[_Reading]:
        asked = {each.partition: each.position for each in request.partitions}
        positions = asked or dict.fromkeys(range(topic.partition_count), request.start)
        _check_count(len(positions))
        for partition in positions:
            if not 0 <= partition < topic.partition_count:
                raise NotFound(f"there is no partition {partition} of {topic.name}")
        return await asyncio.gather(
            *(
                self._start_at(
                    topic, partition, position if position.HasField("at") else request.start, request.until_end
                )
                for partition, position in positions.items()
            )
        )

    async def _start_at(self, topic: Topic, partition: int, position: pb.Position, until_end: bool) -> _Reading:
        timestamp_ms = time_of(position, EARLIEST)
        found = await self._records.offset_at(topic, partition, EARLIEST if timestamp_ms is None else timestamp_ms)
        offset = position.offset if timestamp_ms is None else found.offset
        if offset is None:
            offset = found.high_watermark
        if not found.log_start_offset <= offset <= found.high_watermark:
            raise OffsetOutOfRange(
                f"{topic.name}/{partition} does not hold offset {offset}",
                hint=f"it holds {found.log_start_offset} to {found.high_watermark}",
            )
        return _Reading(partition, offset, found.high_watermark if until_end else None)

    async def _read_on(self, reading: _Reading) -> None:
        while not reading.is_done:
            read = await self._records.read(
                self._topic,
                reading.partition,
                reading.offset,
                max_records=self._limits.max_records,
                max_bytes=self._limits.max_bytes,
                max_wait_ms=_WAIT_MS,
            )
            if self._follows_added:
                self._follow_added()
            await self._send(reading, read, self._limits.max_bytes)
            reading.offset = read.next_offset

    def _follow_added(self) -> None:
        """From their beginning."""
        self._topic = self._records.as_known_now(self._topic)
        _check_count(self._topic.partition_count)
        for partition in range(self._followed, self._topic.partition_count):
            self._readers.create_task(self._read_added(partition))
        self._followed = self._topic.partition_count

    async def _read_added(self, partition: int) -> None:
        found = await self._records.offset_at(self._topic, partition, EARLIEST)
        await self._read_on(_Reading(partition, found.log_start_offset, None))

    async def _send(self, reading: _Reading, read: ReadRecords, max_bytes: int) -> None:
        records = read.records
        if reading.stop is not None:
            records = [record for record in records if record.offset < reading.stop]
        async with self._turn:
            for several in in_messages(records, max_bytes):
                is_last = several[-1] is records[-1]
                await self._answers.send(
                    pb.ConsumeResponse(
                        partition=reading.partition,
                        records=await record_messages(several),
                        next_offset=_end(reading, read) if is_last else several[-1].offset + 1,
                        log_start_offset=read.log_start_offset,
                        high_watermark=read.high_watermark,
                    )
                )


def _check_count(partitions: int) -> None:
    if partitions > MAX_PARTITIONS:
        raise InvalidInput(
            f"{partitions} partitions are too many for one call",
            hint=f"name up to {MAX_PARTITIONS} of them in each of several calls",
        )


def _end(reading: _Reading, read: ReadRecords) -> int:
    return read.next_offset if reading.stop is None else min(read.next_offset, reading.stop)
