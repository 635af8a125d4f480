"""A consumer that reads what its group assigns, against a real broker: starts, commits, rebalances, comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from streamhouse.client.address import parse_bootstrap
from streamhouse.client.admin import Admin
from streamhouse.client.cluster import Cluster
from streamhouse.client.consumer import ConsumedRecord
from streamhouse.client.group_consumer import GroupConsumer, GroupConsumerOptions, GroupPartition
from streamhouse.client.group_member import GroupMember
from streamhouse.client.groups_admin import GroupsAdmin
from streamhouse.client.producer import Producer
from streamhouse.model.errors import NotFound, OffsetOutOfRange, StaleGeneration
from streamhouse.runtime.clock import SystemClock
from streamhouse.testing import Broker
from streamhouse.testing.clock import MovableClock
from streamhouse.wire.kafka.messages import consumer_group_heartbeat, fetch, find_coordinator, offset_fetch

HUNG_MS = 60_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(auto_create_topics=False, group_consumer_heartbeat_interval=100) as running:
        yield running


def make(broker: Broker, topic: str, group: str = "", **options: object) -> GroupConsumer:
    given = GroupConsumerOptions(**options)  # type: ignore[arg-type]
    return GroupConsumer(parse_bootstrap(broker.bootstrap), group or topic, [topic], options=given)


@asynccontextmanager
async def cluster_of(broker: Broker) -> AsyncIterator[Cluster]:
    async with Cluster.connect(broker.bootstrap) as cluster:
        yield cluster


async def fill(broker: Broker, topic: str, count: int, partitions: int = 2) -> None:
    """`count` records in each partition, made before if need be."""
    async with cluster_of(broker) as cluster:
        if topic not in {known.name for known in await Admin(cluster).list_topics()}:
            await Admin(cluster).create_topic(topic, partition_count=partitions)
        async with Producer(cluster) as producer:
            for number in range(count):
                for partition in range(partitions):
                    await producer.send(topic, value=b"%d" % number, partition=partition)


async def committed(broker: Broker, group: str) -> dict[int, int]:
    async with cluster_of(broker) as cluster:
        offsets = await GroupsAdmin(cluster).committed_offsets(group)
    return {place.partition: offset for place, offset in offsets.items()}


async def poll_until(consumers: list[GroupConsumer], condition: Callable[[], bool]) -> list[ConsumedRecord]:
    clock = SystemClock()
    deadline = clock.monotonic_ms() + HUNG_MS
    records: list[ConsumedRecord] = []
    while not condition():
        assert clock.monotonic_ms() < deadline, "waited in vain"
        for consumer in consumers:
            records += await consumer.poll(max_wait_ms=20)
    return records


async def read(consumer: GroupConsumer, count: int) -> list[ConsumedRecord]:
    records: list[ConsumedRecord] = []
    clock = SystemClock()
    deadline = clock.monotonic_ms() + HUNG_MS
    while len(records) < count:
        assert clock.monotonic_ms() < deadline, f"only {len(records)} of {count} records came"
        records += await consumer.poll(max_records=count - len(records))
    return records


async def wait_for(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    clock = SystemClock()
    deadline = clock.monotonic_ms() + HUNG_MS
    while True:
        answer = condition()
        if answer if isinstance(answer, bool) else await answer:
            return
        assert clock.monotonic_ms() < deadline, "waited in vain"
        await clock.sleep_ms(20)


async def test_all_records_come_in_order_and_the_next_member_starts_where_was_committed(broker: Broker) -> None:
    await fill(broker, "resume", 20)
    async with make(broker, "resume") as first:
        records = await read(first, 10)
        await first.commit()
    async with make(broker, "resume") as second:
        records += await read(second, 30)
    for partition in range(2):
        assert [r.value for r in records if r.partition == partition] == [b"%d" % number for number in range(20)]


@pytest.mark.parametrize("reset", ["latest", "earliest", "error"])
async def test_partitions_that_are_added_are_read_from_their_beginning(broker: Broker, reset: str) -> None:
    topic = f"growing-{reset}"
    await fill(broker, topic, 2, partitions=1)
    async with make(broker, topic, reset="earliest") as before:
        await read(before, 2)
        await before.commit()
    async with make(broker, topic, reset=reset) as consumer:
        broker.create_partitions(topic, 3)
        async with cluster_of(broker) as cluster, Producer(cluster) as producer:
            await producer.send(topic, value=b"before the group heard of it", partition=2)

        records = await read(consumer, 1)

    assert [(record.partition, record.offset) for record in records] == [(2, 0)]


async def test_a_poll_keeps_to_its_limits_and_brings_a_large_record_all_the_same(broker: Broker) -> None:
    await fill(broker, "limits", 30, partitions=1)
    async with make(broker, "limits") as consumer:
        assert len(await consumer.poll(max_records=7, max_wait_ms=HUNG_MS)) == 7
        assert len(await consumer.poll(max_bytes=3, max_wait_ms=HUNG_MS)) == 3
        assert len(await consumer.poll(max_bytes=1, max_wait_ms=HUNG_MS)) == 1


async def test_reset_says_where_a_group_without_offsets_starts(broker: Broker) -> None:
    await fill(broker, "reset", 3, partitions=1)
    async with make(broker, "reset", "late", reset="latest") as late:
        assert late.positions == {GroupPartition("reset", 0): 3}
        await fill(broker, "reset", 1, partitions=1)
        assert [record.offset for record in await read(late, 1)] == [3]
    async with make(broker, "reset", "strict", reset="error") as strict:
        with pytest.raises(OffsetOutOfRange, match="no offset"):
            await strict.poll()
        await strict.seek(GroupPartition("reset", 0), 1)
        assert [record.offset for record in await read(strict, 3)] == [1, 2, 3]


async def test_an_offset_that_the_log_no_longer_holds_is_reset(broker: Broker) -> None:
    await fill(broker, "trimmed", 10, partitions=1)
    async with make(broker, "trimmed") as consumer:
        await read(consumer, 2)
        await consumer.commit()
    async with cluster_of(broker) as cluster:
        await Admin(cluster).delete_records("trimmed", {0: 6})
    async with make(broker, "trimmed") as consumer:
        assert [record.offset for record in await read(consumer, 4)] == [6, 7, 8, 9]
    async with make(broker, "trimmed", reset="error") as strict:
        with pytest.raises(OffsetOutOfRange):
            await poll_until([strict], lambda: False)


async def test_members_share_the_partitions_and_no_committed_record_comes_twice(broker: Broker) -> None:
    await fill(broker, "shared", 25, partitions=4)
    async with make(broker, "shared") as first, make(broker, "shared") as second:
        records: list[ConsumedRecord] = []
        clock = SystemClock()
        deadline = clock.monotonic_ms() + HUNG_MS
        while len(records) < 100 or len(first.assignment) != 2 or len(second.assignment) != 2:
            assert clock.monotonic_ms() < deadline, (len(records), first.assignment, second.assignment)
            for consumer in (first, second):
                records += await consumer.poll(max_records=5, max_wait_ms=20)
                await consumer.commit()
        assert len({(record.partition, record.offset) for record in records}) == len(records) == 100
        assert not set(first.assignment) & set(second.assignment)


async def test_a_partition_stays_while_its_records_are_in_hand_and_goes_with_their_commit(broker: Broker) -> None:
    await fill(broker, "held", 5)
    async with make(broker, "held") as first:
        await read(first, 10)
        async with make(broker, "held") as second:
            # The group has told the first to give one up, and nobody has it until the first has dealt with its records.
            await wait_for(lambda: len(first._member.membership.assignment) == 1)
            assert (len(first.assignment), second.assignment) == (2, ())
            await first.commit()
            await wait_for(lambda: len(second.positions) == 1)
            assert second.positions == {second.assignment[0]: 5}
            assert len(first.assignment) == 1


async def test_what_another_member_has_is_neither_committed_nor_sought(broker: Broker) -> None:
    await fill(broker, "foreign", 1)
    async with make(broker, "foreign") as first, make(broker, "foreign") as second:
        await poll_until([first, second], lambda: len(second.assignment) == 1)
        (foreign,) = second.assignment
        with pytest.raises(StaleGeneration):
            await first.commit({foreign: 1})
        with pytest.raises(StaleGeneration):
            await first.seek(foreign, 0)


async def test_auto_commit_commits_what_the_next_poll_says_is_done_and_nothing_else(broker: Broker) -> None:
    await fill(broker, "auto", 10, partitions=1)
    consumer = make(broker, "auto", auto_commit_ms=50)
    await consumer.start()
    assert len(await consumer.poll(max_records=4, max_wait_ms=HUNG_MS)) == 4
    assert len(await consumer.poll(max_records=3, max_wait_ms=HUNG_MS)) == 3

    async def is_committed() -> bool:
        return await committed(broker, "auto") == {0: 4}

    await wait_for(is_committed)
    await consumer.poll(max_records=1)
    await consumer.close()
    assert await committed(broker, "auto") == {0: 7}


async def test_closing_frees_the_partitions_at_once_and_not_leaving_keeps_them(broker: Broker) -> None:
    await fill(broker, "closing", 1)
    async with make(broker, "closing"):
        pass
    kept = make(broker, "closing")
    await kept.start()
    assert len(kept.assignment) == 2
    await kept.close(leave=False)
    async with make(broker, "closing") as next_one:
        assert next_one.assignment == ()
    async with cluster_of(broker) as cluster:
        (member,) = (await GroupsAdmin(cluster).describe_group("closing")).members
    assert member.member_id == kept.member_id


async def test_a_member_that_was_put_out_joins_again_and_goes_on_where_was_committed(broker: Broker) -> None:
    await fill(broker, "fenced", 10, partitions=1)
    async with make(broker, "fenced") as consumer:
        await read(consumer, 4)
        await consumer.commit()
        epoch = consumer.epoch
        async with cluster_of(broker) as cluster:
            # As its session's end does: the group no longer knows it.
            await GroupMember(cluster, "fenced", ["fenced"], member_id=consumer.member_id).leave()
        await wait_for(lambda: consumer.epoch > epoch and bool(consumer.positions))
        assert [record.offset for record in await read(consumer, 6)] == [4, 5, 6, 7, 8, 9]


async def test_a_consumer_that_nobody_polls_leaves_and_the_next_poll_joins_again(broker: Broker) -> None:
    await fill(broker, "idle", 3, partitions=1)
    clock = MovableClock()
    consumer = GroupConsumer(parse_bootstrap(broker.bootstrap), "idle", ["idle"], clock=clock)
    async with consumer:
        await read(consumer, 1)
        clock.pass_time(600_000)
        await wait_for(lambda: consumer.assignment == ())
        async with cluster_of(broker) as cluster:
            assert (await GroupsAdmin(cluster).describe_group("idle")).members == ()
        assert [record.offset for record in await read(consumer, 3)] == [0, 1, 2]


async def test_heartbeats_do_not_wait_behind_a_fetch_that_waits(fake_broker: Any) -> None:
    beats: list[int] = []

    def beat(request: Any, version: int) -> Any:
        beats.append(request.member_epoch)
        assigned = consumer_group_heartbeat.TopicPartitions(topic_id=UUID(int=1), partitions=[0])
        return consumer_group_heartbeat.ConsumerGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=1,
            heartbeat_interval_ms=10,
            assignment=consumer_group_heartbeat.Assignment(topic_partitions=[assigned]),
        )

    def coordinator(request: Any, version: int) -> Any:
        return find_coordinator.FindCoordinatorResponse(host=fake_broker.address.host, port=fake_broker.address.port)

    fake_broker.topics["t"] = 1
    fake_broker.answers[consumer_group_heartbeat.API_KEY] = beat
    fake_broker.answers[find_coordinator.API_KEY] = coordinator
    fake_broker.answers[offset_fetch.API_KEY] = lambda request, version: offset_fetch.OffsetFetchResponse()
    fake_broker.answers[fetch.API_KEY] = lambda request, version: None
    async with fake_broker:
        consumer = GroupConsumer([fake_broker.address], "g", ["t"])
        await consumer.start()
        polling = asyncio.get_running_loop().create_task(consumer.poll(max_wait_ms=HUNG_MS))
        await wait_for(lambda: bool(fake_broker.received(fetch.FetchRequest)))
        before = len(beats)
        await wait_for(lambda: len(beats) >= before + 5)
        # An answer out of turn would have ended a shared connection.
        assert fake_broker.connections == 2
        polling.cancel()
        await consumer.close()


async def test_a_topic_that_does_not_exist_is_said_at_the_start(broker: Broker) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        await make(broker, "nowhere").start()


async def test_a_topic_that_is_deleted_is_no_longer_assigned(broker: Broker) -> None:
    await fill(broker, "fleeting", 2, partitions=1)
    async with make(broker, "fleeting") as consumer:
        await read(consumer, 2)
        async with cluster_of(broker) as cluster:
            await Admin(cluster).delete_topic("fleeting")
        await poll_until([consumer], lambda: consumer.assignment == ())


async def test_a_topic_that_is_made_again_is_read_from_its_start(broker: Broker) -> None:
    await fill(broker, "phoenix", 5, partitions=1)
    async with make(broker, "phoenix") as consumer:
        await read(consumer, 5)
        await consumer.commit()
        async with cluster_of(broker) as cluster:
            await Admin(cluster).delete_topic("phoenix")
        await fill(broker, "phoenix", 9, partitions=1)
        # Until the group has said so, the name is all that there is to know the topic by.
        await wait_for(lambda: consumer.positions == {GroupPartition("phoenix", 0): 0})
        assert [record.offset for record in await read(consumer, 9)] == list(range(9))
