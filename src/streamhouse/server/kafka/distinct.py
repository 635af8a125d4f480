"""Requests that name a thing more than once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)


def distinct(items: Iterable[T], key: Callable[[T], Hashable]) -> list[T]:
    """Each once, where it is named first, and as it is named last: for answers that are much larger than a name."""
    return list({key(item): item for item in items}.values())


def repeated(keys: Iterable[Key]) -> set[Key]:
    """What is named more than once: for changes, of which nobody could say which one was meant."""
    return {key for key, count in Counter(keys).items() if count > 1}
