"""A node in this process, on its own thread and event loop, with hooks to make things go wrong."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Coroutine
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

import uvloop

from streamhouse.app.doors import Door
from streamhouse.app.node import Node
from streamhouse.metadata.open import open_metadata
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.settings import Settings
from streamhouse.objects.faulty import FaultyStore
from streamhouse.objects.local import LocalStore
from streamhouse.objects.memory import MemoryStore
from streamhouse.objects.store import ObjectStore
from streamhouse.testing.clock import MovableClock
from streamhouse.testing.faults import Faults

T = TypeVar("T")
_START_TIMEOUT_S = 60
_LEAST_SEGMENT_BYTES = 1024
"""Less than a node lets a topic have: a test wants many segments of few records."""
_RETENTION_INTERVAL_MS = 24 * 3_600_000
"""Samples have old timestamps. They stay however long a test takes, unless it says how often retention is to look."""
_PORTS = ("kafka_port", "http_port", "grpc_port", "flume_port")


class Broker:
    """A Kafka broker for tests, listening on a free port of 127.0.0.1.

    By default everything lives in memory. With `durable=True` it uses a temporary directory, with `data_dir` one of
    yours, and what was acknowledged survives `kill` and `restart`. With `http=True` its HTTP port is open as well, at
    `endpoint`, with `grpc=True` and `flume=True` those at `grpc_address` and `flume_address`. Other keywords are
    settings of the node:

        with Broker(default_partitions=1, segment_bytes=64 * 1024) as broker:
            producer = Producer({"bootstrap.servers": broker.bootstrap})
    """

    def __init__(
        self,
        *,
        durable: bool = False,
        data_dir: str | Path | None = None,
        http: bool = False,
        grpc: bool = False,
        flume: bool = False,
        **settings: Any,
    ) -> None:
        self._cleanup = ExitStack()
        self._durable = durable or data_dir is not None
        if self._durable and data_dir is None:
            data_dir = self._cleanup.enter_context(tempfile.TemporaryDirectory(prefix="streamhouse-"))
        self._data_dir = Path(data_dir) if data_dir is not None else None
        self._given = settings
        self._doors = [door for door, is_open in ((Door.HTTP, http), (Door.GRPC, grpc), (Door.FLUME, flume)) if is_open]
        self._ports = {name: settings.pop(name, 0) for name in _PORTS}
        self._clock = MovableClock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._metadata: MetadataStore
        self._objects: FaultyStore
        self._node: Node | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def bootstrap(self) -> str:
        """What clients call bootstrap.servers."""
        return self.node.kafka.address

    @property
    def endpoint(self) -> str:
        """What Spark calls `endpoint`: the URL of the HTTP port."""
        if self.node.doors.http is None:
            raise RuntimeError("the broker has no HTTP port; start it with http=True")
        return f"http://{self.node.doors.http.address}"

    @property
    def grpc_address(self) -> str:
        if self.node.doors.grpc is None:
            raise RuntimeError("the broker has no gRPC port; start it with grpc=True")
        return self.node.doors.grpc.address

    @property
    def flume_address(self) -> str:
        if self.node.doors.flume is None:
            raise RuntimeError("the broker has no Flume port; start it with flume=True")
        return self.node.doors.flume.address

    @property
    def node(self) -> Node:
        """The node itself, for white-box tests; its objects belong to the broker's own event loop."""
        if self._node is None:
            raise RuntimeError("the broker is not running")
        return self._node

    @property
    def faults(self) -> Faults:
        return Faults(self._loop, self._objects, self._clock, self.node)

    def start(self) -> None:
        if self._thread is None:
            self._loop = uvloop.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="streamhouse-broker", daemon=True)
            self._thread.start()
            self._run(self._open_stores())
        try:
            self._run(self._start_node())
        except BaseException:
            self.close()
            raise

    def stop(self) -> None:
        """Drain, as SIGTERM does; `start` goes on with what was stored."""
        if self._node is not None:
            node, self._node = self._node, None
            self._run(node.drain())

    def kill(self) -> None:
        """End as a crash would."""
        if self._node is not None:
            node, self._node = self._node, None
            self._run(node.kill())

    def restart(self) -> None:
        """Stop and start again on the same ports."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop, and forget everything."""
        if self._thread is None:
            return
        if self._node is not None:
            self._objects.heal()
        self.stop()
        self._run(self._close_stores())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._thread = None
        self._cleanup.close()

    def create_topic(self, name: str, partitions: int = 1, config: dict[str, str] | None = None) -> None:
        self._run(self.node.broker.topics.create(name, partitions, dict(config or {})))

    def create_partitions(self, name: str, partitions: int) -> None:
        """So many in all."""
        topics = self.node.broker.topics
        self._run(topics.grow(topics.get(name), partitions))

    def flush(self) -> None:
        """Until everything acknowledged is in the object store."""
        self._run(self.node.engine.flush())

    async def _open_stores(self) -> None:
        inner: ObjectStore
        if self._data_dir is None:
            self._metadata = await open_metadata("sqlite::memory:", self._clock)
            inner = MemoryStore(self._clock)
        else:
            self._data_dir.mkdir(parents=True, exist_ok=True)
            self._metadata = await open_metadata(f"sqlite:{quote(str(self._data_dir))}/metadata.db", self._clock)
            inner = LocalStore(f"{self._data_dir}/objects", self._clock)
        self._objects = FaultyStore(inner, self._clock)

    async def _close_stores(self) -> None:
        await self._objects.close()
        await self._metadata.close()

    async def _start_node(self) -> None:
        defaults = {
            "data_dir": str(self._data_dir or ""),
            "objects": "" if self._data_dir else "memory:",
            **self._ports,
            "wal_file_bytes": 4 * 2**20,
            "retention_interval": _RETENTION_INTERVAL_MS,
        }
        node = Node(
            Settings(**(defaults | self._given)),
            clock=self._clock,
            metadata=self._metadata,
            objects=self._objects,
            durable=self._durable,
            opens=self._doors,
            least_segment_bytes=_LEAST_SEGMENT_BYTES,
        )
        await node.start()
        self._node = node
        for name, address in node.addresses.items():
            self._ports[f"{name}_port"] = int(address.rpartition(":")[2])

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_START_TIMEOUT_S)
