"""Hypothesis strategies for records, batches and damage to bytes."""

from __future__ import annotations

from hypothesis import strategies as st

from streamhouse.format.compression import Codec
from streamhouse.format.records import Record, encode_records

# Lengths on both sides of where a varint takes a second byte.
blobs = st.none() | st.binary(max_size=8) | st.builds(bytes, st.integers(60, 70))
headers = st.lists(st.tuples(st.text(max_size=4), blobs), max_size=2).map(tuple)
timestamps = st.integers(-1, 2**45) | st.sampled_from([0, 2**62])
codecs = st.sampled_from(list(Codec))

unplaced_records = st.builds(Record, st.just(0), timestamps, blobs, blobs, headers)


@st.composite
def record_lists(draw: st.DrawFn, *, min_size: int = 1, max_size: int = 8, max_gap: int = 0) -> list[Record]:
    """Records with rising offsets, with gaps of at most `max_gap`."""
    offset = draw(st.integers(0, 2**50))
    records = []
    for record in draw(st.lists(unplaced_records, min_size=min_size, max_size=max_size)):
        offset += draw(st.integers(0, max_gap))
        records.append(record._replace(offset=offset))
        offset += 1
    return records


@st.composite
def runs(draw: st.DrawFn, *, max_batches: int = 4) -> list[tuple[bytes, list[Record]]]:
    """Batches that follow one another in a log, each with the records that it holds."""
    offset = draw(st.integers(0, 2**40))
    batches = []
    for _ in range(draw(st.integers(1, max_batches))):
        records = [
            record._replace(offset=offset + index)
            for index, record in enumerate(draw(st.lists(unplaced_records, min_size=1, max_size=3)))
        ]
        batches.append((encode_records(records, codec=draw(codecs), base_offset=offset), records))
        offset += len(records) + draw(st.integers(0, 3))
    return batches


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """The bytes with some of them changed, cut off, doubled or moved."""
    changed = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        if not changed:
            break
        at = draw(st.integers(0, len(changed) - 1))
        match draw(st.sampled_from(["flip", "set", "cut", "insert", "huge"])):
            case "flip":
                changed[at] ^= 1 << draw(st.integers(0, 7))
            case "set":
                changed[at] = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
            case "cut":
                del changed[at : at + draw(st.integers(1, len(changed)))]
            case "insert":
                changed[at:at] = draw(st.binary(min_size=1, max_size=9))
            case "huge":
                changed[at : at + 5] = b"\xff\xff\xff\xff\x0f"
    return bytes(changed)
