"""Where a log begins and ends, and which offset a time is at."""

from __future__ import annotations

from streamhouse.log.leader import PartitionLeader
from streamhouse.log.reader import SegmentReader
from streamhouse.log.time_search import TimeSearch

_ALL = 2**62


async def offset_at(reader: SegmentReader, leader: PartitionLeader, timestamp_ms: int) -> tuple[int, int] | None:
    """(offset, timestamp) of the first record at or after a time; None if all are older."""
    search = TimeSearch(timestamp_ms, leader.log_start_offset)
    found = await reader.find_in_segments(search, leader)
    return await reader.find_in(search, _recent(leader)) if found is None else found


async def newest_timestamp(reader: SegmentReader, leader: PartitionLeader) -> tuple[int, int] | None:
    """(offset, timestamp) of the first record with the largest timestamp; None if the log is empty."""
    newest = await reader.newest_timestamp(leader)
    newest = max(newest, await reader.newest_of(_recent(leader), leader.log_start_offset))
    return await offset_at(reader, leader, newest) if newest >= 0 else None


def _recent(leader: PartitionLeader) -> list[memoryview]:
    """Durable batches that are in no segment yet."""
    start = max(leader.committed_end, leader.log_start_offset)
    return leader.tail.read(start, leader.high_watermark, _ALL)
