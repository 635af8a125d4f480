"""PostgreSQL's own faults: lost answers, restarts, concurrent openers; and the SQL that operators type."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from urllib.parse import urlsplit

import asyncpg
import pytest

from behaviour.cluster import agent
from behaviour.metadata_stores import (
    AGENT,
    OTHER,
    TTL_MS,
    PostgresKind,
    acquire,
    epoch_start,
    make_topic,
    segment_commit,
    segments_of,
)
from services.postgres import PASSWORD, OwnPostgresServer
from services.proxy import Proxy, proxy_before
from streamhouse.metadata.migrations import load_migrations
from streamhouse.metadata.postgres import database as postgres_database
from streamhouse.metadata.postgres import silence
from streamhouse.metadata.postgres.store import PostgresMetadataStore
from streamhouse.model.errors import InvalidConfig, MetadataUnavailable, StaleEpoch, StreamHouseError

# As the driver sends it; without the semicolon it would also match BEGIN ISOLATION LEVEL READ COMMITTED.
COMMIT = b"COMMIT;"


def proxy_to(dsn: str) -> AbstractAsyncContextManager[Proxy]:
    port = urlsplit(dsn).port
    assert port is not None
    return proxy_before(port)


async def assert_committed_once(kind: PostgresKind, object_key: str) -> None:
    assert await kind.query("SELECT object_key FROM segments") == [(object_key,)]
    assert await kind.query("SELECT high_watermark FROM partitions") == [(10,)]
    assert await kind.find_seams() == []


@pytest.mark.parametrize("lose", [Proxy.lose_answer_to, Proxy.lose_request], ids=["lost answer", "lost request"])
async def test_a_commit_whose_answer_never_came_is_looked_up_and_stands_once(postgres_dsn: str, lose: object) -> None:
    async with proxy_to(postgres_dsn) as proxy:
        store = await PostgresMetadataStore.open(proxy.before(postgres_dsn))
        (partition,) = await make_topic(store)
        commit = segment_commit(await acquire(store, partition), 0, 10)
        lose(proxy, COMMIT)  # type: ignore[operator]
        assert await store.commit_segments([commit]) == [None]
        assert proxy.losses == 1
        await assert_committed_once(PostgresKind(postgres_dsn), commit.segment.object_key)
        await store.close()


@pytest.mark.parametrize("hold", [Proxy.hold, Proxy.hold_answers], ids=["nothing flows", "no answers come"])
async def test_connections_that_died_without_a_word_are_replaced_and_a_commit_stands_once(
    postgres_dsn: str, hold: Callable[[Proxy], None]
) -> None:
    """All that the pool keeps are dead; what would have to time out one after the other is left behind at once."""
    async with proxy_to(postgres_dsn) as proxy:
        store = await PostgresMetadataStore.open(proxy.before(postgres_dsn))
        (partition,) = await make_topic(store)
        commit = segment_commit(await acquire(store, partition), 0, 10)
        await asyncio.gather(*(store.list_agents() for _ in range(4)))
        hold(proxy)
        begun = time.monotonic()
        assert await store.commit_segments([commit]) == [None]
        await asyncio.gather(*(store.list_agents() for _ in range(4)))
        assert time.monotonic() - begun < 2 * postgres_database._COMMAND_SECONDS
        await assert_committed_once(PostgresKind(postgres_dsn), commit.segment.object_key)
        await store.close()


async def test_a_statement_that_takes_its_time_is_waited_for(postgres_dsn: str) -> None:
    """The server says that it is at it, and is asked at least twice."""
    database = await postgres_database.Database.open(postgres_dsn)
    runs = []

    async def work(connection: postgres_database.Connection) -> None:
        runs.append(connection.get_server_pid())
        await connection.execute("SELECT pg_sleep($1)", silence._SUSPICIOUS_SECONDS + 2 * silence._AGAIN_MS / 1000)

    await database.transact(work)
    assert len(runs) == 1
    await database.close()


async def test_a_commit_that_lost_both_its_answers_stands_once_when_the_caller_tries_again(postgres_dsn: str) -> None:
    async with proxy_to(postgres_dsn) as proxy:
        store = await PostgresMetadataStore.open(proxy.before(postgres_dsn))
        (partition,) = await make_topic(store)
        commit = segment_commit(await acquire(store, partition), 0, 10)
        for _ in range(2):
            proxy.lose_answer_to(COMMIT)
        with pytest.raises(MetadataUnavailable):
            await store.commit_segments([commit])
        assert proxy.losses == 2
        # Meanwhile another agent takes over and goes on from what was committed.
        successor = await PostgresMetadataStore.open(postgres_dsn)
        await PostgresKind(postgres_dsn).pass_time(TTL_MS)
        taken = await acquire(successor, partition, OTHER)
        assert await store.commit_segments([commit]) == [None]
        await assert_committed_once(PostgresKind(postgres_dsn), commit.segment.object_key)
        assert await successor.commit_segments([segment_commit(taken, 10, 20)]) == [None]
        await successor.close()
        await store.close()


async def test_every_other_call_survives_a_lost_answer(postgres_dsn: str) -> None:
    async with proxy_to(postgres_dsn) as proxy:
        store = await PostgresMetadataStore.open(proxy.before(postgres_dsn))
        proxy.lose_answer_to(COMMIT)
        (partition,) = await make_topic(store)
        (topic,) = await store.list_topics()
        proxy.lose_answer_to(COMMIT)
        lease = await acquire(store, partition)
        assert lease.epoch == 2  # the first grant took effect: its epoch is used up
        for call in (
            lambda: store.begin_epochs(AGENT, [epoch_start(lease, 0)]),
            lambda: store.renew_leases(AGENT, [lease], TTL_MS),
            lambda: store.set_topic_config(topic, {"retention.ms": "1"}),
            lambda: store.allocate_producer_ids(10),
            lambda: store.commit_segments([segment_commit(lease, 0, 10)]),
            lambda: store.advance_log_start(partition, AGENT, lease.epoch, 10),
            lambda: store.list_topics(),
            lambda: store.cluster_id(),
            lambda: store.release_leases(AGENT, [lease], drained=True),
        ):
            proxy.lose_answer_to(COMMIT)
            await call()
        assert proxy.losses == 11
        (row,) = await store.load_partitions([partition])
        assert (row.log_start_offset, row.next_offset, row.epochs) == (10, 10, ((2, 0),))
        await store.close()


async def test_connections_that_were_cut_are_replaced(postgres_dsn: str) -> None:
    async with proxy_to(postgres_dsn) as proxy:
        store = await PostgresMetadataStore.open(proxy.before(postgres_dsn))
        for _ in range(3):
            proxy.cut()
            assert await store.list_topics() == []
        await store.close()


async def test_a_server_that_does_not_answer_is_unavailable_and_then_back(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await PostgresMetadataStore.open(postgres_dsn)).close()  # to make the tables takes longest
    # Long enough for a busy machine to open it, and not so long that nobody would wait for it here.
    monkeypatch.setattr(postgres_database, "_COMMAND_SECONDS", 3)
    async with proxy_to(postgres_dsn) as proxy:
        store = await PostgresMetadataStore.open(proxy.before(postgres_dsn))
        proxy.pause()
        monkeypatch.setattr(postgres_database, "_CONNECT_SECONDS", 0.3)
        for _ in range(2):
            with pytest.raises(MetadataUnavailable):
                await store.list_topics()
        proxy.resume()
        monkeypatch.setattr(postgres_database, "_CONNECT_SECONDS", 10)
        await until_available(store)
        await store.close()


async def until_available(store: PostgresMetadataStore) -> None:
    while True:
        try:
            await store.list_topics()
            return
        except MetadataUnavailable:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("end", [OwnPostgresServer.stop, OwnPostgresServer.crash], ids=["stopped", "crashed"])
async def test_a_server_that_goes_and_comes_back_is_used_again_without_help(
    stoppable_postgres: OwnPostgresServer, end: object
) -> None:
    dsn = stoppable_postgres.create_database()
    store = await PostgresMetadataStore.open(dsn)
    (partition,) = await make_topic(store)
    commit = segment_commit(await acquire(store, partition), 0, 10)
    end(stoppable_postgres)  # type: ignore[operator]
    with pytest.raises(MetadataUnavailable):
        await store.commit_segments([commit])
    with pytest.raises(MetadataUnavailable):
        await PostgresMetadataStore.open(dsn)
    stoppable_postgres.start()
    assert await store.commit_segments([commit]) == [None]
    await assert_committed_once(PostgresKind(dsn), commit.segment.object_key)
    await store.close()


async def test_a_transaction_that_its_process_left_open_does_not_block_a_takeover_for_long(postgres_dsn: str) -> None:
    """What a stopped process does: the server ends its session, and with it its locks."""
    store = await PostgresMetadataStore.open(postgres_dsn)
    (answer,) = [
        row["setting"]
        for row in await store._database._pool.fetch(
            "SELECT setting FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'"
        )
    ]
    assert 0 < int(answer) <= TTL_MS
    await store.close()


async def test_many_processes_that_open_an_empty_database_at_once_migrate_it_once(postgres_dsn: str) -> None:
    stores = await asyncio.gather(*(PostgresMetadataStore.open(postgres_dsn) for _ in range(8)))
    applied = await PostgresKind(postgres_dsn).query("SELECT version, name FROM schema_migrations")
    known = load_migrations("streamhouse.metadata.postgres.migrations")
    assert applied == [(migration.version, migration.name) for migration in known]
    for store in stores:
        await store.close()


async def test_a_database_of_newer_code_is_refused_and_left_alone(postgres_dsn: str) -> None:
    await (await PostgresMetadataStore.open(postgres_dsn)).close()
    kind = PostgresKind(postgres_dsn)
    await kind.query("INSERT INTO schema_migrations VALUES (99, 'later', 0)")
    with pytest.raises(InvalidConfig, match="schema version 99"):
        await PostgresMetadataStore.open(postgres_dsn)


async def test_errors_at_open_say_what_to_do_and_never_the_password(postgres_dsn: str) -> None:
    wrong = {
        "no such database": (postgres_dsn + "_missing", InvalidConfig),
        "wrong password": (postgres_dsn.replace(PASSWORD, "hunter2-wrong"), InvalidConfig),
        "nobody listens": (postgres_dsn.replace(f":{urlsplit(postgres_dsn).port}/", ":1/"), MetadataUnavailable),
        "not a port": (f"postgresql://u:{PASSWORD}@127.0.0.1:port/db", InvalidConfig),
        "bad option": (f"{postgres_dsn}?sslmode=nonsense", InvalidConfig),
    }
    for name, (dsn, expected) in wrong.items():
        with pytest.raises(expected) as caught:
            await PostgresMetadataStore.open(dsn)
        assert isinstance(caught.value, StreamHouseError), name
        assert caught.value.hint, name
        for secret in (PASSWORD, "hunter2"):
            assert secret not in f"{caught.value!r} {caught.value} {caught.value.__cause__!r}", name


async def test_the_statements_that_operators_know_work_as_printed(postgres_dsn: str) -> None:
    """From the project's own description of its coordination tables."""
    await (await PostgresMetadataStore.open(postgres_dsn)).close()
    connection = await asyncpg.connect(postgres_dsn)
    await connection.execute(
        """
        INSERT INTO agents (agent_id, address, availability_zone, agent_group, last_heartbeat, started_at, metadata)
        VALUES ('test-agent-1', '127.0.0.1:9090', 'local', 'test',
            extract(epoch from now())*1000, extract(epoch from now())*1000, '{}'::jsonb)
        """
    )
    await connection.execute(
        """
        INSERT INTO agents (
            agent_id, address, availability_zone, agent_group, last_heartbeat, started_at, metadata
        )
        VALUES ('test-agent-1', '10.0.1.5:9090', 'us-east-1a', 'prod', 1769188820000, 1769188800000, '{}'::jsonb)
        ON CONFLICT (agent_id) DO UPDATE SET last_heartbeat = EXCLUDED.last_heartbeat
        """
    )
    alive = "SELECT * FROM agents WHERE last_heartbeat > extract(epoch from now())*1000 - 60000"
    assert await connection.fetch(alive) == []
    await connection.execute("UPDATE agents SET last_heartbeat = extract(epoch from now())*1000")
    (agent,) = await connection.fetch(alive)
    assert list(agent.keys()) == [
        "agent_id",
        "address",
        "availability_zone",
        "agent_group",
        "last_heartbeat",
        "started_at",
        "metadata",
    ]
    acquire_lease = """
        INSERT INTO partition_leases (topic, partition_id, leader_agent_id, lease_expires_at, acquired_at, epoch)
        VALUES ('orders', 0, $1, extract(epoch from now())*1000 + 30000, extract(epoch from now())*1000, 1)
        ON CONFLICT (topic, partition_id)
        DO UPDATE SET
            leader_agent_id = EXCLUDED.leader_agent_id,
            lease_expires_at = EXCLUDED.lease_expires_at,
            epoch = partition_leases.epoch + 1
        WHERE partition_leases.lease_expires_at < extract(epoch from now())*1000
    """
    assert await connection.execute(acquire_lease, "test-agent-1") == "INSERT 0 1"
    assert await connection.execute(acquire_lease, "test-agent-2") == "INSERT 0 0"
    await connection.execute("UPDATE partition_leases SET lease_expires_at = lease_expires_at - 60000")
    assert await connection.execute(acquire_lease, "test-agent-2") == "INSERT 0 1"
    rows = await connection.fetch(
        """
        SELECT topic, partition_id, leader_agent_id,
            lease_expires_at - extract(epoch from now())*1000 as ttl_ms, epoch
        FROM partition_leases
        """
    )
    assert [(row["topic"], row["partition_id"], row["leader_agent_id"], row["epoch"]) for row in rows] == [
        ("orders", 0, "test-agent-2", 2)
    ]
    lease = await connection.fetchrow("SELECT * FROM partition_leases")
    assert [name for name, _ in lease.items()] == [
        "topic",
        "partition_id",
        "leader_agent_id",
        "lease_expires_at",
        "acquired_at",
        "epoch",
    ]
    assert await connection.fetch("SELECT topic, partition_id, high_watermark FROM partitions") == []
    await connection.close()


