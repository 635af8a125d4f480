"""The storage of one node: builds the parts of `log/`, starts them by recovering, stops them by flushing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from streamhouse.format.wal_entry import WalBatch
from streamhouse.log.budget import ByteBudget
from streamhouse.log.committer import SegmentCommitter
from streamhouse.log.leader import LogResources, PartitionLeader
from streamhouse.log.leadership import Leadership, keep_leases
from streamhouse.log.local_wal import LocalWal
from streamhouse.log.maintenance import Maintenance, age_check_interval_ms
from streamhouse.log.memory_wal import MemoryWal
from streamhouse.log.reader import SegmentReader
from streamhouse.log.recovery import Recovered, recover
from streamhouse.log.tail_memory import TailMemory
from streamhouse.log.uploader import Uploader
from streamhouse.log.wal import WalOwner
from streamhouse.log.wal_files import WalFile
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.errors import CorruptData, NotLeader, StreamHouseError
from streamhouse.model.names import TopicPartition
from streamhouse.model.settings import Settings
from streamhouse.model.topic import LogConfig, Topic
from streamhouse.objects.store import ObjectStore
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.tasks import TaskGroup

_log = logging.getLogger(__name__)
_THREADS = 4
_SYNC_POLL_MS = 2


class LogEngine:
    def __init__(
        self,
        *,
        settings: Settings,
        agent_id: str,
        wal_directory: Path | None,
        metadata: MetadataStore,
        objects: ObjectStore,
        clock: Clock,
        config_of: Callable[[Topic], LogConfig],
    ) -> None:
        """Without a WAL directory, what is not uploaded lives and dies with the process."""
        self._settings = settings
        self._wal_directory = wal_directory
        self._chores = TaskGroup("log")
        self._renewal = TaskGroup("leases")
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="log")
        self.wal = (
            MemoryWal()
            if wal_directory is None
            else LocalWal(wal_directory, settings.wal_file_bytes, clock, self._relieve_wal)
        )
        self.buffer = ByteBudget(settings.buffer_bytes)
        self.reader = SegmentReader(objects, settings.cache_bytes, self._threads)
        self._committer = SegmentCommitter(metadata, clock)
        self.uploader = Uploader(
            agent_id=agent_id,
            objects=objects,
            committer=self._committer,
            clock=clock,
            threads=self._threads,
        )
        self.leadership = Leadership(
            agent_id=agent_id,
            metadata=metadata,
            clock=clock,
            ttl_ms=settings.lease_ttl,
            config_of=config_of,
            resources=LogResources(
                wal=self.wal,
                clock=clock,
                buffer=self.buffer,
                partition_buffer_bytes=settings.partition_buffer_bytes,
                tail_memory=TailMemory(settings.tail_bytes),
                upload_due=self.uploader.due,
            ),
        )
        self.maintenance = Maintenance(
            agent_id=agent_id,
            leadership=self.leadership,
            uploader=self.uploader,
            store=metadata,
            objects=objects,
            clock=clock,
            garbage_grace_ms=settings.garbage_grace,
        )
        self._clock = clock
        self._ended = False

    async def start(self, topics: Iterable[Topic]) -> None:
        """Lead every partition, with what the WAL still holds of it."""
        topics = list(topics)
        leaders = await self._take_leases(topics)
        if isinstance(self.wal, LocalWal):
            assert self._wal_directory is not None
            recovered = await asyncio.to_thread(self._recover, self._wal_directory)
            await self.wal.open(recovered.files, recovered.end_position)
        await self.leadership.lead(topics)
        settings = self._settings
        self._renewal.start(keep_leases(self.leadership, self._clock, settings.lease_renewal), "leases")
        self._chores.start(self.maintenance.upload_by_age(age_check_interval_ms(settings.segment_age)), "age")
        self._chores.start(self.maintenance.clean_up(settings.retention_interval), "clean-up")
        for leader in leaders:
            if leader.buffered_bytes and leader.upload_is_due():
                self.uploader.due(leader)

    async def _take_leases(self, topics: Sequence[Topic]) -> list[PartitionLeader]:
        """All of them: those of an agent that is gone are waited for until they run out."""
        deadline_ms = self._clock.monotonic_ms() + 2 * self._settings.lease_ttl
        leaders: list[PartitionLeader] = []
        while True:
            leaders += await self.leadership.load(topics)
            others = self.leadership.not_led(topics)
            if not others:
                return leaders
            if self._clock.monotonic_ms() > deadline_ms:
                raise NotLeader(
                    f"another agent holds {len(others)} partitions, {others[0]} among them",
                    hint="stop it, or give this node another metadata store",
                )
            _log.warning("waiting for the leases of %d partitions, which another agent holds", len(others))
            await self._clock.sleep_ms(min(1000, self._settings.lease_ttl / 4))

    async def lead_topics(self, topics: Sequence[Topic]) -> None:
        """Take up the partitions of new topics."""
        await self.leadership.load(topics)
        await self.leadership.lead(topics)

    async def flush(self) -> None:
        """Until everything that is durable now is in the object store."""
        await asyncio.gather(*(self.uploader.flush(leader) for leader in self._leaders()))

    async def stop(self) -> None:
        """Flush (as long as the shutdown may take; the WAL keeps the rest), release, end."""
        await self._chores.cancel()
        self.wal.kick()
        try:
            async with asyncio.timeout(self._settings.shutdown_timeout / 1000):
                while any(leader.next_offset > leader.high_watermark for leader in self._leaders()):
                    await self._clock.sleep_ms(_SYNC_POLL_MS)
                await self.flush()
                await self._renewal.cancel()
                await self.leadership.release()
        except TimeoutError:
            _log.error("not everything could be uploaded in time; the WAL keeps it for the next start")
        except StreamHouseError as problem:
            _log.error("stopped without releasing all leases: %s", problem)
        await self.abort()

    async def abort(self) -> None:
        """End without flushing; after `stop` there is nothing left to end."""
        if self._ended:
            return
        self._ended = True
        await self._chores.cancel()
        await self._renewal.cancel()
        await self.uploader.close()
        await self._committer.close()
        await self.reader.close()
        await self.wal.close()
        self._threads.shutdown(wait=False)

    def _leaders(self) -> list[PartitionLeader]:
        return list(self.leadership.leaders.values())

    def _recover(self, directory: Path) -> Recovered:
        return recover(directory, self._replay)

    def _replay(self, entry: WalBatch, batch: memoryview, file: WalFile) -> None:
        leader = self.leadership.leaders.get(TopicPartition(entry.topic_id, entry.partition))
        if leader is None or entry.end_offset <= leader.committed_end:
            return  # its topic was deleted, or a segment has it
        if entry.base_offset != leader.next_offset:
            raise CorruptData(
                f"the WAL goes on at offset {entry.base_offset} of {leader.topic}/{entry.partition}, "
                f"not at {leader.next_offset}",
                hint=f"look at it with `streamhouse wal show {file.path}`",
            )
        leader.replay(batch)
        file.pins[leader] = entry.end_offset

    def _relieve_wal(self, owners: Iterable[WalOwner]) -> None:
        for owner in list(owners):
            assert isinstance(owner, PartitionLeader)
            self.uploader.due(owner)
