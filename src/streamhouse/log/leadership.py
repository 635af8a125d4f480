"""Which partitions this agent leads: leases taken, kept, given up, and taken again when they were lost.

A lease gives liveness only; safety comes from the epoch that every commit is checked against."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from types import MappingProxyType
from typing import NamedTuple, Protocol
from uuid import UUID

from streamhouse.core.placement.lease import writable_until_ms
from streamhouse.log.leader import GivenUp, LogResources, PartitionLeader
from streamhouse.log.wal import Wal
from streamhouse.log.wal_replay import RememberedReads, replay_wal_objects
from streamhouse.log.watched_reads import WatchedReads
from streamhouse.metadata.store import EpochStart, Lease, MetadataStore, PartitionRow, SegmentRow
from streamhouse.metadata.wal_objects import WalRange
from streamhouse.model.errors import CorruptData, NotFound, NotLeader, StreamHouseError, Unavailable
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import LogConfig, Topic
from streamhouse.objects.store import ObjectStore
from streamhouse.runtime.clock import Clock

_log = logging.getLogger(__name__)
_REPLAYS_AT_ONCE = 16
_REMEMBERED_BYTES = 64 * 2**20
_REMEMBERED_LEASES = 10
_FIRST_REST_MS = 100
LEASE_EVENTS = ("acquired", "lost", "retaken", "released", "handed_over")


class Wals(Protocol):
    """The WALs of this agent."""

    @property
    def local(self) -> Wal: ...
    @property
    def object(self) -> Wal: ...
    @property
    def local_survives(self) -> bool:
        """Whether the local one is on a disk: then it may hold what no other agent can read."""


class _StoredLog(NamedTuple):
    """All that the store has of one partition, and the lease under which it was read."""

    lease: Lease
    row: PartitionRow
    segments: list[SegmentRow]
    ranges: list[WalRange]


class Leadership:
    """Owns the map of led partitions; everybody else looks them up in it."""

    def __init__(
        self,
        *,
        agent_id: str,
        metadata: MetadataStore,
        objects: ObjectStore,
        clock: Clock,
        ttl_ms: int,
        config_of: Callable[[Topic], LogConfig],
        resources: LogResources,
        wals: Wals,
        lost: Callable[[], None],
        new_leader: Callable[..., PartitionLeader] = PartitionLeader,
    ) -> None:
        """`config_of` tells a topic's config as it is now. `lost` is called when a partition that was led no longer is,
        though nobody here gave it up. `new_leader` takes what a PartitionLeader does."""
        self._new_leader = new_leader
        self._agent_id = agent_id
        self._metadata = metadata
        self.store_reads = WatchedReads(objects, clock, remembered_ms=ttl_ms)
        self._clock = clock
        self._ttl_ms = ttl_ms
        self._config_of = config_of
        self._resources = resources
        self._wals = wals
        self._lost = lost
        self._leases: dict[TopicPartition, Lease] = {}
        self._loading: dict[TopicPartition, Lease] = {}
        """Of partitions whose records are still being read, which may take longer than a lease lasts."""
        self._rests_until_ms: dict[TopicPartition, int] = {}
        """Of partitions that could not be taken up when they were last tried."""
        self._failures: Counter[TopicPartition] = Counter()
        """How often in a row the records of a partition could not be read, or not before its lease ran out."""
        self._reads = RememberedReads(_REMEMBERED_BYTES)
        self._renews = True
        self._leaders: dict[TopicPartition, PartitionLeader] = {}
        self._by_topic: dict[UUID, list[PartitionLeader | None]] = {}
        self._doubtful: set[TopicPartition] = set()
        self._one_renewal = asyncio.Lock()
        self._to_retake: set[TopicPartition] = set()
        """Of leaders that write no more until their leases are taken again."""
        self._one_retaking = asyncio.Lock()
        self.events: Counter[str] = Counter(dict.fromkeys(LEASE_EVENTS, 0))
        """What happened to leases. "lost": not given up by us; those of them that became ours again are "retaken"."""

    @property
    def leaders(self) -> Mapping[TopicPartition, PartitionLeader]:
        return self._leaders

    def leaders_of(self, topic: Topic) -> Sequence[PartitionLeader | None]:
        """A topic's leaders by partition, None where this agent does not lead; kept up to date while it exists, also
        when it grows."""
        leaders = self._by_topic.setdefault(topic.topic_id, [])
        if len(leaders) < topic.partition_count:
            leaders += [None] * (topic.partition_count - len(leaders))
        return leaders

    # --- taking up ---

    async def acquire(
        self,
        wanted: Mapping[TopicPartition, Topic],
        *,
        handed_over: Mapping[TopicPartition, int] = MappingProxyType({}),
        from_own_disk: bool = False,
    ) -> list[PartitionLeader]:
        """Take leases, and build leaders with what segments and WAL objects hold; they may not write before `begin`.
        What goes wrong with one of them is raised when the others are in `leaders`.

        Passed over are partitions that are led already or that the metadata store does not grant. `handed_over`: the
        epochs of leases that a transfer has made ours. `from_own_disk`: the local WAL may hold more of them."""
        now_ms = self._clock.monotonic_ms()
        missing = [
            partition
            for partition in wanted
            if partition not in self._leaders and self._rests_until_ms.get(partition, 0) <= now_ms
        ]
        if not missing:
            return []
        leases = await self._take_leases(missing, handed_over)
        # Renewed from now on: on a slow machine, reading what the store has may take longer than a lease lasts.
        self._loading.update((lease.partition, lease) for lease in leases)
        leaders: list[PartitionLeader] = []
        try:
            stored = await self._load(leases)
            configs = self._configs_of(wanted)
            leaders += [self._make_leader(log, configs[log.lease.partition.topic_id], from_own_disk) for log in stored]
            return await self._load_leaders(wanted, leaders, stored)
        finally:
            for lease in leases:
                self._loading.pop(lease.partition, None)
            for leader in leaders:
                if self._leaders.get(leader.partition) is not leader:
                    leader.remove(NotLeader(f"{leader.topic}/{leader.partition.partition} could not be taken up"))

    async def _load_leaders(
        self, wanted: Mapping[TopicPartition, Topic], leaders: Sequence[PartitionLeader], stored: Sequence[_StoredLog]
    ) -> list[PartitionLeader]:
        """Those that can be led are, though others cannot. The leases of those are given up: another agent may be able
        to read what this one cannot."""
        enough = asyncio.Semaphore(_REPLAYS_AT_ONCE)
        replays = (self._replay(leader, log, enough) for leader, log in zip(leaders, stored, strict=True))
        outcomes = await asyncio.gather(*replays, return_exceptions=True)
        configs = self._configs_of(wanted)
        loaded: list[PartitionLeader] = []
        unread: list[Lease] = []
        for leader, outcome in zip(leaders, outcomes, strict=True):
            lease = self._loading.pop(leader.partition, None)
            if isinstance(outcome, BaseException):
                # Not for long, as a loss may be: whatever keeps it from being read, nobody leads it meanwhile.
                self._rest_after_failure(leader.partition, self._ttl_ms // 10)
                unread += [lease] if lease is not None else []
            elif lease is None:
                self._rest_after_failure(leader.partition, self._ttl_ms)
            elif outcome:
                leader.configure(configs[leader.partition.topic_id])  # it may have changed since the reading began
                self._install(wanted[leader.partition], leader, lease)
                loaded.append(leader)
            else:
                self._rest(leader.partition, self._ttl_ms)
                self._reads.forget(leader.partition)
                unread.append(lease)
        if unread:
            await self._metadata.release_leases(self._agent_id, unread, drained=False)
        for problem in outcomes:
            if isinstance(problem, BaseException):
                raise problem
        return loaded

    def _configs_of(self, wanted: Mapping[TopicPartition, Topic]) -> dict[UUID, LogConfig]:
        topics = {topic.topic_id: topic for topic in wanted.values()}
        return {topic_id: self._config_of(topic) for topic_id, topic in topics.items()}

    def _rest_after_failure(self, partition: TopicPartition, longest_ms: int) -> None:
        """The lease ran out before all was read, or something could not be read now. The next try goes on with what
        was, after a moment for a machine or a store that has too much to do: longer each time."""
        self._failures[partition] += 1
        self._rest(partition, min(_FIRST_REST_MS << min(self._failures[partition] - 1, 20), longest_ms))

    def _rest(self, partition: TopicPartition, duration_ms: int) -> None:
        self._rests_until_ms[partition] = self._clock.monotonic_ms() + duration_ms

    def wake_rested(self) -> None:
        """Tell whoever decides to look again, if a partition may be tried once more."""
        now_ms = self._clock.monotonic_ms()
        rested = [partition for partition, until_ms in self._rests_until_ms.items() if until_ms <= now_ms]
        for partition in rested:
            del self._rests_until_ms[partition]
        if rested:
            self._lost()
        self._reads.forget_unused(now_ms - _REMEMBERED_LEASES * self._ttl_ms)

    async def _load(self, leases: Sequence[Lease]) -> list[_StoredLog]:
        """What the store has of those that are ours to the end of the loading: then nobody else can have changed it in
        between, and all of it fits together."""
        partitions = [lease.partition for lease in leases]
        rows = await self._metadata.load_partitions(partitions)
        segments = await self._metadata.load_segments(partitions)
        ranges = await self._metadata.load_wal_ranges(partitions)
        kept = await self._metadata.renew_leases(self._agent_id, leases, self._ttl_ms)
        for partition, lease in zip(partitions, kept, strict=True):
            if lease is None:
                self._loading.pop(partition, None)
                self._rest_after_failure(partition, self._ttl_ms)
            elif partition in self._loading:
                self._loading[partition] = lease
        return [
            _StoredLog(lease, row, own_segments, own_ranges)
            for lease, row, own_segments, own_ranges in zip(kept, rows, segments, ranges, strict=True)
            if lease is not None
        ]

    async def _take_leases(
        self, partitions: Sequence[TopicPartition], handed_over: Mapping[TopicPartition, int]
    ) -> list[Lease]:
        ours = [
            Lease(partition=partition, agent_id=self._agent_id, epoch=handed_over[partition], expires_at_ms=0)
            for partition in partitions
            if partition in handed_over
        ]
        others = [partition for partition in partitions if partition not in handed_over]
        granted: list[Lease | None] = []
        if ours:
            granted += await self._metadata.renew_leases(self._agent_id, ours, self._ttl_ms)
        if others:
            granted += await self._metadata.acquire_leases(self._agent_id, others, self._ttl_ms)
        return [lease for lease in granted if lease is not None]

    def _install(self, topic: Topic, leader: PartitionLeader, lease: Lease) -> None:
        self._leases[lease.partition] = lease
        self._leaders[lease.partition] = leader
        self.leaders_of(topic)
        self._by_topic[topic.topic_id][lease.partition.partition] = leader
        self._failures.pop(lease.partition, None)
        self._reads.forget(lease.partition)
        self.events["acquired"] += 1

    def _make_leader(self, log: _StoredLog, config: LogConfig, from_own_disk: bool) -> PartitionLeader:
        is_local = from_own_disk or config.durability == "wal"
        return self._new_leader(
            topic=log.row.topic,
            row=log.row,
            segments=log.segments,
            epoch=log.lease.epoch,
            config=config,
            resources=self._resources,
            wal=self._wals.local if is_local else self._wals.object,
            is_local=is_local,
        )

    async def _replay(self, leader: PartitionLeader, log: _StoredLog, enough: asyncio.Semaphore) -> bool:
        """False if what should be in WAL objects is not: the others can be led all the same, and this one is nobody's
        until that is repaired."""
        try:
            async with enough:
                reads = self._reads.of(leader.partition, self._clock.monotonic_ms())
                async for batches in replay_wal_objects(self.store_reads, log.ranges, leader.next_offset, reads):
                    for batch in batches:
                        leader.replay(batch)
                    await self._clock.sleep_ms(0)  # others have leases to renew
            if leader.high_watermark != log.row.durable_end:
                raise CorruptData(f"the WAL objects end at {leader.high_watermark}, not at {log.row.durable_end}")
        except CorruptData as problem:
            name = f"{leader.topic}/{leader.partition.partition}"
            _log.error("cannot lead %s: %s (look with `streamhouse cluster verify`)", name, problem)
            return False
        return True

    async def begin(self, leaders: Sequence[PartitionLeader]) -> None:
        """Let loaded (and recovered) leaders write. What an earlier try left undone is done now.

        Not those that the store passed over, though their leases may be renewed below: its clock may go back."""
        waiting = [leader for leader in leaders if not leader.has_begun]
        starts = [self._start_of(leader) for leader in waiting]
        noted = await self._metadata.begin_epochs(self._agent_id, starts)
        for leader in compress(waiting, noted):
            if not leader.has_begun:  # nor was its lease lost and taken again meanwhile
                leader.begin_epoch(leader.epoch)
        await self.renew([leader.partition for leader in leaders])

    def _start_of(self, leader: PartitionLeader, lease: Lease | None = None) -> EpochStart:
        return EpochStart(
            lease=lease or self._leases[leader.partition],
            offset=leader.next_offset,
            in_local_wal=leader.is_local and self._wals.local_survives,
        )

    # --- keeping ---

    async def renew(self, partitions: Sequence[TopicPartition] | None = None) -> None:
        """Extend leases; one that was lost is taken again if its records are on our disk and nobody else wrote."""
        await self.extend(partitions)
        if self._to_retake:
            await self.take_again()

    async def extend(self, partitions: Sequence[TopicPartition] | None = None) -> None:
        """Extend leases. Of those that were lost, leaders stop; `take_again` is for them, and may take its time."""
        async with self._one_renewal:
            if self._renews:
                await self._extend(partitions)

    @property
    def has_lost(self) -> bool:
        """Whether there is something to take again."""
        return bool(self._to_retake)

    async def take_again(self) -> None:
        """One at a time: of two that took a lease again, the older grant could be heard of last."""
        async with self._one_retaking:
            if self._renews:
                await self._take_again([partition for partition in self._to_retake if partition in self._leaders])

    async def end_renewals(self) -> None:
        """Not in the middle of one: a lease that is taken again must be known before it is released."""
        async with self._one_retaking, self._one_renewal:
            self._renews = False

    async def _extend(self, partitions: Sequence[TopicPartition] | None) -> None:
        known = self._leases | self._loading
        asked = list(known) if partitions is None else partitions
        leases = [known[partition] for partition in asked if partition in known]
        if not leases:
            return
        asked_at_ms = self._clock.monotonic_ms()
        renewed = await self._metadata.renew_leases(self._agent_id, leases, self._ttl_ms)
        until_ms = writable_until_ms(asked_at_ms, self._ttl_ms)
        lost: list[TopicPartition] = []
        for old, lease in zip(leases, renewed, strict=True):
            if self._loading.get(old.partition) == old:
                self._loading.pop(old.partition)
                if lease is not None:
                    self._loading[old.partition] = lease
                continue
            leader = self._leaders.get(old.partition)
            if leader is None or self._leases.get(old.partition) != old or old.partition in self._to_retake:
                continue
            if lease is None or old.partition in self._doubtful:
                lost.append(old.partition)
            else:
                self._leases[lease.partition] = lease
                leader.extend_lease(until_ms)
        self._stop_lost(lost)

    def send_waiters_on(self) -> None:
        """Where a lease has run out by our clock, while the store does not answer, another agent may lead by now: who
        waits for what only the store can make durable is not kept waiting."""
        for leader in list(self._leaders.values()):
            if not leader.knows_the_end and leader.next_offset > leader.high_watermark:
                leader.send_waiters_on()

    def doubt(self, leader: PartitionLeader, given_up: GivenUp) -> None:
        """Whether we still lead is not known: what asked to end it was not answered. It goes on with a new epoch, under
        which the old one's request means nothing, or not at all."""
        if self._leaders.get(leader.partition) is leader:
            leader.reconsider(given_up)
            self._doubtful.add(leader.partition)

    def _stop_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """The leases ran out while nobody renewed them, say because the process was paused.

        What is in WAL objects is read again by whoever leads next; only what is on our own disk is to be retaken."""
        self.events["lost"] += sum(partition not in self._doubtful for partition in partitions)
        for lost in [self._leaders[partition] for partition in partitions]:
            lost.stop_writing()
            if lost.is_local:
                self._to_retake.add(lost.partition)
            else:
                self.depose(lost, NotLeader(f"the lease of {lost.topic}/{lost.partition.partition} ran out"))
                self._lost()

    async def _take_again(self, local: Sequence[TopicPartition]) -> None:
        if not local:
            return
        again: list[tuple[PartitionLeader, Lease]] = []
        leases = await self._metadata.acquire_leases(self._agent_id, local, self._ttl_ms)
        for partition, lease in zip(local, leases, strict=True):
            leader = self._leaders.get(partition)
            if leader is None:
                continue
            if lease is None or await self._another_wrote(leader, lease):
                self._drop(partition, NotLeader(f"another agent leads {leader.topic}/{partition.partition}"))
                self._lost()
            else:
                again.append((leader, lease))
        await self._go_on(again)
        self._to_retake.difference_update(local)

    async def _go_on(self, again: Sequence[tuple[PartitionLeader, Lease]]) -> None:
        """With new epochs. All at once, for leases may be short and the store slow: one that ran out before its epoch
        is stored is passed over, and taken once more, also if it is live again because the store's clock went back."""
        starts = [self._start_of(leader, lease) for leader, lease in again]
        noted = await self._metadata.begin_epochs(self._agent_id, starts) if starts else []
        again = list(compress(again, noted))
        if not again:
            return
        asked_at_ms = self._clock.monotonic_ms()
        renewed = await self._metadata.renew_leases(self._agent_id, [lease for _, lease in again], self._ttl_ms)
        until_ms = writable_until_ms(asked_at_ms, self._ttl_ms)
        for (leader, _), kept in zip(again, renewed, strict=True):
            if kept is not None and self._leaders.get(kept.partition) is leader:
                self._leases[kept.partition] = kept
                self._doubtful.discard(kept.partition)
                leader.begin_epoch(kept.epoch)
                leader.resume_writing(until_ms)
                self.events["retaken"] += 1
                _log.warning(
                    "took the lease of %s/%d again, epoch %d", leader.topic, kept.partition.partition, kept.epoch
                )

    async def _another_wrote(self, leader: PartitionLeader, lease: Lease) -> bool:
        """Every grant is an epoch, so with the next epoch nobody led in between."""
        if lease.epoch == leader.epoch + 1:
            return False
        try:
            (row,) = await self._metadata.load_partitions([leader.partition])
        except NotFound:
            return True
        (segments,) = await self._metadata.load_segments([leader.partition])
        # The end may be one that we committed ourselves, and whose answer is still on its way.
        is_ours = any(row.next_offset == segment.end_offset and segment.epoch <= leader.epoch for segment in segments)
        began_below = any(
            leader.epoch < epoch < lease.epoch and start_offset < leader.next_offset
            for epoch, start_offset in row.epochs
        )
        wrote = row.durable_end != row.next_offset or (row.next_offset != leader.committed_end and not is_ours)
        return began_below or wrote

    # --- giving up ---

    async def release(self, leaders: Sequence[PartitionLeader], *, drained: bool) -> None:
        """Stop leading what was given up. `drained`: everything of them is in the object store, and the next leader
        needs nobody's disk."""
        led = [leader for leader in leaders if self._leaders.get(leader.partition) is leader]
        assert all(leader.is_given_up for leader in led), "what can still be written to is not released"
        for leader in led:
            if drained and not leader.is_drained:
                raise Unavailable(f"not all of {leader.topic}/{leader.partition.partition} is in the object store yet")
        if led:
            leases = [self._leases[leader.partition] for leader in led]
            await self._metadata.release_leases(self._agent_id, leases, drained=drained)
            self.events["released"] += len(leases)

    def depose(self, leader: PartitionLeader, problem: StreamHouseError) -> None:
        """Somebody else leads, or will: waiting producers and readers are told."""
        if self._leaders.get(leader.partition) is leader:
            self._drop(leader.partition, problem)

    def remove(self, topic: Topic, problem: StreamHouseError) -> None:
        """Stop leading a topic that was deleted."""
        for partition in range(len(self.leaders_of(topic))):
            self._drop(TopicPartition(topic.topic_id, partition), problem)
        self._by_topic.pop(topic.topic_id, None)

    def reconfigure(self, topic: Topic) -> None:
        config = self._config_of(topic)
        for leader in self.leaders_of(topic):
            if leader is not None:
                leader.configure(config)

    async def outlast(self, duration_ms: int) -> None:
        """Have every lease for so much longer, for a clock that is about to be moved (a fault hook)."""
        longer_ms = 2 * duration_ms  # their holder stops writing a share of them early
        self._ttl_ms += longer_ms
        try:
            await self.extend()
        finally:
            self._ttl_ms -= longer_ms

    def expire(self) -> None:
        """Behave as if every lease had just run out (a fault hook)."""
        for leader in self._leaders.values():
            leader.writable_until_ms = 0

    def _drop(self, partition: TopicPartition, problem: StreamHouseError) -> None:
        self._leases.pop(partition, None)
        self._doubtful.discard(partition)
        self._to_retake.discard(partition)
        leader = self._leaders.pop(partition, None)
        if leader is not None:
            self._by_topic[partition.topic_id][partition.partition] = None
            leader.remove(problem)
