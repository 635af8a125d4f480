"""Segments made of others: what is kept stays what it was, at its offset, and the same offsets are covered."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from format_samples.strategies import record_lists
from maintain_parts.segments import TOPIC_ID, MemoryObjects, batch_of, records_in, segment_of, segment_of_records
from streamhouse.format.batch import HEADER_BYTES, build, iter_headers, read_header
from streamhouse.format.compression import Codec
from streamhouse.format.object_keys import parse_segment_key
from streamhouse.format.records import Record
from streamhouse.format.segment import Lineage, decode_segment, open_segment
from streamhouse.model.errors import CorruptData
from streamhouse.spark.jobs.objects import Objects
from streamhouse.spark.jobs.rewrite import RewritePointer, Source, rewrite
from streamhouse.wire.http.planning import SegmentInfo


def run_rewrite(
    segments: list[tuple[bytes, list[bool] | None]],
    *,
    base_offset: int = 0,
    end_offset: int,
    target_bytes: int = 2**30,
    codec: Codec = Codec.LZ4,
    generation: int = 4,
) -> list[tuple[SegmentInfo, bytes]]:
    store = MemoryObjects({f"old-{number}": data for number, (data, _) in enumerate(segments)})
    sources = tuple(
        Source(
            key=f"old-{number}",
            record_count=len(records_in(data)),
            kept=None if kept is None else np.packbits(kept).tobytes() if any(kept) else b"",
        )
        for number, (data, kept) in enumerate(segments)
    )
    added = rewrite(
        RewritePointer(
            objects=cast(Objects, store),
            topic_id=TOPIC_ID,
            partition=3,
            base_offset=base_offset,
            end_offset=end_offset,
            epoch=9,
            log_start_offset=base_offset,
            generation=generation,
            codec=codec,
            target_bytes=target_bytes,
            sources=sources,
        )
    )
    return [(info, store.objects[info.object_key]) for info in added]


@st.composite
def thinned_logs(draw: st.DrawFn) -> tuple[list[Record], list[bool]]:
    records = draw(record_lists(max_size=24, max_gap=3))
    kept = draw(st.lists(st.booleans(), min_size=len(records), max_size=len(records)))
    kept[-1] = True
    return records, kept


@settings(database=None, deadline=None)
@given(thinned_logs(), st.integers(1, 4), st.integers(0, 5), st.sampled_from(list(Codec)), st.integers(60, 2000))
def test_kept_records_are_what_they_were_and_the_range_is_covered(
    log: tuple[list[Record], list[bool]], pieces: int, trailing: int, codec: Codec, target_bytes: int
) -> None:
    records, kept = log
    size = -(-len(records) // pieces)
    segments: list[tuple[bytes, list[bool] | None]] = [
        (segment_of_records(records[start : start + size]), kept[start : start + size])
        for start in range(0, len(records), size)
    ]
    base_offset, end_offset = records[0].offset, records[-1].offset + 1 + trailing

    made = run_rewrite(segments, base_offset=base_offset, end_offset=end_offset, target_bytes=target_bytes, codec=codec)

    assert [record for _, data in made for record in records_in(data)] == [
        record for record, is_kept in zip(records, kept, strict=True) if is_kept
    ]
    infos = [info for info, _ in made]
    assert (infos[0].base_offset, infos[-1].end_offset) == (base_offset, end_offset)
    assert all(before.end_offset == after.base_offset for before, after in pairwise(infos))
    for info, data in made:
        footer, _ = decode_segment(data)
        assert (info.record_count, info.size_bytes, info.epoch) == (footer.record_count, len(data), footer.epoch)
        assert info.base_offset <= footer.base_offset
        assert info.end_offset == footer.end_offset
        key = parse_segment_key(info.object_key)
        assert key is not None
        assert (key.topic_id, key.partition, key.base_offset, key.epoch) == (TOPIC_ID, 3, info.base_offset, 9)
        # By these a bucket alone tells what was to take the place of what, together with which others.
        assert footer.lineage == Lineage(4, base_offset, end_offset, base_offset)
    assert len({key.unique for info in infos if (key := parse_segment_key(info.object_key))}) == 1


def some_records(count: int, first: int = 0) -> list[Record]:
    return [Record(first + number, 1000 + number, b"k%d" % number, b"v" * 50) for number in range(count)]


def test_a_node_without_generations_gets_segments_that_it_can_read() -> None:
    ((_, data),) = run_rewrite([(segment_of_records(some_records(3)), None)], end_offset=3, generation=0)

    assert decode_segment(data)[0].lineage is None


def test_a_block_that_keeps_everything_is_copied_with_its_producer() -> None:
    batch = bytes(batch_of(some_records(4)))
    old = segment_of([batch, batch_of(some_records(4, 4))], block_bytes=1)

    ((_, data),) = run_rewrite([(old, [True] * 4 + [False, True, True, True])], end_offset=8)

    runs = decode_segment(data)[1]
    assert bytes(runs[0][: len(batch)]) == batch


def test_a_record_under_log_append_time_keeps_the_brokers_time_and_its_mark() -> None:
    batches = [batch_of(some_records(3, 3 * number), append_time_ms=5000 + number // 2) for number in range(4)]

    ((_, data),) = run_rewrite([(segment_of(batches), [number % 3 != 0 for number in range(12)])], end_offset=12)

    headers = [header for run in decode_segment(data)[1] for _, header in iter_headers(run)]
    assert all(header.is_log_append_time for header in headers)
    assert [header.max_timestamp_ms for header in headers] == [5000, 5001]
    assert [(record.offset, record.timestamp_ms) for record in records_in(data)] == [
        (offset, 5000 + offset // 6) for offset in (1, 2, 4, 5, 7, 8, 10, 11)
    ]


def test_records_of_both_kinds_of_time_stay_apart() -> None:
    batches = [batch_of(some_records(3)), batch_of(some_records(3, 3), append_time_ms=5000)]

    ((_, data),) = run_rewrite([(segment_of(batches), [False, True, True, True, True, True])], end_offset=6)

    headers = [header for run in decode_segment(data)[1] for _, header in iter_headers(run)]
    assert [header.is_log_append_time for header in headers] == [False, True]
    assert [record.timestamp_ms for record in records_in(data)] == [1001, 1002, 5000, 5000, 5000]


def test_epochs_of_batches_never_go_back() -> None:
    batches = [batch_of(some_records(3, 3 * number), epoch=number + 1) for number in range(4)]

    ((_, data),) = run_rewrite(
        [(segment_of(batches, block_bytes=1), [True] * 3 + [False, True, True] * 3)], end_offset=12
    )

    epochs = [header.leader_epoch for run in decode_segment(data)[1] for _, header in iter_headers(run)]
    assert epochs == sorted(epochs)
    assert epochs[-1] == 4


def test_header_keys_that_are_not_text_stay_the_bytes_that_they_are() -> None:
    records = [record._replace(headers=(("\x80", b"x"),)) for record in some_records(3)]
    batch = batch_of(records).replace("\x80".encode(), b"\xff\xff")
    sealed = build(read_header(batch), batch[HEADER_BYTES:])

    ((_, data),) = run_rewrite([(segment_of([sealed]), [False, True, True])], end_offset=3, codec=Codec.NONE)

    (run,) = decode_segment(data)[1]
    assert bytes(run).count(b"\xff\xff\x02x") == 2


def test_a_segment_that_is_not_the_one_planned_is_refused() -> None:
    store = MemoryObjects({"old": segment_of_records(some_records(4))})
    pointer = RewritePointer(
        objects=cast(Objects, store),
        topic_id=TOPIC_ID,
        partition=0,
        base_offset=0,
        end_offset=4,
        epoch=1,
        log_start_offset=0,
        generation=1,
        codec=Codec.NONE,
        target_bytes=1000,
        sources=(Source(key="old", record_count=5),),
    )
    with pytest.raises(CorruptData, match="has 4 records instead of 5"):
        rewrite(pointer)


def test_a_large_block_that_keeps_everything_is_stored_as_it_was_and_small_ones_are_put_together() -> None:
    large = [batch_of(some_records(3_000, 3_000 * number)) for number in range(2)]
    small = [batch_of(some_records(10, 6_000 + 10 * number)) for number in range(5)]
    old = [segment_of([batch]) for batch in (*large, *small)]

    ((_, data),) = run_rewrite([(each, None) for each in old], end_offset=6_050)

    footer, blocks = open_segment(data)
    stored = [bytes(block.stored) for block in blocks]
    assert footer.block_count == 3
    assert stored[:2] == [bytes(block.stored) for each in old[:2] for block in open_segment(each)[1]]
    assert [record.offset for record in records_in(data)] == list(range(6_050))


def test_a_damaged_block_is_not_copied() -> None:
    old = bytearray(segment_of([batch_of(some_records(3_000))]))
    old[1_000] ^= 1
    store = MemoryObjects({"old": bytes(old)})
    pointer = RewritePointer(
        objects=cast(Objects, store),
        topic_id=TOPIC_ID,
        partition=0,
        base_offset=0,
        end_offset=3_000,
        epoch=9,
        log_start_offset=0,
        generation=1,
        codec=Codec.LZ4,
        target_bytes=2**30,
        sources=(Source(key="old", record_count=3_000),),
    )
    with pytest.raises(CorruptData, match="CRC"):
        rewrite(pointer)
    assert list(store.objects) == ["old"]
