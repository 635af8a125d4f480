"""PostgreSQL's change feed: a connection of its own that is lost, silent or refused, and comes back by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from asyncpg.exceptions import InternalClientError

from behaviour.cluster import Heard, agent, listening, settled
from behaviour.metadata_stores import AGENT, TTL_MS, PostgresKind, make_topic
from services.postgres import OwnPostgresServer
from services.proxy import proxy_before
from streamhouse.metadata.cluster import Change
from streamhouse.metadata.postgres import changes
from streamhouse.metadata.postgres.database import connect as connect_to_database
from streamhouse.metadata.postgres.store import PostgresMetadataStore

LISTENERS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'"
ALL = tuple(Change)


@asynccontextmanager
async def opened(dsn: str) -> AsyncIterator[PostgresMetadataStore]:
    store = await PostgresMetadataStore.open(dsn)
    yield store
    await store.close()


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 (nothing tells us)
        await asyncio.sleep(0.01)


async def test_a_store_that_nobody_subscribes_to_does_not_listen(postgres_dsn: str) -> None:
    async with opened(postgres_dsn) as store:
        await make_topic(store)
        assert await PostgresKind(postgres_dsn).query(LISTENERS) == []


async def test_many_subscribers_share_one_connection_which_ends_with_the_store(postgres_dsn: str) -> None:
    kind = PostgresKind(postgres_dsn)
    async with opened(postgres_dsn) as store:
        heard = [Heard() for _ in range(3)]
        for one in heard:
            store.subscribe(one)
        for one in heard:
            await one.until(*ALL)
        assert len(await kind.query(LISTENERS)) == 1
    while await kind.query(LISTENERS):
        pass


async def test_it_is_told_of_what_other_processes_do(postgres_dsn: str) -> None:
    async with opened(postgres_dsn) as store, opened(postgres_dsn) as other, listening(store) as heard:
        await make_topic(other)
        await heard.until(Change.TOPICS)
        heard.forget()
        await PostgresKind(postgres_dsn).query("DELETE FROM topics")  # an operator
        await heard.until(Change.TOPICS)


async def test_what_one_transaction_does_to_many_rows_is_told_once(postgres_dsn: str) -> None:
    async with opened(postgres_dsn) as store, listening(store) as heard:
        partitions = await make_topic(store, 200)
        await store.acquire_leases(AGENT, partitions, TTL_MS)
        await settled(store)
        assert heard.changes == [Change.TOPICS, Change.LEASES, Change.AGENTS]


async def test_after_its_connection_was_ended_all_may_have_changed_and_it_listens_on(postgres_dsn: str) -> None:
    kind = PostgresKind(postgres_dsn)
    async with opened(postgres_dsn) as store, opened(postgres_dsn) as other, listening(store) as heard:
        for number in range(3):
            ((process_id,),) = await kind.query(LISTENERS)
            await kind.query(f"SELECT pg_terminate_backend({process_id})")
            await heard.until(*ALL)
            await settled(store)
            heard.forget()
            await make_topic(other, name=f"after-{number}")
            await heard.until(Change.TOPICS)
            await settled(store)
            heard.forget()


async def test_a_server_that_goes_and_comes_back_is_listened_to_again(stoppable_postgres: OwnPostgresServer) -> None:
    async with opened(stoppable_postgres.create_database()) as store, listening(store) as heard:
        stoppable_postgres.stop()
        stoppable_postgres.start()
        await heard.until(*ALL)
        await settled(store)
        heard.forget()
        await make_topic(store)
        await heard.until(Change.TOPICS)


@pytest.mark.parametrize("problem", [asyncio.IncompleteReadError(b"", 1), InternalClientError(), RuntimeError("a bug")])
async def test_whatever_goes_wrong_while_it_connects_it_tries_again(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    tries = 0

    async def connect(dsn: str) -> object:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise problem
        return await connect_to_database(dsn)

    monkeypatch.setattr(changes, "connect", connect)
    async with opened(postgres_dsn) as store, listening(store):
        assert tries == 2


async def test_a_connection_that_died_silently_is_noticed(postgres_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_CHECK_SECONDS", 0.1)
    monkeypatch.setattr(changes, "_ANSWER_SECONDS", 0.1)
    port = urlsplit(postgres_dsn).port
    assert port is not None
    async with proxy_before(port) as proxy, opened(proxy.before(postgres_dsn)) as store:
        heard = Heard()
        store.subscribe(heard)
        await heard.until(*ALL)
        heard.forget()
        connections = len(proxy._tasks)
        proxy.pause()
        await until(lambda: len(proxy._tasks) > connections)  # it gives this one up and tries another
        proxy.resume()
        await heard.until(*ALL)


async def test_a_connection_that_answers_is_kept(postgres_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_CHECK_SECONDS", 0.01)
    kind = PostgresKind(postgres_dsn)
    checked = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query = 'SELECT 1'"
    async with opened(postgres_dsn) as store, listening(store) as heard:
        while not (first := await kind.query(checked)):
            pass
        await settled(store)
        heard.forget()
        for _ in range(20):
            assert await kind.query(checked) == first
        await make_topic(store)
        await heard.until(Change.TOPICS)
        assert heard.changes == [Change.TOPICS]


async def test_kinds_of_newer_code_are_passed_over(postgres_dsn: str) -> None:
    async with opened(postgres_dsn) as store, listening(store) as heard:
        await PostgresKind(postgres_dsn).query("NOTIFY streamhouse_changes, 'of the future'")
        await settled(store)
        assert heard.changes == [Change.AGENTS]


async def test_a_store_closes_while_its_feed_cannot_connect(stoppable_postgres: OwnPostgresServer) -> None:
    store = await PostgresMetadataStore.open(stoppable_postgres.create_database())
    stoppable_postgres.stop()
    heard = Heard()
    store.subscribe(heard)
    await asyncio.sleep(0)
    await store.close()
    assert heard.changes == []
    stoppable_postgres.start()


async def test_a_heartbeat_as_operators_type_it_is_no_change(postgres_dsn: str) -> None:
    async with opened(postgres_dsn) as store:
        await store.register_agent(agent(), 0)
        async with listening(store) as heard:
            await PostgresKind(postgres_dsn).query("UPDATE agents SET last_heartbeat = last_heartbeat + 1")
            await make_topic(store)
            await heard.until(Change.TOPICS)
            assert heard.changes == [Change.TOPICS]
