"""Any ranges go into a WAL object and come out again; no damage to one is ever served."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from format_samples.batches import batch
from format_samples.strategies import damaged
from streamhouse.format.object_keys import parse_wal_object_key, wal_object_key
from streamhouse.format.wal_object import BatchRun, decode_wal_object, encode_wal_object
from streamhouse.model.errors import CorruptData, Unsupported
from streamhouse.model.names import TopicPartition


@st.composite
def batch_runs(draw: st.DrawFn) -> BatchRun:
    base_offset = offset = draw(st.integers(0, 2**62))
    batches = []
    for count, records in draw(
        st.lists(st.tuples(st.integers(1, 1_000), st.binary(max_size=200)), min_size=1, max_size=4)
    ):
        batches.append(batch(offset, count=count, records=records))
        offset += count
    partition = TopicPartition(draw(st.uuids()), draw(st.integers(0, 2**31 - 1)))
    return BatchRun(partition, draw(st.integers(0, 2**31 - 1)), base_offset, offset, batches)


@given(runs=st.lists(batch_runs(), min_size=1, max_size=6))
def test_an_object_is_read_back(runs: list[BatchRun]) -> None:
    encoded = encode_wal_object(runs)
    content = b"".join(encoded.parts)
    assert len(content) == encoded.size_bytes
    decoded = decode_wal_object(content)
    assert [(*entry[:4], batches) for entry, batches in decoded] == [tuple(run) for run in runs]
    assert [entry for entry, _ in decoded] == encoded.entries


@given(runs=st.lists(batch_runs(), min_size=1, max_size=3), data=st.data())
def test_damage_is_refused_and_never_served(runs: list[BatchRun], data: st.DataObject) -> None:
    content = b"".join(encode_wal_object(runs).parts)
    broken = data.draw(damaged(content))
    try:
        decode_wal_object(broken)
    except (CorruptData, Unsupported):
        return
    assert broken == content


@given(
    agent_id=st.from_regex(r"[A-Za-z0-9._-]{1,128}", fullmatch=True).filter(lambda name: name not in (".", "..")),
    sealed_at_ms=st.integers(0, 10**15 - 1),
    unique=st.uuids(),
)
def test_a_key_says_what_it_was_made_of(agent_id: str, sealed_at_ms: int, unique: UUID) -> None:
    parts = (agent_id, sealed_at_ms, unique)
    assert parse_wal_object_key(wal_object_key(*parts)) == parts


@given(st.text(max_size=200))
def test_any_other_text_is_no_key(text: str) -> None:
    parsed = parse_wal_object_key(text)
    assert parsed is None or wal_object_key(*parsed) == text
