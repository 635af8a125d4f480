"""One page of a sorted list."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Key = TypeVar("Key", str, int)


def page(items: Iterable[Item], limit: int, key: Callable[[Item], Key]) -> tuple[list[Item], Key | None]:
    """The first so many, and where the next page begins: behind the last of them, if there are more."""
    some = list(islice(items, limit + 1))
    return (some, None) if len(some) <= limit else (some[:limit], key(some[limit - 1]))
