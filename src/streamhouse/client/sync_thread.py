"""A thread with an event loop, for callers that have none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from streamhouse.model.errors import InvalidInput

Result = TypeVar("Result")


class LoopThread:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="streamhouse-client", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Waits for it; if that is interrupted, so is the work."""
        waiting = self.start(work)
        try:
            return waiting.result()
        except BaseException:
            waiting.cancel()
            raise

    def start(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        if self._loop.is_closed():
            work.close()
            raise InvalidInput("the client was closed")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def stop(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
