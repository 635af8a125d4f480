"""What the stores hold of a topic, read past the agents; and whether all of it fits together."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass

from demo.children import clean_environment
from demo.failure import DemoFailed
from demo.services import Stores
from streamhouse.metadata.open import open_metadata
from streamhouse.metadata.store import SegmentRow
from streamhouse.model.names import TopicPartition
from streamhouse.runtime.clock import SystemClock


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTopic:
    """Its committed segments. An upload that an agent did not live to commit is not among them."""

    segments: int
    records: int
    size_bytes: int


def read_stored(stores: Stores, topic: str) -> StoredTopic:
    rows = asyncio.run(_read_rows(stores.metadata, topic))
    return StoredTopic(
        segments=len(rows),
        records=sum(row.record_count for row in rows),
        size_bytes=sum(row.size_bytes for row in rows),
    )


async def _read_rows(metadata: str, topic: str) -> list[SegmentRow]:
    store = await open_metadata(metadata, SystemClock())
    try:
        found = next(each for each in await store.list_topics() if each.name == topic)
        partitions = [TopicPartition(found.topic_id, number) for number in range(found.partition_count)]
        return [row for rows in await store.load_segments(partitions) for row in rows]
    finally:
        await store.close()


def verify(stores: Stores) -> str:
    """`streamhouse cluster verify --deep`: every object is read; what it counted, or DemoFailed with what it found."""
    done = subprocess.run(
        [sys.executable, "-m", "streamhouse", "cluster", "verify", "--deep", "--json", *stores.options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=clean_environment(),
    )
    if done.returncode != 0:
        raise DemoFailed(f"cluster verify --deep ended with {done.returncode}\n{done.stdout}{done.stderr}")
    report = json.loads(done.stdout)
    return (
        f"{report['partitions']} partitions, {report['segments']} segments, {report['wal_objects']} WAL objects: "
        f"{len(report['violations'])} violations"
    )
