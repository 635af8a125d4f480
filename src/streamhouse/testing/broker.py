"""A node in this process, on its own thread and event loop, with hooks to make things go wrong."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

import uvloop

from streamhouse.app.doors import Door
from streamhouse.app.node import Node
from streamhouse.broker.records import StoredRecord
from streamhouse.client.api_records import Headers, Record
from streamhouse.client.serde import Format
from streamhouse.metadata.open import open_metadata
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.config_units import without_units
from streamhouse.model.settings import Settings
from streamhouse.objects.faulty import FaultyStore
from streamhouse.objects.local import LocalStore
from streamhouse.objects.memory import MemoryStore
from streamhouse.objects.store import ObjectStore
from streamhouse.testing.awaited import WAIT_S, AwaitedBroker
from streamhouse.testing.broker_settings import PORTS, TEST_DEFAULTS, checked_settings, texts_of_configs
from streamhouse.testing.clock import MovableClock
from streamhouse.testing.faults import Faults
from streamhouse.testing.kafka_faults import KafkaFaults
from streamhouse.testing.records import Records, new_record, new_records
from streamhouse.testing.resetting import empty
from streamhouse.testing.waiting import Wanted, check_timeout

T = TypeVar("T")
_START_TIMEOUT_S = 60
_LEAST_SEGMENT_BYTES = 1024
"""Less than a node lets a topic have: a test wants many segments of few records."""
_KEYWORDS = ("durable", "data_dir", "http", "grpc", "flume")


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
        self._given = checked_settings(settings, _KEYWORDS)
        self._cleanup = ExitStack()
        self._durable = durable or data_dir is not None
        if self._durable and data_dir is None:
            data_dir = self._cleanup.enter_context(tempfile.TemporaryDirectory(prefix="streamhouse-"))
        self._data_dir = Path(data_dir) if data_dir is not None else None
        self._doors = [door for door, is_open in ((Door.HTTP, http), (Door.GRPC, grpc), (Door.FLUME, flume)) if is_open]
        self._ports = {name: int(self._given.pop(name, TEST_DEFAULTS[name])) for name in PORTS}
        self._clock = MovableClock()
        self._kafka_faults = KafkaFaults()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._metadata: MetadataStore
        self._objects: FaultyStore
        self._node: Node | None = None
        self._node_records: Records

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
        """What Spark calls `endpoint`: the URL of the HTTP port. Spark's workers need objects that they can see, so
        `durable=True` or a `data_dir`."""
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

    def now_ms(self) -> int:
        """The time that it is for the broker, which `pass_time` and `jump_clock` have moved: for records that a test or
        its service stamps."""
        return self._clock.now_ms()

    @property
    def node(self) -> Node:
        """The node itself, for white-box tests; its objects belong to the broker's own event loop."""
        if self._node is None:
            raise RuntimeError("the broker is not running")
        return self._node

    @property
    def faults(self) -> Faults:
        node = self.node  # or it says that the broker is not running
        return Faults(self._loop, self._objects, self._kafka_faults, self._clock, node)

    def start(self) -> None:
        if self._node is not None:
            raise RuntimeError("the broker runs already; `with Broker()` has started it, and restart() starts it anew")
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

    def reset(self) -> None:
        """As new: without topics, groups, configs, Spark's sinks and faults, and with the time that it is; on the same
        ports, and running if a test has stopped it. Takes milliseconds, and clients may be connected: their topics are
        gone."""
        if self._thread is None:
            raise RuntimeError("the broker was never started, or is closed")
        self._run(self._heal())
        self._clock.set_right()
        if self._node is None:
            self.start()
        self._run(empty(self.node, self._metadata, self._objects))
        self._node_records = Records(self.node, self._clock)

    def close(self) -> None:
        """Stop, and forget everything."""
        if self._thread is None:
            return
        if self._node is not None:
            self._run(self._heal())
        self.stop()
        self._run(self._close_stores())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._thread = None
        self._cleanup.close()

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, str | float | bool] | None = None
    ) -> None:
        """`config` has Kafka's names; durations and sizes may have units, such as "7d" and "1GiB"."""
        self._run(self.node.broker.topics.create(name, partitions, without_units(texts_of_configs(config or {}))))

    def create_partitions(self, name: str, partitions: int) -> None:
        """So many in all."""
        topics = self.node.broker.topics
        self._run(topics.grow(topics.get(name), partitions))

    # --- records ---

    @property
    def aio(self) -> AwaitedBroker:
        """`produce`, `produce_all`, `read` and `wait` for tests that are coroutines: to be awaited."""
        return AwaitedBroker(self._records, self._loop)

    def produce(
        self,
        topic: str,
        value: object = None,
        *,
        key: object = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: datetime | int | None = None,
    ) -> StoredRecord:
        """Store a record, and say where it is. Bytes are taken as they are, text as UTF-8, None is Kafka's null, and
        everything else becomes JSON. The key decides about the partition, as it does for Kafka's clients."""
        record = new_record(value, key=key, headers=headers, partition=partition, timestamp=timestamp)
        return self._run(self._records.produce(topic, [record]))[0]

    def produce_all(self, topic: str, records: Iterable[object]) -> list[StoredRecord]:
        """The same for many: values, or mappings with the keywords of `produce`."""
        return self._run(self._records.produce(topic, new_records(records)))

    def read(
        self,
        topic: str,
        *,
        count: int | None = None,
        partition: int | None = None,
        timeout: float = WAIT_S,
        format: Format = "bytes",
        key_format: Format = "bytes",
    ) -> list[Record[Any]]:
        """What is in the topic, by time; with `count`, as soon as so many records are there, or more. AssertionError
        after the `timeout`, in seconds, with what is there instead. `format`: "bytes", "text" or "json"."""
        if count is not None:
            _refuse_to_hold_up_a_loop("read")
        check_timeout(timeout)
        reading = self._records.read(
            topic, partition=partition, count=count, timeout_s=timeout, value_format=format, key_format=key_format
        )
        return self._run(reading, timeout)

    def wait(
        self,
        *,
        topic: str | None = None,
        records: int | None = None,
        group: str | None = None,
        members: int | None = None,
        lag: int | None = None,
        committed: int | None = None,
        timeout: float = WAIT_S,
    ) -> None:
        """Until so many `records` are in the topic; until the group is stable, with so many `members` if that is said;
        until it is no more than `lag` records behind, or has committed so much of the topic (the sum of its offsets).
        AssertionError after the `timeout`, in seconds, with what is the case instead."""
        wanted = Wanted(topic=topic, records=records, group=group, members=members, lag=lag, committed=committed)
        _refuse_to_hold_up_a_loop("wait")
        check_timeout(timeout)
        self._run(self._records.wait(wanted, timeout), timeout)

    def flush(self) -> None:
        """Until everything acknowledged is in the object store."""
        self._run(self.node.engine.flush())

    async def _heal(self) -> None:
        self._objects.heal()
        self._kafka_faults.heal()

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
        stores = {"data_dir": str(self._data_dir or ""), "objects": "" if self._data_dir else "memory:"}
        node = Node(
            Settings(**{**TEST_DEFAULTS, **self._given, **self._ports, **stores}),
            clock=self._clock,
            metadata=self._metadata,
            objects=self._objects,
            durable=self._durable,
            opens=self._doors,
            least_segment_bytes=_LEAST_SEGMENT_BYTES,
        )
        await node.start()
        self._node = node
        self._node_records = Records(node, self._clock)
        self._kafka_faults.attach(node)
        for name, address in node.addresses.items():
            self._ports[f"{name}_port"] = int(address.rpartition(":")[2])

    @property
    def _records(self) -> Records:
        assert self.node is not None  # or it says that the broker is not running
        return self._node_records

    def _run(self, work: Coroutine[Any, Any, T], expected_s: float = 0.0) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_START_TIMEOUT_S + expected_s)


def _refuse_to_hold_up_a_loop(name: str) -> None:
    """What is waited for may need that very loop: a consumer of the test's, say."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(f"broker.{name} would block this event loop: await broker.aio.{name}(…) instead")
