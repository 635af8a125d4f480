"""Members of consumer groups over REST: join, poll, commit, seek, leave."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from msgspec import structs
from starlette.requests import Request

from streamhouse.broker.records import RecordDoor
from streamhouse.client.consumer import ConsumedRecord
from streamhouse.client.group_consumer import GroupConsumer
from streamhouse.client.groups_admin import GroupPartition
from streamhouse.format.rows import Record
from streamhouse.model.errors import InvalidInput, NotFound, StaleGeneration, Unavailable, UnreadableRecords
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.group_sessions import GroupSessions, Session
from streamhouse.server.http.rest.groups import TAG, group_of, partition_refs
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.row_messages import made_of
from streamhouse.wire.http.rest import groups as api

_MEMBER_ID = "3a1c8f0e-7f43-4d6c-9b6f-0f6f3f1d2c4b"
_SECRET = {api.MEMBER_SECRET: "What was answered at the join as member_secret"}
_ASSIGNMENT = [api.PartitionRef(topic="orders", partition=0)]
_OFFSETS = [api.PartitionOffset(topic="orders", partition=0, offset=300)]
_MEMBER_EXAMPLE = api.MemberAnswer(
    group_id="billing",
    member_id=_MEMBER_ID,
    epoch=1,
    assignment=_ASSIGNMENT,
    max_idle_ms=300_000,
    agent_id="agent-1",
)
_RECORD_EXAMPLE = api.PollRequest().show_record(
    "orders",
    0,
    Record(offset=299, timestamp_ms=1_767_225_600_000, key=b"customer-7", value=b'{"amount": 3}', headers=()),
)


def add_members(rest: Rest, context: DoorContext, sessions: GroupSessions) -> None:
    members = _MemberRoutes(context, sessions)
    one = f"{API}/groups/{{group}}/members/{{member}}"
    rest.route(
        "POST",
        f"{API}/groups/{{group}}/members",
        members.join,
        summary="Join a group, which makes it if need be",
        tag=TAG,
        description="The node that is asked keeps the member: all that follows has to be asked of it, with the "
        f"`member_secret` that is answered here, and only here, in the header {api.MEMBER_SECRET}.",
        body=api.JoinRequest,
        body_example=api.JoinRequest(topics=["orders"], reset="earliest"),
        answer=api.MemberAnswer,
        answer_example=structs.replace(_MEMBER_EXAMPLE, member_secret="nR4v1Jk2mQ8sT6wXyZ0aBcDeFgHiJkLm"),
        status=201,
        errors=(InvalidInput, NotFound, Unavailable),
    )
    rest.route(
        "GET",
        one,
        members.describe,
        summary="Describe a member that this node keeps",
        tag=TAG,
        answer=api.MemberAnswer,
        answer_example=_MEMBER_EXAMPLE,
        headers=_SECRET,
        errors=(InvalidInput, NotFound),
    )
    rest.route(
        "POST",
        f"{one}/poll",
        members.poll,
        summary="Read on in what a member is assigned, and wait for it",
        tag=TAG,
        description="It also says that the last poll's records were dealt with: their partitions may go to others.",
        body=api.PollRequest,
        body_example=api.PollRequest(limit=100, max_wait_ms=5000),
        answer=api.PollAnswer,
        answer_example=api.PollAnswer(records=[_RECORD_EXAMPLE], epoch=1, assignment=_ASSIGNMENT),
        headers=_SECRET,
        errors=(InvalidInput, NotFound, UnreadableRecords),
    )
    rest.route(
        "POST",
        f"{one}/commit",
        members.commit,
        summary="Commit offsets as a member",
        tag=TAG,
        body=api.CommitRequest,
        body_example=api.CommitRequest(offsets=_OFFSETS),
        headers=_SECRET,
        errors=(InvalidInput, NotFound, StaleGeneration),
    )
    rest.route(
        "POST",
        f"{one}/seek",
        members.seek,
        summary="Let a member read elsewhere: at offsets, or at a time",
        tag=TAG,
        body=api.SeekRequest,
        body_example=api.SeekRequest(timestamp_ms=1_767_225_600_000),
        answer=api.SeekAnswer,
        answer_example=api.SeekAnswer(offsets=_OFFSETS),
        headers=_SECRET,
        errors=(InvalidInput, NotFound, StaleGeneration),
    )
    rest.route(
        "DELETE",
        one,
        members.leave,
        summary="Leave a group",
        tag=TAG,
        headers=_SECRET,
        errors=(InvalidInput, NotFound),
    )


class _MemberRoutes:
    def __init__(self, context: DoorContext, sessions: GroupSessions) -> None:
        self._records = context.records
        self._broker = context.broker
        self._sessions = sessions

    async def join(self, call: Call) -> api.MemberAnswer:
        session = await self._sessions.join(group_of(call), call.body)
        return structs.replace(self._answer(session), member_secret=session.secret.text)

    async def describe(self, call: Call) -> api.MemberAnswer:
        async with self._sessions.use(*_member_of(call)) as session:
            return self._answer(session)

    async def poll(self, call: Call) -> api.PollAnswer:
        asked: api.PollRequest = call.body
        async with self._sessions.use(*_member_of(call)) as session:
            consumer = session.consumer
            records = await consumer.poll(
                max_records=asked.limit, max_bytes=asked.max_bytes, max_wait_ms=asked.max_wait_ms
            )
            await _put_back_if_gone(consumer, records, call.request)
            return api.PollAnswer(
                records=await made_of(
                    records,
                    lambda: [asked.show_record(record.topic, record.partition, _row(record)) for record in records],
                ),
                epoch=consumer.epoch,
                assignment=partition_refs(consumer.assignment),
            )

    async def commit(self, call: Call) -> None:
        asked: api.CommitRequest = call.body
        async with self._sessions.use(*_member_of(call)) as session:
            await session.consumer.commit(None if asked.offsets is None else _by_partition(asked.offsets))

    async def seek(self, call: Call) -> api.SeekAnswer:
        asked: api.SeekRequest = call.body
        if (asked.offsets is None) == (asked.timestamp_ms is None):
            raise InvalidInput("where to?", hint="give either offsets or timestamp_ms")
        async with self._sessions.use(*_member_of(call)) as session:
            consumer = session.consumer
            if asked.timestamp_ms is not None:
                offsets = await _offsets_at(self._records, consumer.assignment, asked.timestamp_ms)
            else:
                offsets = _by_partition(asked.offsets or [])
            for partition, offset in offsets.items():
                await consumer.seek(partition, offset)
        return api.SeekAnswer(
            offsets=[api.PartitionOffset(topic=at.topic, partition=at.partition, offset=n) for at, n in offsets.items()]
        )

    async def leave(self, call: Call) -> None:
        await self._sessions.leave(*_member_of(call))

    def _answer(self, session: Session) -> api.MemberAnswer:
        consumer = session.consumer
        return api.MemberAnswer(
            group_id=consumer.group_id,
            member_id=consumer.member_id,
            epoch=consumer.epoch,
            assignment=partition_refs(consumer.assignment),
            max_idle_ms=session.max_idle_ms,
            agent_id=self._broker.identity.agent_id,
        )


def _member_of(call: Call) -> tuple[str, str, str]:
    """Of which group, which one, and what it says to prove it."""
    return group_of(call), call.path["member"], call.request.headers.get(api.MEMBER_SECRET, "")


async def _put_back_if_gone(consumer: GroupConsumer, records: list[ConsumedRecord], request: Request) -> None:
    """Who hung up while the poll waited has not seen these records: the next poll is to return them."""
    if records and await request.is_disconnected():
        firsts: dict[GroupPartition, int] = {}
        for record in records:
            firsts.setdefault(GroupPartition(record.topic, record.partition), record.offset)
        for partition, offset in firsts.items():
            with suppress(StaleGeneration):
                await consumer.seek(partition, offset)


async def _offsets_at(
    records: RecordDoor, partitions: tuple[GroupPartition, ...], timestamp_ms: int
) -> dict[GroupPartition, int]:
    """Where all records are older: the end."""

    async def ask(partition: GroupPartition) -> int:
        topic = await records.topic(partition.topic, partition.partition)
        found = await records.offset_at(topic, partition.partition, timestamp_ms)
        return found.high_watermark if found.offset is None else found.offset

    return dict(zip(partitions, await asyncio.gather(*map(ask, partitions)), strict=True))


def _by_partition(offsets: list[api.PartitionOffset]) -> dict[GroupPartition, int]:
    found = {GroupPartition(each.topic, each.partition): each.offset for each in offsets}
    if len(found) != len(offsets):
        raise InvalidInput("a partition is given more than once", hint="give each partition once")
    return found


def _row(record: ConsumedRecord) -> Record:
    return Record(
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=record.key,
        value=record.value,
        headers=record.headers,
    )
