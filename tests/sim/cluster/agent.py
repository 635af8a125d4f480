"""One agent: a machine with a disk and a clock, and on it, one after the other, processes of a node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from sim.cluster.disk import Disk, ModelWal
from sim.cluster.loop import Process, VirtualLoop
from sim.cluster.node import Node
from sim.cluster.services import BucketClient, DatabaseClient
from streamhouse.model.errors import NotLeader, Unavailable

EPOCH_MS = 1_700_000_000_000
_RESTART_SECONDS = 0.3


class AgentClock:
    """The wall clock may be set; the monotonic one started somewhere and may run a little fast or slow."""

    def __init__(self, loop: VirtualLoop, random: Random) -> None:
        self._loop = loop
        self._started_at_ms = random.randrange(10**6)
        self._rate = random.uniform(0.99, 1.01)
        self.wall_offset_ms = random.randrange(-5_000, 5_000)

    def now_ms(self) -> int:
        return EPOCH_MS + int(self._loop.time() * 1000) + self.wall_offset_ms

    def monotonic_ms(self) -> int:
        return self._started_at_ms + int(self._loop.time() * 1000 * self._rate)

    async def sleep_ms(self, duration_ms: float) -> None:
        await asyncio.sleep(duration_ms / 1000)


class SimulatedAgent:
    node_type = Node

    def __init__(
        self,
        agent_id: str,
        loop: VirtualLoop,
        random: Random,
        make_database_client: Callable[[], DatabaseClient],
        bucket: BucketClient,
        segment_bytes: int,
    ) -> None:
        self.agent_id = agent_id
        self._segment_bytes = segment_bytes
        self.loop = loop
        self.random = random
        self._make_database_client = make_database_client
        self._bucket = bucket
        self.clock = AgentClock(loop, random)
        self.disk = Disk()
        self.process: Process | None = None
        self.node: Node | None = None
        self.starts = 0

    @property
    def is_serving(self) -> bool:
        return self.process is not None and self.node is not None and self.node.is_serving

    def start(self) -> None:
        if self.process is not None:
            return
        self.starts += 1
        self.process = process = Process(f"{self.agent_id}#{self.starts}")
        process.context.run(self._build, process)
        assert self.node is not None
        self._run(process, self.node.start, is_final=False)

    def _build(self, process: Process) -> None:
        self.node = self.node_type(
            agent_id=self.agent_id,
            disk=self.disk,
            wal=ModelWal(self.disk, self.loop, self.random, process),
            clock=self.clock,
            database=self._make_database_client(),
            bucket=self._bucket,
            segment_bytes=self._segment_bytes,
        )

    def crash(self) -> None:
        """Its memory is gone. What was on its way to its disk, the database or the bucket may still arrive there."""
        if self.process is not None:
            self.process.is_alive = False
            self.process = self.node = None

    def pause(self) -> None:
        if self.process is not None:
            self.process.is_paused = True

    def resume(self) -> None:
        if self.process is not None and self.process.is_paused:
            self.loop.resume(self.process)

    def drain(self) -> None:
        if self.process is not None and self.is_serving:
            assert self.node is not None
            self._run(self.process, self.node.drain, is_final=True)

    def flush(self) -> None:
        if self.process is not None and self.is_serving:
            assert self.node is not None
            self._run(self.process, self.node.engine.flush, is_final=False)

    def deliver(self, delay: float, handle: Callable[..., None], *args: object) -> bool:
        """Run a request in the agent's process, soon; False if nobody listens."""
        if self.process is None or not self.is_serving:
            return False
        self.loop.call_later(delay, handle, *args, context=self.process.context)
        return True

    def _run(self, process: Process, work: Callable[[], Awaitable[None]], *, is_final: bool) -> None:
        async def run() -> None:
            try:
                await work()
            except (Unavailable, NotLeader):
                # A node that cannot start, or cannot stop in order, ends; its supervisor starts another.
                self._exited(process)
            else:
                if is_final:
                    self._exited(process)

        self.loop.start(run(), process.context)

    def _exited(self, process: Process) -> None:
        if self.process is process:
            self.crash()
            self.loop.call_later(_RESTART_SECONDS, self.start, context=self.loop.nobody)
