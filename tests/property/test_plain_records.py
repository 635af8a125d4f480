"""What REST takes as columns is what it would have taken record by record."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from streamhouse.format.rows import records_of
from streamhouse.model.errors import InvalidInput
from streamhouse.wire.http.rest.formats import bytes_of, headers_of
from streamhouse.wire.http.rest.plain_records import plain_columns, stored_run
from streamhouse.wire.http.rest.records import ProduceAnswer, ProduceRequest, ProduceResult

NOW_MS = 1_767_225_600_000
_DECODER = msgspec.json.Decoder(ProduceRequest)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_plain = st.fixed_dictionaries(
    {},
    optional={
        "key": st.none() | st.text(max_size=8) | st.integers(),
        "value": _json,
        "partition": st.integers(0, 3),
        "timestamp_ms": st.none() | st.integers(0, 2**53),
    },
)
_special = st.sampled_from([{"headers": {"a": "b"}}, {"key_format": "base64"}, {"value_format": "text"}])


def request_of(records: list[dict[str, Any]], *, is_ascii: bool = True, **formats: str) -> ProduceRequest:
    return _DECODER.decode(json.dumps({"records": records, **formats}, ensure_ascii=is_ascii).encode())


@settings(max_examples=300, deadline=None, database=None)
@given(st.lists(_plain, min_size=1, max_size=6), st.booleans())
def test_columns_hold_what_each_record_would_be(records: list[dict[str, Any]], is_ascii: bool) -> None:
    try:
        request = request_of(records, is_ascii=is_ascii)
    except UnicodeEncodeError:  # half a surrogate pair, which no client can send
        return
    try:
        expected = [
            (
                NOW_MS if each.timestamp_ms is None else each.timestamp_ms,
                bytes_of(each.key, "text"),
                bytes_of(each.value, "json"),
                headers_of(each.headers),
            )
            for each in request.records
        ]
    except InvalidInput:
        assert plain_columns(request, NOW_MS) is None
        return
    columns = plain_columns(request, NOW_MS)
    assert columns is not None
    assert [(row.timestamp_ms, row.key, row.value, row.headers) for row in records_of(columns)] == expected


@given(st.lists(_plain, max_size=3), _special, st.lists(_plain, max_size=3))
def test_a_record_with_something_of_its_own_is_not_taken_so(before: list[Any], special: Any, after: list[Any]) -> None:
    assert plain_columns(request_of([*before, special, *after]), NOW_MS) is None


def test_requests_in_other_formats_are_not_taken_so() -> None:
    assert plain_columns(request_of([{"value": "AA=="}], value_format="base64"), NOW_MS) is None
    assert plain_columns(request_of([{"key": "AA=="}], key_format="base64"), NOW_MS) is None


def test_bytes_that_are_not_utf8_are_left_to_be_refused_each_for_itself() -> None:
    request = _DECODER.decode(b'{"records": [{"value": 1}, {"value": "\xff"}]}')
    assert plain_columns(request, NOW_MS) is None


@given(st.integers(0, 2**31 - 1), st.integers(0, 2**62), st.integers(1, 50), st.integers(0, 2**53))
def test_the_answer_is_the_one_that_a_message_makes(partition: int, base: int, count: int, timestamp_ms: int) -> None:
    records = [
        ProduceResult(partition=partition, offset=base + index, timestamp_ms=timestamp_ms) for index in range(count)
    ]
    assert stored_run(partition, base, count, timestamp_ms) == msgspec.json.encode(ProduceAnswer(records=records))
