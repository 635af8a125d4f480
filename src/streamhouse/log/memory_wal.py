"""A WAL that keeps nothing: for brokers inside tests, whose data may go with the process."""

from __future__ import annotations

import asyncio

from streamhouse.log.wal import WalOwner
from streamhouse.log.wal_measures import WalMeasures


class MemoryWal:
    """Reports every batch durable on the loop's next turn, so that callers see the order a real one gives."""

    def __init__(self) -> None:
        self.measures = WalMeasures()
        """Nothing is ever synced."""
        self._waiting: dict[WalOwner, int] = {}
        self._is_scheduled = False

    def check_writable(self) -> None:
        return

    def append(self, owner: WalOwner, batch: memoryview, end_offset: int) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._report)
        self._waiting[owner] = end_offset

    def kick(self) -> None:
        return

    def covered(self, owner: WalOwner, end_offset: int) -> None:
        return

    def forget(self, owner: WalOwner) -> None:
        self._waiting.pop(owner, None)

    async def close(self) -> None:
        self._report()

    def _report(self) -> None:
        self._is_scheduled = False
        waiting, self._waiting = self._waiting, {}
        for owner, end_offset in waiting.items():
            owner.durable(end_offset)
