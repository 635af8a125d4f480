"""Routes of the planning API that read: the cluster, topics, offsets, pieces of segments, the tail."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.routing import Route

from streamhouse.broker.planning import LogSlice, ReadPlan
from streamhouse.client.address import Address
from streamhouse.model.errors import InvalidInput
from streamhouse.server.http.context import PlanningContext
from streamhouse.wire.http import planning as api
from streamhouse.wire.http.planning import PREFIX

_LARGEST_TAIL_BYTES = 16 * 2**20


def read_routes(context: PlanningContext) -> list[Route]:
    reads = _PlanningReads(context)
    calls = context.calls
    return [
        calls.get(f"{PREFIX}/cluster", reads.cluster),
        calls.get(f"{PREFIX}/topics", reads.topics),
        calls.post(f"{PREFIX}/offsets", api.OffsetsRequest, reads.offsets),
        calls.post(f"{PREFIX}/ranges", api.RangesRequest, reads.ranges),
        calls.post(f"{PREFIX}/segments", api.SegmentsRequest, reads.segments),
        calls.post(f"{PREFIX}/tail", api.TailRequest, reads.tail),
    ]


class _PlanningReads:
    def __init__(self, context: PlanningContext) -> None:
        self._context = context
        self._planner = context.planner

    async def cluster(self, _: Request) -> api.ClusterAnswer:
        broker = self._context.broker
        return api.ClusterAnswer(
            cluster_id=broker.identity.cluster_id,
            kafka=[str(Address(node.host, node.port)) for node in broker.nodes.all()],
            objects=self._context.location,
        )

    async def topics(self, _: Request) -> list[api.TopicAnswer]:
        topics = self._context.broker.topics
        await topics.refresh()
        return [
            api.TopicAnswer(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_count=topic.partition_count,
                config=topics.told_config_of(topic),
            )
            for topic in topics
        ]

    async def offsets(self, asked: api.OffsetsRequest, _: Request) -> api.OffsetsAnswer:
        questions = [
            (
                await self._planner.topic(question.topic, question.partition, question.topic_id),
                question.partition,
                question.timestamp_ms,
            )
            for question in asked.questions
        ]
        return api.OffsetsAnswer(offsets=await self._planner.offsets_at(questions))

    async def ranges(self, asked: api.RangesRequest, request: Request) -> api.RangesAnswer:
        slices = [
            LogSlice(
                topic=await self._planner.topic(question.topic, question.partition, question.topic_id),
                partition=question.partition,
                start=question.start,
                end=question.end,
                min_timestamp_ms=question.min_timestamp_ms,
                max_timestamp_ms=question.max_timestamp_ms,
            )
            for question in asked.questions
        ]
        plans = await self._planner.plan(slices, piece_bytes=asked.piece_bytes)
        urls = await self._urls(plans, request) if asked.presign else {}
        return api.RangesAnswer(ranges=[_range_answer(plan, urls) for plan in plans])

    async def _urls(self, plans: Sequence[ReadPlan], request: Request) -> dict[str, str]:
        """One for each object, however many pieces it is in."""
        keys = list(dict.fromkeys(piece.object_key for plan in plans for piece in plan.pieces))
        return dict(zip(keys, await self._context.urls.sign("GET", keys, request), strict=True))

    async def segments(self, asked: api.SegmentsRequest, _: Request) -> api.SegmentsAnswer:
        topic = await self._planner.topic(asked.topic, asked.partition)
        # Before the segments are looked at: none of an earlier plan takes the place of one that is seen here.
        generation = await self._planner.begin_generation(topic, asked.partition) if asked.to_replace else 0
        log = await self._planner.stored_log(topic, asked.partition)
        return api.SegmentsAnswer(
            topic_id=topic.topic_id,
            log_start_offset=log.log_start_offset,
            committed_end=log.committed_end,
            segments=[
                api.SegmentInfo(
                    base_offset=row.base_offset,
                    end_offset=row.end_offset,
                    record_count=row.record_count,
                    size_bytes=row.size_bytes,
                    min_timestamp_ms=row.min_timestamp_ms,
                    max_timestamp_ms=row.max_timestamp_ms,
                    epoch=row.epoch,
                    object_key=row.object_key,
                    checksum=row.checksum,
                    created_at_ms=row.created_at_ms,
                )
                for row in log.segments
            ],
            generation=generation,
        )

    async def tail(self, asked: api.TailRequest, _: Request) -> bytes:
        if asked.start < 0 or asked.max_bytes < 0:
            raise InvalidInput(f"{asked.max_bytes} bytes from offset {asked.start} on cannot be asked for")
        topic = await self._planner.topic(asked.topic, asked.partition, asked.topic_id)
        fetched = await self._context.forwarder.fetch(
            topic, asked.partition, asked.start, max_bytes=min(asked.max_bytes, _LARGEST_TAIL_BYTES)
        )
        return fetched.batches


def _range_answer(plan: ReadPlan, urls: dict[str, str]) -> api.RangeAnswer:
    return api.RangeAnswer(
        log_start_offset=plan.log_start_offset,
        high_watermark=plan.high_watermark,
        pieces=[
            api.Piece(
                key=key,
                start_byte=run.start_byte,
                end_byte=run.end_byte,
                start=run.start,
                end=run.end,
                record_count=run.record_count,
                url=urls.get(key),
            )
            for key, run in plan.pieces
        ],
        tail_start=plan.tail_start,
        tail_end=plan.tail_end,
        tail_bytes=plan.tail_bytes,
    )
