"""The storage of one node: builds the parts of `log/`, recovers what the local WAL holds, leads what it is told to."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from streamhouse.core.placement.store_access import StoreAccess
from streamhouse.format.batch import read_header
from streamhouse.format.wal_entry import WalBatch
from streamhouse.log.budget import ByteBudget
from streamhouse.log.committed_log import CommittedLogs
from streamhouse.log.committer import SegmentCommitter
from streamhouse.log.durability_changes import DurabilityChanges
from streamhouse.log.handing_over import HandingOver
from streamhouse.log.leader import LogResources, PartitionLeader
from streamhouse.log.leadership import Leadership
from streamhouse.log.lease_keeping import keep_leases, retake_leases, watch_leases
from streamhouse.log.local_wal import LocalWal
from streamhouse.log.maintenance import Maintenance, age_check_interval_ms
from streamhouse.log.memory_wal import MemoryWal
from streamhouse.log.object_wal import ObjectWal
from streamhouse.log.reader import SegmentReader
from streamhouse.log.recovery import Recovered, recover
from streamhouse.log.replacement import SegmentReplacer
from streamhouse.log.tail_memory import TailMemory
from streamhouse.log.uploader import Uploader
from streamhouse.log.wal import WalOwner
from streamhouse.log.wal_ends import missing_end
from streamhouse.log.wal_files import WalFile, wal_paths
from streamhouse.log.wal_retirement import WalRetirement
from streamhouse.metadata.cluster import Transfer
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.errors import CorruptData, MetadataUnavailable, NotLeader, StorageUnavailable, StreamHouseError
from streamhouse.model.names import TopicPartition
from streamhouse.model.settings import Settings
from streamhouse.model.topic import LogConfig, Topic
from streamhouse.objects.store import ObjectStore
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.tasks import TaskGroup

_log = logging.getLogger(__name__)
_THREADS = 4
_SYNC_POLL_MS = 2
_ACQUIRED_AT_ONCE = 250
_NAMED_PARTITIONS = 20


@dataclass(slots=True)
class _Wals:
    local: LocalWal | MemoryWal
    object: ObjectWal
    local_survives: bool


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
        lost: Callable[[], None] = lambda: None,
        new_leader: Callable[..., PartitionLeader] = PartitionLeader,
    ) -> None:
        """Without a WAL directory, what is not uploaded lives and dies with the process. `config_of` tells a topic's
        config as it is now. `lost` is called when a partition is led no longer, and whoever decides about that should
        look again."""
        self._settings = settings
        self._agent_id = agent_id
        self._metadata = metadata
        self._objects = objects
        self._wal_directory = wal_directory
        self._lost = lost
        self._chores = TaskGroup("log")
        self._renewal = TaskGroup("leases")
        self.threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="log")
        """For what grows with the records: they are decompressed, read and encoded here, and never on the loop."""
        self.wals = _Wals(
            MemoryWal()
            if wal_directory is None
            else LocalWal(wal_directory, settings.wal_file_bytes, clock, self._relieve_wal),
            ObjectWal(
                agent_id=agent_id,
                objects=objects,
                store=metadata,
                clock=clock,
                garbage_grace_ms=settings.garbage_grace,
                fenced=self._fenced,
            ),
            wal_directory is not None,
        )
        self.buffer = ByteBudget(settings.buffer_bytes)
        self.tail_memory = TailMemory(settings.tail_bytes)
        self.reader = SegmentReader(objects, settings.cache_bytes, self.threads)
        self.committed_logs = CommittedLogs(metadata, clock, settings.garbage_grace // 2)
        self._committer = SegmentCommitter(metadata, clock)
        self.uploader = Uploader(
            agent_id=agent_id,
            objects=objects,
            committer=self._committer,
            clock=clock,
            threads=self.threads,
        )
        self.leadership = Leadership(
            agent_id=agent_id,
            metadata=metadata,
            objects=objects,
            clock=clock,
            ttl_ms=settings.lease_ttl,
            config_of=config_of,
            resources=LogResources(
                clock=clock,
                buffer=self.buffer,
                partition_buffer_bytes=settings.partition_buffer_bytes,
                tail_memory=self.tail_memory,
                upload_due=self.uploader.due,
            ),
            wals=self.wals,
            lost=lost,
            new_leader=new_leader,
        )
        self._handing_over = HandingOver(
            agent_id=agent_id,
            store=metadata,
            leadership=self.leadership,
            uploader=self.uploader,
            clock=clock,
            ttl_ms=settings.lease_ttl,
            settle=self._settle,
        )
        self._durability_changes = DurabilityChanges(
            leadership=self.leadership,
            uploader=self.uploader,
            clock=clock,
            retry_ms=settings.lease_renewal,
            tasks=self._chores,
            settle=self._settle,
            lost=lost,
        )
        self.replacer = SegmentReplacer(
            agent_id=agent_id,
            store=metadata,
            objects=objects,
            clock=clock,
            garbage_grace_ms=settings.garbage_grace,
        )
        self.maintenance = Maintenance(
            agent_id=agent_id,
            leadership=self.leadership,
            uploader=self.uploader,
            replacer=self.replacer,
            store=metadata,
            objects=objects,
            clock=clock,
            garbage_grace_ms=settings.garbage_grace,
        )
        self._clock = clock
        self._ended = False
        self.gone: StorageUnavailable | None = None
        """Why nothing that is on this agent's disk counts any more."""

    # --- life ---

    async def start(self, topics: Iterable[Topic]) -> None:
        """Lead the partitions of which our disk may hold acknowledged records, with what it holds."""
        leaders = await self._recover(list(topics)) if isinstance(self.wals.local, LocalWal) else []
        await self.leadership.begin(leaders)
        settings = self._settings
        maintenance = self.maintenance
        self._renewal.keep(lambda: keep_leases(self.leadership, self._clock, settings.lease_renewal), "leases")
        retaking_ms = settings.lease_ttl // 20
        self._renewal.keep(lambda: retake_leases(self.leadership, self._clock, retaking_ms), "retaking")
        self._renewal.keep(lambda: watch_leases(self.leadership, self._clock, settings.lease_ttl // 10), "watch")
        self._chores.keep(lambda: maintenance.upload_by_age(age_check_interval_ms(settings.segment_age)), "age")
        self._chores.keep(lambda: maintenance.retain(settings.retention_interval), "retention")
        self._chores.keep(lambda: maintenance.clean_up(settings.garbage_interval), "clean-up")
        self._chores.keep(self._retire_wal_objects, "wal-objects")
        for leader in leaders:
            if leader.buffered_bytes and leader.upload_is_due():
                self.uploader.due(leader)
            self._durability_changes.match(leader)

    async def _recover(self, topics: Sequence[Topic]) -> list[PartitionLeader]:
        assert isinstance(self.wals.local, LocalWal)
        assert self._wal_directory is not None
        topics_by_id = {topic.topic_id: topic for topic in topics}
        own = {
            placement.partition: topics_by_id[placement.partition.topic_id]
            for placement in await self._metadata.list_placements()
            if placement.wal_agent_id == self._agent_id and placement.partition.topic_id in topics_by_id
        }
        if own:
            _check_complete(self._wal_directory, len(own))
        leaders = await self.leadership.acquire(own, from_own_disk=True)
        if len(leaders) < len(own):
            # Going on would throw away what the WAL holds of them.
            raise NotLeader(
                f"{len(own) - len(leaders)} partitions whose records are in this agent's WAL cannot be led by it",
                hint="is another process running as this agent? see `streamhouse partition list`",
            )
        recovered = await asyncio.to_thread(self._replay_files, self._wal_directory)
        await self.wals.local.open(recovered.files, recovered.end_position)
        return leaders

    async def stop(self, timeout_ms: int | None = None) -> None:
        """Flush, for that long at most, or as long as a stop may take (the WAL keeps the rest); release, end."""
        if timeout_ms is None:
            timeout_ms = self._settings.shutdown_timeout
        await self._chores.cancel()
        leaders = self._leaders()
        for leader in leaders:
            leader.give_up_writing()  # what is settled stays so while others still upload
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await asyncio.gather(*(self._settle(leader) for leader in leaders))
                await self.leadership.end_renewals()
                await self.leadership.release(leaders, drained=True)
        except TimeoutError:
            self._report_not_uploaded(leaders)
        except StreamHouseError as problem:
            _log.error("stopped without releasing all leases: %s", problem)
        await self.abort()

    def _report_not_uploaded(self, leaders: Sequence[PartitionLeader]) -> None:
        if self.gone is None:
            _log.error("not everything could be uploaded in time; the WAL keeps it for the next start")
            return
        left = [leader for leader in leaders if leader.is_local and leader.high_watermark > leader.committed_end]
        _log.error(
            "%d acknowledged records of %d partitions could not be uploaded, and their WAL is %s: %s",
            sum(leader.high_watermark - leader.committed_end for leader in left),
            len(left),
            "left where it was" if self.lost_wal_file is None else "gone",
            ", ".join(f"{leader.topic}/{leader.partition.partition}" for leader in left[:_NAMED_PARTITIONS]),
        )

    @property
    def lost_wal_file(self) -> Path | None:
        return self.wals.local.lost_file if isinstance(self.wals.local, LocalWal) else None

    def give_up_disk(self, problem: StorageUnavailable) -> None:
        """What is on this agent's disk will be found by nobody: acknowledge nothing more because of it."""
        self.gone = problem
        if isinstance(self.wals.local, LocalWal):
            self.wals.local.give_up(str(problem))

    async def abort(self) -> None:
        """End without flushing; after `stop` there is nothing left to end."""
        if self._ended:
            return
        self._ended = True
        await self._chores.cancel()
        await self._renewal.cancel()
        await self.uploader.close()
        await self.replacer.close()
        await self._committer.close()
        await self.reader.close()
        await self.wals.local.close()
        await self.wals.object.close()
        self.threads.shutdown(wait=False)

    # --- leading ---

    @property
    def held(self) -> Collection[TopicPartition]:
        """The partitions that are led, and not only about to be."""
        return [partition for partition, leader in self.leadership.leaders.items() if leader.has_begun]

    @property
    def taken_up(self) -> Collection[TopicPartition]:
        """Those too that are about to be led: all that is left is to ask the metadata store."""
        return self.leadership.leaders.keys()

    async def lead(
        self, wanted: Mapping[TopicPartition, Topic], handed_over: Mapping[TopicPartition, int] = MappingProxyType({})
    ) -> None:
        """Take up partitions, as many as the metadata store grants; `handed_over` are the epochs of those that a
        transfer has made ours. What goes wrong with some keeps no others from being led."""
        partitions = list(wanted)
        problems: list[Exception] = []
        for start in range(0, len(partitions), _ACQUIRED_AT_ONCE):
            some = {partition: wanted[partition] for partition in partitions[start : start + _ACQUIRED_AT_ONCE]}
            try:
                await self.leadership.acquire(some, handed_over=handed_over)
            except MetadataUnavailable:
                raise  # nothing can be led without it
            except Exception as problem:
                problems.append(problem)
            led = [self.leadership.leaders[partition] for partition in some if partition in self.leadership.leaders]
            beginning = [leader for leader in led if not leader.has_begun]
            await self.leadership.begin(beginning)
            for leader in beginning:
                self._durability_changes.match(leader)  # its topic's may have changed while it was loaded
        if problems:
            raise problems[0]

    async def hand_over(self, transfers: Sequence[Transfer], looked_up_at_ms: int) -> dict[TopicPartition, str]:
        """Give partitions to those that accepted them. Returned is why, for those that did not go."""
        return await self._handing_over.hand_over(transfers, looked_up_at_ms)

    async def let_go(self, partitions: Collection[TopicPartition]) -> None:
        """Give up partitions of which nothing can be made durable here, as they are, so that whoever can takes them.
        What was acknowledged is in the object store; of the rest nobody knows, and that is what producers hear."""
        found = [self.leadership.leaders[partition] for partition in partitions if partition in self.leadership.leaders]
        leaders = [leader for leader in found if not leader.is_local]
        if not leaders:
            return
        given_up = [leader.give_up_writing() for leader in leaders]
        try:
            await self.leadership.release(leaders, drained=False)
        except BaseException:
            for leader, own in zip(leaders, given_up, strict=True):
                self.leadership.doubt(leader, own)
            raise
        for leader in leaders:
            name = f"{leader.topic}/{leader.partition.partition}"
            self.leadership.depose(
                leader, NotLeader(f"{name} was given up: this agent does not reach the object store")
            )
        _log.warning("gave up %d partitions, for another agent reaches the object store", len(leaders))

    def store_overdue_ms(self) -> int:
        """For how long the object store has not taken what was appended here, or not given what is to be led here."""
        return max(self.wals.object.overdue_ms(), self.leadership.store_reads.overdue_ms())

    def heed_store_access(self, access: StoreAccess) -> None:
        """What this agent has found of its way to the object store. Once it is stalled, what it waits to read
        is for others to lead: it holds the leases no longer."""
        self.leadership.store_reads.set_away(access is StoreAccess.STALLED)

    def reconfigure(self, topic: Topic) -> None:
        self.leadership.reconfigure(topic)
        for leader in self.leadership.leaders_of(topic):
            if leader is not None:
                self._durability_changes.match(leader)

    def commit_appends(self) -> None:
        """Start making durable what was appended, where that is not a matter of time."""
        self.wals.local.kick()

    async def flush(self) -> None:
        """Until everything that is durable now is in the object store."""
        await asyncio.gather(*(self.uploader.flush(leader) for leader in self._leaders()))

    # --- inside ---

    def _leaders(self) -> list[PartitionLeader]:
        return list(self.leadership.leaders.values())

    async def _settle(self, leader: PartitionLeader) -> None:
        """Until what was appended is in the object store."""
        while leader.next_offset > leader.high_watermark and not leader.removed:
            self.wals.local.kick()
            self.wals.object.kick()
            await self._clock.sleep_ms(_SYNC_POLL_MS)
        await self.uploader.flush(leader)

    def _fenced(self, owner: WalOwner, problem: StreamHouseError) -> None:
        assert isinstance(owner, PartitionLeader)
        owner.not_durable(problem)
        self.leadership.events["lost"] += 1
        self.leadership.depose(owner, problem)
        self._lost()

    async def _retire_wal_objects(self) -> None:
        retirement = WalRetirement(
            store=self._metadata,
            objects=self._objects,
            clock=self._clock,
            garbage_grace_ms=self._settings.garbage_grace,
            keys_under_way=lambda: self.wals.object.keys_under_way,
        )
        await retirement.run()

    def _replay_files(self, directory: Path) -> Recovered:
        return recover(directory, self._replay)

    def _replay(self, entry: WalBatch, batch: memoryview, file: WalFile) -> None:
        leader = self.leadership.leaders.get(TopicPartition(entry.topic_id, entry.partition))
        if leader is None or entry.end_offset <= leader.committed_end:
            return  # its topic was deleted, a segment has it, or another agent was made to lead without it
        if leader.is_superseded(read_header(batch).leader_epoch, entry.base_offset):
            return
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


def _check_complete(wal_directory: Path, partition_count: int) -> None:
    """CorruptData if files are gone that may have held acknowledged records; recovery itself finds those in between."""
    missing = missing_end(wal_directory)
    if missing is None and wal_paths(wal_directory):
        return
    what = "the WAL" if missing is None else f"WAL file {missing}"
    raise CorruptData(
        f"{what} is gone from {wal_directory}; it may have held records of {partition_count} partitions",
        hint="restore the data directory, or give them up with `streamhouse partition elect TOPIC P --unclean`",
    )
