"""A record's parts by name: `value.customer.id`, `key`, `headers.trace`, `offset`, `timestamp`."""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from streamhouse.core.search.quoted import text_in
from streamhouse.format.rows import Record
from streamhouse.model.errors import InvalidInput

MAX_FIELDS = 20
MAX_STEPS = 16
"""From a key or a value to one of its parts: for each, what is around the next is read."""
MAX_JSON_BYTES = 2 * 2**20
"""So much is read as JSON: what is longer may become thousands of times as many objects, and holds up all threads while
it does. By default no record is as long."""
_ROOTS = ("key", "value", "headers", "offset", "timestamp")
_STRING = r'"(?:[^"\\]|\\.)*"'
FIELD_PATTERN = rf"[^\W\d]\w*(?:\.[\w-]+|\[\d{{1,9}}\]|\[{_STRING}\])*"
_FIELD = re.compile(FIELD_PATTERN)
_PART = re.compile(rf"\.([\w-]+)|\[(\d+)\]|\[({_STRING})\]")
_LIST = re.compile(rf"\s*({FIELD_PATTERN})\s*(,|$)")
_JSON = msgspec.json.Decoder()
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_RAW = msgspec.json.Decoder(msgspec.Raw)

_Inside = dict[str, msgspec.Raw] | list[msgspec.Raw]


class Row:
    """A record whose key and value are decoded once, when first asked for: None if they are not JSON."""

    __slots__ = ("_decoded", "record")

    def __init__(self, record: Record) -> None:
        self.record = record
        self._decoded: dict[str, object] = {}

    def json(self, root: str) -> object:
        if root not in self._decoded:
            self._decoded[root] = _decoded(_bytes(self.record, root))
        return self._decoded[root]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """`parts` lead into JSON; of headers there is one, a name. `name` is what somebody wrote."""

    name: str
    root: str
    parts: tuple[str, ...] = ()
    is_json: bool = False
    """A key or a value as a whole: what it says as JSON, instead of its text."""

    @property
    def reads_json(self) -> bool:
        return self.root in ("key", "value") and (bool(self.parts) or self.is_json)

    def of(self, row: Row) -> object:
        """None if there is no such thing, as if it were null."""
        record = row.record
        match self.root:
            case "offset":
                return record.offset
            case "timestamp":
                return record.timestamp_ms
            case "headers":
                return _text(header(record, self.parts[0]))
            case root if self.reads_json:
                found = row.json(root)
                for part in self.parts:
                    found = _step(found, part)
                return found
            case root:
                return _text(_bytes(record, root))


class WrittenRow:
    """A record as people read it. Of its JSON, each part is cut out once, however many fields lead into it."""

    __slots__ = ("_inside", "_record")

    def __init__(self, record: Record) -> None:
        self._record = record
        self._inside: dict[tuple[str, ...], _Inside] = {}

    def text(self, field: Field) -> str | None:
        """Strings as they are, all else as it was written, digit by digit."""
        match field.root:
            case "offset":
                return str(self._record.offset)
            case "timestamp":
                return str(self._record.timestamp_ms)
            case "headers":
                return _shown(header(self._record, field.parts[0]))
            case root if not field.parts:
                return _shown(_bytes(self._record, root))
            case root:
                return _text_of_json(self._cut(root, *field.parts))

    def _cut(self, *path: str) -> msgspec.Raw | None:
        """JSON cut out of JSON: read as numbers, those of more digits than fit would be others."""
        if len(path) == 1:
            return _whole(_bytes(self._record, path[0]))
        around, part = path[:-1], path[-1]
        if around not in self._inside:
            self._inside[around] = _inside(self._cut(*around))
        inside = self._inside[around]
        if isinstance(inside, dict):
            return inside.get(part)
        return inside[int(part)] if _is_index(part) and int(part) < len(inside) else None


