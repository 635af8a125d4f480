"""The database and the bucket as one agent reaches them: the product's protocols, over the network."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any

from sim.cluster.bucket import Bucket
from sim.cluster.database import Database
from sim.cluster.network import Network
from streamhouse.metadata.cluster import Change, ShardPlacement
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import MetadataUnavailable, StorageUnavailable
from streamhouse.objects.store import ObjectInfo


class DatabaseClient:
    """A MetadataStore: every method of the model, as a call that takes time and may fail."""

    def __init__(self, agent_id: str, database: Database, network: Network) -> None:
        self._agent_id = agent_id
        self._database = database
        self._network = network
        self._subscribers: list[Callable[[Change], None]] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._database, name)

        async def call(*args: Any, **options: Any) -> Any:
            work = partial(method, *args, **options)
            return await self._network.call(self._agent_id, "database", MetadataUnavailable, work)

        self.__dict__[name] = call
        return call

    async def list_shard_placements(self) -> list[ShardPlacement]:
        """At once: group coordinators have a simulation of their own."""
        return []

    def subscribe(self, changed: Callable[[Change], None]) -> Callable[[], None]:
        self._subscribers.append(changed)
        return lambda: self._subscribers.remove(changed)

    def notify(self, change: Change) -> None:
        for changed in list(self._subscribers):
            changed(change)


class BucketClient:
    """An ObjectStore."""

    def __init__(self, agent_id: str, bucket: Bucket, network: Network) -> None:
        self._agent_id = agent_id
        self._bucket = bucket
        self._network = network

    async def create(self, key: str, parts: Sequence[Buffer]) -> None:
        content = b"".join(parts)
        await self._call(partial(self._bucket.create, key, content))

    async def get(self, key: str) -> bytes:
        content: bytes = await self._call(partial(self._bucket.get, key))
        return content

    async def get_range(self, key: str, start: int, end: int) -> bytes:
        return (await self.get(key))[start:end]

    async def get_suffix(self, key: str, size_bytes: int) -> tuple[bytes, int]:
        content = await self.get(key)
        return content[max(len(content) - size_bytes, 0) :], len(content)

    async def list(self, prefix: str) -> AsyncIterator[ObjectInfo]:
        for item in await self._call(partial(self._bucket.list, prefix)):
            yield item

    async def delete(self, keys: Sequence[str]) -> None:
        await self._call(partial(self._bucket.delete, keys))

    async def close(self) -> None:
        return

    async def _call(self, work: Callable[[], Any]) -> Any:
        return await self._network.call(self._agent_id, "bucket", StorageUnavailable, work)
