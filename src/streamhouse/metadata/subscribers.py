"""Who wants to know of changes, and how they are told: later, on the event loop, never inside a call of theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from streamhouse.metadata.cluster import Change


class Subscribers:
    def __init__(self) -> None:
        self._callbacks: dict[object, Callable[[Change], None]] = {}

    def add(self, changed: Callable[[Change], None]) -> Callable[[], None]:
        subscription = object()
        self._callbacks[subscription] = changed

        def remove() -> None:
            self._callbacks.pop(subscription, None)

        return remove

    def report(self, *changes: Change) -> None:
        loop = asyncio.get_running_loop()
        for subscription in self._callbacks:
            for change in changes:
                loop.call_soon(self._call, subscription, change)

    def _call(self, subscription: object, change: Change) -> None:
        callback = self._callbacks.get(subscription)
        if callback is not None:
            callback(change)
