"""Headers in both directions, also of requests that nobody here understands."""

from __future__ import annotations

import pytest

from streamhouse.model.errors import MalformedRequest
from streamhouse.wire.kafka import frame
from streamhouse.wire.kafka.messages import api_versions, fetch, metadata, produce
from streamhouse.wire.kafka.registry import APIS

_PRODUCE = APIS[produce.API_KEY]
_FETCH = APIS[fetch.API_KEY]
_METADATA = APIS[metadata.API_KEY]
_API_VERSIONS = APIS[api_versions.API_KEY]


def _joined(buffers: list[bytes | bytearray | memoryview]) -> memoryview:
    return memoryview(b"".join(buffers))


def test_a_legacy_request_has_a_size_a_header_and_its_body() -> None:
    raw = bytes(_joined(frame.encode_request(_METADATA, 1, 7, "cli", [b"body"])))

    assert raw == b"\x00\x00\x00\x11" + b"\x00\x03" + b"\x00\x01" + b"\x00\x00\x00\x07" + b"\x00\x03cli" + b"body"


def test_a_flexible_request_has_tagged_fields_behind_the_old_style_client_id() -> None:
    raw = bytes(_joined(frame.encode_request(_METADATA, 9, 7, None, [b"bo", b"dy"])))

    assert (
        raw == b"\x00\x00\x00\x0f" + b"\x00\x03" + b"\x00\x09" + b"\x00\x00\x00\x07" + b"\xff\xff" + b"\x00" + b"body"
    )


@pytest.mark.parametrize("version", [3, 9])
@pytest.mark.parametrize("client_id", [None, "", "orders-é"])
def test_a_request_header_comes_back_as_it_went_out(version: int, client_id: str | None) -> None:
    raw = _joined([b"??", *frame.encode_request(_PRODUCE, version, -5, client_id, [b"body"])])

    header = frame.decode_request_header(raw, 2 + frame.SIZE_BYTES, len(raw))

    assert (header.api_key, header.api_version, header.correlation_id) == (0, version, -5)
    assert header.client_id == client_id
    assert header.api is _PRODUCE
    assert raw[header.body_pos :] == b"body"


def test_tagged_fields_of_a_request_header_are_skipped() -> None:
    raw = memoryview(b"\x00\x03\x00\x09\x00\x00\x00\x01\xff\xff" + b"\x01\x00\x02xy" + b"body")

    assert raw[frame.decode_request_header(raw, 0, len(raw)).body_pos :] == b"body"


@pytest.mark.parametrize(
    ("key", "version"), [(0, 2), (0, 99), (18, 127), (999, 0), (-1, 0), (1, -1)], ids=lambda number: str(number)
)
def test_an_unknown_key_or_version_still_says_whom_to_answer(key: int, version: int) -> None:
    head = key.to_bytes(2, signed=True) + version.to_bytes(2, signed=True) + b"\x00\x00\x00\x2a"

    for rest, client_id in ((b"\x00\x02me", "me"), (b"\xff\xff", None), (b"\x00\x09me", None), (b"", None)):
        raw = memoryview(head + rest)
        header = frame.decode_request_header(raw, 0, len(raw))
        assert (header.api_key, header.api_version, header.correlation_id) == (key, version, 42)
        assert header.client_id == client_id
        assert header.api is None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x00\x00\x00\x03\x00\x00\x00",
        b"\x00\x00\x00\x03\x00\x00\x00\x01",
        b"\x00\x00\x00\x03\x00\x00\x00\x01\x00\x05abcd",
        b"\x00\x00\x00\x03\x00\x00\x00\x01\xff\xfe",
        b"\x00\x00\x00\x03\x00\x00\x00\x01\x00\x02\xc3\x28",
        b"\x00\x00\x00\x09\x00\x00\x00\x01\xff\xff",
        b"\x00\x00\x00\x09\x00\x00\x00\x01\xff\xff\x01\x00\x09",
    ],
)
def test_a_damaged_request_header_is_refused_although_the_buffer_goes_on(raw: bytes) -> None:
    with pytest.raises(MalformedRequest):
        frame.decode_request_header(memoryview(raw + bytes(32)), 0, len(raw))


def test_a_legacy_response_has_only_a_correlation_id() -> None:
    raw = _joined(frame.encode_response(9, _FETCH, 11, [b"body"]))

    assert raw == b"\x00\x00\x00\x08\x00\x00\x00\x09body"
    header = frame.decode_response_header(raw, frame.SIZE_BYTES, len(raw), _FETCH, 11)
    assert (header.correlation_id, raw[header.body_pos :]) == (9, b"body")


def test_a_flexible_response_has_tagged_fields() -> None:
    raw = _joined(frame.encode_response(9, _FETCH, 12, [b"body"]))

    assert raw == b"\x00\x00\x00\x09\x00\x00\x00\x09\x00body"
    header = frame.decode_response_header(raw, frame.SIZE_BYTES, len(raw), _FETCH, 12)
    assert (header.correlation_id, raw[header.body_pos :]) == (9, b"body")


@pytest.mark.parametrize("version", range(5))
def test_the_response_of_api_versions_never_has_a_flexible_header(version: int) -> None:
    assert _joined(frame.encode_response(1, _API_VERSIONS, version, [b"body"])) == b"\0\0\0\x08\0\0\0\x01body"


def test_the_body_of_a_response_is_not_copied() -> None:
    records = memoryview(bytes(1_000_000))

    buffers = frame.encode_response(1, _FETCH, 12, [b"head", records])

    assert buffers[-1] is records


def test_a_damaged_response_header_is_refused() -> None:
    for raw in (b"\x00\x00\x00", b"\x00\x00\x00\x01", b"\x00\x00\x00\x01\x01\x00\x05ab"):
        with pytest.raises(MalformedRequest):
            frame.decode_response_header(memoryview(raw + bytes(16)), 0, len(raw), _FETCH, 12)
