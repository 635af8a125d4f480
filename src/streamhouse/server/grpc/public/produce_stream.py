"""One `ProduceStream` call: requests are gathered while those before them become durable, and answered in order.

One append is under way at a time, with all that came in during the one before: that keeps the order of a stream's
records also where an append has to be sent to another node and tried again, and makes many small requests as cheap as
few large ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import groupby
from typing import NamedTuple

from streamhouse.broker.forwarding import DEFAULT_TIMEOUT_MS
from streamhouse.broker.records import NotTried, RecordDoor
from streamhouse.model.errors import InvalidInput, StreamHouseError
from streamhouse.model.topic import Topic
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.server.grpc.messages_in_time import LateMessage
from streamhouse.server.grpc.public.appending import Outcomes, append_rows, new_records, read_request
from streamhouse.server.grpc.public.messages import error_message
from streamhouse.server.grpc.public.streams import Answers
from streamhouse.wire.grpc import streamhouse_v1_pb2 as pb
from streamhouse.wire.grpc.produce_rows import ProduceRows, read_rows

MAX_GATHERED = 1_000
MAX_GATHERED_RECORDS = 10_000
MAX_GATHERED_BYTES = 4 * 1024 * 1024
"""What is taken in beyond what is being appended; but one request, whatever its size."""


class _Request(NamedTuple):
    """`raw` is what `rows` were read from."""

    number: int
    topic: str
    rows: ProduceRows
    raw: bytes

    @property
    def record_count(self) -> int:
        return self.rows.columns.count


class _Inbox:
    """Requests in order, so many as fit; whoever puts in more waits until they are taken."""

    def __init__(self) -> None:
        self._requests: list[_Request] = []
        self._record_count = 0
        self._size_bytes = 0
        self._problem: Exception | None = None
        self._has_ended = False
        self._changed = asyncio.Condition()

    async def put(self, request: _Request) -> None:
        async with self._changed:
            await self._changed.wait_for(self._has_room)
            self._requests.append(request)
            self._record_count += request.record_count
            self._size_bytes += len(request.raw)
            self._changed.notify_all()

    async def end(self, problem: Exception | None = None) -> None:
        """There is no more; `problem` is for whoever has taken all that there was."""
        async with self._changed:
            self._has_ended = True
            self._problem = problem
            self._changed.notify_all()

    async def take(self) -> list[_Request]:
        """All that is there; nothing when it has ended."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._requests or self._has_ended)
            taken, self._requests = self._requests, []
            self._record_count = self._size_bytes = 0
            self._changed.notify_all()
        if not taken and self._problem is not None:
            raise self._problem
        return taken

    def _has_room(self) -> bool:
        return (
            len(self._requests) < MAX_GATHERED
            and self._record_count < MAX_GATHERED_RECORDS
            and self._size_bytes < MAX_GATHERED_BYTES
        )


class ProduceStream:
    def __init__(self, records: RecordDoor, clock: Clock, answers: Answers[pb.ProduceStreamResponse]) -> None:
        self._records = records
        self._clock = clock
        self._answers = answers
        self._inbox = _Inbox()

    async def run(self, requests: AsyncIterator[bytes]) -> None:
        """Until the client has sent its last request and all are answered."""
        receiving = TaskGroup("produce stream")
        receiving.start(self._receive(requests), "receive")
        try:
            while gathered := await self._inbox.take():
                for topic, several in groupby(gathered, key=lambda request: request.topic):
                    await self._append(topic, list(several))
        finally:
            await receiving.cancel()

    async def _receive(self, requests: AsyncIterator[bytes]) -> None:
        topic = ""
        try:
            async for number, raw in _numbered(requests):
                rows = read_request(raw, self._clock.now_ms())
                topic = rows.topic.decode() or topic
                if not topic:
                    raise InvalidInput("the first request of a stream has to name its topic")
                await self._inbox.put(_Request(number, topic, rows, raw))
        except (StreamHouseError, LateMessage) as problem:
            await self._inbox.end(problem)
        else:
            await self._inbox.end()

    async def _append(self, topic_name: str, requests: Sequence[_Request]) -> None:
        try:
            topic = await self._records.topic_to_write(topic_name)
            rows = self._together(requests)
            outcomes = await append_rows(self._records, topic, rows, timeout_ms=DEFAULT_TIMEOUT_MS)
        except StreamHouseError as problem:
            for request in requests:
                await self._answers.send(_refused(request, problem))
            return
        start = 0
        for request in requests:
            end = start + request.record_count
            settled = await self._try_untried(topic, request, outcomes.part(start, end))
            await self._answers.send(_answer(request, settled))
            start = end

    def _together(self, requests: Sequence[_Request]) -> ProduceRows:
        """Messages end to end are one message, which has the records of all of them."""
        if len(requests) == 1:
            return requests[0].rows
        parts = sum(request.record_count + request.rows.columns.header_count for request in requests)
        return read_rows(b"".join(request.raw for request in requests), self._clock.now_ms(), parts)

    async def _try_untried(self, topic: Topic, request: _Request, outcomes: Outcomes) -> Outcomes:
        """A request must not fail because of another that it was gathered with: what was held back behind a refused
        record of an earlier request is appended now, before anything that came later is."""
        untried = [index for index, problem in outcomes.problems.items() if isinstance(problem, NotTried)]
        if not untried or len(untried) < len(outcomes.problems):
            return outcomes
        records = new_records(request.rows)
        again = await self._records.append(topic, [records[index] for index in untried])
        for index, outcome in zip(untried, again, strict=True):
            outcomes.replace(index, outcome)
        return outcomes


async def _numbered(requests: AsyncIterator[bytes]) -> AsyncIterator[tuple[int, bytes]]:
    number = 0
    async for request in requests:
        yield number, request
        number += 1


def _answer(request: _Request, outcomes: Outcomes) -> pb.ProduceStreamResponse:
    try:
        return pb.ProduceStreamResponse(request=request.number, stored=outcomes.response())
    except StreamHouseError as refusal:
        return _refused(request, refusal)


def _refused(request: _Request, problem: StreamHouseError) -> pb.ProduceStreamResponse:
    return pb.ProduceStreamResponse(request=request.number, error=error_message(problem))
