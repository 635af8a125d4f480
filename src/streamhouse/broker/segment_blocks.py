"""A segment opened to its blocks, for people who look: its index, and what blocks say of themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from streamhouse.format.block_header import BlockHeader
from streamhouse.format.segment_index import SegmentIndex
from streamhouse.log.reader import SegmentReader
from streamhouse.metadata.store import SegmentRow
from streamhouse.model.errors import CorruptData

_HEADERS_AT_ONCE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSegment:
    """`headers` are of consecutive blocks from `first_block` on; in the place of one that cannot be is what is wrong
    with it."""

    segment: SegmentRow
    index: SegmentIndex
    first_block: int
    headers: Sequence[BlockHeader | CorruptData]


async def open_segment(reader: SegmentReader, segment: SegmentRow, first_block: int, count: int) -> OpenedSegment:
    """Reads so many headers at most, each by a small request of its own: the blocks between them are large."""
    index = await reader.index_of(segment)
    numbers = range(index.block_count)[first_block : first_block + count]
    headers: list[BlockHeader | CorruptData] = []
    for start in range(0, len(numbers), _HEADERS_AT_ONCE):
        some = numbers[start : start + _HEADERS_AT_ONCE]
        headers += await asyncio.gather(*(_header(reader, segment, index, block) for block in some))
    return OpenedSegment(segment=segment, index=index, first_block=first_block, headers=headers)


async def _header(
    reader: SegmentReader, segment: SegmentRow, index: SegmentIndex, block: int
) -> BlockHeader | CorruptData:
    try:
        return await reader.block_header(segment, index, block)
    except CorruptData as problem:
        return problem
