"""What each group API answers for a group that is coordinated elsewhere, or whose coordinator is still reading it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from group_parts.coordinators import GROUP, coordinating
from group_parts.store import watched_store
from log_parts.waiting import until
from services.clock import ManualClock
from streamhouse.core.placement.shards import shard_of
from streamhouse.groups.coordinator import GroupCoordinator
from streamhouse.model.topic import Topic
from streamhouse.server.kafka.context import Context, Endpoint
from streamhouse.server.kafka.handlers import (
    alter_share_group_offsets,
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    delete_share_group_offsets,
    describe_groups,
    describe_share_group_offsets,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    share_group_describe,
    streams_group_describe,
    sync_group,
)
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.frame import RequestHeader
from streamhouse.wire.kafka.messages import alter_share_group_offsets as share_offset_alterations
from streamhouse.wire.kafka.messages import consumer_group_describe as consumer_describes
from streamhouse.wire.kafka.messages import consumer_group_heartbeat as consumer_beats
from streamhouse.wire.kafka.messages import delete_groups as deletes
from streamhouse.wire.kafka.messages import delete_share_group_offsets as share_offset_deletes
from streamhouse.wire.kafka.messages import describe_groups as describes
from streamhouse.wire.kafka.messages import describe_share_group_offsets as share_offset_describes
from streamhouse.wire.kafka.messages import heartbeat as beats
from streamhouse.wire.kafka.messages import join_group as joins
from streamhouse.wire.kafka.messages import leave_group as leaves
from streamhouse.wire.kafka.messages import list_groups as lists
from streamhouse.wire.kafka.messages import offset_commit as commits
from streamhouse.wire.kafka.messages import offset_delete as offset_deletes
from streamhouse.wire.kafka.messages import offset_fetch as fetches
from streamhouse.wire.kafka.messages import share_group_describe as share_describes
from streamhouse.wire.kafka.messages import streams_group_describe as streams_describes
from streamhouse.wire.kafka.messages import sync_group as syncs

TOPIC = Topic(name="t", topic_id=UUID(int=1), partition_count=1, config={}, created_at_ms=0)
ELSEWHERE, LOADING = ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class Ask(NamedTuple):
    """A request about the group, where its answer says what is wrong, and what it says while the group is read."""

    handler: ModuleType
    request: Callable[[int], Any]
    codes: Callable[[Any], Iterable[int]]
    while_loading: ErrorCode = LOADING


def of_answer(answer: Any) -> list[int]:
    return [answer.error_code]


def of_groups(answer: Any) -> list[int]:
    return [group.error_code for group in answer.groups]


def of_partitions(answer: Any) -> list[int]:
    return [partition.error_code for topic in answer.topics for partition in topic.partitions]


def fetch_request(version: int) -> fetches.OffsetFetchRequest:
    if version >= 8:
        named = fetches.OffsetFetchRequestTopics(name=TOPIC.name, topic_id=TOPIC.topic_id, partition_indexes=[0])
        return fetches.OffsetFetchRequest(groups=[fetches.OffsetFetchRequestGroup(group_id=GROUP, topics=[named])])
    return fetches.OffsetFetchRequest(
        group_id=GROUP, topics=[fetches.OffsetFetchRequestTopic(name=TOPIC.name, partition_indexes=[0])]
    )


def fetch_codes(answer: Any) -> list[int]:
    """Of the groups since version 8, of the only one since version 2, of its partitions before."""
    return of_groups(answer) or [code for code in (answer.error_code, *of_partitions(answer)) if code]


def commit_request(_: int) -> commits.OffsetCommitRequest:
    partition = commits.OffsetCommitRequestPartition(partition_index=0, committed_offset=3)
    named = commits.OffsetCommitRequestTopic(name=TOPIC.name, topic_id=TOPIC.topic_id, partitions=[partition])
    return commits.OffsetCommitRequest(group_id=GROUP, topics=[named])


ASKS = [
    Ask(
        join_group,
        lambda _: joins.JoinGroupRequest(group_id=GROUP, session_timeout_ms=10_000, protocol_type="consumer"),
        of_answer,
    ),
    Ask(
        sync_group,
        lambda _: syncs.SyncGroupRequest(group_id=GROUP, generation_id=1, member_id="m"),
        of_answer,
        ErrorCode.REBALANCE_IN_PROGRESS,
    ),
    Ask(
        heartbeat,
        lambda _: beats.HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="m"),
        of_answer,
        ErrorCode.NONE,
    ),
    Ask(
        leave_group,
        lambda _: leaves.LeaveGroupRequest(
            group_id=GROUP, member_id="m", members=[leaves.MemberIdentity(member_id="m")]
        ),
        of_answer,
    ),
    Ask(
        consumer_group_heartbeat,
        lambda _: consumer_beats.ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id="m"),
        of_answer,
    ),
    Ask(offset_commit, commit_request, of_partitions),
    Ask(offset_fetch, fetch_request, fetch_codes),
    Ask(offset_delete, lambda _: offset_deletes.OffsetDeleteRequest(group_id=GROUP), of_answer),
    Ask(describe_groups, lambda _: describes.DescribeGroupsRequest(groups=[GROUP]), of_groups),
    Ask(
        consumer_group_describe,
        lambda _: consumer_describes.ConsumerGroupDescribeRequest(group_ids=[GROUP]),
        of_groups,
    ),
    Ask(share_group_describe, lambda _: share_describes.ShareGroupDescribeRequest(group_ids=[GROUP]), of_groups),
    Ask(streams_group_describe, lambda _: streams_describes.StreamsGroupDescribeRequest(group_ids=[GROUP]), of_groups),
    Ask(
        describe_share_group_offsets,
        lambda _: share_offset_describes.DescribeShareGroupOffsetsRequest(
            groups=[share_offset_describes.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=None)]
        ),
        of_groups,
    ),
    Ask(
        alter_share_group_offsets,
        lambda _: share_offset_alterations.AlterShareGroupOffsetsRequest(group_id=GROUP),
        of_answer,
    ),
    Ask(
        delete_share_group_offsets,
        lambda _: share_offset_deletes.DeleteShareGroupOffsetsRequest(group_id=GROUP),
        of_answer,
    ),
    Ask(
        delete_groups,
        lambda _: deletes.DeleteGroupsRequest(groups_names=[GROUP]),
        lambda answer: [result.error_code for result in answer.results],
    ),
]


async def answer_of(groups: GroupCoordinator, handler: ModuleType, request: Any, version: int) -> Any:
    """As a client of that version reads it."""
    topics = SimpleNamespace(
        find=lambda name: TOPIC if name == TOPIC.name else None,
        find_id=lambda topic_id: TOPIC if topic_id == TOPIC.topic_id else None,
    )
    context = Context(
        broker=SimpleNamespace(groups=groups, topics=topics),  # type: ignore[arg-type]
        endpoint=Endpoint("h", 1),
        header=RequestHeader(handler.API.key, version, 1, "c", 0),
        largest_reply_bytes=2**20,
        client_host="h",
    )
    encoded = b"".join(
        bytes(part) for part in handler.API.encode_response(await handler.handle(context, request), version)
    )
    return handler.API.decode_response(memoryview(encoded), 0, len(encoded), version)


@asynccontextmanager
async def reading_its_groups(clock: ManualClock) -> AsyncIterator[GroupCoordinator]:
    """A coordinator that has the lease of the group's shard and has not read it."""
    async with watched_store(clock) as store, coordinating(store, clock, shards=[]) as coordinator:
        store.hold("load_groups")
        loading = asyncio.ensure_future(coordinator.acquire_shards([shard_of(GROUP)]))
        await until(lambda: store.waiting["load_groups"], "the groups to be read")
        yield coordinator
        store.let_through("load_groups")
        await loading


