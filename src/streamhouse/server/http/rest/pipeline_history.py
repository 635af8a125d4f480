"""How fast this machine's pipelines ran in the last hour and how far behind they were: measured every few seconds
whether anybody looks or not; of so many of them, and never more memory."""

from __future__ import annotations

from streamhouse.core.history import History
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.pipelines import PipelineRuns
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.http.rest.sampler import KEPT_MS
from streamhouse.wire.http.rest import cluster as api

PERIOD_MS = 15_000
_MOST = 100
_SERIES = ("rows_per_second", "lag")
_DEAD_LETTER_QUERY = "dead_letter"
"""It writes the dead letters: its rows are none of the pipeline's own."""
_EXAMPLE = api.PipelineHistoriesAnswer(
    at_ms=1_767_225_642_000,
    pipelines=[
        api.PipelineHistory(
            name="revenue",
            times_ms=[1_767_225_600_000, 1_767_225_615_000],
            rows_per_second=[None, 1250.5],
            lag=[12, 7],
        )
    ],
)


class PipelineSampler:
    def __init__(self, context: DoorContext) -> None:
        self._clock = context.broker.clock
        self._runs = PipelineRuns(context)
        self._kept: dict[str, History] = {}
        self._tasks = TaskGroup("pipeline-sampler")

    def start(self) -> None:
        self._tasks.keep(self._run, "samples")

    async def close(self) -> None:
        await self._tasks.cancel()

    def histories(self) -> list[api.PipelineHistory]:
        """By name."""
        since_ms = self._clock.now_ms() - KEPT_MS
        found = [(name, self._kept[name].samples(since_ms)) for name in sorted(self._kept)]
        return [api.PipelineHistory(name=name, times_ms=each.times_ms, **each.series) for name, each in found]

    async def _run(self) -> None:
        while True:
            self._note(await self._runs.read())
            await self._clock.sleep_ms(PERIOD_MS)

    def _note(self, pipelines: list[api.PipelineAnswer]) -> None:
        now_ms = self._clock.now_ms()
        known = {each.name: each for each in pipelines}
        for name in self._kept.keys() - known.keys():
            del self._kept[name]
        for name, pipeline in known.items():
            if name not in self._kept and len(self._kept) < _MOST:
                self._kept[name] = History(_SERIES, KEPT_MS // PERIOD_MS, longest_pause_ms=3 * PERIOD_MS)
            if name in self._kept:
                self._kept[name].add(now_ms, {"rows_per_second": _rows_per_second(pipeline), "lag": _lag(pipeline)})


def add_pipeline_history(rest: Rest, context: DoorContext, sampler: PipelineSampler) -> None:
    async def histories(_: Call) -> api.PipelineHistoriesAnswer:
        return api.PipelineHistoriesAnswer(at_ms=context.broker.clock.now_ms(), pipelines=sampler.histories())

    rest.route(
        "GET",
        f"{API}/pipelines/history",
        histories,
        summary="How fast the pipelines ran in the last hour, and how far behind they were, as this node saw it",
        tag="cluster",
        answer=api.PipelineHistoriesAnswer,
        answer_example=_EXAMPLE,
    )


def _own_queries(pipeline: api.PipelineAnswer) -> list[api.PipelineQuery]:
    return [each for each in pipeline.queries if each.query != _DEAD_LETTER_QUERY]


def _rows_per_second(pipeline: api.PipelineAnswer) -> float | None:
    """None unless it runs: what was said last is over."""
    return sum(each.rows_per_second for each in _own_queries(pipeline)) if pipeline.state == "running" else None


def _lag(pipeline: api.PipelineAnswer) -> float | None:
    """Of the query that is furthest behind."""
    return max((sum(each.lag.values()) for each in _own_queries(pipeline) if each.lag), default=None)
