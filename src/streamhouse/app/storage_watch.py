"""Notices when what a node keeps on its own disk is taken away under it, which no system call of its own would tell.

Files that are open go on working when their names are gone, and so would the node: nobody after it would find what it
acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from streamhouse.runtime.anchor import Anchor
from streamhouse.runtime.clock import Clock

_INTERVAL_MS = 200


class StorageWatch:
    def __init__(self, *, places: Iterable[Path], lost_wal_file: Callable[[], Path | None], clock: Clock) -> None:
        """`lost_wal_file` names a file of the WAL that is open and has no name any more."""
        self._anchors = [Anchor(place) for place in places]
        self._lost_wal_file = lost_wal_file
        self._clock = clock

    async def until_gone(self) -> Path:
        """What is gone."""
        while True:
            gone = self._lost_wal_file() or next(iter(await asyncio.to_thread(self.gone)), None)
            if gone is not None:
                return gone
            await self._clock.sleep_ms(_INTERVAL_MS)

    def gone(self) -> list[Path]:
        return [anchor.path for anchor in self._anchors if not anchor.is_there]
