"""Reading a message's fields: every length is checked against what is there before anything is copied."""

from __future__ import annotations

from struct import Struct

from streamhouse.model.errors import MalformedRequest

_int16 = Struct(">h")
_int32 = Struct(">i")
_int64 = Struct(">q")


class FieldReader:
    """The fields of one message, in their order; `done` once it must be at its end."""

    __slots__ = ("_data", "_end", "_pos")

    def __init__(self, data: memoryview, start: int, end: int) -> None:
        self._data = data
        self._pos = start
        self._end = end

    def int16(self) -> int:
        value: int = _int16.unpack_from(self._data, self._advance(2))[0]
        return value

    def int32(self) -> int:
        value: int = _int32.unpack_from(self._data, self._advance(4))[0]
        return value

    def int64(self) -> int:
        value: int = _int64.unpack_from(self._data, self._advance(8))[0]
        return value

    def text(self) -> str:
        """A name, with a length of two bytes."""
        raw = self._bytes(self.int16())
        try:
            return str(raw, "utf-8")
        except UnicodeDecodeError:
            raise MalformedRequest("a name is not UTF-8") from None

    def blob(self) -> bytes:
        """A key or a payload, with a length of four bytes."""
        return bytes(self._bytes(self.int32()))

    def texts(self) -> tuple[str, ...]:
        """Several names, their number before them in two bytes."""
        return tuple(self.text() for _ in range(self._count(self.int16(), 2)))

    def count(self, least_bytes: int) -> int:
        """How many things of at least so many bytes follow."""
        return self._count(self.int32(), least_bytes)

    def done(self) -> None:
        if self._pos != self._end:
            raise MalformedRequest(f"{self._end - self._pos} bytes follow the message's last field")

    def _count(self, number: int, least_bytes: int) -> int:
        if not 0 <= number <= (self._end - self._pos) // least_bytes:
            raise MalformedRequest(f"{number} things do not fit in {self._end - self._pos} bytes")
        return number

    def _bytes(self, size: int) -> memoryview:
        if size < 0:
            raise MalformedRequest(f"{size} is not a length")
        start = self._advance(size)
        return self._data[start : start + size]

    def _advance(self, size: int) -> int:
        start = self._pos
        if size > self._end - start:
            raise MalformedRequest(f"a field of {size} bytes does not fit in {self._end - start}")
        self._pos = start + size
        return start
