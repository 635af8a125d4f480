"""Any log can be cut into any buffers and blocks and is read back; no damage to a segment is ever served."""

from __future__ import annotations

from itertools import pairwise
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from format_samples.kernels import COMPILED, TWIN, Kernel, both_kernels, using
from format_samples.strategies import damaged, runs
from streamhouse.format.batch import first_batch_at, iter_headers, whole_batches
from streamhouse.format.object_keys import parse_segment_key, segment_key
from streamhouse.format.records import Record
from streamhouse.format.segment import decode_block, decode_footer, decode_index, decode_segment, encode_segment
from streamhouse.model.errors import CorruptBatch, CorruptData, Unsupported

Log = list[tuple[bytes, list[Record]]]


@both_kernels
@given(log=runs(), block_bytes=st.integers(0, 2_000), data=st.data())
def test_a_log_is_read_back_whatever_the_buffers_and_blocks(
    chosen: Kernel, log: Log, block_bytes: int, data: st.DataObject
) -> None:
    batches = [batch for batch, _ in log]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(batches)), max_size=3)))
    edges = [0, *cuts, len(batches)]
    buffers = [b"".join(batches[start:end]) for start, end in pairwise(edges)]
    with using(chosen):
        segment = encode_segment(buffers, epoch=data.draw(st.integers(0, 2**31 - 1)), block_bytes=block_bytes)
    footer, blocks = decode_segment(b"".join(segment.parts))
    assert b"".join(blocks) == b"".join(batches)
    assert footer.record_count == sum(len(records) for _, records in log)
    assert (footer.base_offset, footer.end_offset) == (log[0][1][0].offset, log[-1][1][-1].offset + 1)
    assert footer.max_timestamp_ms == max(record.timestamp_ms for _, records in log for record in records)
    for block in blocks:
        assert len(block) <= block_bytes or len(list(iter_headers(block))) == 1


@given(log=runs(), block_bytes=st.integers(0, 600), data=st.data())
def test_an_offset_is_in_the_block_that_the_index_names(log: Log, block_bytes: int, data: st.DataObject) -> None:
    content = b"".join(encode_segment([batch for batch, _ in log], epoch=1, block_bytes=block_bytes).parts)
    footer = decode_footer(content, len(content))
    index = decode_index(content[footer.index_position : footer.index_end], footer)
    record = data.draw(st.sampled_from([record for _, records in log for record in records]))
    wanted = index.blocks_for(record.offset, data.draw(st.integers(0, 2_000)))
    assert (wanted.start, wanted.end) == (index.positions[wanted.first_block], index.positions[wanted.last_block + 1])
    run = decode_block(content[wanted.start : index.positions[wanted.first_block + 1]], index, wanted.first_block)
    at = first_batch_at(run, record.offset)
    header = next(header for pos, header in iter_headers(run) if pos == at)
    assert header.base_offset <= record.offset < header.end_offset
    by_time = index.block_for_timestamp(record.timestamp_ms)
    assert by_time is not None
    assert by_time <= wanted.first_block


@given(log=runs(max_batches=3), data=st.data())
def test_damage_is_refused_and_never_served(log: Log, data: st.DataObject) -> None:
    content = b"".join(encode_segment([batch for batch, _ in log], epoch=1, block_bytes=300).parts)
    broken = data.draw(damaged(content))
    try:
        decode_segment(broken)
    except (CorruptData, Unsupported):
        return
    assert broken == content


@given(log=runs(), max_bytes=st.integers(0, 3_000), data=st.data())
def test_both_kernels_sum_up_any_bytes_alike(log: Log, max_bytes: int, data: st.DataObject) -> None:
    run = b"".join(batch for batch, _ in log)
    content = data.draw(damaged(run) | st.just(run))
    start = data.draw(st.integers(0, 20) | st.just(len(log[0][0])))

    def outcome(scan: object) -> object:
        try:
            return scan(content, start, max_bytes)  # type: ignore[operator]
        except CorruptBatch:
            return CorruptBatch

    assert outcome(COMPILED.scan_run) == outcome(TWIN.scan_run)


@given(log=runs(), max_bytes=st.integers(0, 3_000), data=st.data())
def test_whole_batches_are_whole_and_within_the_limit(log: Log, max_bytes: int, data: st.DataObject) -> None:
    sizes = [len(batch) for batch, _ in log]
    run = b"".join(batch for batch, _ in log)
    first = data.draw(st.integers(0, len(sizes) - 1))
    start = sum(sizes[:first])
    end = whole_batches(run, start, max_bytes)
    edges = [start + sum(sizes[first : index + 1]) for index in range(first, len(sizes))]
    assert end == max([edge for edge in edges if edge - start <= max_bytes], default=edges[0])


@given(
    topic_id=st.uuids(),
    partition=st.integers(0, 2**31 - 1),
    base_offset=st.integers(0, 2**63 - 1),
    epoch=st.integers(0, 2**31 - 1),
    unique=st.uuids(),
)
def test_a_key_says_what_it_was_made_of(
    topic_id: UUID, partition: int, base_offset: int, epoch: int, unique: UUID
) -> None:
    parts = (topic_id, partition, base_offset, epoch, unique)
    assert parse_segment_key(segment_key(*parts)) == parts


@given(st.text(max_size=200))
def test_any_other_text_is_no_key(text: str) -> None:
    parsed = parse_segment_key(text)
    assert parsed is None or segment_key(*parsed) == text
