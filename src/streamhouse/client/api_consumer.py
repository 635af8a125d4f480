"""The client's consumer: an iterator of typed records that knows which of them its reader is done with."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from streamhouse.client.api_records import Record, read_record
from streamhouse.client.api_transport import RecordSource
from streamhouse.client.consumer import ConsumedRecord
from streamhouse.client.groups_admin import GroupPartition
from streamhouse.client.serde import Serde

T = TypeVar("T")

_POLL_MS = 1_000


class AsyncConsumer(Generic[T]):
    """`async for record in consumer`. It joins or opens when it is first used and ends with its block or its client.

    A record counts as done when the next one is asked for, or when the block ends without an exception. Committed is
    only what is done, so that after a failure the rest comes again."""

    def __init__(
        self,
        source: RecordSource,
        keys: Serde[Any],
        values: Serde[T],
        on_close: Callable[[AsyncConsumer[T]], None],
    ) -> None:
        self._source = source
        self._keys = keys
        self._values = values
        self._on_close = on_close
        self._waiting: deque[ConsumedRecord] = deque()
        self._given: ConsumedRecord | None = None
        self._done: dict[GroupPartition, int] = {}
        self._is_started = False
        self._is_closed = False
        self._is_at_end = False

    @property
    def assignment(self) -> tuple[GroupPartition, ...]:
        """The partitions that it reads now, in order."""
        return self._source.assignment

    async def start(self) -> None:
        """Otherwise done by whatever is called first."""
        if not self._is_started:
            await self._source.start()
            self._is_started = True

    async def poll(self, *, max_wait_ms: int = _POLL_MS) -> Record[T] | None:
        """The next record, or None if there is none within the wait."""
        if not self._waiting:
            await self.fill(max_wait_ms)
        return self.take() if self._waiting else None

    async def commit(self, record: Record[T] | None = None) -> None:
        """Up to and with this record in its partition; without one, everything up to the record that came last."""
        await self.start()
        if record is None:
            self._finish_given()
            offsets = dict(self._done)
        else:
            offsets = {GroupPartition(record.topic, record.partition): record.offset + 1}
        if offsets:
            await self._source.commit(offsets)
            for partition, offset in offsets.items():
                if self._done.get(partition, -1) <= offset:
                    self._done.pop(partition, None)

    async def close(self) -> None:
        """With what is done committed, if the consumer commits by itself. The last record counts as done."""
        self._finish_given()
        await self._close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record[T]:
        while not self._waiting:
            if self.is_over:
                raise StopAsyncIteration
            await self.fill(_POLL_MS)
        return self.take()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await (self.close() if kind is None else self._close())

    # The two halves of an iteration, apart: what runs on another thread than the loop asks it only for the second.

    @property
    def is_over(self) -> bool:
        return self._is_at_end or self._is_closed

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def take(self) -> Record[T]:
        """A record that waits here; the one before is done. BadRecord if it is not what was expected."""
        self._finish_given()
        self._given = self._waiting.popleft()
        return read_record(self._given, self._keys, self._values)

    async def fill(self, max_wait_ms: int) -> None:
        """Asks for more, when nothing waits here."""
        await self.start()
        self._finish_given()
        owned = self.assignment
        # What another member has now is for that one to commit.
        self._done = {partition: offset for partition, offset in self._done.items() if partition in owned}
        self._source.finished(self._done)
        records = await self._source.poll(max_wait_ms)
        if records is None:
            self._is_at_end = True
        else:
            self._waiting.extend(records)

    def _finish_given(self) -> None:
        if self._given is not None:
            self._done[GroupPartition(self._given.topic, self._given.partition)] = self._given.offset + 1
            self._given = None

    async def _close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._waiting.clear()
        self._on_close(self)
        if self._is_started:
            self._source.finished(self._done)
            await self._source.close()
