"""What is around every message, `Size` counting the bytes that follow it:

Request:  [Size:4][APIKey:2][RequestID:4][Payload]
Response: [Size:4][RequestID:4][Payload]
"""

from __future__ import annotations

from struct import Struct

from streamhouse.model.errors import MalformedRequest

SIZE_BYTES = 4
REQUEST_HEADER_BYTES = 6
RESPONSE_HEADER_BYTES = 4

_size = Struct(">i")
_request_header = Struct(">hi")
_request = Struct(">ihi")
_response = Struct(">ii")


def decode_request_header(buffer: memoryview, start: int, end: int) -> tuple[int, int]:
    """API key and request id of a frame without its size; the payload follows after REQUEST_HEADER_BYTES."""
    if end - start < REQUEST_HEADER_BYTES:
        raise MalformedRequest(f"a request of {end - start} bytes is shorter than its header")
    api_key, request_id = _request_header.unpack_from(buffer, start)
    return api_key, request_id


def encode_request(api_key: int, request_id: int, payload: bytes) -> bytes:
    return _request.pack(REQUEST_HEADER_BYTES + len(payload), api_key, request_id) + payload


def encode_response(request_id: int, payload: bytes) -> bytes:
    return _response.pack(RESPONSE_HEADER_BYTES + len(payload), request_id) + payload


def decode_size(buffer: bytes, limit_bytes: int) -> int:
    """How many bytes of a response follow its size."""
    (size,) = _size.unpack(buffer)
    if not RESPONSE_HEADER_BYTES <= size <= limit_bytes:
        raise MalformedRequest(f"a response of {size} bytes is not between {RESPONSE_HEADER_BYTES} and {limit_bytes}")
    return int(size)


def decode_request_id(response: bytes) -> int:
    """Of a response without its size; the payload follows after RESPONSE_HEADER_BYTES."""
    return int(_size.unpack_from(response)[0])
