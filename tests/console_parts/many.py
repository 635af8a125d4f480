"""A node with a thousand topics, which are in its metadata store before it starts: made one by one they take long."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from node.process import Node
from streamhouse.metadata.sqlite.store import SqliteMetadataStore
from streamhouse.runtime.clock import SystemClock


def topic_name(number: int) -> str:
    return f"topic-{number:04}"


@contextmanager
def node_with_topics(directory: Path, topics: int, partitions: int) -> Iterator[Node]:
    data_dir = directory / "data"
    data_dir.mkdir(parents=True)
    # On a thread of its own: the browser's driver has the loop of this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, _create(data_dir / "metadata.db", topics, partitions)).result()
    with Node(data_dir) as node:
        yield node


async def _create(database: Path, topics: int, partitions: int) -> None:
    store = await SqliteMetadataStore.open(str(database), SystemClock())
    try:
        for number in range(topics):
            await store.create_topic(topic_name(number), uuid4(), partitions, {})
    finally:
        await store.close()
