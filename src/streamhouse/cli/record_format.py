"""How `consume` prints a record: its value, one JSON object, one readable line, or a template of the user's."""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from streamhouse.cli.escape import escape_bytes
from streamhouse.model.errors import InvalidInput

if TYPE_CHECKING:
    from streamhouse.client.consumer import ConsumedRecord

Renderer = Callable[["ConsumedRecord"], bytes]
_Part = Callable[["ConsumedRecord", "_ShowBytes"], bytes]
_ShowBytes = Callable[[bytes | None], bytes]

TEMPLATE_HELP = "%k key, %v value, %o offset, %p partition, %t topic, %T timestamp in ms, %h headers, %% percent"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}


def record_renderer(format_text: str, *, escape: bool) -> Renderer:
    """The renderer that a --format names; `escape` keeps control characters from a terminal."""
    show = _shown_escaped if escape else _shown_raw
    match format_text:
        case "value":
            return lambda record: show(record.value) + b"\n"
        case "json":
            return lambda record: json.dumps(record_as_json(record), ensure_ascii=True).encode() + b"\n"
        case "full":
            return lambda record: _full_line(record, show)
        case _ if "%" in format_text:
            parts = _parse_template(format_text)
            return lambda record: b"".join(part(record, show) for part in parts) + b"\n"
    raise InvalidInput(
        f"{format_text!r} is not a format", hint=f"use value, json, full, or a template of {TEMPLATE_HELP}"
    )


def record_as_json(record: ConsumedRecord) -> dict[str, object]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": bytes_as_json(record.key),
        "value": bytes_as_json(record.value),
        "headers": [{"key": name, "value": bytes_as_json(value)} for name, value in record.headers],
    }


def bytes_as_json(data: bytes | None) -> str | dict[str, str] | None:
    """Text where the bytes are text; otherwise an object that nobody can take for text."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def show_timestamp(timestamp_ms: int) -> str:
    """A record's time in UTC; what lies outside the calendar stays a number."""
    try:
        moment = datetime.datetime.fromtimestamp(timestamp_ms / 1000, datetime.UTC)
    except (OverflowError, ValueError, OSError):
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _parse_template(template: str) -> list[_Part]:
    parts: list[_Part] = []
    literal: list[str] = []
    characters = iter(template)
    for character in characters:
        if character == "\\":
            following = next(characters, "\\")
            literal.append(_ESCAPES.get(following, "\\" + following))
        elif character != "%":
            literal.append(character)
        elif (directive := next(characters, "")) == "%":
            literal.append("%")
        elif directive in _DIRECTIVES:
            parts += [_literal("".join(literal)), _DIRECTIVES[directive]]
            literal.clear()
        else:
            raise InvalidInput(f"template {template!r}: unknown directive '%{directive}'", hint=TEMPLATE_HELP)
    parts.append(_literal("".join(literal)))
    return parts


def _literal(text: str) -> _Part:
    encoded = text.encode("utf-8", "surrogateescape")
    return lambda record, show: encoded


def _full_line(record: ConsumedRecord, show: _ShowBytes) -> bytes:
    place = f"{record.partition}:{record.offset} {show_timestamp(record.timestamp_ms)} key=".encode()
    headers = b" headers=" + _headers(record, show) if record.headers else b""
    return place + show(record.key) + headers + b" value=" + show(record.value) + b"\n"


def _headers(record: ConsumedRecord, show: _ShowBytes) -> bytes:
    return b",".join(
        show(name.encode("utf-8", "surrogateescape")) + b"=" + show(value) for name, value in record.headers
    )


def _shown_escaped(data: bytes | None) -> bytes:
    return b"null" if data is None else escape_bytes(data).encode()


def _shown_raw(data: bytes | None) -> bytes:
    return b"null" if data is None else data


_DIRECTIVES: Mapping[str, _Part] = MappingProxyType(
    {
        "k": lambda record, show: show(record.key),
        "v": lambda record, show: show(record.value),
        "o": lambda record, show: str(record.offset).encode(),
        "p": lambda record, show: str(record.partition).encode(),
        "t": lambda record, show: record.topic.encode(),
        "T": lambda record, show: str(record.timestamp_ms).encode(),
        "h": lambda record, show: _headers(record, show),
    }
)
