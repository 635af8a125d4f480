"""What a run of whole batches amounts to: the numbers that a block's index entry and a segment's footer keep."""

from __future__ import annotations

from typing import NamedTuple


class RunSummary(NamedTuple):
    """A run from some start up to `end`; `plain_bytes` are the bytes of its batches that no codec has compressed."""

    end: int
    base_offset: int
    end_offset: int
    record_count: int
    min_timestamp_ms: int
    max_timestamp_ms: int
    plain_bytes: int
