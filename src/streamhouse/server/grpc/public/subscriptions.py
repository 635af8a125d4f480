"""The `Subscribe` calls of a node: each is a member of a consumer group for as long as it lasts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby

from streamhouse.client.address import Address
from streamhouse.client.consumer import ConsumedRecord
from streamhouse.client.group_consumer import GroupConsumer, GroupConsumerOptions, Reset
from streamhouse.client.groups_admin import GroupPartition
from streamhouse.format.row_reading import DOOR_LIMITS
from streamhouse.format.rows import Record
from streamhouse.model.errors import InvalidInput, NotFound, StreamHouseError
from streamhouse.model.names import check_group_id
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.server.grpc.public.consume import AnswerLimits
from streamhouse.server.grpc.public.messages import in_messages, record_messages
from streamhouse.server.grpc.public.streams import Answers
from streamhouse.server.member_secret import MemberSecret
from streamhouse.wire.grpc import streamhouse_v1_pb2 as pb

_RESETS: Mapping[int, Reset] = {
    pb.OFFSET_RESET_UNSPECIFIED: "earliest",
    pb.OFFSET_RESET_EARLIEST: "earliest",
    pb.OFFSET_RESET_LATEST: "latest",
    pb.OFFSET_RESET_ERROR: "error",
}
_DEFAULT_CLIENT_ID = "grpc"
_MAX_TOPICS = 1_000
_LONGEST_CLIENT_ID = 200
_POLL_MS = 500
_LEAVE_S = 5.0


class _Subscription:
    """`until_left` ends the call from outside."""

    def __init__(self, consumer: GroupConsumer, until_left: asyncio.Timeout) -> None:
        self.consumer = consumer
        self._until_left = until_left
        self.secret = MemberSecret()
        self.is_leaving = False
        self.has_left = asyncio.Event()

    def end(self) -> None:
        if not self.is_leaving:
            self.is_leaving = True
            self._until_left.reschedule(asyncio.get_running_loop().time())


class Subscriptions:
    def __init__(self, kafka: Address) -> None:
        self._kafka = kafka
        self._by_member: dict[str, _Subscription] = {}
        self._leaving = TaskGroup("gRPC subscriptions")

    async def run(self, request: pb.SubscribeRequest, answers: Answers[pb.SubscribeResponse]) -> None:
        """Join, and send records until the member leaves or its client goes. A client that takes nothing for long is
        put out of the group by the consumer itself, and joins again when it goes on."""
        consumer = self._consumer(request)
        limits = AnswerLimits.of(request.max_records, request.max_bytes)
        is_leaving = False
        try:
            async with asyncio.timeout(None) as until_left:
                with self._known(_Subscription(consumer, until_left)) as subscription:
                    try:
                        await _forward(subscription, limits, answers)
                    finally:
                        is_leaving = subscription.is_leaving
        except TimeoutError:
            if not is_leaving:
                raise

    async def commit(self, group_id: str, member_id: str, secret: str, offsets: Mapping[GroupPartition, int]) -> None:
        """StaleGeneration if a partition is not the member's any more."""
        await self._find(group_id, member_id, secret).consumer.commit(offsets)

    async def leave(self, group_id: str, member_id: str, secret: str) -> None:
        subscription = self._find(group_id, member_id, secret)
        subscription.end()
        await subscription.has_left.wait()

    async def close(self) -> None:
        """Until those whose calls have ended have left."""
        await self._leaving.wait()

    def _consumer(self, request: pb.SubscribeRequest) -> GroupConsumer:
        topics = list(dict.fromkeys(request.topics))
        if not 1 <= len(topics) <= _MAX_TOPICS:
            raise InvalidInput(f"{len(topics)} topics to subscribe to", hint=f"name 1 to {_MAX_TOPICS}")
        reset = _RESETS.get(request.offset_reset)
        if reset is None:
            raise InvalidInput(f"{request.offset_reset} is no offset reset")
        if len(request.client_id) > _LONGEST_CLIENT_ID:
            raise InvalidInput("that client id is too long", hint=f"at most {_LONGEST_CLIENT_ID} characters")
        return GroupConsumer(
            [self._kafka],
            check_group_id(request.group_id),
            topics,
            options=GroupConsumerOptions(
                client_id=request.client_id or _DEFAULT_CLIENT_ID, reset=reset, rows=DOOR_LIMITS
            ),
        )

    def _find(self, group_id: str, member_id: str, secret: str) -> _Subscription:
        found = self._by_member.get(member_id)
        if found is None or found.consumer.group_id != group_id:
            raise NotFound(
                f"there is no member {member_id[:100]!r} of group {group_id[:300]!r} at this node",
                hint="ask the node that the member's Subscribe is with",
            )
        found.secret.check(secret)
        return found

    @contextmanager
    def _known(self, subscription: _Subscription) -> Iterator[_Subscription]:
        """However the call ends, its member leaves: in a task of its own, for a call that is cancelled cannot wait."""
        self._by_member[subscription.consumer.member_id] = subscription
        try:
            yield subscription
        finally:
            del self._by_member[subscription.consumer.member_id]
            self._leaving.start(_leave(subscription), subscription.consumer.member_id)


async def _leave(subscription: _Subscription) -> None:
    """As far as that is possible; else the group finds out by itself."""
    try:
        with suppress(StreamHouseError, TimeoutError):
            async with asyncio.timeout(_LEAVE_S):
                await subscription.consumer.close()
    finally:
        subscription.has_left.set()


async def _forward(subscription: _Subscription, limits: AnswerLimits, answers: Answers[pb.SubscribeResponse]) -> None:
    consumer = subscription.consumer
    await consumer.start()
    told: tuple[GroupPartition, ...] | None = None
    records: Sequence[ConsumedRecord] = ()
    while True:
        assignment = consumer.assignment
        if assignment != told:
            await answers.send(pb.SubscribeResponse(assignment=_assignment(subscription, assignment)))
            told = assignment
        async for message in _messages(records, told, limits.max_bytes):
            await answers.send(message)
        records = await consumer.poll(max_records=limits.max_records, max_bytes=limits.max_bytes, max_wait_ms=_POLL_MS)


def _assignment(subscription: _Subscription, partitions: Iterable[GroupPartition]) -> pb.Assignment:
    return pb.Assignment(
        member_id=subscription.consumer.member_id,
        member_secret=subscription.secret.text,
        member_epoch=subscription.consumer.epoch,
        partitions=[pb.TopicPartition(topic=each.topic, partition=each.partition) for each in partitions],
    )


async def _messages(
    records: Iterable[ConsumedRecord], assignment: Sequence[GroupPartition], max_bytes: int
) -> AsyncIterator[pb.SubscribeResponse]:
    """Without those of partitions that were taken away meanwhile: whoever has them now reads them again."""
    for partition, run in groupby(records, key=lambda record: GroupPartition(record.topic, record.partition)):
        if partition not in assignment:
            continue
        rows = [Record(each.offset, each.timestamp_ms, each.key, each.value, each.headers) for each in run]
        for several in in_messages(rows, max_bytes):
            yield pb.SubscribeResponse(
                records=pb.GroupRecords(
                    topic=partition.topic,
                    partition=partition.partition,
                    records=await record_messages(several),
                    next_offset=several[-1].offset + 1,
                )
            )
