"""Keys, values and headers, which are bytes, in JSON, which has none.

- `json`: any JSON, stored as it was written;
- `text`: a string, stored as UTF-8 (what is no string, as its JSON);
- `base64`: bytes.

null, or nothing, is null whatever the format: as a value, it deletes its key in a compacted topic."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from streamhouse.model.errors import InvalidInput

Format = Literal["json", "text", "base64"]
ShownAs = Literal["auto", "json", "text", "base64"]

_RAW = msgspec.json.Decoder(Raw)
_ANYTHING = msgspec.json.Decoder()
_NULL = Raw(b"null")


class Header(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names may repeat, and their order is kept."""

    name: str
    value: str | None = None
    format: Annotated[Literal["text", "base64"], Meta(description="What `value` is")] = "text"


Headers = dict[str, str | None] | list[Header]


def bytes_of(given: Raw, written_as: Format) -> bytes | None:
    """What to store. The message that holds it was decoded, so it is JSON, but perhaps not UTF-8."""
    data = bytes(given)
    if not data or data == b"null":
        return None
    try:
        data.decode()
        if written_as == "json":
            return data
        is_string = data.startswith(b'"')
        if written_as == "text":
            return str(_ANYTHING.decode(data)).encode() if is_string else data
        if is_string:
            return b64decode(_ANYTHING.decode(data), validate=True)
    except ValueError:  # of UTF-8 or of base64; of JSON, by strings that say no text
        pass
    raise InvalidInput(
        f"{data[:40].decode('utf-8', 'replace')} is not {written_as}", hint="say its format: json, text or base64"
    )


def headers_of(given: Headers) -> tuple[tuple[str, bytes | None], ...]:
    if not given:
        return ()
    if isinstance(given, dict):
        return tuple((name, None if value is None else value.encode()) for name, value in given.items())
    return tuple((header.name, _header_value(header)) for header in given)


def _header_value(header: Header) -> bytes | None:
    if header.value is None:
        return None
    if header.format == "text":
        return header.value.encode()
    try:
        return b64decode(header.value, validate=True)
    except ValueError:
        raise InvalidInput(f"the value of header {header.name[:40]} is not base64") from None


def shown(data: bytes | None, wish: ShownAs) -> tuple[Raw, Format | None]:
    """As wished if it can be, else as bytes; and how it is shown. `auto` is JSON if it is that, else text if it is."""
    if data is None:
        return _NULL, None
    if wish in ("auto", "json") and _is_json(data):
        return Raw(data), "json"
    if wish in ("auto", "text"):
        try:
            return Raw(msgspec.json.encode(data.decode())), "text"
        except UnicodeDecodeError:
            pass
    return Raw(b'"' + b64encode(data) + b'"'), "base64"


def shown_headers(headers: Iterable[tuple[str, bytes | None]]) -> list[Header]:
    return [_shown_header(name, value) for name, value in headers]


def _shown_header(name: str, value: bytes | None) -> Header:
    try:
        return Header(name=name, value=None if value is None else value.decode())
    except UnicodeDecodeError:
        assert value is not None
        return Header(name=name, value=b64encode(value).decode(), format="base64")


def _is_json(data: bytes) -> bool:
    """And nothing around it: what is shown must be what is stored."""
    try:
        data.decode()
        return len(bytes(_RAW.decode(data))) == len(data)
    except (ValueError, RecursionError):
        return False
