"""Consumer groups that this node coordinates. To see a group's lag takes questions to the metadata store and to other
nodes, so it is worked out once for a while, for so many groups and partitions and no more."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from streamhouse.broker.records import LATEST
from streamhouse.core.groups.outcome import GroupError
from streamhouse.groups.group import Group
from streamhouse.model.errors import StreamHouseError
from streamhouse.model.names import TopicPartition
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.recent import Recent
from streamhouse.server.metrics.exposition import Family, by_label, counter, gauge

MAX_GROUPS = 100
MAX_PARTITIONS = 5_000
_MAX_AGE_MS = 10_000
_PATIENCE_S = 3.0
_AT_ONCE = 16
_STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Stable", "Dead")


@dataclass(frozen=True, slots=True)
class GroupLags:
    """By group; and how many groups were too many to look at."""

    by_group: Mapping[str, int]
    unmeasured: int


class GroupMetrics:
    def __init__(self, context: DoorContext) -> None:
        self._context = context
        self._lags = Recent(self._measure_lags, context.broker.clock, _MAX_AGE_MS)

    async def families(self) -> list[Family]:
        groups = self._groups()
        states = Counter(group.machine.state.value for group in groups if group.machine is not None)
        lags = await self._lags.get()
        return [
            by_label(
                "gauge",
                "streamhouse_groups",
                "Consumer groups that this node coordinates.",
                "state",
                {state: states[state] for state in _STATES},
            ),
            counter(
                "streamhouse_group_rebalances_total",
                "New generations of groups that this node coordinates.",
                self._context.broker.groups.rebalances,
            ),
            by_label(
                "gauge",
                "streamhouse_group_lag_records",
                f"Offsets between what a group has committed and the ends of the logs; of {MAX_GROUPS} groups at most.",
                "group",
                {**lags.by_group},
            ),
            gauge("streamhouse_groups_unmeasured", "Groups whose lag is not told.", lags.unmeasured),
        ]

    def _groups(self) -> Sequence[Group]:
        groups = self._context.broker.groups.all_groups()
        return [] if isinstance(groups, GroupError) else groups

    async def _measure_lags(self) -> GroupLags:
        """Groups with members first: the others may have been left behind long ago."""
        groups = sorted(self._groups(), key=lambda group: not group.has_members)
        committed: dict[str, dict[TopicPartition, int]] = {}
        room = MAX_PARTITIONS
        try:
            async with asyncio.timeout(_PATIENCE_S):
                for group in groups[:MAX_GROUPS]:
                    offsets = await self._context.metadata.fetch_group_offsets(group.group_id)
                    room -= len(offsets)
                    if room < 0:
                        break
                    committed[group.group_id] = {
                        at: stored.offset for at, stored in offsets.items() if stored.offset >= 0
                    }
        except (TimeoutError, StreamHouseError):
            pass  # what was found until now is told, and that the others are missing
        ends = await self._ends({at for offsets in committed.values() for at in offsets})
        return GroupLags(
            {group_id: _lag(offsets, ends) for group_id, offsets in committed.items() if offsets},
            len(groups) - len(committed),
        )

    async def _ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Those that are known here, or that their leaders tell in time."""
        enough = asyncio.Semaphore(_AT_ONCE)
        led = {leader.partition: leader.high_watermark for leader in self._context.broker.led}
        asked = await asyncio.gather(*(self._ask_end(at, enough) for at in partitions if at not in led))
        return led | {at: end for at, end in asked if end is not None}

    async def _ask_end(self, at: TopicPartition, enough: asyncio.Semaphore) -> tuple[TopicPartition, int | None]:
        topic = self._context.broker.topics.find_id(at.topic_id)
        if topic is None:
            return at, None
        try:
            async with asyncio.timeout(_PATIENCE_S), enough:
                return at, (await self._context.records.offset_at(topic, at.partition, LATEST)).high_watermark
        except (TimeoutError, StreamHouseError):
            return at, None


def _lag(committed: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> int:
    return sum(max(0, ends[at] - offset) for at, offset in committed.items() if at in ends)


def member_families(group_members: int) -> Iterator[Family]:
    yield gauge("streamhouse_rest_group_members", "Members that this node keeps for callers.", group_members)
