"""Brings what this agent leads in line with what it should lead.

Every round looks at agents, leases and transfers anew and takes the next step of each; a step that fails is taken again
in the next round. Rounds come at once when something has changed, when another agent's lease is about to run out, and
from time to time."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Protocol
from uuid import UUID

from streamhouse.cluster.hand_overs import HandOvers, PartitionHost
from streamhouse.cluster.membership import Membership
from streamhouse.cluster.owners import Owners, TopicConfigs, candidate_of
from streamhouse.cluster.shard_placing import UNTAKEN_MS, ShardHost, ShardPlacing
from streamhouse.cluster.store_watch import StoreWatch
from streamhouse.cluster.view import ClusterView
from streamhouse.core.placement.assignment import Assignment
from streamhouse.core.placement.liveness import next_expiry_ms
from streamhouse.core.placement.rebalance import plan
from streamhouse.core.placement.store_access import StoreAccess, StorePlacement
from streamhouse.metadata.cluster import (
    ALL_TRANSFERS,
    AgentRow,
    Change,
    Placement,
    PlacementStore,
    ShardPlacement,
    TransferStore,
)
from streamhouse.model.errors import StreamHouseError, Unavailable
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import Topic
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.entropy import jittered
from streamhouse.runtime.measures import Histogram, stopwatch_s
from streamhouse.runtime.tasks import TaskGroup

_log = logging.getLogger(__name__)
_GATHER_CHANGES_MS = 10
_AFTER_EXPIRY_MS = 20
_AFTER_FAILURE_MS = 500
_DRAIN_ROUND_MS = 200


class TopicCatalog(TopicConfigs, Protocol):
    async def refresh(self) -> None: ...


class Assigner:
    def __init__(
        self,
        *,
        membership: Membership | None,
        view: ClusterView,
        transfers: TransferStore,
        placements: PlacementStore,
        topics: TopicCatalog,
        partitions: PartitionHost,
        shards: ShardHost,
        clock: Clock,
        interval_ms: int,
        store_watch: StoreWatch | None = None,
        nudge: Callable[[AgentRow], None] = lambda agent: None,
    ) -> None:
        """Without a membership it leads nothing, and only keeps its view of the others up to date. `nudge` tells an
        agent that there is something for it to look at, which it would find anyhow, later."""
        self._store_watch = store_watch
        self._membership = membership
        self._view = view
        self._owners = Owners(placements, view, topics)
        self._transfers = transfers
        self._topics = topics
        self._partitions = partitions
        self._shards = shards
        self._clock = clock
        self._interval_ms = interval_ms
        self._nudge = nudge
        self.shard_placing = ShardPlacing(self._agent_id, shards, clock)
        self.hand_overs = HandOvers(self._agent_id, transfers, partitions, clock, self._nudge_agent)
        self._tasks = TaskGroup("assigner")
        self._changed = asyncio.Event()
        self._one_round = asyncio.Lock()
        self._rounds_begun = 0
        self._last_done = 0
        self.rounds: Counter[str] = Counter(done=0, overtaken=0, failed=0)
        """How rounds ended."""
        self.round_seconds = Histogram()

    # --- life ---

    async def start(self) -> None:
        """The first round is done when this returns."""
        await self._call_off("the agent has started anew")
        await self.look_now()
        self._tasks.start(self._run(), "rounds")

    async def stop(self) -> None:
        await self._tasks.cancel()

    def wake(self, change: Change | None = None) -> None:
        """Something has changed: look soon."""
        self._changed.set()

    async def look_now(self) -> None:
        """A whole round that began after this was called; those who ask together share it.

        It is carried through though whoever asked may stop waiting, such as a client that wanted a topic: cut off in
        the middle of a hand-over, nobody would know what came of that."""
        looking = self._tasks.start(self._look(self._rounds_begun), "look")
        try:
            problem = await asyncio.shield(looking)
        except asyncio.CancelledError:
            asking = asyncio.current_task()
            if asking is None or asking.cancelling():
                raise
            raise Unavailable("this agent is stopping") from None
        if problem is not None:
            raise problem

    async def _look(self, asked_after: int) -> Exception | None:
        """What went wrong, if something did."""
        async with self._one_round:
            if self._last_done > asked_after:
                return None
            self._rounds_begun = this_round = self._rounds_begun + 1
            begun_s = stopwatch_s()
            try:
                await self._round()
            except Exception as problem:
                is_overtaken = isinstance(problem, StreamHouseError) and not isinstance(problem, Unavailable)
                self.rounds["overtaken" if is_overtaken else "failed"] += 1
                return problem
            self._last_done = this_round
            self.rounds["done"] += 1
            self.round_seconds.observe(stopwatch_s() - begun_s)
            return None

    async def drain(self, timeout_ms: int) -> None:
        """Hand everything over, as far as others are there to take it within the time."""
        assert self._membership is not None
        begun_ms = self._clock.monotonic_ms()
        deadline_ms = begun_ms + timeout_ms
        try:
            await self._membership.drain()
            while True:
                await self.look_now()
                now_ms = self._clock.monotonic_ms()
                nobody_else = not self._view.live
                # Shards that nobody asks for are let go with everything else at the end.
                waits_for_shards = bool(self._shards.held_shards) and now_ms < begun_ms + UNTAKEN_MS
                nothing_left = not self.hand_overs.to_hand_over and not waits_for_shards
                if nobody_else or nothing_left or now_ms >= deadline_ms:
                    break
                await self._wait(_DRAIN_ROUND_MS)
            await self._call_off("the agent is gone")
        except StreamHouseError as problem:
            _log.warning("stopping without handing over: %s", problem)

    async def _run(self) -> None:
        while True:
            await self._wait(self._next_round_ms())
            try:
                await self.look_now()
            except Unavailable as problem:
                _log.warning("cannot look who should lead what, trying again: %s", problem)
                await self._clock.sleep_ms(jittered(_AFTER_FAILURE_MS))
                self.wake()
            except StreamHouseError as problem:
                # Somebody changed what we were looking at; the next look sees it.
                _log.info("a round was overtaken: %s", problem)
                await self._clock.sleep_ms(jittered(_AFTER_FAILURE_MS))
                self.wake()
            except Exception:
                # A bug of ours must not end the looking: leases would be kept and never given up.
                _log.exception("a round failed")
                await self._clock.sleep_ms(jittered(_AFTER_FAILURE_MS))

    async def _call_off(self, reason: str) -> None:
        """Transfers that an earlier process of this agent left, or this one leaves, would be taken for ours or for
        those of the next."""
        if self._membership is not None:
            under_way = await self._transfers.list_transfers(self._agent_id, ALL_TRANSFERS)
            await self._transfers.reject_transfers(
                self._agent_id, [transfer.transfer_id for transfer in under_way], reason
            )

    def _next_round_ms(self) -> float:
        """When the first lease of another agent would run out or something is to be tried again, but not later than the
        interval."""
        leases: list[Placement | ShardPlacement] = [*self._view.placements.values(), *self._view.shards]
        expiry_ms = next_expiry_ms(leases, me=self._agent_id)
        reasons = (
            self._interval_ms,
            None if expiry_ms is None else expiry_ms + _AFTER_EXPIRY_MS,
            self.hand_overs.next_look_ms(),
            self.shard_placing.next_look_ms(),
        )
        return min(reason for reason in reasons if reason is not None)

    async def _wait(self, wait_ms: float) -> None:
        try:
            async with asyncio.timeout(wait_ms / 1000):
                await self._changed.wait()
        except TimeoutError:
            return
        # Changes come in crowds; one look serves them all.
        await self._clock.sleep_ms(_GATHER_CHANGES_MS)

    # --- a round ---

    @property
    def _agent_id(self) -> str:
        return self._membership.info.agent_id if self._membership is not None else ""

    async def _round(self) -> None:
        self._changed.clear()
        await self._topics.refresh()
        await self._view.refresh()
        if self._membership is None:
            return
        await self._show_life()
        # What is quickly done and waited for by many comes first, and what may take its time last.
        steps: tuple[Callable[[], Awaitable[None]], ...] = (
            lambda: self.shard_placing.place(self._owners.assignment(), self._view.shards),
            self._place_partitions,
            lambda: self.hand_overs.move(takes_part=self._is_live),
        )
        problems: list[StreamHouseError] = []
        for step in steps:
            try:
                await step()
            except StreamHouseError as problem:  # no reason to leave the others undone
                problems.append(problem)
        if problems:
            raise problems[0]

    async def _show_life(self) -> None:
        """Others take us for dead, say because the database was away for longer than our leases: we are not. Or they
        have not heard yet of a config that was changed."""
        assert self._membership is not None
        own = self._view.agents.get(self._agent_id)
        if own is None or (not self._is_live and not own.is_draining):
            await self._membership.beat()
            await self._view.refresh()
        elif own.info.durability != self._membership.info.durability:
            await self._membership.say_durability()

    @property
    def _is_live(self) -> bool:
        return any(agent.info.agent_id == self._agent_id for agent in self._view.live)

    async def _place_partitions(self) -> None:
        assignment = await self._owners.settle()
        by_store = StorePlacement((candidate_of(agent), agent.store_access) for agent in self._view.live)
        wanted: dict[TopicPartition, Topic] = {}
        desired: dict[TopicPartition, str | None] = {}
        in_store: set[TopicPartition] = set()
        configs: dict[UUID, Mapping[str, str]] = {}
        for partition, placement in self._view.placements.items():
            topic = self._topics.find_id(partition.topic_id)
            if topic is None or partition.partition >= topic.partition_count:
                continue  # made since the topics were looked at: the next round sees it
            if topic.topic_id not in configs:
                configs[topic.topic_id] = self._topics.config_of(topic)
            config = configs[topic.topic_id]
            wanted[partition] = topic
            group, zone, pinned_to = config["streamhouse.agent.group"], config["streamhouse.zone"], placement.pinned_to
            owner = assignment.owner(placement.owner, agent_group=group, zone=zone, pinned_to=pinned_to)
            desired[partition] = owner
            if config["streamhouse.durability"] == "object":
                holder = placement.agent_id if placement.lease_left_ms > 0 else ""
                choose = partial(
                    Assignment.ringed_owner,
                    topic=topic.name,
                    partition=partition.partition,
                    agent_group=group,
                    zone=zone,
                    pinned_to=pinned_to,
                )
                desired[partition] = by_store.owner(owner, holder, choose)
                in_store.add(partition)
        placements = self._view.placements.values()
        steps = plan(
            self._agent_id,
            desired,
            self._partitions.held,
            {placement.partition: placement.agent_id for placement in placements if placement.lease_left_ms > 0},
            {placement.partition: placement.wal_agent_id for placement in placements if placement.wal_agent_id},
        )
        is_stalled = by_store.access(self._agent_id) is StoreAccess.STALLED
        acquire: Sequence[TopicPartition] = steps.acquire
        if is_stalled:
            await self._let_go([key for key, owner in steps.hand_over if by_store.access(owner) is StoreAccess.PROVEN])
            # It could not read them. They are for those that can, and for this agent when it is stalled no longer.
            unread = in_store.difference(self._partitions.taken_up)
            acquire = [partition for partition in acquire if partition not in unread]
        if acquire:
            await self._partitions.lead(
                {partition: wanted[partition] for partition in acquire}, self._handed_over(acquire)
            )
        # A hand-over would wait for what cannot be stored.
        await self.hand_overs.begin(() if is_stalled else steps.hand_over)

    async def _let_go(self, partitions: Sequence[TopicPartition]) -> None:
        if partitions and self._store_watch is not None and not await self._store_watch.is_reached_again():
            await self._partitions.let_go(partitions)

    def _handed_over(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The epochs of those whose leases a transfer to this process has made ours.

        A lease that an earlier process of this agent held is not among them: what that one still has under way must be
        told from ours, so it is taken anew."""
        placements = [self._view.placements[partition] for partition in self.hand_overs.take_up(partitions)]
        return {
            placement.partition: placement.epoch
            for placement in placements
            if placement.agent_id == self._agent_id and placement.lease_left_ms > 0
        }

    def _nudge_agent(self, agent_id: str) -> None:
        agent = self._view.agents.get(agent_id)
        if agent is not None:
            self._nudge(agent)
