"""Records as they come, of some or all of a topic's partitions: what event streams and WebSockets send on.

A reader that does not keep up stops the reading: of each partition at most one page waits for it, and a few more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

from streamhouse.broker.records import EARLIEST, LATEST, ReadRecords, RecordDoor
from streamhouse.format.rows import Record
from streamhouse.model.errors import (
    InvalidInput,
    NotFound,
    OffsetOutOfRange,
    StreamHouseError,
    Unavailable,
    UnreadableRecords,
)
from streamhouse.model.topic import Topic
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.server.http.rest.filters import RecordFilter, filter_of
from streamhouse.server.http.rest.waiting import Waiting
from streamhouse.wire.http.rest.positions import positions_of
from streamhouse.wire.http.rest.records import FollowQuery

MAX_FOLLOWED = 64
"""Partitions; the positions of all of them go with every record."""
HEARTBEAT_S = 15.0
_PAGE_RECORDS = 200
_PAGE_BYTES = 128 * 1024
_PAGES_READY = 2
_WAIT_MS = 5_000
_TIMEOUT_MS = 1_000
"""After which it is looked whether the topic is still there."""


class Page(NamedTuple):
    """A partition's next records, and where to read on; or what was passed over, since it cannot be given as rows."""

    partition: int
    records: list[Record]
    next_offset: int
    passed_over: UnreadableRecords | None = None


class Following:
    """Opens followers, as many as there are places to wait."""

    def __init__(self, door: RecordDoor, waiting: Waiting) -> None:
        self._door = door
        self._waiting = waiting

    @asynccontextmanager
    async def open(self, name: str, query: FollowQuery) -> AsyncIterator[Follower]:
        """What is wrong with the query is raised here, before anything is answered."""
        wanted = filter_of(query)
        topic = await self._door.topic(name)
        positions = await self._positions(topic, query)
        follower = Follower(self._door, topic, positions, wanted, follows_all=query.partitions is None)
        with self._waiting.place(follower.stop):
            try:
                yield follower
            finally:
                await follower.close()

    async def _positions(self, topic: Topic, query: FollowQuery) -> dict[int, int]:
        partitions = _partitions(topic, query)
        known = {} if query.positions is None else positions_of(query.positions)
        if not known.keys() <= set(range(topic.partition_count)):
            raise InvalidInput(f"{topic.name} has no such partitions", hint="give the id of an event of this topic")
        starts = await asyncio.gather(
            *(self._start(topic, partition, query) for partition in partitions if partition not in known)
        )
        begun = zip((partition for partition in partitions if partition not in known), starts, strict=True)
        positions = {partition: known[partition] for partition in partitions if partition in known} | dict(begun)
        return dict(sorted(positions.items()))

    async def _start(self, topic: Topic, partition: int, query: FollowQuery) -> int:
        """A partition without a position where others have one is new, and is read from its beginning."""
        if query.positions is not None:
            return (await self._door.offset_at(topic, partition, EARLIEST)).log_start_offset
        if query.from_ms is not None:
            found = await self._door.offset_at(topic, partition, query.from_ms)
            return found.high_watermark if found.offset is None else found.offset
        log = await self._door.offset_at(topic, partition, LATEST)
        return log.log_start_offset if query.start == "earliest" else log.high_watermark


class Follower:
    def __init__(
        self,
        door: RecordDoor,
        topic: Topic,
        positions: Mapping[int, int],
        wanted: RecordFilter,
        *,
        follows_all: bool,
    ) -> None:
        """`follows_all`: partitions that are added are followed as well, from their beginning."""
        self.positions = dict(positions)
        """Where to read on after what `pages` has given."""
        self._door = door
        self._topic = topic
        self._wanted = wanted
        self._follows_all = follows_all
        self._ready: asyncio.Queue[Page | StreamHouseError | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(_PAGES_READY)
        self._readers = TaskGroup(f"following {topic.name}")

    async def pages(self) -> AsyncIterator[Page | None]:
        """Until `stop`, or a problem; None when nothing came for a while. The receiver moves `positions`."""
        for partition, offset in self.positions.items():
            self._readers.start(self._read(partition, offset), str(partition))
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    page = await self._ready.get()
            except TimeoutError:
                yield None
                continue
            if page is None:
                return
            if isinstance(page, StreamHouseError):
                raise page
            yield page
            self._room.release()

    def stop(self) -> None:
        """What is ready is still given."""
        self._ready.put_nowait(None)

    async def close(self) -> None:
        await self._readers.cancel()

    async def _read(self, partition: int, offset: int) -> None:
        try:
            while True:
                try:
                    page = await self._next_page(partition, offset)
                except UnreadableRecords as problem:
                    offset = await self._pass_over(partition, offset, problem)
                    continue
                self._follow_added()
                if page is None:
                    offset = await self._nearest(partition, offset)
                elif page.next_offset > offset:
                    await self._room.acquire()
                    offset = page.next_offset
                    wanted = await self._wanted.of(page.records)
                    self._ready.put_nowait(Page(partition, wanted, offset))
        except StreamHouseError as problem:
            self._ready.put_nowait(problem)

    def _follow_added(self) -> None:
        if not self._follows_all:
            return
        topic, known = self._topic, self._door.as_known_now(self._topic)
        if known.partition_count > MAX_FOLLOWED:
            raise _too_many(known.partition_count)
        self._topic = known
        for partition in range(topic.partition_count, known.partition_count):
            self.positions[partition] = 0
            self._readers.start(self._read(partition, 0), str(partition))

    async def _next_page(self, partition: int, offset: int) -> ReadRecords | None:
        """None if the offset is not in the log. A partition without a leader will have one, as long as there is the
        topic."""
        while True:
            try:
                return await self._door.read(
                    self._topic,
                    partition,
                    offset,
                    max_records=_PAGE_RECORDS,
                    max_bytes=_PAGE_BYTES,
                    max_wait_ms=_WAIT_MS,
                    timeout_ms=_TIMEOUT_MS,
                )
            except OffsetOutOfRange:
                return None
            except Unavailable:
                if (await self._door.topic(self._topic.name)).topic_id != self._topic.topic_id:
                    raise NotFound(f"{self._topic.name} is another topic now") from None

    async def _pass_over(self, partition: int, offset: int, problem: UnreadableRecords) -> int:
        """One who follows wants to hear of it and to go on."""
        if problem.next_offset is None or problem.next_offset <= offset:
            raise problem
        await self._room.acquire()
        self._ready.put_nowait(Page(partition, [], problem.next_offset, problem))
        return problem.next_offset

    async def _nearest(self, partition: int, offset: int) -> int:
        """Retention was faster than the reader; or the topic is another one with the same name."""
        log = await self._door.offset_at(self._topic, partition, EARLIEST)
        return log.log_start_offset if offset < log.log_start_offset else log.high_watermark


def _partitions(topic: Topic, query: FollowQuery) -> list[int]:
    if query.partitions is None:
        partitions = list(range(topic.partition_count))
    else:
        partitions = sorted({int(part) for part in query.partitions.split(",")})
        if partitions[-1] >= topic.partition_count:
            raise NotFound(f"there is no partition {partitions[-1]} of {topic.name}")
    if len(partitions) > MAX_FOLLOWED:
        raise _too_many(len(partitions))
    return partitions


def _too_many(count: int) -> InvalidInput:
    return InvalidInput(
        f"{count} partitions are too many to follow at once",
        hint=f"choose up to {MAX_FOLLOWED} with partitions=0,1,…",
    )
