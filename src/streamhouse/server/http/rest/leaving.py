"""Work that ends when the client whom it is for has left."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from streamhouse.runtime.tasks import begin

T = TypeVar("T")


async def while_client_waits(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """ClientDisconnect if it left before, which nobody is told. The request must have no body that is still to be
    read."""
    doing, leaving = begin(work), begin(_left(request))
    try:
        await asyncio.wait((doing, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise ClientDisconnect
        return doing.result()
    finally:
        for task in (doing, leaving):
            task.cancel()
        await asyncio.gather(doing, leaving, return_exceptions=True)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
