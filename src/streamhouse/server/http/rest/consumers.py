"""Who reads a topic, over REST: groups that have committed offsets of it or are assigned partitions of it, how far they
are behind in records and in time, and whether that grows."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from streamhouse.broker.measures import DoorMeasures
from streamhouse.client.groups_admin import GroupDescription
from streamhouse.core.groups.offset_reset import lag, total_lag, waiting
from streamhouse.core.history import Samples, trend
from streamhouse.metadata.totals import GroupPosition
from streamhouse.model.errors import MetadataUnavailable, NotFound, StreamHouseError
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import Topic
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.runtime.watched import Watched
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.group_coordinators import UNKNOWN, GroupCoordinators
from streamhouse.server.http.rest.leaving import while_client_waits
from streamhouse.server.http.rest.next_record_times import MOST_READS, NextRecordTimes, Place, time_reader
from streamhouse.server.http.rest.paging import page
from streamhouse.server.http.rest.recent import Recent
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.http.rest.sampler import KEPT_MS, Look, Sampler
from streamhouse.server.http.rest.topic_positions import TopicPositions
from streamhouse.wire.http.rest import activity as api

_MOST_POSITIONS = 20_000
"""In one answer, which has fewer groups where a topic has very many partitions; one group's are always whole."""
_ACTIVE_AGE_MS = 10_000
_MOST_ACTIVE = 50
"""Groups with members that are asked what they are assigned, if they have committed nothing."""
_AT_ONCE = 8
_PATIENCE_MS = 2_000
"""With coordinators of groups."""
_TREND_MS = 300_000
_EXAMPLE = api.ConsumersAnswer(
    topic="orders",
    groups=[
        api.TopicConsumer(
            group_id="billing",
            state="Stable",
            lag=42,
            lag_ms=3_500,
            trend="falling",
            lag_times_ms=[1_767_225_600_000, 1_767_225_630_000],
            lag_history=[60, 42],
            partitions=[
                api.ConsumedPartition(
                    partition=0,
                    committed_offset=1000,
                    end_offset=1042,
                    lag=42,
                    lag_ms=3_500,
                    member_id="3a1c8f0e-7f43-4d6c-9b6f-0f6f3f1d2c4b",
                    client_id="billing-1",
                )
            ],
        )
    ],
)


def add_consumers(
    rest: Rest, context: DoorContext, coordinators: GroupCoordinators, sampler: Sampler, tasks: TaskGroup
) -> None:
    rest.route(
        "GET",
        f"{API}/topics/{{topic}}/consumers",
        _Consumers(context, coordinators, sampler, tasks).of_topic,
        summary="Who reads a topic, how far behind in records and in time, and whether that grows",
        description="`lag_ms` is the age of the next record that is to be read, by the time that the record says; an "
        f"answer takes {MOST_READS} reads at most, and does not wait for those that hang. Who is a member is up to "
        f"{_ACTIVE_AGE_MS // 1000} seconds old; of groups that have committed nothing, {_MOST_ACTIVE} with members are "
        "asked what they read. `state` is unknown where the coordinator does not answer.",
        tag="groups",
        query=api.ConsumersQuery,
        answer=api.ConsumersAnswer,
        answer_example=_EXAMPLE,
        errors=(MetadataUnavailable, NotFound),
    )


class _Log(NamedTuple):
    """Where the partitions of a topic begin and end, by number, as far as that is known."""

    starts: Mapping[int, int]
    ends: Mapping[int, int]

    def next_place(self, number: int, committed: int) -> Place:
        """Below a log's start there is nothing left to read."""
        return number, max(committed, self.start(number))

    def start(self, number: int) -> int:
        return self.starts.get(number, 0)

    def lag(self, place: Place) -> int | None:
        return lag(place[1], self.ends.get(place[0]))

    def behind(self, committed: Mapping[int, int]) -> list[Place]:
        """Where there is something to read, the most first."""
        places = [self.next_place(number, offset) for number, offset in committed.items()]
        return sorted((place for place in places if self.lag(place)), key=lambda place: -(self.lag(place) or 0))


class _Reader(NamedTuple):
    """A group: `state` is unknown, and `members` are as they were last, where its coordinator does not answer."""

    name: str
    state: str
    members: Mapping[int, tuple[str, str]]
    committed: Mapping[int, int]


