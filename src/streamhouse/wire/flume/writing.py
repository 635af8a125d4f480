"""Writing the fields that have a length before them; a length that does not fit is the caller's mistake."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from streamhouse.model.errors import InvalidInput

_MAX_TEXT_BYTES = 2**15 - 1
_MAX_COUNT = 2**15 - 1
_int16 = Struct(">h")
_int32 = Struct(">i")


def text(value: str) -> bytes:
    try:
        encoded = value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{value[:80]!r} is not text") from None
    if len(encoded) > _MAX_TEXT_BYTES:
        raise InvalidInput(f"a name of {len(encoded)} bytes is too long", hint=f"{_MAX_TEXT_BYTES} are possible")
    return _int16.pack(len(encoded)) + encoded


def texts(values: Sequence[str]) -> bytes:
    if len(values) > _MAX_COUNT:
        raise InvalidInput(f"{len(values)} names are too many", hint=f"{_MAX_COUNT} are possible")
    return _int16.pack(len(values)) + b"".join(map(text, values))


def blob(value: bytes) -> bytes:
    return _int32.pack(len(value)) + value
