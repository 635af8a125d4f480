"""The latest record of every key, held against a dict, for any records in any segments."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from format_samples.strategies import record_lists
from maintain_parts.segments import segment_of_records
from streamhouse.core.partitioner import partition_for_key
from streamhouse.format.records import Record
from streamhouse.spark.jobs.key_index import KeyEntries, index_segment, latest_among, split_by_key


def kept_of(segments: list[list[Record]], *, parts: int = 1, drops_tombstones: bool = False) -> list[Record]:
    """As the job does it: each segment alone, then each part of the keys, among all segments."""
    kept: list[list[int]] = [[] for _ in segments]
    found: dict[int, dict[int, KeyEntries]] = {}
    for number, records in enumerate(segments):
        keys = index_segment(segment_of_records(records), drops_tombstones=drops_tombstones)
        assert keys.record_count == len(records)
        kept[number] += keys.keyless.tolist()
        for part, entries in split_by_key(keys.entries, parts).items():
            shipped = KeyEntries.from_buffer(pa.py_buffer(entries.to_bytes()))
            found.setdefault(part, {})[number] = shipped
    for entries_by_segment in found.values():
        for number, ordinals in latest_among(entries_by_segment).items():
            kept[number] += ordinals.tolist()
    return [segments[number][ordinal] for number, ordinals in enumerate(kept) for ordinal in sorted(ordinals)]


def latest_of(records: list[Record]) -> list[Record]:
    last = {record.key: record.offset for record in records}
    return [record for record in records if record.key is None or last[record.key] == record.offset]


@st.composite
def logs(draw: st.DrawFn) -> list[list[Record]]:
    """A few keys, so that they come again, in a log that is cut into segments."""
    records = draw(record_lists(max_size=30, max_gap=2))
    keys = draw(
        st.lists(
            st.none() | st.sampled_from([b"", b"a", b"ab", b"key-of-more-than-eight-bytes", b"key-of-more-than-eight"]),
            min_size=len(records),
            max_size=len(records),
        )
    )
    records = [record._replace(key=key) for record, key in zip(records, keys, strict=True)]
    cuts = sorted(draw(st.sets(st.integers(1, len(records)), max_size=3)) | {len(records)})
    starts = [0, *cuts]
    return [records[start:stop] for start, stop in zip(starts, cuts, strict=False)]


@settings(database=None, deadline=None)
@given(logs(), st.integers(1, 5))
def test_the_last_record_of_each_key_and_all_without_one_are_kept(segments: list[list[Record]], parts: int) -> None:
    everything = [record for records in segments for record in records]

    assert kept_of(segments, parts=parts) == latest_of(everything)


@settings(database=None, deadline=None)
@given(logs(), st.integers(1, 5))
def test_a_tombstone_goes_once_it_is_the_only_record_of_its_key(segments: list[list[Record]], parts: int) -> None:
    everything = [record for records in segments for record in records]
    counts = {key: [record.key for record in everything].count(key) for key in {record.key for record in everything}}

    expected = [
        record
        for record in latest_of(everything)
        if record.key is None or record.value is not None or counts[record.key] > 1
    ]
    assert kept_of(segments, parts=parts, drops_tombstones=True) == expected


def test_the_same_key_is_in_the_same_part_wherever_it_lies() -> None:
    names = [b"", b"a", b"a" * 8, b"a" * 9, b"a" * 300, b"a" * 299 + b"b", b"other"]
    parts_of: dict[bytes, set[int]] = {name: set() for name in names}
    for start in range(len(names)):
        rotated = names[start:] + names[:start]
        entries = KeyEntries(pa.array(rotated, pa.binary()), np.arange(len(names)), np.zeros(len(names), np.bool_))
        for part, split in split_by_key(entries, 4).items():
            for name in split.keys.to_pylist():
                parts_of[name].add(part)

    assert all(len(parts) == 1 for parts in parts_of.values())


def test_keys_spread_over_all_parts() -> None:
    names = [b"user-%08d" % number for number in range(10_000)]
    entries = KeyEntries(pa.array(names, pa.binary()), np.arange(len(names)), np.zeros(len(names), np.bool_))

    sizes = [len(split.keys) for split in split_by_key(entries, 8).values()]

    assert len(sizes) == 8
    assert max(sizes) < 3 * min(sizes)


def test_the_keys_of_one_partition_spread_over_all_parts() -> None:
    """Partitions are chosen by a hash as well, and parts must not be empty because of that."""
    names = [name for name in (b"user-%08d" % number for number in range(40_000)) if partition_for_key(name, 8) == 5]
    entries = KeyEntries(pa.array(names, pa.binary()), np.arange(len(names)), np.zeros(len(names), np.bool_))

    sizes = [len(split.keys) for split in split_by_key(entries, 4).values()]

    assert len(sizes) == 4
    assert max(sizes) < 1.5 * min(sizes)
