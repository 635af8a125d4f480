"""The cluster's part of PostgreSQL: lost answers, who waits for whom, round trips, the SQL that operators type."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from behaviour.cluster import (
    TIMEOUT_MS,
    accepted_transfer,
    acquire_with_local_wal,
    agent,
    begin_transfer,
    placement_of,
    wal_commit,
)
from behaviour.coordinators import rival, until_waiting
from behaviour.metadata_stores import (
    AGENT,
    OTHER,
    TTL_MS,
    PostgresKind,
    acquire,
    epoch_start,
    make_topic,
    segment_commit,
)
from services.proxy import proxy_before
from streamhouse.core.placement.transfer import TransferState
from streamhouse.metadata.cluster import Transfer
from streamhouse.metadata.migrations import load_migrations
from streamhouse.metadata.postgres import database as postgres_database
from streamhouse.metadata.postgres.store import PostgresMetadataStore
from streamhouse.metadata.store import Lease, MetadataStore
from streamhouse.model.errors import MetadataUnavailable, NotFound
from streamhouse.model.names import TopicPartition

COMMIT = b"COMMIT;"  # as the driver sends it


@asynccontextmanager
async def opened(dsn: str) -> AsyncIterator[PostgresMetadataStore]:
    store = await PostgresMetadataStore.open(dsn)
    yield store
    await store.close()


async def test_every_call_survives_a_lost_answer(postgres_dsn: str) -> None:
    port = urlsplit(postgres_dsn).port
    assert port is not None
    async with proxy_before(port) as proxy, opened(proxy.before(postgres_dsn)) as store:
        (partition,) = await make_topic(store)
        proxy.lose_answer_to(COMMIT)
        assert (await store.register_agent(agent(), 0)).node_id == 1
        proxy.lose_answer_to(COMMIT)
        assert await store.heartbeat_agent(AGENT)
        proxy.lose_answer_to(COMMIT)
        await store.drain_agent(AGENT)
        proxy.lose_answer_to(COMMIT)
        await store.pin_partition(partition, OTHER)
        lease = await acquire_with_local_wal(store, partition)
        commit = wal_commit((lease, 0, 10))
        proxy.lose_answer_to(COMMIT)
        assert await store.commit_wal_objects([commit]) == [[None]]
        proxy.lose_answer_to(COMMIT)
        transfer = await begin_transfer(store, lease)
        proxy.lose_answer_to(COMMIT)
        await store.accept_transfers(OTHER, [transfer.transfer_id])
        proxy.lose_answer_to(COMMIT)
        completion = (transfer.transfer_id, lease.epoch, 10)
        assert await store.complete_transfers(AGENT, [completion], TTL_MS) == [None]
        assert (await placement_of(store, partition)).epoch == 2
        given = Lease(partition=partition, agent_id=OTHER, epoch=2, expires_at_ms=0)
        await store.commit_segments([segment_commit(given, 0, 10)])
        proxy.lose_answer_to(COMMIT)
        assert await store.retire_wal_objects(10) == 0  # the first try retired it
        assert await store.list_garbage(0, 10) == [commit.object_key]
        await store.release_leases(OTHER, [given], drained=False)
        for call, answer in (
            (lambda: store.elect_unclean(partition), ""),
            (lambda: store.list_wal_object_keys(), []),
            (lambda: store.load_wal_ranges([partition]), [[]]),
            (lambda: store.list_transfers(AGENT), []),
            (lambda: store.deregister_agent(AGENT), None),
            (lambda: store.list_agents(), []),
        ):
            proxy.lose_answer_to(COMMIT)
            assert await call() == answer
        assert proxy.losses == 15


async def test_a_wal_commit_that_lost_both_its_answers_stands_once_when_the_caller_tries_again(
    postgres_dsn: str,
) -> None:
    port = urlsplit(postgres_dsn).port
    assert port is not None
    async with (
        proxy_before(port) as proxy,
        opened(proxy.before(postgres_dsn)) as store,
        opened(postgres_dsn) as successor,
    ):
        (partition,) = await make_topic(store)
        commit = wal_commit((await acquire(store, partition), 0, 10))
        for _ in range(2):
            proxy.lose_answer_to(COMMIT)
        with pytest.raises(MetadataUnavailable):
            await store.commit_wal_objects([commit])
        # Meanwhile another agent takes over and goes on from what is durable.
        await PostgresKind(postgres_dsn).pass_time(TTL_MS)
        taken = await acquire(successor, partition, OTHER)
        assert await successor.load_wal_ranges([partition]) == [list(commit.ranges)]
        assert await successor.commit_wal_objects([wal_commit((taken, 10, 20), agent_id=OTHER)]) == [[None]]
        assert await store.commit_wal_objects([commit]) == [[None]]
        assert await PostgresKind(postgres_dsn).query("SELECT wal_end FROM partitions") == [(20,)]


async def test_a_commit_of_a_thousand_ranges_asks_the_server_four_times(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(postgres_dsn) as store:
        partitions = await make_topic(store, 1000)
        leases = [lease for lease in await store.acquire_leases(AGENT, partitions, TTL_MS) if lease is not None]
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
        commit = wal_commit(*((lease, 0, 10) for lease in leases))
        assert await store.commit_wal_objects([commit]) == [[None] * 1000]
        assert len(asked) == 4
        asked.clear()
        await store.load_segments(partitions)
        await store.load_wal_ranges(partitions)
        assert len(asked) == 2


async def test_a_renewal_does_not_wait_for_partitions_that_are_being_changed(postgres_dsn: str) -> None:
    """A commit that takes long must not cost the lease."""
    kind = PostgresKind(postgres_dsn)
    async with opened(postgres_dsn) as store:
        (partition,) = await make_topic(store)
        lease = await acquire(store, partition)
        async with rival(kind, "SELECT FROM partitions FOR UPDATE"):
            assert None not in await store.renew_leases(AGENT, [lease], TTL_MS)


async def test_objects_that_another_agent_retires_are_left_to_it(postgres_dsn: str) -> None:
    kind = PostgresKind(postgres_dsn)
    async with opened(postgres_dsn) as store:
        (partition,) = await make_topic(store)
        lease = await acquire(store, partition)
        commits = [wal_commit((lease, 0, 10)), wal_commit((lease, 10, 20))]
        await store.commit_wal_objects(commits)
        await store.commit_segments([segment_commit(lease, 0, 20)])
        async with rival(kind, f"SELECT FROM wal_objects WHERE object_key = '{commits[0].object_key}' FOR UPDATE"):
            assert await store.retire_wal_objects(10) == 1
        assert await store.list_garbage(0, 10) == [commits[1].object_key]
        assert await store.retire_wal_objects(10) == 1


async def test_retiring_lets_the_deletion_of_a_topic_go_first(postgres_dsn: str) -> None:
    """Which goes through the same ranges: neither may hold some of them while it waits for others."""
    kind = PostgresKind(postgres_dsn)
    async with opened(postgres_dsn) as store:
        (partition,) = await make_topic(store)
        lease = await acquire(store, partition)
        await store.commit_wal_objects([wal_commit((lease, 0, 10))])
        await store.commit_segments([segment_commit(lease, 0, 10)])
        async with rival(kind, "SELECT FROM partitions FOR UPDATE"):
            retiring = asyncio.create_task(store.retire_wal_objects(10))
            await until_waiting(kind, retiring)
            assert len(await kind.query("SELECT 1 FROM wal_ranges FOR UPDATE NOWAIT")) == 1
        assert await retiring == 1
        assert await store.list_wal_object_keys() == []


@dataclass
class Cluster:
    """An agent that leads three partitions and is handing each of them over, in an order that is not theirs."""

    store: MetadataStore
    leases: list[Lease]
    transfers: list[Transfer]

    @property
    def partitions(self) -> list[TopicPartition]:
        return [lease.partition for lease in self.leases]


CALLS: dict[str, Callable[[Cluster], Coroutine[Any, Any, object]]] = {
    "acquire": lambda c: c.store.acquire_leases(AGENT, c.partitions, TTL_MS),
    "release": lambda c: c.store.release_leases(AGENT, c.leases, drained=True),
    "begin to write": lambda c: c.store.begin_epochs(AGENT, [epoch_start(lease, 0) for lease in c.leases]),
    "commit segments": lambda c: c.store.commit_segments([segment_commit(lease, 0, 1) for lease in c.leases]),
    "commit an object": lambda c: c.store.commit_wal_objects([wal_commit(*((lease, 0, 1) for lease in c.leases))]),
    "begin transfers": lambda c: c.store.begin_transfers(AGENT, [(one, OTHER) for one in c.partitions], TIMEOUT_MS),
    "complete transfers": lambda c: c.store.complete_transfers(
        AGENT, [(transfer.transfer_id, 1, 0) for transfer in c.transfers], TTL_MS
    ),
    "delete": lambda c: c.store.delete_topic(c.partitions[0].topic_id),
}
MOVES: dict[str, Callable[[Cluster], Coroutine[Any, Any, object]]] = {
    "accept": lambda c: c.store.accept_transfers(OTHER, [transfer.transfer_id for transfer in c.transfers]),
    "reject": lambda c: c.store.reject_transfers(OTHER, [transfer.transfer_id for transfer in c.transfers], ""),
    "begin transfers": CALLS["begin transfers"],
    "complete transfers": CALLS["complete transfers"],
    "delete": CALLS["delete"],
}
CASES = [
    *((call, "partitions", "partition_id") for call in CALLS.values()),
    *((call, "partition_leases", "partition_id") for call in CALLS.values()),
    *((call, "partition_transfers", "transfer_id") for call in MOVES.values()),
]
NAMES = [*(f"{name}: partitions" for name in CALLS), *(f"{name}: leases" for name in CALLS), *MOVES]


@pytest.mark.parametrize(("call", "table", "key"), CASES, ids=NAMES)
async def test_rows_are_locked_in_the_one_order_that_everybody_keeps(
    postgres_dsn: str, call: Callable[[Cluster], Coroutine[Any, Any, object]], table: str, key: str
) -> None:
    """When another holds the second row, only the first is held while waiting for it."""
    kind = PostgresKind(postgres_dsn)
    async with opened(postgres_dsn) as store:
        partitions = await make_topic(store, 3)
        leases = [await acquire(store, partition) for partition in partitions[::-1]]
        transfers = [await accepted_transfer(store, lease) for lease in leases]
        cluster = Cluster(store, leases, sorted(transfers, key=lambda one: one.transfer_id, reverse=True))
        first, second, third = [row[0] for row in await kind.query(f"SELECT {key} FROM {table} ORDER BY {key}")]
        for one in (third, second, first):  # so that the order is not by chance that of the file
            await kind.query(f"UPDATE {table} SET {key} = {key} WHERE {key} = '{one}'")
        async with rival(kind, f"SELECT FROM {table} WHERE {key} = '{second}' FOR UPDATE"):
            task = asyncio.create_task(call(cluster))
            await until_waiting(kind, task)
            assert await kind.query(f"SELECT {key} FROM {table} FOR UPDATE SKIP LOCKED") == [(third,)]
            assert first < second < third
        await task


async def test_no_two_calls_ever_wait_for_each_other(postgres_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that agents do at once, on the same rows in any order. A deadlock would be broken by the server and tried
    again, so here nothing is."""
    monkeypatch.setattr(postgres_database, "_ROLLED_BACK", ())
    async with opened(postgres_dsn) as one, opened(postgres_dsn) as two:
        partitions = await make_topic(one, 12)
        for number in range(5):
            (doomed,) = await make_topic(one, name=f"doomed-{number}")
            await asyncio.gather(
                *(
                    _work_as(store, agent_id, [*partitions, doomed] if is_forward else [doomed, *partitions[::-1]])
                    for store, is_forward in ((one, True), (two, False))
                    for agent_id in (AGENT, OTHER)
                ),
                _delete(one, doomed),
            )


