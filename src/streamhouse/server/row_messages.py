"""Answers made of rows: what is little at once, much on a thread. A header costs as much as a record, and so does a
field that is cut out of it; of long values, every byte is read to see what they are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

T = TypeVar("T")
_FEW_PARTS = 2_000
_FEW_BYTES = 64 * 1024


class Row(Protocol):
    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...

    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]: ...


async def made_of(rows: Iterable[Row], make: Callable[[], T], *, fields: int = 0) -> T:
    """What `make` makes of these rows, and of so many fields of each."""
    return make() if _is_little(rows, fields) else await asyncio.to_thread(make)


def _is_little(rows: Iterable[Row], fields: int) -> bool:
    left_parts, left_bytes = _FEW_PARTS, _FEW_BYTES
    for row in rows:
        left_parts -= 1 + fields + len(row.headers)
        left_bytes -= len(row.key or b"") + len(row.value or b"") + sum(len(value or b"") for _, value in row.headers)
        if left_parts < 0 or left_bytes < 0:
            return False
    return True