class _Consumers:
    def __init__(
        self, context: DoorContext, coordinators: GroupCoordinators, sampler: Sampler, tasks: TaskGroup
    ) -> None:
        clock = context.broker.clock
        self._records = context.records
        self._clock = clock
        self._coordinators = coordinators
        self._sampler = sampler
        self._positions = TopicPositions(context.metadata, clock, tasks)
        # What is read for this was read by nobody's client.
        self._times = NextRecordTimes(time_reader(context.records.at(DoorMeasures())), clock)
        self._heard: Mapping[str, GroupDescription] = {}
        """Groups with members, of those whose coordinator does not answer as it told last."""
        self._active = Watched(self._describe_active, clock, tasks, "active groups", patience_ms=_PATIENCE_MS)
        self._active_looks = Recent(self._active.look, clock, _ACTIVE_AGE_MS)

    async def of_topic(self, call: Call) -> api.ConsumersAnswer:
        return await while_client_waits(call.request, self._of_topic(call.path["topic"], call.query))

    async def _of_topic(self, name: str, query: api.ConsumersQuery) -> api.ConsumersAnswer:
        topic = await self._records.topic(name)
        limit = min(query.limit, max(1, _MOST_POSITIONS // topic.partition_count))
        # One more tells whether there are more.
        positions, look, _ = await asyncio.gather(
            self._positions.find(topic.topic_id, query.after, limit + 1),
            self._sampler.look(),
            self._active_looks.get(),
        )
        committed = _by_group(positions.found)
        active = {} if self._active.answer is None else self._active.answer.value
        reading = {group_id for group_id, group in self._heard.items() if _assigned(group, topic)}
        names, following = page(
            (name for name in sorted(committed.keys() | reading) if name > query.after), limit, lambda name: name
        )
        log = _log(topic, look)
        groups, times = await asyncio.gather(
            self._described(names, active),
            self._times.find(topic, _in_turn([log.behind(committed.get(name, {})) for name in names])),
        )
        heard = self._heard
        readers = [_reader(name, topic, groups[name], heard.get(name), committed.get(name, {})) for name in names]
        silence = positions.metadata_silence
        return api.ConsumersAnswer(
            topic=topic.name,
            groups=[self._consumer(topic, reader, log, times) for reader in readers],
            next=following,
            metadata_silent_since_ms=None if silence is None else silence.since_ms,
        )

    async def _describe_active(self) -> Mapping[str, GroupDescription]:
        listed = (await self._coordinators.all()).groups
        names = [group.group_id for group in listed if group.state not in ("Empty", "Dead", UNKNOWN)]
        described = await self._describe(names[:_MOST_ACTIVE])
        told = {name: group for name, group in described.items() if group is not None}
        unknown = {group.group_id for group in listed if group.state == UNKNOWN}
        self._heard = {name: group for name, group in self._heard.items() if name in unknown} | told
        return told

    async def _described(
        self, names: Sequence[str], active: Mapping[str, GroupDescription]
    ) -> dict[str, GroupDescription | None]:
        known: dict[str, GroupDescription | None] = {}
        if self._active.silence is None:
            known = {name: active[name] for name in names if name in active}
        return known | await self._describe([name for name in names if name not in known], _PATIENCE_MS / 1000)

    async def _describe(
        self, names: Sequence[str], patience_s: float | None = None
    ) -> dict[str, GroupDescription | None]:
        """None of what nobody can say now, or within `patience_s`."""
        turns = asyncio.Semaphore(_AT_ONCE)

        async def describe(name: str) -> GroupDescription | None:
            try:
                async with asyncio.timeout(patience_s), turns:
                    return await self._coordinators.describe(name)
            except (StreamHouseError, TimeoutError):
                return None

        return dict(zip(names, await asyncio.gather(*map(describe, names)), strict=True))

    def _consumer(self, topic: Topic, reader: _Reader, log: _Log, times: Mapping[Place, int]) -> api.TopicConsumer:
        now_ms = self._clock.now_ms()
        partitions = list(_progress(reader, log, times, now_ms))
        known_ms = [each.lag_ms for each in partitions if each.lag_ms is not None]
        total = total_lag(waiting(each.lag, log.start(each.partition), each.end_offset) for each in partitions)
        lags = self._sampler.lags.of_topic(reader.name, topic.topic_id, now_ms - KEPT_MS) or Samples([], {"lag": []})
        return api.TopicConsumer(
            group_id=reader.name,
            state=reader.state,
            lag=total,
            lag_ms=None if total is None else max(known_ms, default=None),
            trend=None if total is None else trend(_lately(lags, now_ms - _TREND_MS)),
            lag_times_ms=lags.times_ms,
            lag_history=lags.series["lag"],
            partitions=partitions,
        )


def _log(topic: Topic, look: Look) -> _Log:
    partitions = [TopicPartition(topic.topic_id, number) for number in range(topic.partition_count)]
    known = [each for each in partitions if each in look.ends and each not in look.unheard]
    return _Log(
        starts={
            each.partition.partition: each.log_start_offset
            for each in look.state.placements
            if each.partition.topic_id == topic.topic_id
        },
        ends={each.partition: look.ends[each] for each in known},
    )


def _in_turn(places: Sequence[Sequence[Place]]) -> Iterator[Place]:
    """The first of each, then the second of each: where there are too many, each has some."""
    for rank in zip_longest(*places):
        yield from (place for place in rank if place is not None)


def _reader(
    name: str,
    topic: Topic,
    group: GroupDescription | None,
    before: GroupDescription | None,
    committed: Mapping[int, int],
) -> _Reader:
    known = group or before
    members = {} if known is None else _assigned(known, topic)
    return _Reader(name, UNKNOWN if group is None else group.state, members, committed)


def _lately(lags: Samples, since_ms: int) -> list[float | None]:
    return [lag for at_ms, lag in zip(lags.times_ms, lags.series["lag"], strict=True) if at_ms >= since_ms]


def _progress(reader: _Reader, log: _Log, times: Mapping[Place, int], now_ms: int) -> Iterator[api.ConsumedPartition]:
    for number in sorted({*reader.committed, *reader.members}):
        offset = reader.committed.get(number)
        place = None if offset is None else log.next_place(number, offset)
        behind = None if place is None else log.lag(place)
        time_ms = times.get(place) if place is not None and behind else None
        age_ms = None if time_ms is None else max(0, now_ms - time_ms)
        member_id, client_id = reader.members.get(number, (None, None))
        yield api.ConsumedPartition(
            partition=number,
            committed_offset=offset,
            end_offset=log.ends.get(number),
            lag=behind,
            lag_ms=0 if behind == 0 else age_ms,
            member_id=member_id,
            client_id=client_id,
        )


def _by_group(positions: Sequence[GroupPosition]) -> dict[str, dict[int, int]]:
    found: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for each in positions:
        found[each.group_id][each.partition.partition] = each.offset
    return found


def _assigned(group: GroupDescription, topic: Topic) -> dict[int, tuple[str, str]]:
    """Member and client, by partition of the topic."""
    return {
        number: (member.member_id, member.client_id)
        for member in group.members
        for name, number in member.partitions
        if name == topic.name
    }
