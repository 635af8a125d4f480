"""The client's producer: Python values in, one at a time with an answer or many in a row."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from streamhouse.client.api_records import Delivery, Headers, NewRecord, header_bytes, timestamp_of
from streamhouse.client.api_transport import RecordSink
from streamhouse.client.serde import Serde
from streamhouse.model.errors import StreamHouseError


class AsyncProducer:
    """Sends to one topic. `send` waits until the record is durable; `enqueue` does not, and `flush` tells for all."""

    def __init__(
        self,
        sink: RecordSink,
        topic: str,
        keys: Serde[Any],
        values: Serde[Any],
        on_close: Callable[[AsyncProducer], None],
    ) -> None:
        self._sink = sink
        self._topic = topic
        self._keys = keys
        self._values = values
        self._on_close = on_close
        self._enqueued: deque[asyncio.Future[Delivery]] = deque()
        self._failure: BaseException | None = None

    async def send(
        self,
        value: Any,
        *,
        key: Any = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: datetime | int | None = None,
    ) -> Delivery:
        """Without a partition the key decides; `timestamp` is a time or milliseconds since 1970, and now without it."""
        return await (await self._sink.send(self.record(value, key, headers, partition, timestamp)))

    async def enqueue(
        self,
        value: Any,
        *,
        key: Any = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: datetime | int | None = None,
    ) -> None:
        """Waits only for room. If a record cannot be stored, the next `flush` says so, or the end of the block."""
        self._enqueued.append(await self._sink.send(self.record(value, key, headers, partition, timestamp)))
        self._note_done()

    async def enqueue_records(self, records: Sequence[NewRecord]) -> None:
        """For those who are not here when something fails: also what is refused at once is told by the flush."""
        for record in records:
            try:
                self._enqueued.append(await self._sink.send(record))
            except StreamHouseError as problem:
                self._failure = self._failure or problem
            self._note_done()

    def record(
        self, value: Any, key: Any, headers: Headers, partition: int | None, timestamp: datetime | int | None
    ) -> NewRecord:
        """What `enqueue_records` takes."""
        return NewRecord(
            topic=self._topic,
            value=self._values.encode(value),
            key=self._keys.encode(key),
            headers=header_bytes(headers),
            partition=partition,
            timestamp_ms=timestamp_of(timestamp),
        )

    async def flush(self) -> None:
        """Until all that was enqueued is durable; the first failure since the last flush is raised."""
        await self._sink.flush()
        while self._enqueued:
            await asyncio.wait(self._enqueued)
            self._note_done()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    async def close(self) -> None:
        """Flushes first."""
        try:
            await self.flush()
        finally:
            await self._close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After an error nobody waits for what is left.
        await (self.close() if kind is None else self._close())

    async def _close(self) -> None:
        self._on_close(self)
        await self._sink.close()
        self._note_done()

    def _note_done(self) -> None:
        while self._enqueued and self._enqueued[0].done():
            delivered = self._enqueued.popleft()
            failure = None if delivered.cancelled() else delivered.exception()
            self._failure = self._failure or failure