@pytest.mark.parametrize("ask", ASKS, ids=lambda ask: ask.handler.API.name)
async def test_the_client_is_told_to_look_for_the_coordinator_in_every_version(ask: Ask) -> None:
    api, clock = ask.handler.API, ManualClock()
    async with watched_store(clock) as store, coordinating(store, clock, shards=[]) as elsewhere:
        for version in range(api.min_version, api.max_version + 1):
            answer = await answer_of(elsewhere, ask.handler, ask.request(version), version)
            assert list(ask.codes(answer)) == [ELSEWHERE], version


@pytest.mark.parametrize("ask", ASKS, ids=lambda ask: ask.handler.API.name)
async def test_while_a_group_is_read_the_client_hears_what_makes_it_try_again(ask: Ask) -> None:
    api = ask.handler.API
    async with reading_its_groups(ManualClock()) as coordinator:
        for version in range(api.min_version, api.max_version + 1):
            answer = await answer_of(coordinator, ask.handler, ask.request(version), version)
            assert list(ask.codes(answer)) == [ask.while_loading], version


async def test_a_list_that_would_not_be_complete_is_refused_and_one_of_no_shards_is_empty() -> None:
    clock = ManualClock()
    for version in range(lists.MIN_VERSION, lists.MAX_VERSION + 1):
        async with reading_its_groups(clock) as coordinator:
            answer = await answer_of(coordinator, list_groups, lists.ListGroupsRequest(), version)
            assert (answer.error_code, answer.groups) == (LOADING, [])
        async with watched_store(clock) as store, coordinating(store, clock, shards=[]) as elsewhere:
            answer = await answer_of(elsewhere, list_groups, lists.ListGroupsRequest(), version)
            assert (answer.error_code, answer.groups) == (ErrorCode.NONE, [])