async def _work_as(store: MetadataStore, agent_id: str, partitions: list[TopicPartition]) -> None:
    peer = OTHER if agent_id == AGENT else AGENT
    await store.register_agent(agent(agent_id), 0)
    taken = await store.acquire_leases(agent_id, partitions, TTL_MS)
    leases = [lease for lease in taken if lease is not None]
    ends = {row.partition: row for row in await store.list_placements()}
    leases = [lease for lease in leases if lease.partition in ends]
    commits = [
        wal_commit(
            *((lease, ends[lease.partition].durable_end, ends[lease.partition].durable_end + 5) for lease in group),
            agent_id=agent_id,
        )
        for group in (leases[::2], leases[1::2])
    ]
    segments = [
        segment_commit(lease, ends[lease.partition].committed_end, ends[lease.partition].committed_end + 3)
        for lease in leases
    ]
    begun = await store.begin_transfers(agent_id, [(lease.partition, peer) for lease in leases[::3]], TIMEOUT_MS)
    transfers = [transfer for transfer in begun if transfer is not None]
    ids = [transfer.transfer_id for transfer in transfers]
    epochs = {lease.partition: lease.epoch for lease in leases}
    completions = [
        (transfer.transfer_id, epochs[transfer.partition], ends[transfer.partition].durable_end + 5)
        for transfer in transfers
    ]
    await asyncio.gather(
        store.commit_wal_objects(commits),
        store.commit_segments(segments[::-1]),
        store.renew_leases(agent_id, leases, TTL_MS),
        store.accept_transfers(peer, ids),
        store.retire_wal_objects(5),
        store.list_transfers(),
        store.list_transfers(agent_id),
    )
    await asyncio.gather(
        store.complete_transfers(agent_id, completions[::-1], TTL_MS),
        store.complete_transfers(agent_id, completions, TTL_MS),
        store.reject_transfers(agent_id, ids[::-1], "enough"),
        store.release_leases(agent_id, leases[::-1], drained=True),
        store.retire_wal_objects(100),
    )


