"""Consumer groups over gRPC: a Subscribe call is a member for as long as it lasts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from confluent_kafka import Consumer

from grpc_parts.calls import Api, api_of, connected, refusal_of, rest_of
from streamhouse.testing import Broker
from streamhouse.wire.grpc import streamhouse_v1_pb2 as pb


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(grpc=True, group_consumer_heartbeat_interval=100) as broker:
        yield broker


@pytest.fixture
def api(broker: Broker, event_loop_runner: asyncio.Runner) -> Iterator[Api]:
    yield from api_of(broker, event_loop_runner)


def subscribe(api: Api, group_id: str, *topics: str, **options: Any) -> Any:
    return api.listen("Groups.Subscribe", pb.SubscribeRequest(group_id=group_id, topics=topics, **options))


async def next_assignment(call: Any, count: int) -> pb.Assignment:
    """The next one of so many partitions."""
    while True:
        event = await call.read()
        if event.HasField("assignment") and len(event.assignment.partitions) == count:
            assert isinstance(event.assignment, pb.Assignment)
            return event.assignment


async def next_records(call: Any, count: int) -> list[tuple[int, bytes]]:
    """So many records, by partition and value."""
    records: list[tuple[int, bytes]] = []
    while len(records) < count:
        event = await call.read()
        records += [(event.records.partition, record.value) for record in event.records.records]
    return records


def commit_of(
    group_id: str, topic: str, offsets: dict[int, int], member: pb.Assignment | None = None
) -> pb.CommitRequest:
    return pb.CommitRequest(
        group_id=group_id,
        member_id="" if member is None else member.member_id,
        member_secret="" if member is None else member.member_secret,
        offsets=[
            pb.TopicPartitionOffset(topic=topic, partition=partition, offset=offset)
            for partition, offset in offsets.items()
        ],
    )


def leave_of(group_id: str, member: pb.Assignment) -> pb.LeaveRequest:
    return pb.LeaveRequest(group_id=group_id, member_id=member.member_id, member_secret=member.member_secret)


async def describe(api: Api, group_id: str) -> pb.DescribeGroupResponse:
    answer = await api("Groups.DescribeGroup", pb.DescribeGroupRequest(group_id=group_id))
    assert isinstance(answer, pb.DescribeGroupResponse)
    return answer


async def until_members(api: Api, group_id: str, count: int) -> pb.DescribeGroupResponse:
    async with asyncio.timeout(60):
        while True:
            answer = await describe(api, group_id)
            if len(answer.members) == count:
                return answer


async def test_a_member_gets_its_partitions_and_their_records(api: Api) -> None:
    await api.create_topic("all-mine", 2)
    await api.produce("all-mine", [b"a", b"b"], 0)
    await api.produce("all-mine", [b"c"], 1)

    call = subscribe(api, "alone", "all-mine", client_id="me")

    assignment = await next_assignment(call, 2)
    assert [(each.topic, each.partition) for each in assignment.partitions] == [("all-mine", 0), ("all-mine", 1)]
    assert sorted(await next_records(call, 3)) == [(0, b"a"), (0, b"b"), (1, b"c")]
    (member,) = (await describe(api, "alone")).members
    assert (member.member_id, member.client_id, len(member.partitions)) == (assignment.member_id, "me", 2)
    await api.produce("all-mine", [b"later"], 1)
    assert await next_records(call, 1) == [(1, b"later")]
    call.cancel()


async def test_who_comes_after_goes_on_behind_what_was_committed(api: Api, broker: Broker) -> None:
    await api.create_topic("taken-up")
    await api.produce("taken-up", [b"0", b"1", b"2"])
    first = subscribe(api, "in-turn", "taken-up")
    member = await next_assignment(first, 1)
    await next_records(first, 3)
    await api("Groups.Commit", commit_of("in-turn", "taken-up", {0: 2}, member))
    await api("Groups.Leave", leave_of("in-turn", member))

    assert await rest_of(first) == []
    assert await first.code() == grpc.StatusCode.OK
    second = subscribe(api, "in-turn", "taken-up")
    assert await next_records(second, 1) == [(0, b"2")]
    second.cancel()
    await until_members(api, "in-turn", 0)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "in-turn"})
    consumer.subscribe(["taken-up"])
    (message,) = consumer.consume(1, timeout=60)
    consumer.close()
    assert (message.offset(), message.value()) == (2, b"2")


async def test_a_call_that_is_cancelled_or_cut_off_is_a_member_no_more(api: Api, broker: Broker) -> None:
    await api.create_topic("left", 2)
    call = subscribe(api, "leavers", "left")
    await next_assignment(call, 2)
    async with connected(broker.grpc_address) as other:
        await next_assignment(subscribe(other, "leavers", "left"), 1)
        await until_members(api, "leavers", 2)
    await until_members(api, "leavers", 1)

    call.cancel()

    assert (await until_members(api, "leavers", 0)).group.state == "Empty"


async def test_two_members_share_and_one_takes_over_from_the_other(api: Api) -> None:
    await api.create_topic("shared", 2)
    first = subscribe(api, "pair", "shared")
    member = await next_assignment(first, 2)
    second = subscribe(api, "pair", "shared")

    (kept,) = (await next_assignment(first, 1)).partitions
    (given,) = (await next_assignment(second, 1)).partitions

    assert {kept.partition, given.partition} == {0, 1}
    taken_away = commit_of("pair", "shared", {given.partition: 0}, member)
    assert await api.refusal("Groups.Commit", taken_away) == ("ABORTED", "stale-generation")
    await api("Groups.Commit", commit_of("pair", "shared", {kept.partition: 0}, member))
    second.cancel()
    assert len((await next_assignment(first, 2)).partitions) == 2
    first.cancel()


@pytest.mark.parametrize(
    ("request_", "refusal"),
    [
        (pb.SubscribeRequest(group_id="g", topics=["nowhere"]), ("NOT_FOUND", "not-found")),
        (pb.SubscribeRequest(group_id="g"), ("INVALID_ARGUMENT", "invalid-input")),
        (pb.SubscribeRequest(topics=["t"]), ("INVALID_ARGUMENT", "invalid-name")),
        (pb.SubscribeRequest(group_id="g\0", topics=["t"]), ("INVALID_ARGUMENT", "invalid-name")),
        (pb.SubscribeRequest(group_id="g", topics=["t"], offset_reset=9), ("INVALID_ARGUMENT", "invalid-input")),
        (pb.SubscribeRequest(group_id="g", topics=["t"], client_id="x" * 201), ("INVALID_ARGUMENT", "invalid-input")),
    ],
    ids=["no such topic", "no topics", "no group", "NUL", "no such reset", "long client id"],
)
async def test_what_cannot_be_subscribed_to_says_why(
    api: Api, request_: pb.SubscribeRequest, refusal: tuple[str, str]
) -> None:
    assert await refusal_of(api.listen("Groups.Subscribe", request_)) == refusal


async def test_without_a_reset_a_member_without_an_offset_is_told(api: Api) -> None:
    await api.create_topic("no-start")

    call = subscribe(api, "careful", "no-start", offset_reset=pb.OFFSET_RESET_ERROR)

    assert await refusal_of(call) == ("OUT_OF_RANGE", "offset-out-of-range")


async def test_members_are_known_by_their_group_and_their_node(api: Api) -> None:
    await api.create_topic("known")
    call = subscribe(api, "one", "known")
    member = await next_assignment(call, 1)

    elsewhere = commit_of("two", "known", {0: 0}, member)
    nobody = pb.LeaveRequest(group_id="one", member_id="nobody")

    assert await api.refusal("Groups.Commit", elsewhere) == ("NOT_FOUND", "not-found")
    assert await api.refusal("Groups.Leave", nobody) == ("NOT_FOUND", "not-found")
    call.cancel()


@pytest.mark.parametrize("secret", ["", "guessed", "\u00e4" * 40])
async def test_who_has_only_read_a_members_id_does_not_act_as_that_member(api: Api, secret: str) -> None:
    await api.create_topic(f"others-{len(secret)}")
    topic = group = f"others-{len(secret)}"
    call = subscribe(api, group, topic)
    await next_assignment(call, 1)
    (seen,) = (await describe(api, group)).members
    stranger = pb.Assignment(member_id=seen.member_id, member_secret=secret)

    refusal = ("INVALID_ARGUMENT", "invalid-input")
    assert await api.refusal("Groups.Commit", commit_of(group, topic, {0: 0}, stranger)) == refusal
    assert await api.refusal("Groups.Leave", leave_of(group, stranger)) == refusal
    assert len((await describe(api, group)).members) == 1
    call.cancel()


# --- from outside ---


async def test_offsets_are_committed_described_moved_and_deleted_from_outside(api: Api) -> None:
    await api.create_topic("admin", 2)
    await api.produce("admin", [b"x"] * 10, 0)

    await api("Groups.Commit", commit_of("managed", "admin", {0: 4}))

    (listed,) = [
        group
        for group in (await api("Groups.ListGroups", pb.ListGroupsRequest())).groups
        if group.group_id == "managed"
    ]
    assert listed.state == "Empty"
    (offset,) = (await describe(api, "managed")).offsets
    assert (offset.partition, offset.committed_offset, offset.high_watermark, offset.lag) == (0, 4, 10, 6)

    async def reset(**request: Any) -> list[tuple[int, int | None, int | None]]:
        answer = await api(
            "Groups.ResetOffsets", pb.ResetOffsetsRequest(group_id="managed", topics=["admin"], **request)
        )
        return [
            (
                move.partition,
                move.old_offset if move.HasField("old_offset") else None,
                move.new_offset if move.HasField("new_offset") else None,
            )
            for move in answer.moves
        ]

    earliest = pb.Position(edge=pb.EDGE_EARLIEST)
    assert await reset(shift_by=-3, dry_run=True) == [(0, 4, 1), (1, None, None)]
    assert await reset(position=pb.Position(edge=pb.EDGE_LATEST)) == [(0, 4, 10), (1, None, 0)]
    assert await reset(position=pb.Position(offset=7)) == [(0, 10, 7), (1, 0, 0)]
    assert await reset(position=pb.Position(timestamp_ms=0)) == [(0, 7, 0), (1, 0, 0)]
    assert await reset(position=earliest) == [(0, 0, 0), (1, 0, 0)]
    nowhere = pb.ResetOffsetsRequest(group_id="managed", topics=["admin"])
    assert await api.refusal("Groups.ResetOffsets", nowhere) == ("INVALID_ARGUMENT", "invalid-input")

    await api("Groups.DeleteGroup", pb.DeleteGroupRequest(group_id="managed"))
    gone = pb.DescribeGroupRequest(group_id="managed")
    assert await api.refusal("Groups.DescribeGroup", gone) == ("NOT_FOUND", "not-found")


async def test_a_group_with_members_is_not_changed_from_outside(api: Api) -> None:
    await api.create_topic("in-use")
    call = subscribe(api, "busy", "in-use")
    await next_assignment(call, 1)
    earliest = pb.Position(edge=pb.EDGE_EARLIEST)

    in_use = ("INVALID_ARGUMENT", "invalid-input")
    assert await api.refusal("Groups.Commit", commit_of("busy", "in-use", {0: 0})) == in_use
    assert (
        await api.refusal("Groups.ResetOffsets", pb.ResetOffsetsRequest(group_id="busy", position=earliest)) == in_use
    )
    assert await api.refusal("Groups.DeleteGroup", pb.DeleteGroupRequest(group_id="busy")) == in_use
    call.cancel()


async def test_an_offset_below_zero_is_refused(api: Api) -> None:
    negative = commit_of("negative", "t", {0: -1})

    assert await api.refusal("Groups.Commit", negative) == ("INVALID_ARGUMENT", "invalid-input")
