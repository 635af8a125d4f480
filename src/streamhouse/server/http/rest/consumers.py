"""Who reads a topic, over REST: groups that have committed offsets of it or are assigned partitions of it, how far they
are behind in records and in time, and whether that grows."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from streamhouse.client.groups_admin import GroupDescription
from streamhouse.core.groups.offset_reset import lag
from streamhouse.core.history import Samples, trend
from streamhouse.metadata.totals import GroupPosition
from streamhouse.model.errors import NotFound, StreamHouseError
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import Topic
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.group_coordinators import UNKNOWN, GroupCoordinators
from streamhouse.server.http.rest.next_record_times import NextRecordTimes
from streamhouse.server.http.rest.paging import page
from streamhouse.server.http.rest.recent import Recent
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.http.rest.sampler import Look, Sampler
from streamhouse.wire.http.rest import activity as api

_MOST_POSITIONS = 20_000
_ACTIVE_AGE_MS = 10_000
_MOST_ACTIVE = 50
"""Groups with members that are asked what they are assigned, if they have committed nothing."""
_AT_ONCE = 8
_TREND_SAMPLES = 11
"""Of the last five minutes."""
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


def add_consumers(rest: Rest, context: DoorContext, coordinators: GroupCoordinators, sampler: Sampler) -> None:
    rest.route(
        "GET",
        f"{API}/topics/{{topic}}/consumers",
        _Consumers(context, coordinators, sampler).of_topic,
        summary="Who reads a topic, how far behind in records and in time, and whether that grows",
        description="`lag_ms` is the age of the next record that is to be read, by the time that the record says. Who "
        f"is a member is up to {_ACTIVE_AGE_MS // 1000} seconds old; of groups that have committed nothing, "
        f"{_MOST_ACTIVE} with members are asked what they read.",
        tag="groups",
        query=api.ConsumersQuery,
        answer=api.ConsumersAnswer,
        answer_example=_EXAMPLE,
        errors=(NotFound,),
    )


class _Consumers:
    def __init__(self, context: DoorContext, coordinators: GroupCoordinators, sampler: Sampler) -> None:
        self._records = context.records
        self._metadata = context.metadata
        self._clock = context.broker.clock
        self._coordinators = coordinators
        self._sampler = sampler
        self._times = NextRecordTimes(context)
        self._active = Recent(self._describe_active, context.broker.clock, _ACTIVE_AGE_MS)

    async def of_topic(self, call: Call) -> api.ConsumersAnswer:
        query: api.ConsumersQuery = call.query
        topic = await self._records.topic(call.path["topic"])
        positions, active, look = await asyncio.gather(
            self._metadata.list_topic_positions(topic.topic_id, _MOST_POSITIONS),
            self._active.get(),
            self._sampler.look(),
        )
        committed = _by_group(positions)
        reading = {group_id for group_id, group in active.items() if _assigned(group, topic)}
        names, following = page(
            (name for name in sorted(committed.keys() | reading) if name > query.after), query.limit, lambda name: name
        )
        known = {name: active.get(name) for name in names}
        missing = [name for name, group in known.items() if group is None]
        known |= await self._describe(missing)
        return api.ConsumersAnswer(
            topic=topic.name,
            groups=[await self._consumer(topic, name, known[name], committed.get(name, {}), look) for name in names],
            next=following,
        )

    async def _describe_active(self) -> Mapping[str, GroupDescription]:
        try:
            listed = await self._coordinators.all()
        except StreamHouseError:  # what was committed is known all the same
            return {}
        names = [group.group_id for group in listed if group.state not in ("Empty", "Dead", UNKNOWN)]
        return {
            name: group for name, group in (await self._describe(names[:_MOST_ACTIVE])).items() if group is not None
        }

    async def _describe(self, names: Sequence[str]) -> dict[str, GroupDescription | None]:
        """None of what nobody can say now."""
        turns = asyncio.Semaphore(_AT_ONCE)

        async def describe(name: str) -> GroupDescription | None:
            async with turns:
                try:
                    return await self._coordinators.describe(name)
                except StreamHouseError:
                    return None

        return dict(zip(names, await asyncio.gather(*map(describe, names)), strict=True))

    async def _consumer(
        self, topic: Topic, name: str, group: GroupDescription | None, committed: Mapping[int, int], look: Look
    ) -> api.TopicConsumer:
        members = {} if group is None else _assigned(group, topic)
        starts = {each.partition: each.log_start_offset for each in look.state.placements}
        progress: list[api.ConsumedPartition] = []
        for number in sorted({*committed, *members}):
            partition = TopicPartition(topic.topic_id, number)
            offset, end = committed.get(number), look.ends.get(partition)
            readable = None if offset is None else max(offset, starts.get(partition, 0))
            member_id, client_id = members.get(number, (None, None))
            progress.append(
                api.ConsumedPartition(
                    partition=number,
                    committed_offset=offset,
                    end_offset=end,
                    lag=lag(readable, end),
                    lag_ms=None,
                    member_id=member_id,
                    client_id=client_id,
                )
            )
        partitions = await self._with_times(topic, progress, starts)
        known_ms = [each.lag_ms for each in partitions if each.lag_ms is not None]
        lags = self._sampler.lags.of_topic(name, topic.topic_id) or Samples([], {"lag": []})
        return api.TopicConsumer(
            group_id=name,
            state=UNKNOWN if group is None else group.state,
            lag=sum(each.lag or 0 for each in partitions),
            lag_ms=max(known_ms, default=None),
            trend=trend(lags.series["lag"][-_TREND_SAMPLES:]),
            lag_times_ms=lags.times_ms,
            lag_history=lags.series["lag"],
            partitions=partitions,
        )

    async def _with_times(
        self, topic: Topic, progress: Sequence[api.ConsumedPartition], starts: Mapping[TopicPartition, int]
    ) -> list[api.ConsumedPartition]:
        def place(each: api.ConsumedPartition) -> tuple[int, int]:
            start = starts.get(TopicPartition(topic.topic_id, each.partition), 0)
            return each.partition, max(each.committed_offset or 0, start)

        behind = sorted((each for each in progress if each.lag), key=lambda each: -(each.lag or 0))
        times = await self._times.find(topic, map(place, behind))
        now_ms = self._clock.now_ms()

        def age_ms(each: api.ConsumedPartition) -> int | None:
            if each.lag == 0:
                return 0
            time_ms = times.get(place(each)) if each.lag else None
            return None if time_ms is None else max(0, now_ms - time_ms)

        return [msgspec.structs.replace(each, lag_ms=age_ms(each)) for each in progress]


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