async def _delete(store: MetadataStore, partition: TopicPartition) -> None:
    await store.pin_partition(partition, AGENT)
    await store.delete_topic(partition.topic_id)


async def test_the_statements_that_operators_know_act_on_a_cluster_that_runs(postgres_dsn: str) -> None:
    """From the project's own description of its coordination tables, as printed."""
    async with opened(postgres_dsn) as store:
        (partition,) = await make_topic(store)
        connection = await asyncpg.connect(postgres_dsn)
        await connection.execute(
            """
            INSERT INTO agents (agent_id, address, availability_zone, agent_group, last_heartbeat, started_at, metadata)
            VALUES ('test-agent-1', '127.0.0.1:9090', 'local', 'test', extract(epoch from now())*1000,
                extract(epoch from now())*1000, '{}'::jsonb);
            """
        )
        (row,) = await store.list_agents()
        assert (row.info.agent_id, row.info.address, row.info.zone, row.info.agent_group) == (
            "test-agent-1",
            "127.0.0.1:9090",
            "local",
            "test",
        )
        assert (row.info.kafka_address, row.node_id, row.is_draining) == ("", 0, False)
        assert row.silent_ms < 60_000
        await connection.execute(
            """
            INSERT INTO partition_leases (topic, partition_id, leader_agent_id, lease_expires_at, acquired_at, epoch)
            VALUES ('orders', 0, 'test-agent-1', extract(epoch from now())*1000 + 30000,
                extract(epoch from now())*1000, 1);
            """
        )
        placement = await placement_of(store, partition)
        assert (placement.agent_id, placement.epoch) == ("test-agent-1", 1)
        assert 0 < placement.lease_left_ms <= 30_000
        assert await store.acquire_leases(AGENT, [partition], TTL_MS) == [None]
        (given,) = await store.begin_transfers("test-agent-1", [(partition, AGENT)], TIMEOUT_MS)
        assert given is not None
        await PostgresKind(postgres_dsn).pass_time(30_000)
        await connection.execute(
            """
            INSERT INTO partition_leases (topic, partition_id, leader_agent_id, lease_expires_at, acquired_at, epoch)
            VALUES ('orders', 0, 'test-agent-2', extract(epoch from now())*1000 + 30000,
                extract(epoch from now())*1000, 1)
            ON CONFLICT (topic, partition_id)
            DO UPDATE SET
                leader_agent_id = EXCLUDED.leader_agent_id,
                lease_expires_at = EXCLUDED.lease_expires_at,
                epoch = partition_leases.epoch + 1
            WHERE partition_leases.lease_expires_at < extract(epoch from now())*1000;
            """
        )
        placement = await placement_of(store, partition)
        assert (placement.agent_id, placement.epoch) == ("test-agent-2", 2)
        await store.register_agent(agent(), 0)
        columns = "agent_id, address, availability_zone, last_heartbeat"
        rows = await connection.fetch(f"SELECT {columns} FROM agents")
        assert sorted(row["agent_id"] for row in rows) == [AGENT, "test-agent-1"]
        await connection.close()


