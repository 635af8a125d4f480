"""Frames of the Kafka protocol: a size, a header, and the body that the message codecs read and write."""

from __future__ import annotations

from struct import Struct
from typing import Final

import msgspec

from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import MalformedRequest
from streamhouse.wire.kafka.reading import TRUNCATED, read_nullable_string, skip_tagged_fields
from streamhouse.wire.kafka.registry import APIS, Api, request_header_version, response_header_version
from streamhouse.wire.kafka.writing import write_nullable_string

SIZE_BYTES: Final = 4
"""The size prefix of a frame, which does not count itself."""

_unpack_request_head = Struct(">hhi").unpack_from
_unpack_correlation_id = Struct(">i").unpack_from
_pack_request_head = Struct(">ihhi").pack
_pack_response_head = Struct(">ii").pack
_pack_flexible_response_head = Struct(">iix").pack
_pack_size = Struct(">i").pack_into

_REQUEST_HEAD_BYTES: Final = 8


class RequestHeader(msgspec.Struct, frozen=True, gc=False):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_pos: int
    """Where the body begins; meaningless if `api` and `api_version` are not ones that the codec knows."""
    api: Api | None = None
    """The API, if the codec knows it in this version."""


class ResponseHeader(msgspec.Struct, frozen=True, gc=False):
    correlation_id: int
    body_pos: int


def decode_request_header(buf: memoryview, pos: int, end: int) -> RequestHeader:
    """Read the header of the frame in `[pos, end)`, without its size.

    The answer to an unknown version needs the correlation id, so an unknown key or version is not an error here: `api`
    is None then, and the client id is read if it can be.
    """
    buf = buf[:end]
    try:
        key, version, correlation_id = _unpack_request_head(buf, pos)
    except TRUNCATED as error:
        raise MalformedRequest(f"a request of {end - pos} bytes has no header") from error
    pos += _REQUEST_HEAD_BYTES
    api = APIS.get(key)
    if api is None or not api.supports(version):
        return RequestHeader(key, version, correlation_id, _client_id_if_readable(buf, pos, end), end)
    try:
        client_id, pos = read_nullable_string(buf, pos, end)
        if api.is_flexible(version):
            pos = pos + 1 if buf[pos] == 0 else skip_tagged_fields(buf, pos, end)
    except TRUNCATED as error:
        raise MalformedRequest(f"the header of {api.name} version {version}: {error}") from error
    return RequestHeader(key, version, correlation_id, client_id, pos, api)


def _client_id_if_readable(buf: memoryview, pos: int, end: int) -> str | None:
    try:
        return read_nullable_string(buf, pos, end)[0]
    except (MalformedRequest, *TRUNCATED):
        return None


def encode_request(
    api: Api, version: int, correlation_id: int, client_id: str | None, body: list[Buffer]
) -> list[Buffer]:
    """The whole frame, size included, in front of `body`."""
    head = bytearray(_pack_request_head(0, api.key, version, correlation_id))
    write_nullable_string(head, client_id)
    if request_header_version(api, version) == 2:
        head.append(0)
    _pack_size(head, 0, len(head) - SIZE_BYTES + sum(map(len, body)))
    return [head, *body]


def encode_response(correlation_id: int, api: Api, version: int, body: list[Buffer]) -> list[Buffer]:
    """The whole frame, size included, in front of `body`."""
    size = sum(map(len, body))
    if response_header_version(api, version) == 0:
        return [_pack_response_head(4 + size, correlation_id), *body]
    return [_pack_flexible_response_head(5 + size, correlation_id), *body]


def decode_response_header(buf: memoryview, pos: int, end: int, api: Api, version: int) -> ResponseHeader:
    """Read the header of the response in `[pos, end)`, without its size, to a request of `api` in `version`."""
    buf = buf[:end]
    try:
        (correlation_id,) = _unpack_correlation_id(buf, pos)
        pos += 4
        if response_header_version(api, version) == 1:
            pos = skip_tagged_fields(buf, pos, end)
    except TRUNCATED as error:
        raise MalformedRequest(f"the response header of {api.name} version {version}: {error}") from error
    return ResponseHeader(correlation_id, pos)
