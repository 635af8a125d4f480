"""A long log as a few sets of columns, each small enough to hold and large enough to be worth its cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from streamhouse.format import kernel
from streamhouse.format.batch import BatchHeader, iter_headers
from streamhouse.format.columns import Columns
from streamhouse.format.compression import DEFAULT_LIMIT_BYTES
from streamhouse.format.records import section_of, with_utf8_header_keys
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import CorruptBatch


class ColumnsPart(NamedTuple):
    """Records of one log in a row, whose timestamps are all the broker's or all the producers'."""

    columns: Columns
    is_log_append_time: bool


def _raise(header: BatchHeader, problem: CorruptBatch) -> None:
    raise problem


def iter_columns(
    runs: Iterable[Buffer],
    *,
    start_offset: int,
    end_offset: int,
    target_rows: int,
    target_bytes: int,
    as_text: bool = True,
    keys_only: bool = False,
    pass_over: Callable[[BatchHeader, CorruptBatch], None] = _raise,
) -> Iterator[ColumnsPart]:
    """The records of many runs of whole batches, those from `start_offset` up to `end_offset` (not included).

    A part ends with the batch that reaches one of the targets (the bytes are decompressed ones), so it can be larger
    by a batch. CRCs are checked and control batches skipped, as `decode_columns` does. Without `as_text`, header keys
    stay the bytes that they are, for those who write them again. With `keys_only` values are empty or null, and
    headers are left out. A batch that cannot be read is given to `pass_over`, and left out if that does not raise.

    Each batch is decoded before the next is asked for: runs that are made one at a time are then still in the
    processor's caches, which halves what this costs."""
    decoder = kernel.ColumnDecoder(start_offset, end_offset, keys_only=keys_only)
    batches = rows = size_bytes = 0
    is_log_append_time = False
    for run in runs:
        view = memoryview(run)
        for pos, header in iter_headers(view):
            if header.end_offset <= start_offset or header.base_offset >= end_offset:
                continue
            if batches and (
                header.is_log_append_time != is_log_append_time or rows >= target_rows or size_bytes >= target_bytes
            ):
                yield ColumnsPart(_finish(decoder, as_text), is_log_append_time)
                batches = rows = size_bytes = 0
            try:
                section = section_of(view[pos : pos + header.size_bytes], header, DEFAULT_LIMIT_BYTES)
                if section is not None:
                    decoder.add(section)
            except CorruptBatch as problem:
                pass_over(header, problem)
                continue
            if section is not None:
                batches += 1
                rows += section.record_count
                size_bytes += len(section.records)
                is_log_append_time = header.is_log_append_time
    if batches:
        yield ColumnsPart(_finish(decoder, as_text), is_log_append_time)


def _finish(decoder: kernel.ColumnDecoder, as_text: bool) -> Columns:
    columns = decoder.finish()
    return with_utf8_header_keys(columns) if as_text else columns