def field_of(text: str, at: int = 0) -> Field:
    """Of a text that is a name and nothing else; `at` is where it stands in what somebody wrote."""
    found = _FIELD.match(text)
    if found is None or found.end() != len(text):
        raise InvalidInput(
            f"{text[:60]!r} is not the name of a field", hint='such as value.customer.id, or value["a b"]'
        )
    root = re.split(r"[.\[]", text, maxsplit=1)[0]
    parts = tuple(
        found[1] or found[2] or text_in(found[3], at + found.start(3)) for found in _PART.finditer(text, len(root))
    )
    if root not in _ROOTS:
        raise InvalidInput(
            f"character {at + 1}: there is no {root[:60]!r}",
            hint=f"a name begins with {', '.join(_ROOTS)}; a field of JSON values is value.{root[:60]}",
        )
    if root == "headers" and len(parts) != 1:
        raise InvalidInput(f"character {at + 1}: say which header", hint='headers.trace, or headers["a b"]')
    if root in ("offset", "timestamp") and parts:
        raise InvalidInput(f"character {at + 1}: {root} is a number and has no fields", hint=f"leave out {text[:60]}")
    if len(parts) > MAX_STEPS:
        raise InvalidInput(
            f"character {at + 1}: {text[:60]} goes {len(parts)} steps into a {root}", hint=f"up to {MAX_STEPS}"
        )
    return Field(name=text, root=root, parts=parts)


def fields_of(text: str) -> tuple[Field, ...]:
    """Names with commas between them."""
    text = text.rstrip()
    fields: list[Field] = []
    at = 0
    while at < len(text):
        found = _LIST.match(text, at)
        if found is None:
            raise InvalidInput(
                f"character {at + 1}: {text[at : at + 40]!r} is not the name of a field",
                hint="names with commas between them, such as value.customer.id,headers.trace",
            )
        fields.append(field_of(found[1], found.start(1)))
        at = found.end()
    if len(fields) > MAX_FIELDS:
        raise InvalidInput(f"{len(fields)} fields are too many", hint=f"up to {MAX_FIELDS}")
    return tuple(fields)


def header(record: Record, name: str) -> bytes | None:
    """The last one of that name, as consumers take it."""
    return next((value for each, value in reversed(record.headers) if each == name), None)


def _bytes(record: Record, root: str) -> bytes | None:
    return record.key if root == "key" else record.value


def is_too_long(data: bytes | None) -> bool:
    """To be read as JSON: then it has no fields."""
    return len(data or b"") > MAX_JSON_BYTES


def _decoded(data: bytes | None) -> object:
    if is_too_long(data):
        return None
    try:
        return _JSON.decode(data or b"")
    except (ValueError, RecursionError):
        return None


def _text(data: bytes | None) -> str | bytes | None:
    """What is no text is bytes."""
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return data


def _shown(data: bytes | None) -> str | None:
    text = _text(data)
    return f"0x{text.hex()}" if isinstance(text, bytes) else text


def _step(found: object, part: str) -> object:
    if isinstance(found, dict):
        return found.get(part)
    if isinstance(found, list) and _is_index(part) and int(part) < len(found):
        return found[int(part)]
    return None


def _is_index(part: str) -> bool:
    return part.isascii() and part.isdigit() and len(part) < 10


def _whole(data: bytes | None) -> msgspec.Raw | None:
    if is_too_long(data):
        return None
    try:
        return _RAW.decode(data or b"")
    except (ValueError, RecursionError):
        return None


def _inside(written: msgspec.Raw | None) -> _Inside:
    """What has no parts is like an empty list."""
    data = memoryview(written or b"")
    try:
        match bytes(data[:1]):
            case b"{":
                return _OBJECT.decode(data)
            case b"[":
                return _ARRAY.decode(data)
    except (ValueError, RecursionError):
        pass
    return []


def _text_of_json(written: msgspec.Raw | None) -> str | None:
    if written is None:
        return None
    data = bytes(written)
    try:
        return str(_JSON.decode(data)) if data.startswith(b'"') else data.decode()
    except (ValueError, RecursionError):
        return None
