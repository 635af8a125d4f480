"""Which record a time is at: headers tell which batch, and its records are looked at. This is for the threads: a batch
may be large, and small as it is stored.

A batch whose records cannot be read is still found, by what its header says, so that it hides nothing behind it."""

from __future__ import annotations

from collections.abc import Iterable

from streamhouse.format import kernel
from streamhouse.format.batch import BatchHeader, iter_headers
from streamhouse.format.compression import DEFAULT_LIMIT_BYTES
from streamhouse.format.records import section_of
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import CorruptBatch


def first_at_or_after(runs: Iterable[Buffer], timestamp_ms: int, log_start_offset: int) -> tuple[int, int] | None:
    """(offset, timestamp) of the first record in some runs of batches that is at or after a time and not deleted."""
    for run in runs:
        view = memoryview(run)
        for position, header in iter_headers(view):
            if header.max_timestamp_ms < timestamp_ms or header.end_offset <= log_start_offset:
                continue
            batch = view[position : position + header.size_bytes]
            first, _ = _times(batch, header, log_start_offset, timestamp_ms)
            if first is not None:
                return first
    return None


def newest_timestamp(runs: Iterable[Buffer], log_start_offset: int) -> int:
    """The largest timestamp of what is not deleted; -1 if there is nothing."""
    newest = -1
    for run in runs:
        view = memoryview(run)
        for position, header in iter_headers(view):
            if header.end_offset <= log_start_offset or header.max_timestamp_ms <= newest:
                continue
            if header.base_offset >= log_start_offset:
                newest = header.max_timestamp_ms
            else:
                batch = view[position : position + header.size_bytes]
                newest = max(newest, _times(batch, header, log_start_offset, header.max_timestamp_ms)[1])
    return newest


def _times(
    batch: memoryview, header: BatchHeader, start_offset: int, from_ms: int
) -> tuple[tuple[int, int] | None, int]:
    """The first record at or after a time, and the largest timestamp, from an offset on."""
    try:
        section = section_of(batch, header, DEFAULT_LIMIT_BYTES)
        return (None, -1) if section is None else kernel.survey_times(section, start_offset, from_ms)
    except CorruptBatch:
        return (max(header.base_offset, start_offset), header.max_timestamp_ms), header.max_timestamp_ms
