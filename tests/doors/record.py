"""A stored record as a door shows it; what the door cannot show is NOT_SHOWN."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal


class _NotShown(Enum):
    NOT_SHOWN = "not shown"


NOT_SHOWN: Final = _NotShown.NOT_SHOWN
Absent = Literal[_NotShown.NOT_SHOWN]
Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int | None = None
    """None: whatever the node takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    offset: int
    value: bytes | None
    key: bytes | Absent | None = NOT_SHOWN
    headers: Headers | Absent = NOT_SHOWN
    timestamp_ms: int | Absent = NOT_SHOWN

    def agrees_with(self, other: Shown) -> bool:
        """In all that both show."""
        pairs = (
            (self.offset, other.offset),
            (self.value, other.value),
            (self.key, other.key),
            (self.headers, other.headers),
            (self.timestamp_ms, other.timestamp_ms),
        )
        return all(mine == theirs or NOT_SHOWN in (mine, theirs) for mine, theirs in pairs)


_START_MS = 1_700_000_000_000
_ODD_HEADERS: Headers = (("trace", b"abc"), ("empty", b""), ("none", None), ("bytes", b"\xff\x80"), ("trace", b"again"))

SAMPLES = (
    Sample(key=b"customer-1", value=b'{"order": 1}', timestamp_ms=_START_MS),
    Sample(key=None, value=b"no key", timestamp_ms=_START_MS + 1),
    Sample(key=b"customer-2", value=None, timestamp_ms=_START_MS + 2),
    Sample(key=b"customer-3", value=b"with headers", headers=_ODD_HEADERS, timestamp_ms=_START_MS + 3),
    Sample(key=b"", value=b"", timestamp_ms=_START_MS + 4),
    Sample(key="ключ-😀".encode(), value="значение <b>😀</b>".encode(), timestamp_ms=_START_MS - 86_400_000),
    Sample(key=b"\xff\xfe\x80", value=bytes(range(256)), timestamp_ms=_START_MS + 6),
    Sample(key=b"customer-7", value=b"the same again and again " * 400, timestamp_ms=_START_MS + 7),
)
FLUME_SAMPLES = tuple(
    Sample(key=sample.key or None, value=sample.value) for sample in SAMPLES if sample.value is not None
)
"""Flume's frames have no headers and no times; no key and an empty one are the same, and so are payloads."""
