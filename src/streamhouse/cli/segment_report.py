"""What a STRM segment holds, block by block, each checked by itself so that a damaged one does not hide the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from streamhouse.client.consumer import ConsumedRecord
from streamhouse.format.batch import iter_headers
from streamhouse.format.object_keys import parse_segment_key
from streamhouse.format.records import decode_records
from streamhouse.format.segment import BlockCodec, Footer, decode_block, decode_footer, decode_index
from streamhouse.format.segment_index import decode_header
from streamhouse.model.errors import StreamHouseError

_BLOCK_CODEC_AT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockReport:
    """One block; `problem` says what is wrong with it, and then its raw size and batches are not known."""

    number: int
    first_offset: int
    record_count: int
    max_timestamp_ms: int
    position: int
    stored_bytes: int
    codec: str
    raw_bytes: int | None
    batch_count: int | None
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentReport:
    """`topic` and `partition` are what the object's key says; a file under another name says nothing."""

    name: str
    topic: str
    partition: int
    size_bytes: int
    footer: Footer
    blocks: tuple[BlockReport, ...]
    runs: tuple[bytes | memoryview, ...]

    @property
    def damaged(self) -> tuple[BlockReport, ...]:
        return tuple(block for block in self.blocks if block.problem is not None)


def inspect_segment(name: str, data: bytes) -> SegmentReport:
    """Raises CorruptData if not even header, footer and index can be trusted."""
    decode_header(data)
    footer = decode_footer(data, len(data))
    view = memoryview(data)
    index = decode_index(view[footer.index_position : footer.index_end], footer)
    blocks: list[BlockReport] = []
    runs: list[bytes | memoryview] = []
    for number in range(index.block_count):
        start, end = index.positions[number], index.positions[number + 1]
        run, batch_count, problem = None, None, None
        try:
            run = decode_block(view[start:end], index, number)
            batch_count = sum(1 for _ in iter_headers(run))
            runs.append(run)
        except StreamHouseError as found:
            problem = found.message
        blocks.append(
            BlockReport(
                number=number,
                first_offset=index.first_offsets[number],
                record_count=index.record_counts[number],
                max_timestamp_ms=index.max_timestamps[number],
                position=start,
                stored_bytes=end - start,
                codec=_codec_name(view[start:end]),
                raw_bytes=None if run is None else len(run),
                batch_count=batch_count,
                problem=problem,
            )
        )
    topic, partition = _place(name)
    return SegmentReport(
        name=name,
        topic=topic,
        partition=partition,
        size_bytes=len(data),
        footer=footer,
        blocks=tuple(blocks),
        runs=tuple(runs),
    )


def segment_records(report: SegmentReport) -> Iterator[ConsumedRecord]:
    """The records of every sound block."""
    for run in report.runs:
        for record in decode_records(run):
            yield ConsumedRecord(
                topic=report.topic,
                partition=report.partition,
                offset=record.offset,
                timestamp_ms=record.timestamp_ms,
                key=record.key,
                value=record.value,
                headers=record.headers,
            )


def _codec_name(block: memoryview) -> str:
    codec = block[_BLOCK_CODEC_AT] if len(block) > _BLOCK_CODEC_AT else -1
    return BlockCodec(codec).name.lower() if codec in tuple(BlockCodec) else "unknown"


def _place(name: str) -> tuple[str, int]:
    start = name.find("segments/")
    key = parse_segment_key(name[start:]) if start >= 0 else None
    return (str(key.topic_id), key.partition) if key else ("", 0)
