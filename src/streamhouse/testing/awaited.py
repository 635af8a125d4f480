"""The broker's calls for tests that are coroutines: awaited, while the test's loop goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from datetime import datetime
from typing import Any, TypeVar

from streamhouse.broker.records import StoredRecord
from streamhouse.client.api_records import Headers, Record
from streamhouse.client.serde import Format
from streamhouse.testing.records import Records, new_record, new_records
from streamhouse.testing.waiting import Wanted, check_timeout

T = TypeVar("T")
WAIT_S = 30.0
"""How long is waited unless the test says otherwise: only what hangs takes that long."""


class AwaitedBroker:
    """`Broker.aio`: the same calls as those of the broker, as coroutines."""

    def __init__(self, records: Records, loop: asyncio.AbstractEventLoop) -> None:
        self._records = records
        self._loop = loop

    async def _there(self, work: Coroutine[Any, Any, T]) -> T:
        """On the broker's loop, which is another thread's."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def produce(
        self,
        topic: str,
        value: object = None,
        *,
        key: object = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: datetime | int | None = None,
    ) -> StoredRecord:
        record = new_record(value, key=key, headers=headers, partition=partition, timestamp=timestamp)
        (stored,) = await self._there(self._records.produce(topic, [record]))
        return stored

    async def produce_all(self, topic: str, records: Iterable[object]) -> list[StoredRecord]:
        rows = new_records(records)
        return await self._there(self._records.produce(topic, rows))

    async def read(
        self,
        topic: str,
        *,
        count: int | None = None,
        partition: int | None = None,
        timeout: float = WAIT_S,
        format: Format = "bytes",
        key_format: Format = "bytes",
    ) -> list[Record[Any]]:
        check_timeout(timeout)
        return await self._there(
            self._records.read(
                topic,
                partition=partition,
                count=count,
                timeout_s=timeout,
                value_format=format,
                key_format=key_format,
            )
        )

    async def wait(
        self,
        *,
        topic: str | None = None,
        records: int | None = None,
        group: str | None = None,
        members: int | None = None,
        lag: int | None = None,
        committed: int | None = None,
        timeout: float = WAIT_S,
    ) -> None:
        check_timeout(timeout)
        wanted = Wanted(topic=topic, records=records, group=group, members=members, lag=lag, committed=committed)
        await self._there(self._records.wait(wanted, timeout))
