"""Answers made of rows: a few at once, many on a thread, for each header costs as much as a record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

T = TypeVar("T")
_FEW_PARTS = 2_000


class Row(Protocol):
    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]: ...


async def made_of(rows: Iterable[Row], make: Callable[[], T]) -> T:
    """What `make` makes of these rows."""
    if sum(1 + len(row.headers) for row in rows) <= _FEW_PARTS:
        return make()
    return await asyncio.to_thread(make)
