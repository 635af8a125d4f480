"""Following by server-sent events: an event for each record, whose id is where to go on after it.

Browsers send the last id when they connect again, and miss nothing. Comments keep proxies from hanging up, and an id
without an event tells the browser what was passed over by a filter."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial

import msgspec
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from streamhouse.model.errors import InvalidInput, NotFound, StreamHouseError, Unavailable
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.server.http.rest.following import Follower, Following, Page
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.row_messages import made_of
from streamhouse.wire.http.rest.positions import positions_text
from streamhouse.wire.http.rest.problems import problem_of
from streamhouse.wire.http.rest.records import FollowQuery, Unreadable

_MEDIA_TYPE = "text/event-stream"
_RETRY_MS = 1_000
_EXAMPLE = (
    'id: 0:8,1:4\ndata: {"partition":0,"offset":7,"timestamp_ms":1767225600000,"key":"customer-7","key_format":"text",'
    '"value":{"amount":3},"value_format":"json","headers":[]}\n\n'
)


def add_event_stream(rest: Rest, following: Following) -> None:
    async def follow(call: Call) -> Response:
        if call.request.method == "HEAD":
            return Response(media_type=_MEDIA_TYPE)
        query: FollowQuery = call.query
        last_id = call.request.headers.get("last-event-id")
        if last_id:
            query = msgspec.structs.replace(query, positions=last_id)
        opened = AsyncExitStack()
        return EventStream(opened, await opened.enter_async_context(following.open(call.path["topic"], query)), query)

    rest.route(
        "GET",
        f"{API}/topics/{{topic}}/stream",
        follow,
        summary="Follow a topic by server-sent events",
        description="Each event's data is a record, its id where to go on; a browser's EventSource does so by itself. "
        f"The same over a WebSocket is at {API}/topics/{{topic}}/ws, with the same parameters and messages of "
        '{"positions": …, "record": …}. Records that cannot be given as rows are passed over with an event of type '
        '`unreadable`, over a WebSocket {"positions": …, "unreadable": …}. A problem is the last event, of type '
        "`problem`.",
        tag="records",
        query=FollowQuery,
        media_type=_MEDIA_TYPE,
        errors=(InvalidInput, NotFound, Unavailable),
        answer_example=_EXAMPLE,
    )


class EventStream(Response):
    """Ends when the client hangs up, when the node ends, or with a problem."""

    media_type = _MEDIA_TYPE

    def __init__(self, opened: AsyncExitStack, follower: Follower, query: FollowQuery) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del MutableHeaders(raw=self.raw_headers)["content-length"]
        self._opened = opened
        self._follower = follower
        self._query = query

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        watching = TaskGroup("event stream")
        async with self._opened:
            try:
                watching.start(self._stop_at_disconnect(Request(scope, receive)), "client")
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                await self._send_events(send)
                await send({"type": "http.response.body", "body": b""})
            finally:
                await watching.cancel()

    async def _send_events(self, send: Send) -> None:
        follower = self._follower
        await _send_part(send, f"retry: {_RETRY_MS}\nid: {positions_text(follower.positions)}\n\n".encode())
        try:
            async for page in follower.pages():
                await _send_part(send, self._heartbeat() if page is None else await self._events(page))
        except StreamHouseError as problem:
            await _send_part(send, b"event: problem\n" + _data(msgspec.json.encode(problem_of(problem))) + b"\n")

    async def _events(self, page: Page) -> bytes:
        shown = await made_of(page.records, partial(self._shown, page))
        partition = page.partition
        positions = self._follower.positions
        parts: list[bytes] = []
        for record, data in zip(page.records, shown, strict=True):
            positions[partition] = record.offset + 1
            parts += (f"id: {positions_text(positions)}\n".encode(), data, b"\n")
        positions[partition] = page.next_offset
        if page.passed_over is not None:
            parts += (
                f"event: unreadable\nid: {positions_text(positions)}\n".encode(),
                _data(msgspec.json.encode(Unreadable.of(partition, page.passed_over))),
                b"\n",
            )
        return b"".join(parts)

    def _shown(self, page: Page) -> list[bytes]:
        return [_data(msgspec.json.encode(self._query.show(page.partition, record))) for record in page.records]

    def _heartbeat(self) -> bytes:
        return f": alive\nid: {positions_text(self._follower.positions)}\n\n".encode()

    async def _stop_at_disconnect(self, request: Request) -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        self._follower.stop()


async def _send_part(send: Send, part: bytes) -> None:
    if part:
        await send({"type": "http.response.body", "body": part, "more_body": True})


def _data(message: bytes) -> bytes:
    """JSON as it was stored may have line ends, between its parts, which here end a field."""
    return b"".join([b"data: " + line + b"\n" for line in message.splitlines()])
