"""The invariant I3 as SQL: committed ranges are contiguous and disjoint, their epochs never decrease, and they reach
from the log start to the committed next offset."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg

FIND_SEAMS = """
    WITH neighbours AS (
        SELECT topic_id, partition_id, base_offset, end_offset, epoch,
            lag(end_offset) OVER log AS previous_end, lag(epoch) OVER log AS previous_epoch,
            lead(base_offset) OVER log AS following
        FROM segments WINDOW log AS (PARTITION BY topic_id, partition_id ORDER BY base_offset)
    )
    SELECT 'gap or overlap' AS seam, topic_id, partition_id, base_offset AS at_offset
    FROM neighbours WHERE previous_end <> base_offset
    UNION ALL
    SELECT 'epoch goes back', topic_id, partition_id, base_offset FROM neighbours WHERE previous_epoch > epoch
    UNION ALL
    SELECT 'start not covered', p.topic_id, p.partition_id, n.base_offset
    FROM neighbours n JOIN partitions p ON p.topic_id = n.topic_id AND p.partition_id = n.partition_id
    WHERE n.previous_end IS NULL AND n.base_offset > p.log_start_offset
    UNION ALL
    SELECT 'end is not the next offset', p.topic_id, p.partition_id, n.end_offset
    FROM neighbours n JOIN partitions p ON p.topic_id = n.topic_id AND p.partition_id = n.partition_id
    WHERE n.following IS NULL AND n.end_offset <> p.high_watermark
    UNION ALL
    SELECT 'nothing covers it', p.topic_id, p.partition_id, p.log_start_offset
    FROM partitions p LEFT JOIN neighbours n ON p.topic_id = n.topic_id AND p.partition_id = n.partition_id
    WHERE n.topic_id IS NULL AND p.log_start_offset < p.high_watermark
"""


def sqlite_seams(path: Path | str) -> Sequence[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(FIND_SEAMS).fetchall()


async def postgres_seams(dsn: str) -> Sequence[tuple[Any, ...]]:
    connection = await asyncpg.connect(dsn)
    try:
        return [tuple(row) for row in await connection.fetch(FIND_SEAMS)]
    finally:
        await connection.close()
