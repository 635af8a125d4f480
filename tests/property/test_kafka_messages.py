"""Every Kafka message in every version: round trips, agreement with other codecs, and hostile bytes."""

from __future__ import annotations

import tracemalloc
from random import Random

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_oracles.messages import Case, api_cases, data_cases, messages
from kafka_oracles.oracles import (
    differences,
    kafka_python_knows,
    kafka_python_reads,
    kafka_python_writes,
    kio_again,
)
from streamhouse.model.errors import MalformedRequest

_CASES = api_cases() + data_cases()
_KINDS = {(case.api, case.kind): [other for other in _CASES if other.name == case.name] for case in _CASES}
_every_case = pytest.mark.parametrize("case", _CASES, ids=str)
_every_kind = pytest.mark.parametrize("cases", _KINDS.values(), ids=["-".join(kind) for kind in _KINDS])
_every_request = pytest.mark.parametrize(
    "cases", [cases for (_, kind), cases in _KINDS.items() if kind == "request"], ids=lambda cases: cases[0].api
)


def _examples(count: int) -> settings:
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=count, deadline=None, database=None, suppress_health_check=slow)


@_every_case
@_examples(5)
@given(data=st.data())
def test_a_message_comes_back_as_it_went_in_and_others_write_the_same_bytes(case: Case, data: st.DataObject) -> None:
    message = data.draw(messages(case))
    raw = case.encode(message)

    assert case.decode(raw) == message
    assert kio_again(case, raw) == raw
    if kafka_python_knows(case):
        theirs = kafka_python_reads(case, raw)
        assert differences(message, theirs) == []
        assert kafka_python_writes(theirs) == raw


def test_kafka_python_is_an_oracle_for_all_but_what_it_lacks() -> None:
    unknown = {case.name for case in api_cases() if not kafka_python_knows(case)}

    groups = {"ConsumerGroupHeartbeat", *(f"{kind}GroupDescribe" for kind in ("Consumer", "Share", "Streams"))}
    offsets = {f"{action}ShareGroupOffsets" for action in ("Describe", "Alter", "Delete")}
    tokens = {f"{action}DelegationToken" for action in ("Create", "Renew", "Expire", "Describe")}
    assert unknown == {f"{api}{kind}" for api in groups | offsets | tokens for kind in ("Request", "Response")}


@_every_kind
@_examples(15)
@given(data=st.data())
def test_every_truncation_is_refused_although_the_buffer_goes_on(cases: list[Case], data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(cases))
    raw = case.encode(data.draw(messages(case)))
    buf = memoryview(b"???" + raw + b"\0" * 64)

    for cut in range(0, len(raw), 1 + len(raw) // 200):
        with pytest.raises(MalformedRequest):
            case.decode_between(buf, 3, 3 + cut)
    assert case.encode(case.decode_between(buf, 3, 3 + len(raw))) == raw


@_every_request
@_examples(15)
@given(data=st.data())
def test_bytes_after_the_end_of_a_request_change_nothing(cases: list[Case], data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(cases))
    raw = case.encode(data.draw(messages(case)))

    assert case.encode(case.decode(raw + data.draw(st.binary(min_size=1, max_size=4)))) == raw


_HOSTILE = (
    b"",
    b"\x7f\xff\xff\xff",  # the largest count of the legacy encoding
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xfe",
    b"\xff\xff\xff\xff\x0f",  # the largest varint
    b"\xff\xff\xff\xff\x7f",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\xc3\x28",  # not UTF-8
)


@_every_kind
@_examples(25)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_damaged_bytes_are_read_or_refused_and_nothing_else(cases: list[Case], data: st.DataObject, seed: int) -> None:
    case = data.draw(st.sampled_from(cases))
    raw = case.encode(data.draw(messages(case)))
    random = Random(seed)
    for _ in range(30):
        damaged = bytearray(raw)
        for _ in range(random.randint(1, 3)):
            position = random.randint(0, len(damaged))
            damage = random.choice((*_HOSTILE, random.randbytes(random.randint(1, 4))))
            damaged[position : position + random.randint(0, 6)] = damage
        _read_or_refused(case, damaged)


@_every_kind
@_examples(30)
@given(data=st.data(), raw=st.binary(max_size=200))
def test_random_bytes_are_read_or_refused_and_nothing_else(cases: list[Case], data: st.DataObject, raw: bytes) -> None:
    _read_or_refused(data.draw(st.sampled_from(cases)), raw)


@pytest.mark.parametrize("byte", [0x00, 0x01, 0x02, 0x7F, 0x80, 0xFF])
def test_one_byte_repeated_is_read_or_refused_and_nothing_else(byte: int) -> None:
    for case in _CASES:
        _read_or_refused(case, bytes([byte]) * 300)


def _read_or_refused(case: Case, raw: bytes | bytearray) -> None:
    try:
        message = case.decode(raw)
    except MalformedRequest:
        return
    assert isinstance(message, msgspec.Struct)


@_every_kind
@_examples(5)
@given(data=st.data())
def test_a_count_that_promises_more_than_the_bytes_hold_allocates_nothing_for_it(
    cases: list[Case], data: st.DataObject
) -> None:
    case = data.draw(st.sampled_from(cases))
    raw = case.encode(data.draw(messages(case)))[:200]
    huge = b"\xff\xff\xff\xff\x0f" if case.is_flexible else b"\x7f\xff\xff\xff"
    tracemalloc.start()
    try:
        for position in range(len(raw)):
            _read_or_refused(case, raw[:position] + huge + raw[position + len(huge) :])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