async def test_a_database_from_before_clusters_keeps_its_partitions_for_the_agents_that_led_them(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(postgres_database, "load_migrations", lambda package: load_migrations(package)[:2])
        await (await PostgresMetadataStore.open(postgres_dsn)).close()
    kind = PostgresKind(postgres_dsn)
    topic_id = "11111111-1111-4111-8111-111111111111"
    await kind.query(f"INSERT INTO topics VALUES ('{topic_id}', 'orders', 2, '{{}}', 1)")
    for number in range(2):
        await kind.query(
            f"INSERT INTO partitions (topic_id, partition_id, topic) VALUES ('{topic_id}', {number}, 'orders')"
        )
    await kind.query(f"INSERT INTO partition_leases VALUES ('orders', 0, '{AGENT}', 0, 0, 5)")
    async with opened(postgres_dsn) as store:
        led, free = [row.partition for row in await store.list_placements()]
        assert [row.wal_agent_id for row in await store.list_placements()] == [AGENT, ""]
        refused, granted = await store.acquire_leases(OTHER, [led, free], TTL_MS)
        assert refused is None
        assert granted is not None
        assert (await acquire(store, led)).epoch == 6
        assert (await store.register_agent(agent(), 0)).node_id == 1


async def test_a_transfer_of_a_topic_deleted_meanwhile_is_gone(postgres_dsn: str) -> None:
    kind = PostgresKind(postgres_dsn)
    async with opened(postgres_dsn) as store:
        (partition,) = await make_topic(store)
        lease = await acquire(store, partition)
        transfer = await accepted_transfer(store, lease)
        async with rival(kind, "SELECT FROM partitions FOR UPDATE", "DELETE FROM topics"):
            completing = asyncio.create_task(
                store.complete_transfers(AGENT, [(transfer.transfer_id, lease.epoch, 0)], TTL_MS)
            )
            pinning = asyncio.create_task(store.pin_partition(partition, OTHER))
            await until_waiting(kind, completing, pinning)
        (answer,) = await completing
        assert answer is not None
        with pytest.raises(NotFound):
            await pinning
        assert TransferState.COMPLETED not in {one.state for one in await store.list_transfers()}


async def test_a_process_that_is_stopped_in_a_transaction_does_not_keep_others_waiting(postgres_dsn: str) -> None:
    """Between two messages of one statement it is not idle to the server, whose own time limit does not end it."""
    store = await PostgresMetadataStore.open(postgres_dsn)
    stopped = await asyncpg.connect(postgres_dsn, server_settings={"application_name": "streamhouse"})
    try:
        (partition,) = await make_topic(store)
        pid = stopped.get_server_pid()
        await stopped.execute("BEGIN")
        await stopped.execute("SELECT FROM partitions FOR UPDATE")
        await stopped.prepare("SELECT 1")

        lease = await acquire(store, partition)

        assert lease.epoch == 1
        # The server has ended the stopped process's transaction; its backend gives up its locks before it is gone.
        while (pid,) in await PostgresKind(postgres_dsn).query("SELECT pid FROM pg_stat_activity"):
            pass
    finally:
        stopped.terminate()
        await store.close()
