"""Reads records over gRPC: all partitions by `Consume`, or a group's share of them by `Subscribe`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import grpc

from streamhouse.client.api_records import timestamp_of
from streamhouse.client.api_transport import Membership, Reading
from streamhouse.client.consumer import ConsumedRecord
from streamhouse.client.errors import RETRIABLE
from streamhouse.client.groups_admin import GroupPartition
from streamhouse.client.grpc_channel import GrpcChannel
from streamhouse.client.grpc_stream import LastingStream
from streamhouse.model.errors import InvalidInput, NotFound, StaleGeneration, StreamHouseError, Unavailable
from streamhouse.runtime.clock import Clock
from streamhouse.wire.grpc import streamhouse_v1_pb2 as pb
from streamhouse.wire.grpc.error_kinds import error_named

RECORDS = pb.DESCRIPTOR.services_by_name["Records"].full_name
GROUPS = pb.DESCRIPTOR.services_by_name["Groups"].full_name
_CALL_MS = 30_000
_RESETS = {
    "earliest": pb.OFFSET_RESET_EARLIEST,
    "latest": pb.OFFSET_RESET_LATEST,
    "error": pb.OFFSET_RESET_ERROR,
}


class GrpcReader:
    """All partitions of one topic, without a group. Where each is read next is known here, not at the node."""

    def __init__(self, channel: GrpcChannel, clock: Clock, wanted: Reading) -> None:
        self._channel = channel
        self._wanted = wanted
        self._positions: dict[int, int] = {}
        self._stop_at: dict[int, int] = {}
        self._list_offsets = channel.unary(RECORDS, "ListOffsets", pb.ListOffsetsRequest, pb.ListOffsetsResponse)
        self._stream = LastingStream(channel, clock, self._consume)

    @property
    def assignment(self) -> tuple[GroupPartition, ...]:
        return tuple(GroupPartition(self._wanted.topic, partition) for partition in sorted(self._positions))

    async def start(self) -> None:
        request = pb.ListOffsetsRequest(topic=self._wanted.topic, at=_position(self._wanted))
        answer = await self._channel.call(self._list_offsets, request, _CALL_MS)
        for found in answer.partitions:
            if found.HasField("error"):
                raise (error_named(found.error.code) or StreamHouseError)(found.error.message)
            end = found.ends.high_watermark
            self._positions[found.partition] = found.offset if found.HasField("offset") else end
            self._stop_at[found.partition] = end

    async def poll(self, max_wait_ms: int) -> Sequence[ConsumedRecord] | None:
        if self._wanted.until_end and (not self._unfinished() or self._stream.has_ended):
            return None
        answer = await self._stream.next(max_wait_ms)
        if answer is None:
            return []
        self._positions[answer.partition] = answer.next_offset
        stop = self._stop_at[answer.partition] if self._wanted.until_end else None
        records = _consumed(self._wanted.topic, answer.partition, answer.records)
        return [record for record in records if stop is None or record.offset < stop]

    def finished(self, offsets: Mapping[GroupPartition, int]) -> None:
        """Nobody remembers where this was."""

    async def commit(self, offsets: Mapping[GroupPartition, int]) -> None:
        raise InvalidInput("without a group there is nothing to commit to", hint="name one: consumer(…, group='…')")

    async def close(self) -> None:
        await self._stream.close()

    def _unfinished(self) -> dict[int, int]:
        if not self._wanted.until_end:
            return self._positions
        return {partition: at for partition, at in self._positions.items() if at < self._stop_at[partition]}

    def _consume(self) -> grpc.aio.UnaryStreamCall[pb.ConsumeRequest, pb.ConsumeResponse]:
        method = self._channel.unary_stream(RECORDS, "Consume", pb.ConsumeRequest, pb.ConsumeResponse)
        partitions = [
            pb.PartitionPosition(partition=partition, position=pb.Position(offset=at))
            for partition, at in self._unfinished().items()
        ]
        return method(
            pb.ConsumeRequest(
                topic=self._wanted.topic, partitions=partitions, until_end=self._wanted.until_end, follow_added=True
            )
        )


class GrpcGroupReader:
    """A member for as long as its call lasts. Another call is another member: what it had comes again from where the
    group has committed."""

    def __init__(self, channel: GrpcChannel, clock: Clock, wanted: Membership, client_id: str) -> None:
        self._channel = channel
        self._clock = clock
        self._wanted = wanted
        self._client_id = client_id
        self._member_id = ""
        self._member_secret = ""
        self._assigned: frozenset[GroupPartition] = frozenset()
        self._finished: dict[GroupPartition, int] = {}
        self._committed_ms = clock.monotonic_ms()
        self._ahead: list[ConsumedRecord] = []
        self._commit = channel.unary(GROUPS, "Commit", pb.CommitRequest, pb.CommitResponse)
        self._leave = channel.unary(GROUPS, "Leave", pb.LeaveRequest, pb.LeaveResponse)
        self._stream = LastingStream(channel, clock, self._subscribe)

    @property
    def assignment(self) -> tuple[GroupPartition, ...]:
        return tuple(sorted(self._assigned))

    async def start(self) -> None:
        """Until the node says what is assigned, which is the first that it says."""
        while not self._member_id:
            self._ahead += await self._next(_CALL_MS)

    async def poll(self, max_wait_ms: int) -> Sequence[ConsumedRecord] | None:
        await self._commit_finished_if_due()
        if self._ahead:
            ahead, self._ahead = self._ahead, []
            return ahead
        return await self._next(max_wait_ms)

    def finished(self, offsets: Mapping[GroupPartition, int]) -> None:
        self._finished.update(offsets)

    async def commit(self, offsets: Mapping[GroupPartition, int]) -> None:
        request = pb.CommitRequest(
            group_id=self._wanted.group,
            member_id=self._member_id,
            member_secret=self._member_secret,
            offsets=[
                pb.TopicPartitionOffset(topic=topic, partition=partition, offset=offset)
                for (topic, partition), offset in offsets.items()
            ],
        )
        await self._channel.call(self._commit, request, _CALL_MS)
        for partition, offset in offsets.items():
            if self._finished.get(partition, offset) <= offset:
                self._finished.pop(partition, None)

    async def close(self) -> None:
        try:
            if self._wanted.commit_every_ms is not None:
                await self._commit_finished()
            request = pb.LeaveRequest(
                group_id=self._wanted.group, member_id=self._member_id, member_secret=self._member_secret
            )
            with suppress(*RETRIABLE, NotFound):
                await self._channel.call(self._leave, request, _CALL_MS)
        finally:
            await self._stream.close()

    async def _next(self, max_wait_ms: int) -> list[ConsumedRecord]:
        answer = await self._stream.next(max_wait_ms)
        if self._stream.has_ended:
            raise Unavailable(f"the membership in group {self._wanted.group!r} was ended from outside")
        if answer is None:
            return []
        if answer.HasField("assignment"):
            self._take_assignment(answer.assignment)
            return []
        return _consumed(answer.records.topic, answer.records.partition, answer.records.records)

    def _take_assignment(self, assignment: pb.Assignment) -> None:
        is_same_member = self._member_id == assignment.member_id
        self._member_id = assignment.member_id
        self._member_secret = assignment.member_secret
        self._assigned = frozenset(GroupPartition(each.topic, each.partition) for each in assignment.partitions)
        # What is another member's now is that one's to commit; and another life knows nothing of the one before.
        self._finished = {
            partition: offset
            for partition, offset in self._finished.items()
            if is_same_member and partition in self._assigned
        }

    async def _commit_finished_if_due(self) -> None:
        every_ms = self._wanted.commit_every_ms
        if every_ms is not None and self._clock.monotonic_ms() - self._committed_ms >= every_ms:
            await self._commit_finished()

    async def _commit_finished(self) -> None:
        """As far as that is possible: what could not be committed comes again, which its reader must expect anyway."""
        self._committed_ms = self._clock.monotonic_ms()
        if self._finished:
            with suppress(*RETRIABLE, StaleGeneration, NotFound):
                await self.commit(dict(self._finished))

    def _subscribe(self) -> grpc.aio.UnaryStreamCall[pb.SubscribeRequest, pb.SubscribeResponse]:
        method = self._channel.unary_stream(GROUPS, "Subscribe", pb.SubscribeRequest, pb.SubscribeResponse)
        return method(
            pb.SubscribeRequest(
                group_id=self._wanted.group,
                topics=self._wanted.topics,
                client_id=self._client_id,
                offset_reset=_RESETS[self._wanted.reset],
            )
        )


def _position(wanted: Reading) -> pb.Position:
    match wanted.start:
        case "earliest":
            return pb.Position(edge=pb.EDGE_EARLIEST)
        case "latest":
            return pb.Position(edge=pb.EDGE_LATEST)
        case moment:
            return pb.Position(timestamp_ms=timestamp_of(moment))


def _consumed(topic: str, partition: int, records: Iterable[pb.Record]) -> list[ConsumedRecord]:
    return [
        ConsumedRecord(
            topic=topic,
            partition=partition,
            offset=record.offset,
            timestamp_ms=record.timestamp_ms,
            key=record.key if record.HasField("key") else None,
            value=record.value if record.HasField("value") else None,
            headers=tuple(
                (header.key, header.value if header.HasField("value") else None) for header in record.headers
            ),
        )
        for record in records
    ]
