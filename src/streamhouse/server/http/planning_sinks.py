"""Routes of the planning API for sinks: staging, adoption, abandonment."""

from __future__ import annotations

from starlette.requests import Request
from starlette.routing import Route

from streamhouse.format.object_keys import parse_staged_object_key
from streamhouse.format.staging import StagedObject, StagedRun
from streamhouse.model.errors import InvalidInput
from streamhouse.server.http.context import PlanningContext
from streamhouse.wire.http import planning as api
from streamhouse.wire.http.planning import PREFIX


def sink_routes(context: PlanningContext) -> list[Route]:
    sinks = _PlanningSinks(context)
    return [
        context.calls.post(f"{PREFIX}/stage", api.StageRequest, sinks.stage),
        context.calls.post(f"{PREFIX}/adopt", api.AdoptRequest, sinks.adopt),
        context.calls.post(f"{PREFIX}/abandon", api.AbandonRequest, sinks.abandon),
    ]


class _PlanningSinks:
    def __init__(self, context: PlanningContext) -> None:
        self._adoption = context.adoption
        self._urls = context.urls

    async def stage(self, message: api.StageRequest, request: Request) -> api.StageAnswer:
        for key in message.keys:
            if parse_staged_object_key(key) is None:
                raise InvalidInput(f"{key[:300]!r} is not the key of a staged object")
        return api.StageAnswer(urls=await self._urls.sign("PUT", message.keys, request))

    async def adopt(self, message: api.AdoptRequest, _: Request) -> api.AdoptAnswer:
        adopted = await self._adoption.adopt(
            message.sink_id, message.batch_id, [_staged(item) for item in message.objects]
        )
        return api.AdoptAnswer(is_repeat=adopted.is_repeat, record_count=adopted.record_count)

    async def abandon(self, message: api.AbandonRequest, _: Request) -> None:
        await self._adoption.abandon(message.keys)


def _staged(item: api.StagedObject) -> StagedObject:
    return StagedObject(
        key=item.key,
        runs=[
            StagedRun(
                topic=run.topic,
                partition=run.partition,
                start_byte=run.start_byte,
                end_byte=run.end_byte,
                record_count=run.record_count,
            )
            for run in item.runs
        ],
    )
