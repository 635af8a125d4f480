"""Topics and their partitions in SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from streamhouse.metadata.checks import check_collision, check_config_text, check_count, check_growth, check_text
from streamhouse.metadata.cluster import Change
from streamhouse.metadata.sqlite.database import Database
from streamhouse.model.errors import AlreadyExists, NotFound
from streamhouse.model.names import collision_key
from streamhouse.model.topic import Topic

_COLLIDING = "SELECT name FROM topics WHERE replace(name, '.', '_') = ? ORDER BY name LIMIT 1"
_SELECT = "SELECT name, topic_id, partition_count, config, created_at FROM topics"


class SqliteTopics:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def create_topic(self, name: str, topic_id: UUID, partition_count: int, config: Mapping[str, str]) -> Topic:
        check_text("topic name", name)
        check_count("partitions", partition_count)
        check_config_text(config)

        def work(connection: sqlite3.Connection) -> Topic:
            taken = _find_topic(connection, "name = ?", name)
            if taken is not None:
                if taken.topic_id == topic_id:
                    return taken  # an earlier try of this call
                raise AlreadyExists(f"topic {name!r} exists")
            check_collision(name, connection.execute(_COLLIDING, (collision_key(name),)).fetchone())
            connection.execute(
                "INSERT INTO topics (name, topic_id, partition_count, config, created_at) VALUES (?, ?, ?, ?, ?)",
                (name, str(topic_id), partition_count, json.dumps(dict(config)), self._database.now_ms()),
            )
            _add_partitions(connection, topic_id, name, range(partition_count))
            return _get_topic(connection, topic_id)

        return await self._database.write(work, Change.TOPICS)

    async def list_topics(self) -> list[Topic]:
        def work(connection: sqlite3.Connection) -> list[Topic]:
            return [_to_topic(row) for row in connection.execute(f"{_SELECT} ORDER BY name")]

        return await self._database.read(work)

    async def set_topic_config(self, topic: Topic, config: Mapping[str, str]) -> Topic:
        check_config_text(config)

        def work(connection: sqlite3.Connection) -> Topic:
            stored = _get_topic(connection, topic.topic_id)
            if stored != topic:
                return stored
            connection.execute(
                "UPDATE topics SET config = ? WHERE topic_id = ?", (json.dumps(dict(config)), str(topic.topic_id))
            )
            return replace(stored, config=dict(config))

        return await self._database.write(work, Change.TOPICS)

    async def grow_topic(self, topic: Topic, partition_count: int) -> Topic:
        check_growth(topic, partition_count)

        def work(connection: sqlite3.Connection) -> Topic:
            stored = _get_topic(connection, topic.topic_id)
            if stored != topic:
                return stored
            connection.execute(
                "UPDATE topics SET partition_count = ? WHERE topic_id = ?", (partition_count, str(topic.topic_id))
            )
            _add_partitions(connection, topic.topic_id, topic.name, range(topic.partition_count, partition_count))
            return replace(stored, partition_count=partition_count)

        return await self._database.write(work, Change.TOPICS)

    async def delete_topic(self, topic_id: UUID) -> None:
        def work(connection: sqlite3.Connection) -> None:
            topic = _get_topic(connection, topic_id)
            connection.execute(
                "INSERT INTO garbage (object_key, unreferenced_since)"
                " SELECT object_key, ? FROM segments WHERE topic_id = ? ON CONFLICT DO NOTHING",
                (self._database.now_ms(), str(topic_id)),
            )
            connection.execute("DELETE FROM partition_leases WHERE topic = ?", (topic.name,))
            # Partitions, segments, epochs, WAL ranges, transfers and group offsets go with it, by their foreign keys.
            connection.execute("DELETE FROM topics WHERE topic_id = ?", (str(topic_id),))

        await self._database.write(work, Change.TOPICS)


def _find_topic(connection: sqlite3.Connection, condition: str, value: str) -> Topic | None:
    row = connection.execute(f"{_SELECT} WHERE {condition}", (value,)).fetchone()
    return None if row is None else _to_topic(row)


def _get_topic(connection: sqlite3.Connection, topic_id: UUID) -> Topic:
    topic = _find_topic(connection, "topic_id = ?", str(topic_id))
    if topic is None:
        raise NotFound(f"no topic {topic_id}")
    return topic


def _add_partitions(connection: sqlite3.Connection, topic_id: UUID, name: str, partitions: range) -> None:
    connection.executemany(
        "INSERT INTO partitions (topic_id, partition_id, topic) VALUES (?, ?, ?)",
        ((str(topic_id), partition, name) for partition in partitions),
    )


def _to_topic(row: tuple[str, str, int, str, int]) -> Topic:
    name, topic_id, partition_count, config, created_at = row
    return Topic(
        name=name,
        topic_id=UUID(topic_id),
        partition_count=partition_count,
        config=json.loads(config),
        created_at_ms=created_at,
    )
