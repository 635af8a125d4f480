"""Groups in PostgreSQL: who waits for whom, lost answers, and how often the server is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from behaviour.coordinators import (
    GROUP,
    acquire_shard,
    at,
    contents,
    coordinate,
    group,
    pass_time,
    rival,
    until_waiting,
)
from behaviour.metadata_stores import AGENT, OTHER, TTL_MS, PostgresKind, make_topic
from services.proxy import proxy_before
from streamhouse.metadata.groups import CommittedOffset, ShardLease
from streamhouse.metadata.postgres.store import PostgresMetadataStore
from streamhouse.model.errors import NotFound, StaleEpoch, StaleGeneration
from streamhouse.model.names import TopicPartition

COMMIT = b"COMMIT;"  # as the driver sends it


@asynccontextmanager
async def opened(dsn: str) -> AsyncIterator[PostgresMetadataStore]:
    store = await PostgresMetadataStore.open(dsn)
    yield store
    await store.close()


class UnderWay:
    """A coordinator's commit of offset 9 at generation 4, after 1, that has checked all and not yet stored it."""

    def __init__(self, partition: TopicPartition, lease: ShardLease, commit: asyncio.Task[Any]) -> None:
        self.partition = partition
        self.lease = lease
        self.commit = commit


@asynccontextmanager
async def commit_under_way(store: PostgresMetadataStore, kind: PostgresKind) -> AsyncIterator[UnderWay]:
    (partition,) = await make_topic(store)
    lease = await coordinate(store)
    await store.save_group(lease, group(generation=4))
    await store.commit_group_offsets(lease, GROUP, 4, {partition: at(1)})
    async with rival(kind, "SELECT FROM group_offsets FOR UPDATE"):
        commit = asyncio.create_task(store.commit_group_offsets(lease, GROUP, 4, {partition: at(9)}))
        await until_waiting(kind, commit)
        yield UnderWay(partition, lease, commit)


async def committed(store: PostgresMetadataStore, partition: TopicPartition) -> CommittedOffset:
    return (await store.fetch_group_offsets(GROUP))[partition]


async def test_a_new_generation_waits_for_the_commit_that_is_under_way(postgres_dsn: str) -> None:
    kind = PostgresKind(postgres_dsn)
    async with opened(postgres_dsn) as store:
        async with commit_under_way(store, kind) as late:
            rebalance = asyncio.create_task(store.save_group(late.lease, group(generation=5)))
            await until_waiting(kind, late.commit, rebalance)
        assert await late.commit == {late.partition: None}
        await rebalance
        assert (await committed(store, late.partition)).offset == 9
        with pytest.raises(StaleGeneration):
            await store.commit_group_offsets(late.lease, GROUP, 4, {late.partition: at(10)})


@pytest.mark.parametrize("agent_id", [OTHER, AGENT], ids=["another agent", "a new process of the agent"])
async def test_a_takeover_waits_for_the_commit_that_is_under_way(postgres_dsn: str, agent_id: str) -> None:
    """So the successor, when it has its lease, reads offsets that no predecessor can change any more."""
    kind = PostgresKind(postgres_dsn)
    async with opened(postgres_dsn) as store:
        async with commit_under_way(store, kind) as late:
            await kind.query("UPDATE coordinator_leases SET lease_expires_at = 1")
            takeover = asyncio.create_task(acquire_shard(store, late.lease.shard, agent_id))
            await until_waiting(kind, late.commit, takeover)
        assert await late.commit == {late.partition: None}
        assert (await takeover).epoch == 2
        with pytest.raises(StaleEpoch):
            await store.commit_group_offsets(late.lease, GROUP, 4, {late.partition: at(10)})
        assert (await committed(store, late.partition)).offset == 9


async def test_a_renewal_does_not_wait_for_the_commits_that_are_under_way(postgres_dsn: str) -> None:
    """A busy coordinator must not lose its shards because it is busy."""
    async with opened(postgres_dsn) as store:
        async with commit_under_way(store, PostgresKind(postgres_dsn)) as late:
            assert None not in await store.renew_shards(AGENT, [late.lease], TTL_MS)
            assert not late.commit.done()
        assert await late.commit == {late.partition: None}


