"""Calls that reach a node which does not lead the partition: sent on to the one that does, and again if it has changed.

For doors whose clients do not choose the node themselves. Kafka clients do, and are told NOT_LEADER instead."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar
from uuid import UUID

from streamhouse.client.peer import Fetched, FoundOffset, NewSegment, Peer, Peers, Produced
from streamhouse.format.batch import read_header
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import NotFound, NotLeader, OutcomeUnknown, StreamHouseError, Unavailable
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import Topic
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.retry import backoff_ms

T = TypeVar("T")
Call = Callable[[Peer, int], Awaitable[T]]
"""What is asked of a peer, within so many milliseconds."""

DEFAULT_TIMEOUT_MS = 30_000
_FIRST_WAIT_MS = 10
_LONGEST_WAIT_MS = 500
# A peer that hangs must not use up the time in which its successor could answer.
_ATTEMPT_MS = 5_000


class Forwarder:
    def __init__(
        self,
        *,
        agent_id: str,
        local: Peer,
        peers: Peers,
        leader_address: Callable[[UUID, int], tuple[str, str] | None],
        refresh_routes: Callable[[], Awaitable[None]],
        clock: Clock,
    ) -> None:
        """`leader_address` says, from memory, which agent leads a partition and where it is; `refresh_routes` lets it
        learn what has changed, and may fail with Unavailable."""
        self._agent_id = agent_id
        self._local = local
        self._peers = peers
        self._leader_address = leader_address
        self._refresh_routes = refresh_routes
        self._clock = clock

    async def produce(
        self,
        topic: Topic,
        partition: int,
        batch: Buffer,
        *,
        is_admitted: bool = False,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
    ) -> Produced:
        """Append one batch, wherever its leader is.

        If it may be stored but nobody said so, it is sent again only if its leader would recognise it; else that is
        what is reported (OutcomeUnknown)."""
        target = TopicPartition(topic.topic_id, partition)
        is_idempotent = read_header(batch).producer_id >= 0

        async def call(peer: Peer, left_ms: int) -> Produced:
            return await peer.produce(
                target,
                batch,
                is_admitted=is_admitted,
                timeout_ms=min(left_ms, _ATTEMPT_MS) if is_idempotent else left_ms,
            )

        return await self._ask_leader(topic, partition, call, timeout_ms, is_repeatable=is_idempotent)

    async def fetch(
        self,
        topic: Topic,
        partition: int,
        offset: int,
        *,
        max_bytes: int,
        min_bytes: int = 0,
        max_wait_ms: int = 0,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
    ) -> Fetched:
        """Read whole batches, wherever their leader is; as with a peer, the time-out comes on top of `max_wait_ms`."""
        target = TopicPartition(topic.topic_id, partition)

        async def call(peer: Peer, left_ms: int) -> Fetched:
            reading_ms = min(left_ms, _ATTEMPT_MS)
            return await peer.fetch(
                target,
                offset,
                max_bytes=max_bytes,
                min_bytes=min_bytes,
                max_wait_ms=min(max_wait_ms, left_ms - reading_ms),
                timeout_ms=reading_ms,
            )

        return await self._ask_leader(topic, partition, call, max_wait_ms + timeout_ms, is_repeatable=True)

    async def offset_at(
        self, topic: Topic, partition: int, timestamp_ms: int, *, timeout_ms: int = DEFAULT_TIMEOUT_MS
    ) -> FoundOffset:
        """Which offset a time is at, and where the log ends, wherever its leader is."""
        target = TopicPartition(topic.topic_id, partition)

        async def call(peer: Peer, left_ms: int) -> FoundOffset:
            return await peer.offset_at(target, timestamp_ms, timeout_ms=min(left_ms, _ATTEMPT_MS))

        return await self._ask_leader(topic, partition, call, timeout_ms, is_repeatable=True)

    async def replace_segments(
        self,
        topic: Topic,
        partition: int,
        commit_id: UUID,
        removed: Sequence[str],
        added: Sequence[NewSegment],
        *,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
    ) -> None:
        """Put segments in the place of others, wherever the leader is; it recognises what it has done already."""
        target = TopicPartition(topic.topic_id, partition)

        async def call(peer: Peer, left_ms: int) -> None:
            await peer.replace_segments(target, commit_id, removed, added, timeout_ms=min(left_ms, _ATTEMPT_MS))

        await self._ask_leader(topic, partition, call, timeout_ms, is_repeatable=True)

    async def _ask_leader(
        self, topic: Topic, partition: int, call: Call[T], timeout_ms: int, *, is_repeatable: bool
    ) -> T:
        if not 0 <= partition < topic.partition_count:
            raise NotFound(f"there is no partition {partition} of {topic.name}")
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        unknown: OutcomeUnknown | None = None
        for wait_ms in backoff_ms(_FIRST_WAIT_MS, _LONGEST_WAIT_MS):
            problem: StreamHouseError
            try:
                return await call(self._leader(topic, partition), deadline_ms - self._clock.monotonic_ms())
            except OutcomeUnknown as lost:
                if not is_repeatable:
                    raise
                problem = unknown = lost
            except (NotLeader, Unavailable) as refusal:
                # A later refusal says nothing about what an earlier try may have stored.
                problem = unknown or refusal
            if deadline_ms - self._clock.monotonic_ms() <= wait_ms:
                raise problem
            await self._clock.sleep_ms(wait_ms)
            await self._refresh(deadline_ms)
            if deadline_ms <= self._clock.monotonic_ms():
                raise problem
        raise AssertionError("the waits are endless")

    def _leader(self, topic: Topic, partition: int) -> Peer:
        found = self._leader_address(topic.topic_id, partition)
        if found is None:
            raise Unavailable(f"no agent leads {topic.name}/{partition} now", hint="try again")
        agent_id, address = found
        return self._local if agent_id == self._agent_id else self._peers.at(agent_id, address)

    async def _refresh(self, deadline_ms: int) -> None:
        """Without the metadata store the routes that are known have to do."""
        with suppress(Unavailable, TimeoutError):
            async with asyncio.timeout((deadline_ms - self._clock.monotonic_ms()) / 1000):
                await self._refresh_routes()
