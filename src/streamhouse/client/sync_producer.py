"""The producer without `async`: records are handed to the other thread in bunches, which costs less than one by one."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from streamhouse.client.api_producer import AsyncProducer
from streamhouse.client.api_records import Delivery, Headers, NewRecord
from streamhouse.client.sync_thread import LoopThread

_OUTBOX_RECORDS = 1_000


class _Outbox:
    """Records between two threads; whoever puts one in hears whether somebody is on the way to fetch it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: list[NewRecord] = []
        self._is_emptied = False

    @property
    def is_full(self) -> bool:
        return len(self._records) >= _OUTBOX_RECORDS

    def put(self, record: NewRecord) -> bool:
        """Whether somebody has to be sent for it."""
        with self._lock:
            self._records.append(record)
            was_emptied, self._is_emptied = self._is_emptied, True
            return not was_emptied

    def take(self) -> Sequence[NewRecord]:
        """All that is there. Whoever finds nothing goes, and the next to put something in sends for another."""
        with self._lock:
            records, self._records = self._records, []
            self._is_emptied = bool(records)
            return records


class Producer:
    """What AsyncProducer is."""

    def __init__(self, thread: LoopThread, inner: AsyncProducer) -> None:
        self._thread = thread
        self._inner = inner
        self._outbox = _Outbox()
        self._handing_over: Future[None] | None = None

    def send(
        self,
        value: Any,
        *,
        key: Any = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: datetime | int | None = None,
    ) -> Delivery:
        """Durable when this returns."""
        self.wait_handed_over()
        return self._thread.run(
            self._inner.send(value, key=key, headers=headers, partition=partition, timestamp=timestamp)
        )

    def enqueue(
        self,
        value: Any,
        *,
        key: Any = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: datetime | int | None = None,
    ) -> None:
        """Waits only for room; `flush`, or the end of the block, tells whether all is well."""
        if self._outbox.put(self._inner.record(value, key, headers, partition, timestamp)):
            self._handing_over = self._thread.start(self._hand_over())
        elif self._outbox.is_full:
            self.wait_handed_over()

    def flush(self) -> None:
        """Until all that was enqueued is durable; the first failure since the last flush is raised."""
        self.wait_handed_over()
        self._thread.run(self._inner.flush())

    def close(self) -> None:
        """Flushes first."""
        self.wait_handed_over()
        self._thread.run(self._inner.close())

    def wait_handed_over(self) -> None:
        """Until the other thread has all that was enqueued; it is not sent yet."""
        if self._handing_over is not None:
            self._handing_over.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.wait_handed_over()
        self._thread.run(self._inner.__aexit__(kind, value, trace))

    async def _hand_over(self) -> None:
        while records := self._outbox.take():
            await self._inner.enqueue_records(records)
