"""What the agents of a cluster share: a PostgreSQL database and a bucket on an S3 server, both real and empty."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import uuid4

import asyncpg
import obstore

from bench.object_server import ObjectServer, object_server
from bench.real_services import running, service_module
from bench.servers import ServerFailed

PREFIX = "cluster"
KEEP_OBJECTS = ("--retention-interval", "24h", "--garbage-interval", "24h")
"""WAL objects that segments cover are removed with the next clean-up: not during a measurement."""


class Put(NamedTuple):
    objects: int
    size_bytes: int


class Listing(dict[str, int]):
    """The sizes of the cluster's objects by key.

    Every key is written once, so that as long as nothing is removed two listings say exactly what was PUT between them.
    Agents under measurement have KEEP_OBJECTS for that, and a listing that misses something is an error."""

    def put_since(self, before: Listing) -> Put:
        if removed := before.keys() - self.keys():
            raise ServerFailed(f"{len(removed)} objects were removed, so what was PUT cannot be counted")
        new = [size for key, size in self.items() if key not in before]
        return Put(len(new), sum(new))


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedStorage:
    dsn: str
    server: ObjectServer

    def flags(self) -> list[str]:
        return ["--metadata", self.dsn, *self.server.flags(PREFIX)]

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        async def ask() -> list[tuple[Any, ...]]:
            connection = await asyncpg.connect(self.dsn)
            try:
                return [tuple(row) for row in await connection.fetch(sql)]
            finally:
                await connection.close()

        return asyncio.run(ask())

    def listing(self, kind: str = "") -> Listing:
        """Of one kind, `wal` or `segments`, or of all."""
        pages = obstore.list(self.server.store(PREFIX), prefix=kind or None)
        return Listing((item["path"], item["size"]) for page in pages for item in page)

    def bare_put_seconds(self, size_bytes: int, count: int) -> Sequence[float]:
        """Objects of that size PUT one after the other, without a broker."""
        store, content = self.server.store("bare"), os.urandom(size_bytes)

        def put() -> float:
            key = uuid4().hex
            start = time.perf_counter()
            obstore.put(store, key, content, mode="create")
            return time.perf_counter() - start

        return [put() for _ in range(count)]

    def bare_commit_seconds(self, count: int) -> Sequence[float]:
        """Transactions that insert one row, one after the other."""

        async def commit_all() -> list[float]:
            connection = await asyncpg.connect(self.dsn)
            try:
                await connection.execute("CREATE TABLE IF NOT EXISTS bare_commits (number BIGINT)")
                return [await commit(connection, number) for number in range(count)]
            finally:
                await connection.close()

        async def commit(connection: asyncpg.Connection, number: int) -> float:
            start = time.perf_counter()
            await connection.execute("INSERT INTO bare_commits VALUES ($1)", number)
            return time.perf_counter() - start

        return asyncio.run(commit_all())


def percentiles(seconds: Sequence[float]) -> tuple[float, float]:
    """p50 and p99."""
    cuts = statistics.quantiles(seconds, n=100)
    return cuts[49], cuts[98]


@contextmanager
def shared_storage() -> Iterator[SharedStorage]:
    with running(service_module("postgres").postgres_server()) as database, object_server() as server:
        dsn = database.create_database()
        try:
            yield SharedStorage(dsn=dsn, server=server)
        finally:
            database.drop_database(dsn)
