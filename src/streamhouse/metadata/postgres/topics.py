"""Topics and their partitions in PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from streamhouse.metadata.checks import check_collision, check_config_text, check_count, check_growth, check_text
from streamhouse.metadata.postgres.database import Connection, Database
from streamhouse.model.errors import AlreadyExists, NotFound
from streamhouse.model.names import collision_key
from streamhouse.model.topic import Topic

# Of two that would collide the second waits here until the first is there to be seen.
_LOCK_COLLIDING = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
_COLLIDING = "SELECT name FROM topics WHERE replace(name, '.', '_') = $1 AND name <> $2 ORDER BY name LIMIT 1"
_SELECT = "SELECT name, topic_id, partition_count, config, created_at FROM topics"


class PostgresTopics:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def create_topic(self, name: str, topic_id: UUID, partition_count: int, config: Mapping[str, str]) -> Topic:
        check_text("topic name", name)
        check_count("partitions", partition_count)
        check_config_text(config)

        async def work(connection: Connection) -> Topic:
            key = collision_key(name)
            if key is not None:
                await connection.execute(_LOCK_COLLIDING, key)
            colliding = await connection.fetchrow(_COLLIDING, key, name)
            created = await connection.fetchrow(
                "INSERT INTO topics (name, topic_id, partition_count, config, created_at)"
                " VALUES ($1, $2, $3, $4, now_ms()) ON CONFLICT DO NOTHING"
                " RETURNING name, topic_id, partition_count, config, created_at",
                name,
                topic_id,
                partition_count,
                json.dumps(dict(config)),
            )
            if created is None:
                taken = await connection.fetchrow(f"{_SELECT} WHERE name = $1 AND topic_id = $2", name, topic_id)
                if taken is None:
                    raise AlreadyExists(f"topic {name!r} exists")
                return _to_topic(taken)  # an earlier try of this call
            check_collision(name, colliding)
            await _add_partitions(connection, topic_id, name, range(partition_count))
            return _to_topic(created)

        return await self._database.transact(work)

    async def list_topics(self) -> list[Topic]:
        async def work(connection: Connection) -> list[Topic]:
            return [_to_topic(row) for row in await connection.fetch(f'{_SELECT} ORDER BY name COLLATE "C"')]

        return await self._database.transact(work)

    async def set_topic_config(self, topic: Topic, config: Mapping[str, str]) -> Topic:
        check_config_text(config)

        async def work(connection: Connection) -> Topic:
            stored = await _lock_topic(connection, topic.topic_id)
            if stored != topic:
                return stored
            await connection.execute(
                "UPDATE topics SET config = $1 WHERE topic_id = $2", json.dumps(dict(config)), topic.topic_id
            )
            return replace(stored, config=dict(config))

        return await self._database.transact(work)

    async def grow_topic(self, topic: Topic, partition_count: int) -> Topic:
        check_growth(topic, partition_count)

        async def work(connection: Connection) -> Topic:
            stored = await _lock_topic(connection, topic.topic_id)
            if stored != topic:
                return stored
            await connection.execute(
                "UPDATE topics SET partition_count = $1 WHERE topic_id = $2", partition_count, topic.topic_id
            )
            added = range(topic.partition_count, partition_count)
            await _add_partitions(connection, topic.topic_id, topic.name, added)
            return replace(stored, partition_count=partition_count)

        return await self._database.transact(work)

    async def delete_topic(self, topic_id: UUID) -> None:
        async def work(connection: Connection) -> None:
            name = await connection.fetchval("SELECT name FROM topics WHERE topic_id = $1 FOR UPDATE", topic_id)
            if name is None:
                raise NotFound(f"no topic {topic_id}")
            # Waits for whoever is changing one of them, so that the statements below see all that was done.
            await connection.execute(
                "SELECT FROM partitions WHERE topic_id = $1 ORDER BY topic_id, partition_id FOR UPDATE", topic_id
            )
            await connection.execute(
                "SELECT FROM partition_leases WHERE topic = $1 ORDER BY topic, partition_id FOR UPDATE", name
            )
            await connection.execute(
                "SELECT FROM partition_transfers WHERE topic_id = $1 ORDER BY transfer_id FOR UPDATE", topic_id
            )
            await connection.execute("DELETE FROM partition_leases WHERE topic = $1", name)
            await connection.execute(
                "INSERT INTO garbage (object_key, unreferenced_since)"
                " SELECT object_key, now_ms() FROM segments WHERE topic_id = $1 ON CONFLICT DO NOTHING",
                topic_id,
            )
            # Partitions, segments, epochs, WAL ranges, transfers and group offsets go with it, by their foreign keys.
            await connection.execute("DELETE FROM topics WHERE topic_id = $1", topic_id)

        await self._database.transact(work)


async def _lock_topic(connection: Connection, topic_id: UUID) -> Topic:
    row = await connection.fetchrow(f"{_SELECT} WHERE topic_id = $1 FOR UPDATE", topic_id)
    if row is None:
        raise NotFound(f"no topic {topic_id}")
    return _to_topic(row)


async def _add_partitions(connection: Connection, topic_id: UUID, name: str, partitions: range) -> None:
    await connection.execute(
        "INSERT INTO partitions (topic_id, partition_id, topic)"
        " SELECT $1, partition_id, $2 FROM generate_series($3::int, $4::int) AS partition_id",
        topic_id,
        name,
        partitions.start,
        partitions.stop - 1,
    )


def _to_topic(row: Any) -> Topic:
    return Topic(
        name=row["name"],
        topic_id=UUID(int=row["topic_id"].int),
        partition_count=row["partition_count"],
        config=json.loads(row["config"]),
        created_at_ms=row["created_at"],
    )
