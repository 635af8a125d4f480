"""Pins against retention in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from streamhouse.metadata.checks import check_pin
from streamhouse.metadata.pins import MAX_PINS, too_many_pins
from streamhouse.metadata.sqlite.database import Database
from streamhouse.metadata.sqlite.partitions import key_of
from streamhouse.model.names import TopicPartition

_LOAD = """
    SELECT min(pinned_offset) FROM pinned_offsets JOIN pins USING (pin_id)
    WHERE topic_id = ? AND partition_id = ? AND expires_at > ?
"""


class SqlitePins:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def set_pins(self, pin_id: str, ttl_ms: int, offsets: Mapping[TopicPartition, int]) -> None:
        check_pin(pin_id, ttl_ms, offsets)

        def work(connection: sqlite3.Connection) -> None:
            now_ms = self._database.now_ms()
            # Their offsets go with them, by their foreign key.
            connection.execute("DELETE FROM pins WHERE pin_id = ? OR expires_at <= ?", (pin_id, now_ms))
            if not offsets:
                return
            (live,) = connection.execute("SELECT count(*) FROM pins").fetchone()
            if live >= MAX_PINS:
                raise too_many_pins()
            connection.execute("INSERT INTO pins (pin_id, expires_at) VALUES (?, ?)", (pin_id, now_ms + ttl_ms))
            connection.executemany(
                "INSERT INTO pinned_offsets (pin_id, topic_id, partition_id, pinned_offset)"
                " SELECT ?, topic_id, partition_id, ? FROM partitions WHERE topic_id = ? AND partition_id = ?",
                ((pin_id, offset, *key_of(partition)) for partition, offset in offsets.items()),
            )

        await self._database.write(work)

    async def load_pins(self, partitions: Sequence[TopicPartition]) -> list[int | None]:
        def work(connection: sqlite3.Connection) -> list[int | None]:
            now_ms = self._database.now_ms()
            return [connection.execute(_LOAD, (*key_of(each), now_ms)).fetchone()[0] for each in partitions]

        return await self._database.read(work)
