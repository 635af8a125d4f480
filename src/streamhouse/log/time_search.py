"""Which record a time is at: headers tell which batch, and its records are looked at. This is for the threads: a batch
may be large, and small as it is stored.

A batch whose records cannot be read is still found, by what its header says, so that it hides nothing behind it. So is
one that comes when a search has read as much in vain as it may: the header of an honest batch names the time of one of
its records, so hardly any is read in vain but those whose producers wrote what is not so."""

from __future__ import annotations

from collections.abc import Iterable

from streamhouse.format import kernel
from streamhouse.format.batch import BatchHeader, iter_headers
from streamhouse.format.compression import DEFAULT_LIMIT_BYTES
from streamhouse.format.records import section_of
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import CorruptBatch

_IN_VAIN_BYTES = 16 * 1024 * 1024
"""So much a search reads in vain, and then the rest of the batch that it is at."""
_BATCH_COST_BYTES = 16 * 1024
"""What a batch counts for at least, however small it is."""


class TimeSearch:
    """For the first record at or after a time that is not deleted, run by run."""

    def __init__(self, timestamp_ms: int, log_start_offset: int) -> None:
        self.timestamp_ms = timestamp_ms
        self._log_start_offset = log_start_offset
        self._left_bytes = _IN_VAIN_BYTES

    def find(self, runs: Iterable[Buffer]) -> tuple[int, int] | None:
        """Its offset and timestamp, if it is in these runs of batches."""
        for run in runs:
            view = memoryview(run)
            for position, header in iter_headers(view):
                if header.max_timestamp_ms < self.timestamp_ms or header.end_offset <= self._log_start_offset:
                    continue
                found = self._look_at(view[position : position + header.size_bytes], header)
                if found is not None:
                    return found
        return None

    def _look_at(self, batch: memoryview, header: BatchHeader) -> tuple[int, int] | None:
        if self._left_bytes <= 0:
            return _by_header(header, self._log_start_offset)
        first, _, read_bytes = _times(batch, header, self._log_start_offset, self.timestamp_ms)
        self._left_bytes -= max(read_bytes, _BATCH_COST_BYTES)
        return first


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
) -> tuple[tuple[int, int] | None, int, int]:
    """The first record at or after a time, and the largest timestamp, from an offset on; and how much was read."""
    try:
        section = section_of(batch, header, DEFAULT_LIMIT_BYTES)
        if section is None:
            return None, -1, 0
        first, newest = kernel.survey_times(section, start_offset, from_ms)
        return first, newest, len(section.records)
    except CorruptBatch:
        return _by_header(header, start_offset), header.max_timestamp_ms, 0


def _by_header(header: BatchHeader, start_offset: int) -> tuple[int, int]:
    return max(header.base_offset, start_offset), header.max_timestamp_ms
