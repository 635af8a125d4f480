"""Any records survive encoding and decoding, and the compiled kernel and its twin are the same function."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from format_samples.kernels import COMPILED, TWIN, Kernel, both_kernels, using
from format_samples.strategies import codecs, damaged, record_lists, runs
from streamhouse.format.batch import check_produced, iter_headers
from streamhouse.format.columns import Columns, Section
from streamhouse.format.compression import Codec
from streamhouse.format.records import Record, columns_of, decode_columns, decode_records, encode_columns, records_of
from streamhouse.model.errors import CorruptBatch, InvalidInput


@both_kernels
@given(records=record_lists(max_gap=5), codec=codecs, max_batch_bytes=st.integers(0, 2_000))
def test_kept_offsets_survive_any_codec_and_any_split(
    chosen: Kernel, records: list[Record], codec: Codec, max_batch_bytes: int
) -> None:
    with using(chosen):
        batches = encode_columns(columns_of(records), codec=codec, base_offset=None, max_batch_bytes=max_batch_bytes)
        assert decode_records(b"".join(batches)) == records


@both_kernels
@given(records=record_lists(), codec=codecs, max_batch_bytes=st.integers(0, 2_000))
def test_what_we_encode_a_broker_accepts(
    chosen: Kernel, records: list[Record], codec: Codec, max_batch_bytes: int
) -> None:
    with using(chosen):
        batches = encode_columns(columns_of(records), codec=codec, max_batch_bytes=max_batch_bytes)
    headers = [check_produced(memoryview(batch)) for batch in batches]
    assert sum(header.record_count for header in headers) == len(records)
    assert max(header.max_timestamp_ms for header in headers) == max(record.timestamp_ms for record in records)


@given(records=record_lists())
def test_rows_and_columns_are_two_forms_of_one_thing(records: list[Record]) -> None:
    assert records_of(columns_of(records)) == records


@both_kernels
@given(log=runs(), data=st.data())
def test_a_range_is_what_filtering_the_whole_would_give(
    chosen: Kernel, log: list[tuple[bytes, list[Record]]], data: st.DataObject
) -> None:
    run = b"".join(batch for batch, _ in log)
    everything = [record for _, records in log for record in records]
    bounds = st.none() | st.integers(everything[0].offset - 2, everything[-1].offset + 2)
    start, end = data.draw(bounds), data.draw(bounds)
    with using(chosen):
        cut = decode_records(run, start_offset=start, end_offset=end)
    assert cut == [
        record
        for record in everything
        if (start is None or record.offset >= start) and (end is None or record.offset < end)
    ]


@given(log=runs())
def test_both_kernels_give_the_same_columns(log: list[tuple[bytes, list[Record]]]) -> None:
    run = b"".join(batch for batch, _ in log)
    with using(COMPILED):
        compiled = decode_columns(run)
    with using(TWIN):
        assert decode_columns(run) == compiled


@given(records=record_lists(max_gap=3), numbered=st.booleans(), max_bytes=st.integers(0, 500), data=st.data())
def test_both_kernels_give_the_same_bytes(
    records: list[Record], numbered: bool, max_bytes: int, data: st.DataObject
) -> None:
    columns = columns_of(records)
    row = data.draw(st.integers(0, len(records) - 1))
    assert COMPILED.encode_rows(columns, row, max_bytes, numbered) == TWIN.encode_rows(
        columns, row, max_bytes, numbered
    )


def outcome(decode: object, *arguments: object) -> Columns | type[Exception]:
    try:
        return decode(*arguments)  # type: ignore[operator]
    except InvalidInput as problem:
        return type(problem)


@given(records=record_lists(max_size=5), data=st.data())
def test_both_kernels_judge_damaged_records_alike(records: list[Record], data: st.DataObject) -> None:
    (good,) = encode_columns(columns_of(records))
    ((_, header),) = iter_headers(good)
    section = Section(
        data.draw(damaged(good[61:])),
        header.base_offset,
        header.last_offset_delta,
        data.draw(st.sampled_from([header.base_timestamp_ms, 2**63 - 1, -(2**63)])),
        data.draw(st.none() | st.just(5)),
        data.draw(st.sampled_from([header.record_count, header.record_count + 1, 2**31 - 1, 0])),
    )
    bounds = (-(2**63), 2**63 - 1)
    found = outcome(COMPILED.decode_sections, [section], *bounds)
    assert found == outcome(TWIN.decode_sections, [section], *bounds)
    assert isinstance(found, Columns) or found is CorruptBatch


COLUMN_NAMES = [name for name in Columns.__dataclass_fields__ if name != "count"]


@given(records=record_lists(max_size=5), numbered=st.booleans(), data=st.data())
def test_both_kernels_judge_damaged_columns_alike(records: list[Record], numbered: bool, data: st.DataObject) -> None:
    columns = columns_of(records)
    name = data.draw(st.sampled_from(COLUMN_NAMES))
    content = getattr(columns, name)
    broken = replace(columns, **{name: data.draw(damaged(bytes(content or b"")))})
    assert outcome(COMPILED.encode_rows, broken, 0, 10**6, numbered) == outcome(
        TWIN.encode_rows, broken, 0, 10**6, numbered
    )
