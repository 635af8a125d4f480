"""Everything that can be wrong with one object, from its bytes: checksums, counts, offsets, and every record."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from crc32c import crc32c

from streamhouse.format import kernel
from streamhouse.format.batch import iter_headers
from streamhouse.format.object_keys import parse_segment_key
from streamhouse.format.records import decode_columns
from streamhouse.format.segment import Footer, SegmentIndex, decode_block, decode_footer, decode_index
from streamhouse.format.segment_index import decode_header
from streamhouse.format.wal_object import RangeEntry, decode_wal_object
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import StreamHouseError
from streamhouse.wire.http.planning import SegmentInfo


@dataclass(slots=True, kw_only=True)
class SegmentAudit:
    """What a segment's bytes say, and what is wrong with them. `epochs` are those of its batches, with the first offset
    of each; `footer` is None if not even that can be read."""

    checksum: int
    size_bytes: int
    footer: Footer | None = None
    epochs: list[tuple[int, int]] = field(default_factory=list)
    record_count: int = 0
    problems: list[str] = field(default_factory=list)


def audit_segment(data: bytes) -> SegmentAudit:
    audit = SegmentAudit(checksum=crc32c(data), size_bytes=len(data))
    view = memoryview(data)
    try:
        decode_header(view)
        audit.footer = decode_footer(view, len(view))
        index = decode_index(view[audit.footer.index_position : audit.footer.index_end], audit.footer)
    except StreamHouseError as problem:
        audit.problems.append(problem.message)
        return audit
    raw_bytes = 0
    spans: list[_Span] = []
    for block in range(index.block_count):
        try:
            run = decode_block(view[index.positions[block] : index.positions[block + 1]], index, block)
            raw_bytes += len(run)
            spans.append(_audit_block(audit, index, block, run))
        except StreamHouseError as problem:
            audit.problems.append(f"block {block}: {problem.message}")
    if not audit.problems:
        audit.problems += _against_footer(audit.footer, spans, raw_bytes)
    return audit


def against_row(audit: SegmentAudit, row: SegmentInfo) -> list[str]:
    """Where the object is sound, but not the one that the metadata store describes."""
    problems = []
    if audit.size_bytes != row.size_bytes:
        problems.append(f"has {audit.size_bytes} bytes instead of {row.size_bytes}")
    if audit.checksum != row.checksum:
        problems.append("does not match its checksum")
    footer, key = audit.footer, parse_segment_key(row.object_key)
    if footer is None:
        return problems
    # Compaction may have taken records from the front, or so many from the end that no batch can reach there.
    if not row.base_offset <= footer.base_offset < footer.end_offset <= row.end_offset:
        problems.append(f"holds offsets {footer.base_offset} to {footer.end_offset - 1}")
    if footer.record_count != row.record_count:
        problems.append(f"holds {footer.record_count} records instead of {row.record_count}")
    if (footer.min_timestamp_ms, footer.max_timestamp_ms) != (row.min_timestamp_ms, row.max_timestamp_ms):
        problems.append("holds other timestamps than it should")
    if footer.epoch != row.epoch:
        problems.append(f"was written in epoch {footer.epoch} instead of {row.epoch}")
    if key is None or (key.base_offset, key.epoch) != (row.base_offset, row.epoch):
        problems.append("has a key that says something else")
    return problems


def audit_wal_object(data: bytes) -> tuple[list[RangeEntry], list[str]]:
    """Its ranges, and what is wrong with it."""
    try:
        ranges = decode_wal_object(data)
    except StreamHouseError as problem:
        return [], [problem.message]
    problems = []
    for entry, batches in ranges:
        try:
            for batch in batches:
                decode_columns(batch)
        except StreamHouseError as problem:
            problems.append(f"{entry.partition} {entry.base_offset} to {entry.end_offset - 1}: {problem.message}")
    return [entry for entry, _ in ranges], problems


@dataclass(frozen=True, slots=True)
class _Span:
    base_offset: int
    end_offset: int
    record_count: int
    min_timestamp_ms: int
    max_timestamp_ms: int


def _audit_block(audit: SegmentAudit, index: SegmentIndex, block: int, run: Buffer) -> _Span:
    """The block against its line in the index, every batch against its CRC, every record by decoding it."""
    view = memoryview(run)
    summary = kernel.scan_run(view, 0, len(view))
    said = (index.first_offsets[block], index.record_counts[block], index.max_timestamps[block])
    if said != (summary.base_offset, summary.record_count, summary.max_timestamp_ms):
        audit.problems.append(f"block {block} is not what the index says")
    for _, header in iter_headers(view):
        if not audit.epochs or header.leader_epoch > audit.epochs[-1][0]:
            audit.epochs.append((header.leader_epoch, header.base_offset))
        elif header.leader_epoch < audit.epochs[-1][0]:
            audit.problems.append(f"block {block}: the epoch goes back at offset {header.base_offset}")
    columns = decode_columns(view)
    offsets = np.frombuffer(columns.offsets, np.int64)
    if columns.count != summary.record_count:
        audit.problems.append(f"block {block} has {columns.count} records, its batches say {summary.record_count}")
    if columns.count and not (np.diff(offsets) > 0).all():
        audit.problems.append(f"block {block}: offsets do not grow")
    audit.record_count += columns.count
    return _Span(*summary[1:6])


def _against_footer(footer: Footer, spans: list[_Span], raw_bytes: int) -> list[str]:
    problems = [
        f"offset {after.base_offset} comes again in the next block"
        for before, after in pairwise(spans)
        if after.base_offset < before.end_offset
    ]
    said = (
        footer.base_offset,
        footer.end_offset,
        footer.record_count,
        footer.min_timestamp_ms,
        footer.max_timestamp_ms,
        footer.raw_bytes,
    )
    found = (
        spans[0].base_offset,
        spans[-1].end_offset,
        sum(span.record_count for span in spans),
        min(span.min_timestamp_ms for span in spans),
        max(span.max_timestamp_ms for span in spans),
        raw_bytes,
    )
    if said != found:
        problems.append("its blocks are not what the footer says")
    return problems