async def test_a_takeover_does_not_wait_where_a_lease_is_live(postgres_dsn: str) -> None:
    async with opened(postgres_dsn) as store, commit_under_way(store, PostgresKind(postgres_dsn)) as late:
        assert await store.acquire_shards(OTHER, [late.lease.shard], TTL_MS) == [None]


async def test_a_takeover_that_is_under_way_is_waited_for_by_a_commit(postgres_dsn: str) -> None:
    """The store's own takeover, held by the lock of another shard that it has yet to get."""
    kind = PostgresKind(postgres_dsn)
    async with opened(postgres_dsn) as store:
        (partition,) = await make_topic(store)
        lease = await coordinate(store)
        await store.commit_group_offsets(lease, GROUP, None, {partition: at(1)})
        await pass_time(kind, TTL_MS)
        beyond = lease.shard + 1
        async with rival(kind, f"SELECT FROM coordinator_leases WHERE shard = {beyond} FOR UPDATE"):
            takeover = asyncio.create_task(store.acquire_shards(OTHER, [lease.shard, beyond], TTL_MS))
            await until_waiting(kind, takeover)
            commit = asyncio.create_task(store.commit_group_offsets(lease, GROUP, None, {partition: at(9)}))
            await until_waiting(kind, takeover, commit)
        assert None not in await takeover
        with pytest.raises(StaleEpoch):
            await commit
        assert (await committed(store, partition)).offset == 1


async def test_a_group_that_gets_members_while_it_expires_keeps_its_offsets(postgres_dsn: str) -> None:
    kind = PostgresKind(postgres_dsn)
    async with opened(postgres_dsn) as store:
        (partition,) = await make_topic(store)
        lease = await coordinate(store)
        await store.commit_group_offsets(lease, GROUP, None, {partition: at(1)})
        joined = "UPDATE consumer_groups SET protocol = 'classic', generation = 1, empty_since = NULL"
        async with rival(kind, joined):
            expiring = asyncio.create_task(store.expire_group_offsets(lease, 0))
            await until_waiting(kind, expiring)
        assert await expiring == 0
        assert (await committed(store, partition)).offset == 1
        assert [row.generation for row in await store.list_groups()] == [1]


async def delete(store: PostgresMetadataStore, lease: ShardLease, partition: TopicPartition) -> object:
    return await store.delete_group(lease, GROUP)


async def delete_offsets(store: PostgresMetadataStore, lease: ShardLease, partition: TopicPartition) -> object:
    return await store.delete_group_offsets(lease, GROUP, [partition])


async def expire(store: PostgresMetadataStore, lease: ShardLease, partition: TopicPartition) -> object:
    return await store.expire_group_offsets(lease, 0)


@pytest.mark.parametrize("change", [delete, delete_offsets, expire])
async def test_who_deletes_offsets_waits_for_a_deletion_of_their_topic_and_holds_nothing_meanwhile(
    postgres_dsn: str, change: Callable[..., Coroutine[Any, Any, object]]
) -> None:
    """Else the two could each have offsets that the other is waiting for."""
    kind = PostgresKind(postgres_dsn)
    async with opened(postgres_dsn) as store:
        (partition,) = await make_topic(store)
        lease = await coordinate(store)
        await store.commit_group_offsets(lease, GROUP, None, {partition: at(1)})
        async with rival(kind, "SELECT FROM partitions FOR UPDATE"):
            changing = asyncio.create_task(change(store, lease, partition))
            await until_waiting(kind, changing)
            for table in ("coordinator_leases", "consumer_groups", "group_offsets"):
                assert await kind.query(f"SELECT 1 FROM {table} FOR UPDATE NOWAIT")
        await changing
        assert await store.fetch_group_offsets(GROUP) == {}