async def test_a_commit_waits_for_a_takeover_that_is_under_way_and_then_loses(postgres_dsn: str) -> None:
    store = await PostgresMetadataStore.open(postgres_dsn)
    (partition,) = await make_topic(store)
    lease = await acquire(store, partition)
    successor = await asyncpg.connect(postgres_dsn)
    takeover = successor.transaction()
    await takeover.start()
    await successor.execute("UPDATE partition_leases SET leader_agent_id = 'successor', epoch = epoch + 1")
    committing = asyncio.create_task(store.commit_segments([segment_commit(lease, 0, 10)]))
    while not committing.done() and not await PostgresKind(postgres_dsn).query(
        "SELECT 1 FROM pg_locks WHERE NOT granted"
    ):
        pass
    assert not committing.done()
    await takeover.commit()
    (answer,) = await committing
    assert isinstance(answer, StaleEpoch)
    assert await segments_of(store, partition) == []
    await successor.close()
    await store.close()


async def test_a_lease_taken_by_hand_is_respected_and_fences(postgres_dsn: str) -> None:
    store = await PostgresMetadataStore.open(postgres_dsn)
    (partition,) = await make_topic(store)
    lease = await acquire(store, partition)
    await PostgresKind(postgres_dsn).query(
        "UPDATE partition_leases SET leader_agent_id = 'by-hand', epoch = epoch + 1,"
        " lease_expires_at = extract(epoch from now())*1000 + 30000"
    )
    (answer,) = await store.commit_segments([segment_commit(lease, 0, 10)])
    assert answer is not None
    assert await store.acquire_leases(AGENT, [partition], TTL_MS) == [None]
    await store.close()


async def test_a_renewal_does_not_wait_for_connections_that_other_work_has(postgres_dsn: str) -> None:
    """Group commits and the like may keep all of them busy; without its renewals an agent would do them in vain."""
    store = await PostgresMetadataStore.open(postgres_dsn)
    (partition,) = await make_topic(store)
    await store.register_agent(agent(), 0)
    lease = await acquire(store, partition)
    (shard,) = await store.acquire_shards(AGENT, [0], TTL_MS)
    assert shard is not None
    async with AsyncExitStack() as busy:
        for _ in range(8):
            await busy.enter_async_context(store._database._pool.acquire())
        # One that waited for those would fail: the pool gives up after a while.
        assert await store.renew_leases(AGENT, [lease], TTL_MS) != [None]
        assert await store.renew_shards(AGENT, [shard], TTL_MS) != [None]
        assert await store.heartbeat_agent(AGENT)
    await store.close()
