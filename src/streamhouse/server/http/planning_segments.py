"""Routes of the planning API that change segments and how long they are kept: replacement and pins."""

from __future__ import annotations

from msgspec.structs import asdict
from starlette.requests import Request
from starlette.routing import Route

from streamhouse.client.peer import NewSegment
from streamhouse.model.errors import InvalidInput
from streamhouse.model.names import TopicPartition
from streamhouse.server.http.context import PlanningContext
from streamhouse.wire.http import planning as api
from streamhouse.wire.http.planning import PREFIX

_INT64_MAX = 2**63 - 1
_LARGEST = {"epoch": 2**31 - 1, "checksum": 2**32 - 1}
_SMALLEST = {"epoch": 0, "checksum": 0}


def segment_routes(context: PlanningContext) -> list[Route]:
    changes = _SegmentChanges(context)
    calls = context.calls
    return [
        calls.post(f"{PREFIX}/replace", api.ReplaceRequest, changes.replace),
        calls.post(f"{PREFIX}/pin", api.PinRequest, changes.pin),
    ]


class _SegmentChanges:
    def __init__(self, context: PlanningContext) -> None:
        self._context = context

    async def replace(self, asked: api.ReplaceRequest, _: Request) -> None:
        topic = await self._context.planner.topic(asked.topic, asked.partition)
        added = [_new_segment(segment) for segment in asked.added]
        await self._context.forwarder.replace_segments(topic, asked.partition, asked.commit_id, asked.removed, added)

    async def pin(self, asked: api.PinRequest, _: Request) -> None:
        offsets: dict[TopicPartition, int] = {}
        for pinned in asked.offsets:
            topic = await self._context.planner.topic(pinned.topic, pinned.partition)
            partition = TopicPartition(topic.topic_id, pinned.partition)
            if partition in offsets:
                raise InvalidInput(f"{topic.name}/{pinned.partition} is pinned twice")
            offsets[partition] = pinned.offset
        await self._context.metadata.set_pins(asked.pin_id, asked.ttl_ms, offsets)


def _new_segment(segment: api.SegmentInfo) -> NewSegment:
    fields = asdict(segment)
    del fields["created_at_ms"]  # that is for the metadata store to say
    for name, value in fields.items():
        if isinstance(value, int) and not _SMALLEST.get(name, -_INT64_MAX) <= value <= _LARGEST.get(name, _INT64_MAX):
            raise InvalidInput(f"a segment's {name} cannot be {value}")
    return NewSegment(**fields)
