"""How far behind a group was in the last hour, over REST, for charts that begin with something."""

from __future__ import annotations

from streamhouse.model.errors import InvalidName
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.groups import group_of
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.http.rest.sampler import KEPT_MS, Sampler
from streamhouse.wire.http.rest import activity as api

_MOST_PARTITIONS = 100
_EXAMPLE = api.GroupHistoryAnswer(
    group_id="billing",
    at_ms=1_767_225_642_000,
    times_ms=[1_767_225_600_000, 1_767_225_630_000],
    lag=[60, 42],
    partitions=[api.PartitionLagHistory(topic="orders", partition=0, lag=[None, 42])],
)


def add_group_history(rest: Rest, context: DoorContext, sampler: Sampler) -> None:
    topics, clock = context.broker.topics, context.broker.clock

    async def history(call: Call) -> api.GroupHistoryAnswer:
        group_id = group_of(call)
        lags = sampler.lags.of_group(group_id, _MOST_PARTITIONS, clock.now_ms() - KEPT_MS)
        return api.GroupHistoryAnswer(
            group_id=group_id,
            at_ms=clock.now_ms(),
            times_ms=lags.times_ms,
            lag=lags.total,
            partitions=[
                api.PartitionLagHistory(topic=topic.name, partition=partition.partition, lag=values)
                for partition, values in lags.partitions.items()
                if (topic := topics.find_id(partition.topic_id)) is not None
            ],
        )

    rest.route(
        "GET",
        f"{API}/groups/{{group}}/history",
        history,
        summary="How far behind a group was in the last hour, as this node saw it",
        tag="groups",
        answer=api.GroupHistoryAnswer,
        answer_example=_EXAMPLE,
        errors=(InvalidName,),
    )
