"""Following over a WebSocket: a text message for each record, with where to go on after it. What clients send is read
and ignored; pings keep the connection alive and find those that are gone."""

from __future__ import annotations

from functools import partial

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from streamhouse.format.rows import Record
from streamhouse.model.errors import StreamHouseError
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.server.http.rest.following import Follower, Following
from streamhouse.server.http.rest.origins import foreign_origin
from streamhouse.server.http.rest.problems import problem_response, refuse
from streamhouse.server.http.rest.query import query_reader
from streamhouse.server.http.rest.registry import API, Rest
from streamhouse.server.row_messages import made_of
from streamhouse.wire.http.rest.positions import positions_text
from streamhouse.wire.http.rest.records import FollowedRecord, FollowedUnreadable, FollowQuery, Unreadable

_GOING_AWAY = 1001
_FAILED = 1011
_LONGEST_REASON_BYTES = 120


def add_socket(rest: Rest, following: Following) -> None:
    read_query = query_reader(FollowQuery)

    async def follow(socket: WebSocket) -> None:
        problem = foreign_origin(socket.headers)
        if problem is not None:
            await socket.send_denial_response(problem_response(problem))
            return
        is_open = False
        try:
            query = read_query(socket)
            async with following.open(socket.path_params["topic"], query) as follower:
                await socket.accept()
                is_open = True
                await _send_records(socket, follower, query)
                await socket.close(_GOING_AWAY)
        except StreamHouseError as error:
            if is_open:
                await socket.close(_FAILED, _reason(error))
            else:
                await socket.send_denial_response(refuse(error))
        except WebSocketDisconnect:
            return

    rest.socket(f"{API}/topics/{{topic}}/ws", follow)


async def _send_records(socket: WebSocket, follower: Follower, query: FollowQuery) -> None:
    watching = TaskGroup("WebSocket")
    watching.start(_stop_at_disconnect(socket, follower), "client")
    positions = follower.positions
    try:
        async for page in follower.pages():
            if page is None:
                continue
            partition = page.partition
            for record in page.records:
                positions[partition] = record.offset + 1
                await socket.send_text(
                    await made_of([record], partial(_message, query, partition, record, positions_text(positions)))
                )
            positions[partition] = page.next_offset
            if page.passed_over is not None:
                passed_over = FollowedUnreadable(
                    positions=positions_text(positions), unreadable=Unreadable.of(partition, page.passed_over)
                )
                await socket.send_text(msgspec.json.encode(passed_over).decode())
    finally:
        await watching.cancel()


def _message(query: FollowQuery, partition: int, record: Record, positions: str) -> str:
    message = FollowedRecord(positions=positions, record=query.show(partition, record))
    return msgspec.json.encode(message).decode()


async def _stop_at_disconnect(socket: WebSocket, follower: Follower) -> None:
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass
    follower.stop()


def _reason(error: StreamHouseError) -> str:
    return str(error).encode("utf-8", "replace")[:_LONGEST_REASON_BYTES].decode("utf-8", "ignore")
