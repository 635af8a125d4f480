"""An answer that is made while it is sent, in lines of JSON; it ends early when its client hangs up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from streamhouse.model.errors import StreamHouseError
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.wire.http.rest.problems import problem_of
from streamhouse.wire.http.rest.verification import JSON_LINES

_log = logging.getLogger(__name__)

Lines = AsyncGenerator[msgspec.Struct, None]


class LineStream(Response):
    """Whatever goes wrong once it has begun is its last line: `{"problem": …}`."""

    media_type = JSON_LINES

    def __init__(self, lines: Lines) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del MutableHeaders(raw=self.raw_headers)["content-length"]
        self._lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        tasks = TaskGroup("line stream")
        try:
            sending = tasks.start(self._send_all(send), "lines")
            gone = tasks.start(_hang_up(Request(scope, receive)), "client")
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await tasks.cancel()

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with aclosing(self._lines) as lines:
            try:
                async for line in lines:
                    await _send_line(send, line)
            except StreamHouseError as problem:
                await _send_line(send, {"problem": problem_of(problem)})
            except OSError:
                return  # nobody is there to be told
            except Exception:
                _log.exception("an answer in lines failed")
                await _send_line(send, {"problem": problem_of(StreamHouseError("this node failed; its log says why"))})
        await send({"type": "http.response.body", "body": b""})


async def _send_line(send: Send, line: object) -> None:
    await send({"type": "http.response.body", "body": msgspec.json.encode(line) + b"\n", "more_body": True})


async def _hang_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
