"""The pipelines that ran on this node's machine over REST, and which of them somebody should look at."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.wire.http.rest import cluster as api
from streamhouse.wire.http.rest.console import MAX_LINKS, Alert

_NEWS_MS = 24 * 3_600_000
"""One that ended badly longer ago than this is history: nobody may ever run it again."""
_NAMED = 3
_QUERY_EXAMPLE = api.PipelineQuery(
    query="revenue",
    guarantee="exactly once",
    batch_id=17,
    at="2026-01-01T00:00:00Z",
    rows_per_second=1250.5,
    batch_ms=420,
    watermark=None,
    state_rows=0,
    lag={"orders/0": 12},
    input_rows=52_000,
    output_rows=51_998,
    late_rows=0,
)
_EXAMPLE = api.PipelineAnswer(
    name="revenue",
    file="revenue.yaml",
    master="local[*]",
    pid=4711,
    started_at_ms=1_767_225_600_000,
    updated_at_ms=1_767_225_642_000,
    state="running",
    error=None,
    dead_letters=2,
    dead_letter_topic="orders-dead",
    has_dead_letter_topic=True,
    queries=[_QUERY_EXAMPLE],
)


class PipelineRuns:
    def __init__(self, context: DoorContext) -> None:
        self._read = context.pipelines
        self._topics = context.broker.topics

    async def read(self) -> list[api.PipelineAnswer]:
        """Without those that cannot be told: nobody who watches the cluster is to go without for their sake."""
        answers: list[api.PipelineAnswer] = []
        for record in await asyncio.to_thread(self._read):
            with suppress(msgspec.ValidationError):
                answers.append(self._with_topic(msgspec.convert(record, api.PipelineAnswer, from_attributes=True)))
        return answers

    def _with_topic(self, pipeline: api.PipelineAnswer) -> api.PipelineAnswer:
        """It is made with the first dead letter."""
        name = pipeline.dead_letter_topic
        return msgspec.structs.replace(
            pipeline, has_dead_letter_topic=name is not None and self._topics.find(name) is not None
        )


def add_pipelines(rest: Rest, context: DoorContext) -> None:
    runs = PipelineRuns(context)

    async def pipelines(_: Call) -> api.PipelinesAnswer:
        return api.PipelinesAnswer(pipelines=await runs.read())

    rest.route(
        "GET",
        f"{API}/pipelines",
        pipelines,
        summary="List the pipelines that ran on this node's machine",
        tag="cluster",
        answer=api.PipelinesAnswer,
        answer_example=api.PipelinesAnswer(pipelines=[_EXAMPLE]),
    )


def pipeline_alerts(pipelines: list[api.PipelineAnswer], now_ms: int) -> Iterator[Alert]:
    silent = {each.name: each for each in pipelines if each.state == "silent"}
    if silent:
        first = next(iter(silent.values()))
        age_s = (now_ms - first.updated_at_ms) // 1000
        yield Alert(
            severity="warning",
            code="pipelines_silent",
            text=f"{len(silent)} of {len(pipelines)} pipelines on this machine say nothing: {_some(silent)}. The "
            f"process of {first.name}, {first.pid}, is there, and has not for {age_s} s.",
            what_to_do="Look whether the process is paused, or waits for Spark or an executor. Stopped and run again, "
            "it goes on from its checkpoint.",
            pipelines=list(silent)[:MAX_LINKS],
        )
    broken = {
        each.name: each
        for each in pipelines
        if each.state in ("failed", "died") and now_ms - each.updated_at_ms < _NEWS_MS
    }
    if broken:
        first = next(iter(broken.values()))
        why = f": {first.error}" if first.error else ", and its process left no word"
        yield Alert(
            severity="warning",
            code="pipelines_failed",
            text=f"{len(broken)} of {len(pipelines)} pipelines on this machine ended badly in the last day: "
            f"{_some(broken)}. {first.name} {first.state}{why}.",
            what_to_do="See to the reason and run it again: it goes on from its checkpoint.",
            pipelines=list(broken)[:MAX_LINKS],
        )


def _some(names: dict[str, api.PipelineAnswer]) -> str:
    more = len(names) - _NAMED
    return ", ".join(list(names)[:_NAMED]) + (f" and {more} more" if more > 0 else "")
