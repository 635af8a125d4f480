"""What the client needs of a protocol; Kafka's and gRPC's are beside this file."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from streamhouse.client.api_records import Delivery, NewRecord, Start, TopicInfo
from streamhouse.client.consumer import ConsumedRecord
from streamhouse.client.group_consumer import Reset
from streamhouse.client.groups_admin import GroupPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """All partitions of a topic, without a group; `until_end`: only what is there when it starts."""

    topic: str
    start: Start
    until_end: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """A share of the topics, as a member of a group. Without `commit_every_ms`, only what is asked for is committed."""

    topics: tuple[str, ...]
    group: str
    reset: Reset
    commit_every_ms: int | None


class RecordSink(Protocol):
    """Sends records in order; bounds what is on its way."""

    async def send(self, record: NewRecord) -> asyncio.Future[Delivery]:
        """Waits only for room; the future is done when the record is durable."""

    async def flush(self) -> None:
        """Until nothing is on its way, well or badly."""

    async def close(self) -> None:
        """What is still on its way may be lost: flush first."""


class RecordSource(Protocol):
    async def start(self) -> None: ...

    @property
    def assignment(self) -> tuple[GroupPartition, ...]: ...

    async def poll(self, max_wait_ms: int) -> Sequence[ConsumedRecord] | None:
        """The next records, or none within the wait; None: there will be no more. Those before are done with."""

    def finished(self, offsets: Mapping[GroupPartition, int]) -> None:
        """What is before these offsets is done, for a source that commits by itself."""

    async def commit(self, offsets: Mapping[GroupPartition, int]) -> None: ...

    async def close(self) -> None: ...


class Transport(Protocol):
    async def open(self) -> None:
        """Unavailable if nobody answers."""

    async def close(self) -> None: ...

    async def create_topic(self, name: str, partition_count: int | None, config: Mapping[str, str]) -> None: ...

    async def create_partitions(self, name: str, partition_count: int) -> None: ...

    async def delete_topic(self, name: str) -> None: ...

    async def topics(self) -> list[TopicInfo]: ...

    def sink(self) -> RecordSink: ...

    def source(self, wanted: Reading | Membership) -> RecordSource: ...
