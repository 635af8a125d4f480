"""One Flume connection: requests in, replies out, each with its request's id.

Produces append in the read callback, where this node leads, and their replies wait for the disk; so they overlap. Every
other request starts when all earlier ones are answered: the document's broker reads one request after the other, and a
client may count on finding what it has just written."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from streamhouse.log.leader import PartitionLeader
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import MalformedRequest
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.server.doors import DoorContext
from streamhouse.server.flume.answers import APIS, Api, Door
from streamhouse.server.flume.groups import Memberships
from streamhouse.server.flume.produce import Producing
from streamhouse.server.tcp import Connection
from streamhouse.wire.flume.codes import ApiKey, ErrorCode
from streamhouse.wire.flume.frame import REQUEST_HEADER_BYTES, decode_request_header, encode_response
from streamhouse.wire.flume.groups import encode_error_code
from streamhouse.wire.flume.produce_frame import ProduceFrame
from streamhouse.wire.flume.produce_scan import scan

_log = logging.getLogger(__name__)
_MAX_QUEUED_REQUESTS = 1000
_MAX_QUEUED_BYTES = 4 * 1024 * 1024
_MAX_UNANSWERED_PRODUCES = 1000
# Only records are large. Other requests are made of many small things, each of which costs time to read.
_MAX_CONTROL_BYTES = 1024 * 1024


class _Call(NamedTuple):
    """A request other than a produce."""

    request_id: int
    api: Api
    request: Any
    held_bytes: int


class FlumeSession:
    def __init__(
        self,
        connection: Connection,
        context: DoorContext,
        memberships: Memberships,
        largest_reply_bytes: Callable[[], int],
        tasks: TaskGroup,
        forget: Callable[[Connection], object],
    ) -> None:
        self.connection = connection
        self._broker = context.broker
        self._memberships = memberships
        self._door = Door(context.records, memberships, largest_reply_bytes)
        self._tasks = tasks
        self._forget = forget
        self._loop = asyncio.get_running_loop()
        self._producing = Producing(context, self)
        self._queue: deque[ProduceFrame | _Call] = deque()
        self._queued_bytes = 0
        self._queue_is_full = False
        self._is_working = False
        self._unanswered = 0
        """Produces that were begun; those in the queue were not."""
        self._too_many_unanswered = False
        self._all_answered: asyncio.Future[None] | None = None
        self._replies: list[Buffer] = []
        self._is_sending = False
        self._is_gone = False

    @property
    def is_idle(self) -> bool:
        """Nothing that was received is left to do."""
        return not self._is_working and not self._unanswered

    # --- requests ---

    def frame(self, buffer: memoryview, start: int, end: int, *, owned: bool) -> None:
        produce = scan(buffer, start, end)
        if produce is not None:
            self._produce(produce)
            return
        api_key, request_id = decode_request_header(buffer, start, end)
        if api_key == ApiKey.PRODUCE:
            raise MalformedRequest("the lengths in a produce request are not those of its fields")
        if end - start > _MAX_CONTROL_BYTES:
            raise MalformedRequest(f"a request of {end - start} bytes is too large for API {api_key}")
        api = APIS.get(api_key)
        if api is None:
            # What the answer to it would look like is not known, but that every answer of one field is a code.
            self.connection.write([encode_response(request_id, encode_error_code(ErrorCode.UNKNOWN))])
        else:
            self._enqueue(_Call(request_id, api, api.decode(buffer, start + REQUEST_HEADER_BYTES, end), end - start))

    def frames_done(self) -> None:
        not_led = self._producing.append()
        self._unanswered -= len(not_led)
        for produce in reversed(not_led):
            self._enqueue(produce, first=True)

    def time_passes(self) -> None:
        self._producing.time_passes()

    def disconnected(self) -> None:
        self._is_gone = True
        self._forget(self.connection)
        self._queue.clear()
        self.connection.let_go(self._queued_bytes)
        self._queued_bytes = 0
        self._unanswered = 0
        self._note_answered()
        if not self._is_working and self._memberships:
            self._tasks.start(self._memberships.leave_all(), "leave")

    def _produce(self, produce: ProduceFrame) -> None:
        if self._is_working or not self._producing.take(produce):
            self._enqueue(produce)
            return
        self._unanswered += 1
        if self._unanswered >= _MAX_UNANSWERED_PRODUCES and not self._too_many_unanswered:
            self._too_many_unanswered = True
            self.connection.pause()

    def _enqueue(self, item: ProduceFrame | _Call, *, first: bool = False) -> None:
        if first:
            self._queue.appendleft(item)
        else:
            self._queue.append(item)
        self._queued_bytes += item.held_bytes
        self.connection.hold(item.held_bytes)
        if not self._is_working:
            self._is_working = True
            self.connection.busy = True
            self._tasks.start(self._work(), "requests")
        if not self._queue_is_full and (
            len(self._queue) >= _MAX_QUEUED_REQUESTS or self._queued_bytes >= _MAX_QUEUED_BYTES
        ):
            self._queue_is_full = True
            self.connection.pause()

    async def _work(self) -> None:
        """Answer what is queued, in order."""
        try:
            while self._queue and self.connection.is_open:
                item = self._queue[0]
                if isinstance(item, ProduceFrame):
                    await self._work_off_produces()
                else:
                    self._queue.popleft()
                    with self._dequeued(item.held_bytes):
                        await self._answer(item)
        except Exception:
            _log.exception("closing %s after an unexpected error", self.connection.peer)
            self.connection.abort()
        finally:
            self._is_working = False
            self.connection.busy = False
        if not self.connection.is_open:
            await self._memberships.leave_all()

    async def _answer(self, call: _Call) -> None:
        await self._until_all_answered()
        # Replies may be large: one who takes none gets no second one.
        await self.connection.until_taken()
        payload = await call.api.answer(self._door, call.request)
        self.connection.write([encode_response(call.request_id, payload)])

    async def _work_off_produces(self) -> None:
        """All that are next in the queue together: what is for other nodes goes there in few calls."""
        produces: list[ProduceFrame] = []
        while self._queue and isinstance(item := self._queue[0], ProduceFrame):
            produces.append(item)
            self._queue.popleft()
        with self._dequeued(sum(produce.held_bytes for produce in produces)):
            self._unanswered += len(produces)
            elsewhere = [produce for produce in produces if not self._producing.take(produce)]
            elsewhere += self._producing.append()
            if elsewhere:
                await self._producing.forward(elsewhere)

    @contextmanager
    def _dequeued(self, size_bytes: int) -> Iterator[None]:
        """Its memory is in use while it is worked on."""
        self._queued_bytes -= size_bytes
        if self._queue_is_full and not self._queue:
            self._queue_is_full = False
            self.connection.resume()
        try:
            yield
        finally:
            self.connection.let_go(size_bytes)

    async def _until_all_answered(self) -> None:
        if self._unanswered:
            self._all_answered = self._loop.create_future()
            await self._all_answered

    def pause_while_full(self, leader: PartitionLeader) -> None:
        """Read no more while the partition, or the node, holds as much as it may."""
        if leader.buffer.is_full:
            self.connection.pause_until(leader.buffer)
        elif self._broker.buffer.is_full:
            self.connection.pause_until(self._broker.buffer)

    # --- replies to produces ---

    def answered(self, replies: list[bytes]) -> None:
        """Send on the loop's next turn, so that the replies of one commit leave together."""
        if self._is_gone:
            return
        self._replies += replies
        self._unanswered -= len(replies)
        if not self._is_sending:
            self._is_sending = True
            self._loop.call_soon(self._send)

    def _send(self) -> None:
        self._is_sending = False
        replies, self._replies = self._replies, []
        self.connection.write(replies)
        if self._too_many_unanswered and self._unanswered < _MAX_UNANSWERED_PRODUCES // 2:
            self._too_many_unanswered = False
            self.connection.resume()
        if not self._unanswered:
            self._note_answered()

    def _note_answered(self) -> None:
        if self._all_answered is not None:
            if not self._all_answered.done():
                self._all_answered.set_result(None)
            self._all_answered = None
