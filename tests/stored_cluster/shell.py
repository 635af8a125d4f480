"""A cluster whose agents are registered and have no processes behind them, and commands that see it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from stored_cluster.logs import StoredLogs
from streamhouse.cli.main import run
from streamhouse.metadata.cluster import AgentInfo
from streamhouse.metadata.open import open_metadata
from streamhouse.metadata.store import EpochStart, Lease, MetadataStore
from streamhouse.model.names import TopicPartition
from streamhouse.objects.open import open_store
from streamhouse.runtime.clock import SystemClock

Result = TypeVar("Result")
TTL_MS = 600_000


class ClusterShell:
    """Runs commands in this process, as the console script does, and changes the cluster between them."""

    def __init__(self, metadata_url: str, objects: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.metadata_url = metadata_url
        self.objects = objects
        self._capsys = capsys

    def run(self, *arguments: str) -> tuple[int, str, str]:
        self._capsys.readouterr()
        code = run([*arguments, "--metadata", self.metadata_url])
        captured = self._capsys.readouterr()
        return code, captured.out, captured.err

    def ok(self, *arguments: str) -> str:
        code, out, err = self.run(*arguments)
        assert code == 0, err
        return out

    def json(self, *arguments: str) -> Any:
        return json.loads(self.ok(*arguments, "--json"))

    def fails(self, *arguments: str) -> str:
        """The last line of stderr, which says why."""
        code, _, err = self.run(*arguments)
        assert code == 1
        reason = err.splitlines()[-1]
        assert reason.startswith("error: ")
        return reason

    def change(self, work: Callable[[MetadataStore], Awaitable[Result]]) -> Result:
        async def open_and_work() -> Result:
            store = await open_metadata(self.metadata_url, SystemClock())
            try:
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(open_and_work())

    def change_logs(self, work: Callable[[StoredLogs], Awaitable[Result]]) -> Result:
        async def open_and_work(store: MetadataStore) -> Result:
            objects = await open_store(f"file://{self.objects}", SystemClock())
            try:
                return await work(StoredLogs(store, objects))
            finally:
                await objects.close()

        return self.change(open_and_work)

    def register(self, agent_id: str, *, zone: str = "") -> None:
        info = AgentInfo(
            agent_id=agent_id,
            address=f"{agent_id}:50051",
            kafka_address=f"{agent_id}:9092",
            zone=zone,
            agent_group="default",
        )
        self.change(lambda store: store.register_agent(info, 0))

    def create(self, topic: str = "orders", partitions: int = 1) -> list[TopicPartition]:
        return self.change_logs(lambda logs: logs.create(topic, partitions))

    def lead(self, agent_id: str, *partitions: TopicPartition, in_local_wal: bool = False) -> list[Lease]:
        async def work(store: MetadataStore) -> list[Lease]:
            leases = await store.acquire_leases(agent_id, partitions, TTL_MS)
            held = [lease for lease in leases if lease is not None]
            assert len(held) == len(partitions)
            starts = [EpochStart(lease=lease, offset=0, in_local_wal=in_local_wal) for lease in held]
            await store.begin_epochs(agent_id, starts)
            return held

        return self.change(work)

    def release(self, agent_id: str, *leases: Lease, drained: bool = True) -> None:
        self.change(lambda store: store.release_leases(agent_id, leases, drained=drained))


@contextmanager
def meanwhile(work: Callable[[], object]) -> Iterator[Callable[[], bool]]:
    """Something that others do while a command runs, and whether they still do; what it raises, the test raises."""
    problems: list[BaseException] = []

    def run_work() -> None:
        try:
            work()
        except BaseException as problem:
            problems.append(problem)

    thread = threading.Thread(target=run_work)
    thread.start()
    try:
        yield thread.is_alive
    finally:
        thread.join()
    if problems:
        raise problems[0]
