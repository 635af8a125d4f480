"""Requests that name a thing more than once, where the answer to it is much larger than its name."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")


def distinct(items: Iterable[T], key: Callable[[T], Hashable]) -> list[T]:
    """Each once, where it is named first, and as it is named last."""
    return list({key(item): item for item in items}.values())
