"""Reading as a member of a group through a Flume port: partitions are divided among the members, positions committed.

Membership lives with the connection. Heartbeats go out in the background; what they learn is acted on in `poll`, so
that partitions change hands only between two polls, when nothing of the last one is left undone. Where they learn
nothing, as in a process that was paused, the broker refuses the next fetch, and `poll` joins again as well."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, Self

from streamhouse.client.address import parse_bootstrap
from streamhouse.client.flume.connection import FlumeConnection
from streamhouse.client.flume.consumer import DEFAULT_MAX_BYTES, fetch_records
from streamhouse.client.flume.errors import RebalanceNeeded, UnknownMember, raise_for
from streamhouse.model.errors import InvalidInput, StaleGeneration, StreamHouseError, Unavailable
from streamhouse.runtime.clock import Clock, SystemClock
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.wire.flume import groups as messages
from streamhouse.wire.flume.codes import ApiKey
from streamhouse.wire.flume.groups import AssignedPartition
from streamhouse.wire.flume.records import EARLIEST

DEFAULT_SESSION_TIMEOUT_MS = 10_000
_HEARTBEATS_PER_SESSION = 4
_IDLE_PAUSE_MS = 20


class GroupMessage(NamedTuple):
    topic: str
    partition: int
    offset: int
    payload: bytes


class AsyncGroupConsumer:
    """`async with AsyncGroupConsumer("127.0.0.1:9094", "analytics", ["orders"]) as consumer: await consumer.poll()`

    A partition starts where the group committed last, or with its oldest message. `commit` says that all that was
    polled is done; without it, it comes again after a rebalance or a restart."""

    def __init__(
        self,
        address: str,
        group_id: str,
        topics: Sequence[str],
        *,
        session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS,
        clock: Clock | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics = tuple(topics)
        self.member_id = messages.NEW_MEMBER
        self.generation = messages.NO_GENERATION
        self._address = parse_bootstrap(address)[0]
        self._session_timeout_ms = session_timeout_ms
        self._clock = clock or SystemClock()
        self._positions: dict[AssignedPartition, int] = {}
        self._connection: FlumeConnection | None = None
        self._must_join = False
        self._tasks = TaskGroup("flume-group")

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def assignment(self) -> tuple[AssignedPartition, ...]:
        """The partitions that are this member's, in order."""
        return tuple(sorted(self._positions))

    async def start(self) -> None:
        """Connect and join."""
        if self._connection is not None:
            return
        self._connection = await FlumeConnection.open(self._address)
        try:
            await self._join()
        except BaseException:
            await self.close()
            raise
        self._tasks.start(self._keep_alive(), "heartbeats")

    async def close(self) -> None:
        """Leave the group; its partitions are free for others at once."""
        await self._tasks.cancel()
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            if self.member_id:
                request = messages.LeaveGroupRequest(self.group_id, self.member_id)
                await connection.call(ApiKey.LEAVE_GROUP, messages.encode_leave_group_request(request))
        except Unavailable:
            pass  # to hang up is to leave
        finally:
            await connection.close()

    async def poll(self, *, max_bytes: int = DEFAULT_MAX_BYTES, max_wait_ms: int = 500) -> list[GroupMessage]:
        """The next messages of all partitions, each up to `max_bytes`; none if nothing came within `max_wait_ms`."""
        deadline_ms = self._clock.monotonic_ms() + max_wait_ms
        while True:
            if self._must_join:
                await self._join()
            polled = await self._fetch_all(max_bytes)
            if polled or self._clock.monotonic_ms() >= deadline_ms:
                for message in polled:
                    self._positions[AssignedPartition(message.topic, message.partition)] = message.offset + 1
                return polled
            await self._clock.sleep_ms(_IDLE_PAUSE_MS)

    async def commit(self) -> None:
        """All that `poll` has returned is done. StaleGeneration or UnknownMember if it is no longer this member's."""
        for partition, position in sorted(self._positions.items()):
            if position != EARLIEST:
                request = messages.OffsetCommitRequest(self.group_id, *partition, position)
                await self._commit(messages.encode_offset_commit_request(request), f"committing {partition}")

    async def committed(self, topic: str, partition: int) -> int | None:
        """Where the group is, if it has committed anything there."""
        request = messages.OffsetFetchRequest(self.group_id, topic, partition)
        payload = await self._connected.call(ApiKey.OFFSET_FETCH, messages.encode_offset_fetch_request(request))
        response = messages.decode_offset_fetch_response(payload, 0, len(payload))
        raise_for(response.error_code, f"reading the offset of {topic}/{partition}")
        return response.offset if response.offset >= 0 else None

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Go on from there, until the partition goes to another member."""
        if (topic, partition) not in self._positions:
            raise InvalidInput(f"{topic}/{partition} is not this member's")
        self._positions[AssignedPartition(topic, partition)] = offset

    async def _commit(self, request: bytes, what: str) -> None:
        try:
            await self._call_for_code(ApiKey.OFFSET_COMMIT, request, what)
        except (StaleGeneration, UnknownMember):
            self._must_join = True
            raise

    async def _fetch_all(self, max_bytes: int) -> list[GroupMessage]:
        found = await asyncio.gather(
            *(self._fetch(partition, max_bytes) for partition in self.assignment), return_exceptions=True
        )
        polled: list[GroupMessage] = []
        for outcome in found:
            if isinstance(outcome, StaleGeneration | UnknownMember | RebalanceNeeded):
                self._must_join = True
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                polled += outcome
        return polled

    async def _fetch(self, partition: AssignedPartition, max_bytes: int) -> list[GroupMessage]:
        records = await fetch_records(self._connected, *partition, self._positions[partition], max_bytes)
        return [GroupMessage(*partition, *record) for record in records]

    async def _join(self) -> None:
        """Join, again if need be until the group agrees on who has what."""
        while True:
            self._must_join = False
            try:
                await self._join_once()
                assigned = await self._ask_assignment()
                break
            except UnknownMember:
                self.member_id = messages.NEW_MEMBER
                self._positions.clear()
            except StaleGeneration:
                continue
        kept = {partition: self._positions[partition] for partition in assigned if partition in self._positions}
        for partition in assigned:
            if partition not in kept:
                committed = await self.committed(*partition)
                kept[partition] = EARLIEST if committed is None else committed
        self._positions = kept

    async def _join_once(self) -> None:
        request = messages.JoinGroupRequest(self.group_id, self.member_id, self._session_timeout_ms, self.topics)
        payload = await self._connected.call(ApiKey.JOIN_GROUP, messages.encode_join_group_request(request))
        response = messages.decode_join_group_response(payload, 0, len(payload))
        raise_for(response.error_code, f"joining {self.group_id!r}")
        self.member_id, self.generation = response.member_id, response.generation

    async def _ask_assignment(self) -> tuple[AssignedPartition, ...]:
        request = messages.AssignmentRequest(self.group_id, self.generation, self.member_id)
        payload = await self._connected.call(ApiKey.ASSIGNMENT, messages.encode_heartbeat_request(request))
        response = messages.decode_assignment_response(payload, 0, len(payload))
        raise_for(response.error_code, f"asking for the partitions of {self.member_id!r}")
        return response.partitions

    async def _keep_alive(self) -> None:
        while self._connected.is_open:  # if it is not, the next poll says so
            await self._clock.sleep_ms(self._session_timeout_ms / _HEARTBEATS_PER_SESSION)
            with suppress(StreamHouseError):  # the broker cannot reach the group now, and may when asked again
                await self._heartbeat()

    async def _heartbeat(self) -> None:
        request = messages.HeartbeatRequest(self.group_id, self.generation, self.member_id)
        try:
            await self._call_for_code(ApiKey.HEARTBEAT, messages.encode_heartbeat_request(request), "heartbeat")
        except (RebalanceNeeded, UnknownMember):
            self._must_join = True
        except StaleGeneration:
            # It crossed a join, whose generation is the newer one, unless that is what the group has left behind.
            self._must_join = request.generation == self.generation

    async def _call_for_code(self, api_key: ApiKey, request: bytes, what: str) -> None:
        payload = await self._connected.call(api_key, request)
        raise_for(messages.decode_error_code(payload, 0, len(payload)), what)

    @property
    def _connected(self) -> FlumeConnection:
        if self._connection is None:
            raise Unavailable("the consumer is not started", hint="use it in an `async with` block")
        return self._connection
