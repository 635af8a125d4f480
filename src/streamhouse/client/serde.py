"""What a record's key and value are to Python: JSON, text or bytes; or anything that brings its own codec."""

from __future__ import annotations

from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec

from streamhouse.client.consumer import ConsumedRecord
from streamhouse.model.errors import InvalidInput

T = TypeVar("T")

Format = Literal["json", "text", "bytes"]


class Serde(Protocol[T]):
    """One codec each way. None is Kafka's null: a record without a key, or one that says that its key is gone."""

    def encode(self, value: T) -> bytes | None: ...

    def decode(self, data: bytes | None) -> T:
        """ValueError if that is not what the bytes are."""


class BadRecord(InvalidInput):
    """A record that is not what its reader was told to expect; it is here as it came, and the next one can be read."""

    def __init__(self, record: ConsumedRecord, reason: str) -> None:
        super().__init__(
            f"{record.topic}/{record.partition} offset {record.offset}: {reason}",
            hint="skip it and read on, or read with format='bytes'",
        )
        self.record = record


class JsonSerde(Generic[T]):
    """What msgspec can read and write: also dataclasses, Structs, dates, decimals, UUIDs, enums."""

    def __init__(self, kind: Any = Any) -> None:
        self._kind = kind
        self._encoder = msgspec.json.Encoder()
        try:
            self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(kind)
        except TypeError as problem:
            raise InvalidInput(f"{kind} cannot be read from JSON: {problem}") from None

    def encode(self, value: T) -> bytes | None:
        if value is None:
            return None
        try:
            return self._encoder.encode(value)
        except (TypeError, ValueError) as problem:
            raise InvalidInput(f"{type(value).__name__} cannot be written as JSON: {problem}") from None

    def decode(self, data: bytes | None) -> T:
        if data is not None:
            return self._decoder.decode(data)
        # A tombstone is None to those whose type has room for it; the others hear of it.
        absent: T = msgspec.convert(None, self._kind)
        return absent


class TextSerde:
    def encode(self, value: str | bytes | None) -> bytes | None:
        if value is None or isinstance(value, bytes):
            return value
        if not isinstance(value, str):
            raise InvalidInput(f"{type(value).__name__} is not text", hint="convert it, or use format='json'")
        return value.encode()

    def decode(self, data: bytes | None) -> str | None:
        return None if data is None else data.decode()


class BytesSerde:
    def encode(self, value: bytes | bytearray | memoryview | None) -> bytes | None:
        if value is None:
            return None
        if not isinstance(value, bytes | bytearray | memoryview):
            raise InvalidInput(f"{type(value).__name__} is not bytes", hint="encode it, or use format='json'")
        return bytes(value)

    def decode(self, data: bytes | None) -> bytes | None:
        return data


def serde_of(wanted: Format | Serde[Any], kind: Any = None) -> Serde[Any]:
    """`kind` is the type of JSON values; the others have only one."""
    if not isinstance(wanted, str):
        return wanted
    if kind is not None and wanted != "json":
        raise InvalidInput(f"format {wanted!r} has no types", hint="leave `type` out, or use format='json'")
    match wanted:
        case "json":
            return JsonSerde(Any if kind is None else kind)
        case "text":
            return TextSerde()
        case "bytes":
            return BytesSerde()
    raise InvalidInput(f"{wanted!r} is no format", hint="use 'json', 'text', 'bytes' or a codec of your own")
