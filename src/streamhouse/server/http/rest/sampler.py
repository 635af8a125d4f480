"""What is kept of the last hour: of the whole cluster as this node sees it, measured every few seconds whether anybody
looks or not, so that it is there when somebody does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple
from uuid import UUID

from streamhouse.client.peer import NodeWork
from streamhouse.cluster.state import ClusterState
from streamhouse.core.groups.offset_reset import total_lag
from streamhouse.core.history import History, Samples
from streamhouse.core.rise import Rise
from streamhouse.metadata.totals import GroupPosition, StoredTopic
from streamhouse.model.errors import StreamHouseError
from streamhouse.model.names import TopicPartition
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.growth import TopicGrowth
from streamhouse.server.http.rest.known_ends import KnownEnds
from streamhouse.server.http.rest.lag_history import LagHistory
from streamhouse.server.http.rest.recent import Recent
from streamhouse.server.http.rest.watch import ClusterWatch

PERIOD_MS = 15_000
KEPT_MS = 3_600_000
_LAG_PERIOD_MS = 30_000
_MOST_POSITIONS = 10_000
"""With more than these nothing is said of lag."""
_LOOK_AGE_MS = 2_000
_POSITIONS_AGE_MS = 2_000
_STORED_AGE_MS = 10_000
SLOWER_PRODUCE_MS = 250
"""Nobody is told that producers wait longer than they used to if it is no longer than this."""
_RATES = ("records_in", "records_out", "bytes_in", "bytes_out")
SERIES = (*_RATES, "produce_p50_ms", "produce_p99_ms", "buffered_bytes", "lag")


class Look(NamedTuple):
    """`positions` are None while they are too many, or nobody can say. `missing` are agents without whose records the
    `ends` are, `unheard` the partitions where that may be so."""

    at_ms: int
    state: ClusterState
    work: Mapping[str, NodeWork]
    ends: Mapping[TopicPartition, int]
    missing: Sequence[str]
    unheard: Set[TopicPartition]
    positions: Sequence[GroupPosition] | None


class Sampler:
    def __init__(self, context: DoorContext, watch: ClusterWatch, known: KnownEnds) -> None:
        self.agent_id = context.work.agent_id
        self.growth = TopicGrowth()
        self._clock = context.broker.clock
        self._metadata = context.metadata
        self._own_work = context.work.own
        self._watch = watch
        self._ends = known
        self._positions = watch.also(self._read_positions, "positions")
        self._stored = watch.also(context.metadata.stored_topics, "stored topics")
        self._position_looks = Recent(self._positions.look, self._clock, _POSITIONS_AGE_MS)
        self._stored_looks = Recent(self._stored.look, self._clock, _STORED_AGE_MS)
        self._looks = Recent(self._look, self._clock, _LOOK_AGE_MS)
        self._history = _history(SERIES, PERIOD_MS)
        self.lags = LagHistory(period_ms=_LAG_PERIOD_MS, kept_ms=KEPT_MS)
        self._waits: dict[str, Rise] = {}
        self._before: tuple[int, Mapping[str, NodeWork]] | None = None
        self._lags_at_ms: int | None = None
        self._tasks = TaskGroup("sampler")

    def start(self) -> None:
        self._tasks.keep(self._run, "samples")

    async def close(self) -> None:
        await self._tasks.cancel()
        await self._watch.close()

    def samples(self, since_ms: int = 0) -> Samples:
        return self._history.samples(max(since_ms, self._clock.now_ms() - KEPT_MS))

    def usual_waits_ms(self, work: Mapping[str, NodeWork]) -> dict[str, float]:
        """By agent, of those at which producers have waited far longer for a while than in the hour before, and still
        do: the median of the 99th percentiles of that hour."""
        p99_ms = {agent_id: node.produce_p99_ms for agent_id, node in work.items()}
        return {
            agent_id: usual
            for agent_id, rise in self._waits.items()
            if (value := p99_ms.get(agent_id)) is not None and (usual := rise.risen_from(value)) is not None
        }

    async def look(self) -> Look:
        """As it is now, or was a moment ago; an error if nothing was ever known."""
        return await self._looks.get()

    async def stored_topics(self) -> Mapping[UUID, StoredTopic] | None:
        await self._stored_looks.get()
        return None if self._stored.answer is None else self._stored.answer.value

    async def _run(self) -> None:
        while True:
            try:
                self._note(await self.look())
            except StreamHouseError:
                self._before = None  # the metadata store has never answered yet
            await self._clock.sleep_ms(PERIOD_MS)

    async def _look(self) -> Look:
        seen = await self._watch.seen()
        await self._position_looks.get()
        work = {self.agent_id: self._own_work(), **seen.work.answers}
        ends = self._ends.update(seen.state, work)
        positions = None
        if self._positions.silence is None and self._positions.answer is not None:
            positions = self._positions.answer.value
        now_ms = self._clock.now_ms()
        missing = self._ends.missing(seen.state, work)
        unheard = {each.partition for each in seen.state.placements if self._ends.unheard(each) is not None}
        self.growth.look(ends, unheard, positions, now_ms=now_ms, monotonic_ms=self._clock.monotonic_ms())
        return Look(now_ms, seen.state, work, ends, missing, unheard, positions)

    async def _read_positions(self) -> list[GroupPosition] | None:
        positions = await self._metadata.list_group_positions(_MOST_POSITIONS + 1)
        return None if len(positions) > _MOST_POSITIONS else positions

    def _note(self, look: Look) -> None:
        now_ms = self._clock.monotonic_ms()
        values = self._rates(look.work, now_ms)
        values |= {name: _slowest(look.work, name) for name in ("produce_p50_ms", "produce_p99_ms")}
        values["buffered_bytes"] = sum(node.buffered_bytes for node in look.work.values())
        lags = _lags(look)
        values["lag"] = None if lags is None else total_lag(lags.values())
        self._history.add(look.at_ms, values)
        self._note_waits(look, now_ms)
        if self._lags_at_ms is None or now_ms - self._lags_at_ms >= _LAG_PERIOD_MS:
            self._lags_at_ms = now_ms
            if lags is None:
                self.lags.add_unknown(look.at_ms)
            else:
                self.lags.add(look.at_ms, lags)

    def _note_waits(self, look: Look, now_ms: int) -> None:
        known = {agent.info.agent_id for agent in look.state.agents} | {self.agent_id}
        for agent_id in self._waits.keys() - known:
            del self._waits[agent_id]
        for agent_id in known:
            node = look.work.get(agent_id)
            rise = self._waits.setdefault(agent_id, Rise(SLOWER_PRODUCE_MS))
            rise.add(now_ms, None if node is None else node.produce_p99_ms)

    def _rates(self, work: Mapping[str, NodeWork], now_ms: int) -> dict[str, float | None]:
        """Of the nodes that answered both times: one that was started again has counted from nothing."""
        before, self._before = self._before, (now_ms, work)
        if before is None or now_ms <= before[0]:
            return {}
        seconds = (now_ms - before[0]) / 1000
        return {name: _grown(before[1], work, name, seconds) for name in _RATES}


def _history(names: Sequence[str], period_ms: int) -> History:
    return History(names, KEPT_MS // period_ms, longest_pause_ms=3 * period_ms)


def _grown(before: Mapping[str, NodeWork], now: Mapping[str, NodeWork], name: str, seconds: float) -> float | None:
    grown = [getattr(work, name) - getattr(before[agent], name) for agent, work in now.items() if agent in before]
    known = [more for more in grown if more >= 0]
    return sum(known) / seconds if known else None


def _slowest(work: Mapping[str, NodeWork], name: str) -> float | None:
    """Where producers wait the longest."""
    return max((value for node in work.values() if (value := getattr(node, name)) is not None), default=None)


def _lags(look: Look) -> dict[tuple[str, TopicPartition], int | None] | None:
    """Below a log's start there is nothing left to read."""
    if look.positions is None:
        return None
    starts = {placement.partition: placement.log_start_offset for placement in look.state.placements}
    return {
        (each.group_id, each.partition): None
        if each.partition in look.unheard
        else max(0, look.ends[each.partition] - max(each.offset, starts.get(each.partition, 0)))
        for each in look.positions
        if each.partition in look.ends
    }