async def test_a_simple_group_that_is_deleted_under_a_commit_is_made_again(postgres_dsn: str) -> None:
    kind = PostgresKind(postgres_dsn)
    async with opened(postgres_dsn) as store:
        (partition,) = await make_topic(store)
        lease = await coordinate(store)
        await store.commit_group_offsets(lease, GROUP, None, {partition: at(1)})
        async with rival(kind, "DELETE FROM group_offsets", "DELETE FROM consumer_groups"):
            commit = asyncio.create_task(store.commit_group_offsets(lease, GROUP, None, {partition: at(2)}))
            await until_waiting(kind, commit)
        assert await commit == {partition: None}
        assert (await committed(store, partition)).offset == 2
        assert [row.group_id for row in await store.list_groups()] == [GROUP]


async def test_a_simple_group_that_another_made_first_cannot_be_deleted_under_a_commit(postgres_dsn: str) -> None:
    kind = PostgresKind(postgres_dsn)
    async with opened(postgres_dsn) as store:
        (partition,) = await make_topic(store)
        lease = await coordinate(store)
        made = f"INSERT INTO consumer_groups VALUES ('{GROUP}', {lease.shard}, '', '', 0, '', 1)"
        in_the_way = f"INSERT INTO group_offsets VALUES ('{GROUP}', '{partition.topic_id}', 0, 1, 1, '', 1)"
        async with rival(kind, in_the_way, end="ROLLBACK"):
            async with rival(kind, made):
                commit = asyncio.create_task(store.commit_group_offsets(lease, GROUP, None, {partition: at(2)}))
                await until_waiting(kind, commit)
            await until_waiting(kind, commit)
            deletion = asyncio.create_task(store.delete_group(lease, GROUP))
            await until_waiting(kind, commit, deletion)
        assert await commit == {partition: None}
        await deletion
        assert await contents(kind) == [[], []]


async def test_every_call_survives_a_lost_answer(postgres_dsn: str) -> None:
    port = urlsplit(postgres_dsn).port
    assert port is not None
    async with proxy_before(port) as proxy, opened(proxy.before(postgres_dsn)) as store:
        first, second = await make_topic(store, 2)
        proxy.lose_answer_to(COMMIT)
        lease = await coordinate(store)
        assert lease.epoch == 2  # the first grant took effect: its epoch is used up
        proxy.lose_answer_to(COMMIT)
        assert None not in await store.renew_shards(AGENT, [lease], TTL_MS)
        row = group(generation=4, state=b"state", empty_since_ms=1)
        for call, answer in (
            (lambda: store.save_group(lease, row), None),
            (
                lambda: store.commit_group_offsets(lease, GROUP, 4, {first: at(5, "note"), second: at(6)}),
                {first: None, second: None},
            ),
            (lambda: store.load_groups(lease.shard), [row]),
            (lambda: store.fetch_group_offsets("other"), {}),
            (lambda: store.delete_group_offsets(lease, GROUP, [second]), {second: None}),
            (lambda: store.expire_group_offsets(lease, 1_000_000), 0),
        ):
            proxy.lose_answer_to(COMMIT)
            assert await call() == answer
        assert {partition: found.offset for partition, found in (await store.fetch_group_offsets(GROUP)).items()} == {
            first: 5
        }
        proxy.lose_answer_to(COMMIT)
        with pytest.raises(NotFound):  # the first try deleted it
            await store.delete_group(lease, GROUP)
        assert await store.list_groups() == []
        proxy.lose_answer_to(COMMIT)
        await store.release_shards(AGENT, [lease])
        assert (await acquire_shard(store, lease.shard, OTHER)).epoch == 3
        assert proxy.losses == 10


async def test_a_commit_of_a_thousand_partitions_asks_the_server_four_times(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(postgres_dsn) as store:
        partitions = await make_topic(store, 1000)
        lease = await coordinate(store)
        await store.save_group(lease, group(generation=4))
        asked: list[str] = []
        transact = store._database.transact

        class Counting:
            def __init__(self, connection: Any) -> None:
                self._connection = connection

            def __getattr__(self, name: str) -> Any:
                asked.append(name)
                return getattr(self._connection, name)

        monkeypatch.setattr(
            store._database, "transact", lambda work: transact(lambda connection: work(Counting(connection)))
        )
        answers = await store.commit_group_offsets(lease, GROUP, 4, {partition: at(1) for partition in partitions})
        assert (len(answers), set(answers.values())) == (1000, {None})
        assert len(asked) == 4
