"""The partitions of a topic over REST, and the segments of a partition."""

from __future__ import annotations

from streamhouse.cluster.state import leader_of, read_cluster_state, waits_for
from streamhouse.metadata.cluster import Placement
from streamhouse.metadata.store import SegmentRow
from streamhouse.metadata.totals import NOTHING_STORED, StoredSize
from streamhouse.model.errors import NotFound
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.known_ends import KnownEnds
from streamhouse.server.http.rest.paging import page
from streamhouse.server.http.rest.partition_ends import PartitionEnds
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.wire.http.rest import topics as api

TAG = "topics"

_PARTITION_EXAMPLE = api.PartitionAnswer(
    partition=0,
    leader="agent-1",
    leader_node_id=1,
    epoch=3,
    log_start_offset=0,
    high_watermark=1042,
    unheard=None,
    committed_end=1000,
    lease_left_ms=28_700,
    waits_for=None,
    pinned_to=None,
    segment_count=1,
    stored_bytes=524_288,
)
SEGMENT_EXAMPLE = api.SegmentAnswer(
    base_offset=0,
    end_offset=1000,
    record_count=1000,
    size_bytes=524_288,
    min_timestamp_ms=1_767_225_600_000,
    max_timestamp_ms=1_767_225_660_000,
    epoch=3,
    object_key="segments/3f0b6a50-8d0f-4b2e-9c1d-5f6a7b8c9d0e/00000/00000000000000000000-00000003-"
    "5d1c7a0e4b9f4c2d8e6a3f2b1c0d9e8f.strm",
    checksum=2_868_700_157,
    created_at_ms=1_767_225_661_000,
)


def add_partitions(rest: Rest, context: DoorContext, known: KnownEnds) -> None:
    partitions = _PartitionRoutes(context, known)
    rest.route(
        "GET",
        f"{API}/topics/{{topic}}/partitions",
        partitions.all,
        summary="List a topic's partitions with their leaders and offsets",
        tag=TAG,
        query=api.PartitionPageQuery,
        answer=api.PartitionsAnswer,
        answer_example=api.PartitionsAnswer(topic="orders", partition_count=1, partitions=[_PARTITION_EXAMPLE]),
        errors=(NotFound,),
    )
    rest.route(
        "GET",
        f"{API}/topics/{{topic}}/partitions/{{partition}}/segments",
        partitions.segments,
        summary="List a partition's segments in the object store",
        tag=TAG,
        query=api.SegmentPageQuery,
        answer=api.SegmentsAnswer,
        answer_example=api.SegmentsAnswer(
            topic="orders", partition=0, log_start_offset=0, committed_end=1000, segments=[SEGMENT_EXAMPLE]
        ),
        errors=(NotFound,),
    )


class _PartitionRoutes:
    def __init__(self, context: DoorContext, known: KnownEnds) -> None:
        self._records = context.records
        self._known = known
        self._ends = PartitionEnds(context.records, known)
        self._planner = context.planner
        self._metadata = context.metadata
        self._liveness_ms = context.broker.settings.liveness

    async def all(self, call: Call) -> api.PartitionsAnswer:
        asked: api.PartitionPageQuery = call.query
        topic = await self._records.topic(call.path["topic"])
        state = await read_cluster_state(self._metadata, self._liveness_ms)
        node_ids = {agent.info.agent_id: agent.node_id for agent in state.agents}
        placements, following = page(
            (each for each in state.of_topic(topic.name) if each.partition.partition > asked.after),
            asked.limit,
            lambda each: each.partition.partition,
        )
        ends = await self._ends.of(topic, placements)
        sizes = await self._metadata.stored_sizes(topic.topic_id)
        return api.PartitionsAnswer(
            topic=topic.name,
            partition_count=topic.partition_count,
            partitions=[
                _answer(
                    placement,
                    node_ids.get(placement.agent_id),
                    end,
                    self._known.unheard(placement),
                    sizes.get(placement.partition.partition, NOTHING_STORED),
                )
                for placement, end in zip(placements, ends, strict=True)
            ],
            next=following,
        )

    async def segments(self, call: Call) -> api.SegmentsAnswer:
        asked: api.SegmentPageQuery = call.query
        number = call.number("partition")
        topic = await self._records.topic(call.path["topic"], number)
        log = await self._planner.stored_log(topic, number)
        segments, following = page(
            (row for row in log.segments if row.base_offset > asked.after), asked.limit, lambda row: row.base_offset
        )
        return api.SegmentsAnswer(
            topic=topic.name,
            partition=number,
            log_start_offset=log.log_start_offset,
            committed_end=log.committed_end,
            segments=[segment_answer(row) for row in segments],
            next=following,
        )


def segment_answer(row: SegmentRow) -> api.SegmentAnswer:
    return api.SegmentAnswer(
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


def _answer(
    placement: Placement, node_id: int | None, high_watermark: int, unheard: str | None, stored: StoredSize
) -> api.PartitionAnswer:
    leader = leader_of(placement)
    return api.PartitionAnswer(
        partition=placement.partition.partition,
        leader=leader,
        leader_node_id=None if leader is None else node_id,
        epoch=placement.epoch,
        log_start_offset=placement.log_start_offset,
        high_watermark=high_watermark,
        unheard=unheard,
        committed_end=placement.committed_end,
        lease_left_ms=max(0, placement.lease_left_ms),
        waits_for=waits_for(placement),
        pinned_to=placement.pinned_to or None,
        segment_count=stored.segment_count,
        stored_bytes=stored.size_bytes,
    )
