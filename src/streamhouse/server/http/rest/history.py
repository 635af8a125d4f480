"""The last hour over REST, for charts that begin with something."""

from __future__ import annotations

from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.http.rest.sampler import PERIOD_MS, Sampler
from streamhouse.wire.http.rest import activity as api

_EXAMPLE = api.HistoryAnswer(
    agent_id="agent-1",
    period_ms=15_000,
    times_ms=[1_767_225_600_000, 1_767_225_615_000],
    series={"records_in": [None, 250.5], "lag": [12, 7]},
)


def add_history(rest: Rest, sampler: Sampler) -> None:
    async def history(call: Call) -> api.HistoryAnswer:
        query: api.HistoryQuery = call.query
        samples = sampler.samples(query.since_ms)
        return api.HistoryAnswer(
            agent_id=sampler.agent_id, period_ms=PERIOD_MS, times_ms=samples.times_ms, series=samples.series
        )

    rest.route(
        "GET",
        f"{API}/metrics/history",
        history,
        summary="What the cluster did in the last hour, as this node saw it",
        tag="cluster",
        query=api.HistoryQuery,
        answer=api.HistoryAnswer,
        answer_example=_EXAMPLE,
    )
