"""Any records survive encoding and decoding, and the compiled kernel and its twin are the same function."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from format_samples.kernels import COMPILED, TWIN, Kernel, both_kernels, using
from format_samples.strategies import codecs, damaged, record_lists, runs
from streamhouse.format.batch import check_produced, iter_headers
from streamhouse.format.columns import Columns, Section
from streamhouse.format.compression import Codec
from streamhouse.format.records import (
    Record,
    columns_of,
    decode_columns,
    decode_records,
    encode_columns,
    records_of,
    section_of,
)
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


def outcome(decode: object, *arguments: object) -> object:
    try:
        return decode(*arguments)  # type: ignore[operator]
    except InvalidInput as problem:
        return type(problem)


def damaged_section(records: list[Record], data: st.DataObject) -> Section:
    (good,) = encode_columns(columns_of(records))
    ((_, header),) = iter_headers(good)
    return Section(
        data.draw(damaged(good[61:])),
        header.base_offset,
        header.last_offset_delta,
        data.draw(st.sampled_from([header.base_timestamp_ms, 2**63 - 1, -(2**63)])),
        data.draw(st.none() | st.just(5)),
        data.draw(st.sampled_from([header.record_count, header.record_count + 1, 2**31 - 1, 0])),
    )


@given(records=record_lists(max_size=5), data=st.data())
def test_both_kernels_judge_damaged_records_alike(records: list[Record], data: st.DataObject) -> None:
    section = damaged_section(records, data)
    bounds = (-(2**63), 2**63 - 1)
    found = outcome(COMPILED.decode_sections, [section], *bounds)
    assert found == outcome(TWIN.decode_sections, [section], *bounds)
    assert isinstance(found, Columns) or found is CorruptBatch


@given(records=record_lists(max_size=5), max_rows=st.integers(0, 6), max_parts=st.integers(0, 12), data=st.data())
def test_both_kernels_stop_at_the_same_record(
    records: list[Record], max_rows: int, max_parts: int, data: st.DataObject
) -> None:
    section = damaged_section(records, data)
    keys_only = data.draw(st.booleans())

    def decode(kernel: Kernel) -> tuple[Columns, int]:
        decoder = kernel.ColumnDecoder(
            data_start, 2**63 - 1, keys_only=keys_only, max_rows=max_rows, max_parts=max_parts
        )
        decoder.add(section)
        return decoder.finish(), decoder.stopped_at

    data_start = data.draw(st.integers(-1, 6))
    assert outcome(decode, COMPILED) == outcome(decode, TWIN)


@both_kernels
@given(records=record_lists(max_size=6), max_rows=st.integers(1, 6), max_parts=st.integers(1, 12))
def test_limits_take_the_first_records_that_fit(
    chosen: Kernel, records: list[Record], max_rows: int, max_parts: int
) -> None:
    (batch,) = encode_columns(columns_of(records))
    ((_, header),) = iter_headers(batch)
    section = section_of(memoryview(batch), header, 10**6)
    assert section is not None
    decoder = chosen.ColumnDecoder(0, 2**63 - 1, max_rows=max_rows, max_parts=max_parts)
    decoder.add(section)

    parts = list(accumulate(1 + len(record.headers) for record in records))
    fit = min(max_rows, sum(1 for end in parts if end <= max_parts))
    assert [record.key for record in records_of(decoder.finish())] == [record.key for record in records[:fit]]
    assert decoder.stopped_at == (fit if fit < len(records) else -1)


@given(records=record_lists(max_size=5), from_ms=st.integers(-2, 10**13), data=st.data())
def test_both_kernels_find_the_same_times(records: list[Record], from_ms: int, data: st.DataObject) -> None:
    section = damaged_section(records, data)
    arguments = (section, data.draw(st.integers(-1, 6)), from_ms)
    assert outcome(COMPILED.survey_times, *arguments) == outcome(TWIN.survey_times, *arguments)


@both_kernels
@given(records=record_lists(max_size=6), start=st.integers(0, 7), from_ms=st.integers(-2, 2**42))
def test_times_are_those_of_the_records(chosen: Kernel, records: list[Record], start: int, from_ms: int) -> None:
    (batch,) = encode_columns(columns_of(records))
    ((_, header),) = iter_headers(batch)
    first, newest = chosen.survey_times(section_of(memoryview(batch), header, 10**6), start, from_ms)
    times = [(offset, record.timestamp_ms) for offset, record in enumerate(records) if offset >= start]
    assert first == next(((offset, time) for offset, time in times if time >= from_ms), None)
    assert newest == max((time for _, time in times), default=-(2**63))


@given(records=record_lists(max_size=6), needs_key=st.booleans(), limit=st.integers(1, 4), data=st.data())
def test_both_kernels_refuse_the_same_records(
    records: list[Record], needs_key: bool, limit: int, data: st.DataObject
) -> None:
    section = damaged_section(records, data)
    bounds = st.sampled_from([record.timestamp_ms for record in records] + [-(2**63), 2**63 - 1])
    arguments = (section, needs_key, data.draw(bounds), data.draw(bounds), limit)
    assert outcome(COMPILED.refused_records, *arguments) == outcome(TWIN.refused_records, *arguments)


@both_kernels
@given(records=record_lists(max_size=6), needs_key=st.booleans(), data=st.data())
def test_refused_are_those_without_a_key_and_outside_of_the_time(
    chosen: Kernel, records: list[Record], needs_key: bool, data: st.DataObject
) -> None:
    (batch,) = encode_columns(columns_of(records))
    ((_, header),) = iter_headers(batch)
    times = st.sampled_from([record.timestamp_ms for record in records])
    oldest, newest = data.draw(times), data.draw(times)
    found = chosen.refused_records(section_of(memoryview(batch), header, 10**6), needs_key, oldest, newest, 1_000)
    assert found == [
        (index, None if needs_key and record.key is None else record.timestamp_ms)
        for index, record in enumerate(records)
        if (needs_key and record.key is None)
        or (record.timestamp_ms != -1 and not oldest <= record.timestamp_ms <= newest)
    ]


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
