"""The metadata store as a model: rows in memory, each method one transaction, judged by the product's own rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from uuid import UUID

from streamhouse.core.placement.assignment import Candidate
from streamhouse.core.placement.bounded_loads import remembered
from streamhouse.core.placement.store_access import StoreAccess
from streamhouse.core.placement.transfer import TransferEvent, TransferState
from streamhouse.metadata.checks import check_growth
from streamhouse.metadata.cluster import AgentInfo, AgentRow, Change, OwnerDecision, Placement, Transfer
from streamhouse.metadata.hand_over import TIMED_OUT, judge_completions, movable
from streamhouse.metadata.leadership import (
    LedPartition,
    is_leader,
    judge_commits,
    require_forward,
    require_leader,
    require_no_leader,
)
from streamhouse.metadata.registration import TakenOver
from streamhouse.metadata.store import EpochStart, Lease, PartitionRow, SegmentCommit, SegmentRow
from streamhouse.metadata.wal_commits import judge_wal_commits
from streamhouse.metadata.wal_objects import WalCommit, WalRange
from streamhouse.model.errors import NotFound
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import Topic
from streamhouse.runtime.entropy import new_uuid


@dataclass(slots=True)
class PartitionRecord:
    """What the rows of one partition say, in all tables."""

    topic: str
    next_offset: int = 0
    wal_end: int = 0
    log_start_offset: int = 0
    producer_state: bytes = b""
    wal_agent_id: str = ""
    pinned_to: str = ""
    owner: str = ""
    former_owner: str = ""
    leader_agent_id: str = ""
    epoch: int = 0
    lease_expires_at_ms: int = 0
    epochs: dict[int, int] = field(default_factory=dict)
    segments: list[SegmentRow] = field(default_factory=list)
    ranges: list[WalRange] = field(default_factory=list)

    @property
    def durable_end(self) -> int:
        return max(self.next_offset, self.wal_end)


@dataclass(slots=True)
class _AgentRecord:
    info: AgentInfo
    node_id: int
    started_at_ms: int
    heard_at_ms: int
    is_draining: bool = False
    final_heard_at_ms: int = -1
    store_access: StoreAccess = StoreAccess.USUAL


class Database:
    def __init__(self, topics: Sequence[Topic], now_ms: Callable[[], int], report: Callable[[Change], None]) -> None:
        """`report` is told of each change, once for each call that made one."""
        self._topics = list(topics)
        self._now_ms = now_ms
        self._report = report
        self.partitions = {
            TopicPartition(topic.topic_id, number): PartitionRecord(topic.name)
            for topic in topics
            for number in range(topic.partition_count)
        }
        self._agents: dict[str, _AgentRecord] = {}
        self._owner_decision = OwnerDecision(version=0, agents=frozenset())
        self._node_ids: dict[str, int] = {}
        self._transfers: dict[UUID, Transfer] = {}
        self._transfer_ends_ms: dict[UUID, int] = {}
        self._segment_commits: set[UUID] = set()
        self._wal_commits: dict[UUID, WalCommit] = {}
        self._garbage: dict[str, int] = {}

    # --- topics ---

    def list_topics(self) -> list[Topic]:
        return list(self._topics)

    def grow_topic(self, topic: Topic, partition_count: int) -> Topic:
        check_growth(topic, partition_count)
        place = next((at for at, each in enumerate(self._topics) if each.topic_id == topic.topic_id), None)
        if place is None:
            raise NotFound(f"no topic {topic.topic_id}")
        if self._topics[place] == topic:
            self._topics[place] = replace(topic, partition_count=partition_count)
            for number in range(topic.partition_count, partition_count):
                self.partitions[TopicPartition(topic.topic_id, number)] = PartitionRecord(topic.name)
            self._report(Change.TOPICS)
        return self._topics[place]

    # --- partitions and segments ---

    def load_partitions(self, partitions: Sequence[TopicPartition]) -> list[PartitionRow]:
        return [self._row(partition) for partition in partitions]

    def load_segments(self, partitions: Sequence[TopicPartition]) -> list[list[SegmentRow]]:
        return [list(self.partitions[partition].segments) for partition in partitions]

    def commit_segments(self, commits: Sequence[SegmentCommit]) -> list[Exception | None]:
        verdict = judge_commits(commits, self._led(commit.partition for commit in commits), self._segment_commits)
        for commit in verdict.accepted:
            record = self.partitions[commit.partition]
            record.segments.append(replace(commit.segment, created_at_ms=self._now_ms()))
            record.next_offset = commit.segment.end_offset
            record.producer_state = commit.producer_state
            self._segment_commits.add(commit.commit_id)
        return verdict.answers

    def begin_epochs(self, agent_id: str, starts: Sequence[EpochStart]) -> list[bool]:
        led = self._led(start.lease.partition for start in starts)
        is_ours = [is_leader(led.get(start.lease.partition), agent_id, start.lease.epoch) for start in starts]
        ours = list(compress(starts, is_ours))
        for start in ours:
            record = self.partitions[start.lease.partition]
            record.epochs.setdefault(start.lease.epoch, start.offset)
            record.wal_agent_id = agent_id if start.in_local_wal else ""
        self._report_if(ours, Change.LEASES)
        return is_ours

    def advance_log_start(
        self, partition: TopicPartition, agent_id: str, epoch: int, log_start_offset: int
    ) -> list[SegmentRow]:
        led = require_leader(self._led([partition]).get(partition), partition, agent_id, epoch)
        require_forward(led, partition, log_start_offset)
        record = self.partitions[partition]
        dropped = [segment for segment in record.segments if segment.end_offset <= log_start_offset]
        record.segments = record.segments[len(dropped) :]
        record.log_start_offset = log_start_offset
        for segment in dropped:
            self._garbage.setdefault(segment.object_key, self._now_ms())
        return dropped

    def list_garbage(self, older_than_ms: int, limit: int) -> list[str]:
        newest_ms = self._now_ms() - older_than_ms
        old = sorted((since_ms, key) for key, since_ms in self._garbage.items() if since_ms <= newest_ms)
        return [key for _, key in old[:limit]]

    def forget_garbage(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._garbage.pop(key, None)

    # --- WAL objects ---

    def commit_wal_objects(self, commits: Sequence[WalCommit]) -> list[list[Exception | None]]:
        partitions = (wal_range.partition for commit in commits for wal_range in commit.ranges)
        registered = {
            commit_id: {(wal_range.partition, wal_range.base_offset) for wal_range in stored.ranges}
            for commit_id in (commit.commit_id for commit in commits)
            if (stored := self._wal_commits.get(commit_id)) is not None
        }
        verdict = judge_wal_commits(commits, self._led(partitions), registered)
        for commit in verdict.accepted:
            self._wal_commits[commit.commit_id] = commit
            for wal_range in commit.ranges:
                self.partitions[wal_range.partition].ranges.append(wal_range)
        for partition, end_offset in verdict.durable_ends.items():
            self.partitions[partition].wal_end = end_offset
        return verdict.answers

    def load_wal_ranges(self, partitions: Sequence[TopicPartition]) -> list[list[WalRange]]:
        return [self.needed_ranges(partition) for partition in partitions]

    def retire_wal_objects(self, limit: int) -> int:
        covered = [
            commit
            for commit in self._wal_commits.values()
            if all(item.end_offset <= self.partitions[item.partition].next_offset for item in commit.ranges)
        ][:limit]
        for commit in covered:
            del self._wal_commits[commit.commit_id]
            for wal_range in commit.ranges:
                self.partitions[wal_range.partition].ranges.remove(wal_range)
            self._garbage.setdefault(commit.object_key, 0)
        return len(covered)

    def list_wal_object_keys(self) -> list[str]:
        return sorted(commit.object_key for commit in self._wal_commits.values())

    def needed_ranges(self, partition: TopicPartition) -> list[WalRange]:
        record = self.partitions[partition]
        needed = (wal_range for wal_range in record.ranges if wal_range.end_offset > record.next_offset)
        return sorted(needed, key=lambda wal_range: wal_range.base_offset)

    # --- leases ---

    def acquire_leases(self, agent_id: str, partitions: Sequence[TopicPartition], ttl_ms: int) -> list[Lease | None]:
        taken_over = TakenOver(agent_id)
        granted = {
            partition: self._acquire(agent_id, partition, ttl_ms, taken_over) for partition in dict.fromkeys(partitions)
        }
        for dead, lapsed_at_ms in taken_over.lapsed.items():
            agent = self._agents.get(dead)
            if agent is not None and agent.heard_at_ms < lapsed_at_ms:
                agent.final_heard_at_ms = agent.heard_at_ms
        self._report_if([lease for lease in granted.values() if lease], Change.LEASES)
        return [granted[partition] for partition in partitions]

    def renew_leases(self, agent_id: str, leases: Sequence[Lease], ttl_ms: int) -> list[Lease | None]:
        return [self._renew(agent_id, lease, ttl_ms) for lease in leases]

    def release_leases(self, agent_id: str, leases: Sequence[Lease], *, drained: bool) -> None:
        records = [(self.partitions[lease.partition], lease.epoch) for lease in leases]
        ours = [record for record, epoch in records if (record.leader_agent_id, record.epoch) == (agent_id, epoch)]
        for record in ours:
            record.lease_expires_at_ms = 0
            if drained and record.wal_agent_id == agent_id:
                record.wal_agent_id = ""
        self._report_if(ours, Change.LEASES)

    # --- agents ---

    def register_agent(self, info: AgentInfo, node_id: int) -> AgentRow:
        given = self._node_ids.setdefault(info.agent_id, node_id or len(self._node_ids) + 1)
        self._agents[info.agent_id] = _AgentRecord(info, given, self._now_ms(), self._now_ms())
        self._report(Change.AGENTS)
        return self._agent_row(self._agents[info.agent_id])

    def heartbeat_agent(self, agent_id: str) -> bool:
        agent = self._agents.get(agent_id)
        if agent is not None:
            agent.heard_at_ms = self._now_ms()
            if agent.final_heard_at_ms >= 0:
                agent.final_heard_at_ms = -1
                self._report(Change.AGENTS)
        return agent is not None

    def list_agents(self) -> list[AgentRow]:
        return [self._agent_row(self._agents[agent_id]) for agent_id in sorted(self._agents)]

    def drain_agent(self, agent_id: str) -> None:
        if agent_id not in self._agents:
            raise NotFound(f"no agent {agent_id!r}")
        self._agents[agent_id].is_draining = True
        self._report(Change.AGENTS)

    def say_store_access(self, agent_id: str, access: StoreAccess) -> None:
        if agent_id not in self._agents:
            raise NotFound(f"no agent {agent_id!r}")
        self._agents[agent_id].store_access = access
        self._report(Change.AGENTS)

    def say_durability(self, agent_id: str, durability: str) -> None:
        if agent_id not in self._agents:
            raise NotFound(f"no agent {agent_id!r}")
        self._agents[agent_id].info = replace(self._agents[agent_id].info, durability=durability)
        self._report(Change.AGENTS)

    def deregister_agent(self, agent_id: str) -> None:
        self._agents.pop(agent_id, None)
        self._report(Change.AGENTS)

    # --- placements ---

    def list_placements(self) -> list[Placement]:
        now_ms = self._now_ms()
        return [
            Placement(
                topic=record.topic,
                partition=partition,
                agent_id=record.leader_agent_id,
                epoch=record.epoch,
                lease_left_ms=record.lease_expires_at_ms - now_ms if record.epoch else 0,
                wal_agent_id=record.wal_agent_id,
                pinned_to=record.pinned_to,
                log_start_offset=record.log_start_offset,
                committed_end=record.next_offset,
                durable_end=record.durable_end,
                owner=record.owner,
                former_owner=record.former_owner,
            )
            for partition, record in self.partitions.items()
        ]

    def load_owner_decision(self) -> OwnerDecision:
        return self._owner_decision

    def decide_owners(self, version: int, agents: Collection[Candidate], owners: Mapping[TopicPartition, str]) -> bool:
        if version != self._owner_decision.version:
            return False
        self._owner_decision = OwnerDecision(version=version + 1, agents=frozenset(agents))
        agent_ids = {candidate.agent_id for candidate in agents}
        for partition, owner in owners.items():
            record = self.partitions[partition]
            record.former_owner = remembered(record.owner, record.former_owner, owner, agent_ids)
            record.owner = owner
        self._report(Change.LEASES)
        return True

    def pin_partition(self, partition: TopicPartition, agent_id: str) -> None:
        self.partitions[partition].pinned_to = agent_id
        self._report(Change.LEASES)

    def elect_unclean(self, partition: TopicPartition) -> str:
        require_no_leader(self._led([partition])[partition], partition)
        record = self.partitions[partition]
        given_up, record.wal_agent_id = record.wal_agent_id, ""
        record.lease_expires_at_ms = 0
        self._report(Change.LEASES)
        return given_up

    # --- transfers ---

    def begin_transfers(
        self, from_agent_id: str, moves: Sequence[tuple[TopicPartition, str]], timeout_ms: int
    ) -> list[Transfer | None]:
        self._fail_overdue()
        begun = [self._begin(from_agent_id, partition, to_agent_id, timeout_ms) for partition, to_agent_id in moves]
        self._report_if([transfer for transfer in begun if transfer], Change.TRANSFERS)
        return begun

    def list_transfers(self, agent_id: str, limit: int = 1000) -> list[Transfer]:
        self._fail_overdue()
        under_way = (
            replace(transfer, left_ms=self._transfer_ends_ms[transfer.transfer_id] - self._now_ms())
            for transfer in self._transfers.values()
            if not transfer.state.is_final and agent_id in (transfer.from_agent_id, transfer.to_agent_id)
        )
        return sorted(under_way, key=lambda transfer: (transfer.created_at_ms, str(transfer.transfer_id)))[:limit]

    def accept_transfers(self, agent_id: str, transfer_ids: Sequence[UUID]) -> None:
        self._move(agent_id, transfer_ids, TransferEvent.ACCEPT, TransferState.ACCEPTED, "")

    def reject_transfers(self, agent_id: str, transfer_ids: Sequence[UUID], reason: str) -> None:
        self._move(agent_id, transfer_ids, TransferEvent.REJECT, TransferState.REJECTED, reason)

    def complete_transfers(
        self, agent_id: str, completions: Sequence[tuple[UUID, int, int]], ttl_ms: int
    ) -> list[Exception | None]:
        self._fail_overdue()
        transfers = {key: self._transfers[key] for key, _, _ in completions if key in self._transfers}
        led = self._led(transfer.partition for transfer in transfers.values())
        verdict = judge_completions(agent_id, completions, transfers, led)
        for transfer in verdict.accepted:
            record = self.partitions[transfer.partition]
            record.leader_agent_id = transfer.to_agent_id
            record.lease_expires_at_ms = self._now_ms() + ttl_ms
            record.epoch += 1
            record.wal_agent_id = ""
            self._transfers[transfer.transfer_id] = replace(transfer, state=TransferState.COMPLETED)
        self._report_if(verdict.accepted, Change.TRANSFERS)
        return verdict.answers

    # --- inside ---

    def _led(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, LedPartition]:
        now_ms = self._now_ms()
        found = {}
        for partition in partitions:
            record = self.partitions[partition]
            found[partition] = LedPartition(
                log_start_offset=record.log_start_offset,
                next_offset=record.next_offset,
                durable_end=record.durable_end,
                leader_agent_id=record.leader_agent_id or None,
                epoch=record.epoch or None,
                lease_is_live=record.lease_expires_at_ms > now_ms,
            )
        return found

    def _row(self, partition: TopicPartition) -> PartitionRow:
        record = self.partitions[partition]
        return PartitionRow(
            topic=record.topic,
            partition=partition,
            log_start_offset=record.log_start_offset,
            next_offset=record.next_offset,
            durable_end=record.durable_end,
            producer_state=record.producer_state,
            epochs=tuple(sorted(record.epochs.items())),
        )

    def _acquire(self, agent_id: str, partition: TopicPartition, ttl_ms: int, taken_over: TakenOver) -> Lease | None:
        record = self.partitions[partition]
        now_ms = self._now_ms()
        is_free = record.lease_expires_at_ms <= now_ms or record.leader_agent_id == agent_id
        if not is_free or record.wal_agent_id not in ("", agent_id):
            return None
        taken_over.from_holder(record.leader_agent_id, record.lease_expires_at_ms)
        record.leader_agent_id = agent_id
        record.epoch += 1
        record.lease_expires_at_ms = now_ms + ttl_ms
        return Lease(partition=partition, agent_id=agent_id, epoch=record.epoch, expires_at_ms=now_ms + ttl_ms)

    def _renew(self, agent_id: str, lease: Lease, ttl_ms: int) -> Lease | None:
        record = self.partitions[lease.partition]
        now_ms = self._now_ms()
        if (record.leader_agent_id, record.epoch) != (agent_id, lease.epoch) or record.lease_expires_at_ms <= now_ms:
            return None
        record.lease_expires_at_ms = now_ms + ttl_ms
        return replace(lease, expires_at_ms=now_ms + ttl_ms)

    def _agent_row(self, agent: _AgentRecord) -> AgentRow:
        return AgentRow(
            info=agent.info,
            node_id=agent.node_id,
            started_at_ms=agent.started_at_ms,
            silent_ms=max(0, self._now_ms() - agent.heard_at_ms),
            is_draining=agent.is_draining,
            is_found_dead=agent.heard_at_ms == agent.final_heard_at_ms,
            store_access=agent.store_access,
        )

    def _begin(
        self, from_agent_id: str, partition: TopicPartition, to_agent_id: str, timeout_ms: int
    ) -> Transfer | None:
        record = self.partitions[partition]
        is_led = record.leader_agent_id == from_agent_id and record.lease_expires_at_ms > self._now_ms()
        is_moving = any(item.partition == partition and not item.state.is_final for item in self._transfers.values())
        if not is_led or is_moving:
            return None
        transfer = Transfer(
            transfer_id=new_uuid(),
            topic=record.topic,
            partition=partition,
            from_agent_id=from_agent_id,
            to_agent_id=to_agent_id,
            state=TransferState.PENDING,
            reason="",
            created_at_ms=self._now_ms(),
        )
        self._transfers[transfer.transfer_id] = transfer
        self._transfer_ends_ms[transfer.transfer_id] = self._now_ms() + timeout_ms
        return transfer

    def _fail_overdue(self) -> None:
        overdue = [
            transfer
            for key, transfer in self._transfers.items()
            if not transfer.state.is_final and self._transfer_ends_ms[key] <= self._now_ms()
        ]
        for transfer in overdue:
            self._transfers[transfer.transfer_id] = replace(transfer, state=TransferState.FAILED, reason=TIMED_OUT)
        self._report_if(overdue, Change.TRANSFERS)

    def _move(
        self, agent_id: str, keys: Sequence[UUID], event: TransferEvent, state: TransferState, reason: str
    ) -> None:
        self._fail_overdue()
        known = [self._transfers[key] for key in keys if key in self._transfers]
        moved = movable(known, agent_id, event)
        for key in moved:
            self._transfers[key] = replace(self._transfers[key], state=state, reason=reason)
        self._report_if(moved, Change.TRANSFERS)

    def _report_if(self, changed: Sequence[object], change: Change) -> None:
        if changed:
            self._report(change)
