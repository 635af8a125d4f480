"""One segment over REST, opened to its blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from streamhouse.broker.segment_blocks import OpenedSegment
from streamhouse.format.block_header import BlockCodec
from streamhouse.model.errors import CorruptData, NotFound
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.partitions import SEGMENT_EXAMPLE, segment_answer
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.wire.http.rest import console as api

_CODECS: dict[BlockCodec, Literal["none", "lz4"]] = {BlockCodec.NONE: "none", BlockCodec.LZ4: "lz4"}

_EXAMPLE = api.OpenedSegment(
    topic="orders",
    partition=0,
    segment=SEGMENT_EXAMPLE,
    block_count=1,
    index_position=524_100,
    blocks=[
        api.BlockAnswer(
            block=0,
            first_offset=0,
            end_offset=1000,
            record_count=1000,
            max_timestamp_ms=1_767_225_660_000,
            position=8,
            size_bytes=524_092,
            raw_bytes=903_112,
            codec="lz4",
            problem=None,
        )
    ],
)


def add_segment_blocks(rest: Rest, context: DoorContext) -> None:
    async def opened(call: Call) -> api.OpenedSegment:
        asked: api.BlockPageQuery = call.query
        number = call.number("partition")
        topic = await context.records.topic(call.path["topic"], number)
        found = await context.planner.opened_segment(
            topic, number, call.number("base_offset"), asked.after + 1, asked.limit
        )
        blocks = list(_blocks(found))
        has_more = bool(blocks) and blocks[-1].block + 1 < found.index.block_count
        return api.OpenedSegment(
            topic=topic.name,
            partition=number,
            segment=segment_answer(found.segment),
            block_count=found.index.block_count,
            index_position=found.index.positions[-1],
            blocks=blocks,
            next=blocks[-1].block if has_more else None,
        )

    rest.route(
        "GET",
        f"{API}/topics/{{topic}}/partitions/{{partition}}/segments/{{base_offset}}",
        opened,
        summary="Open a segment to its blocks",
        tag="topics",
        query=api.BlockPageQuery,
        answer=api.OpenedSegment,
        answer_example=_EXAMPLE,
        errors=(NotFound, CorruptData),
    )


def _blocks(opened: OpenedSegment) -> Iterator[api.BlockAnswer]:
    index = opened.index
    ends = [*index.first_offsets[1:], opened.segment.end_offset]
    for block, header in enumerate(opened.headers, start=opened.first_block):
        problem = header.message if isinstance(header, CorruptData) else None
        sound = None if isinstance(header, CorruptData) else header
        yield api.BlockAnswer(
            block=block,
            first_offset=index.first_offsets[block],
            end_offset=ends[block],
            record_count=index.record_counts[block],
            max_timestamp_ms=index.max_timestamps[block],
            position=index.positions[block],
            size_bytes=index.positions[block + 1] - index.positions[block],
            raw_bytes=sound and sound.raw_bytes,
            codec=sound and _CODECS[sound.codec],
            problem=problem,
        )
