"""One Kafka connection: requests in, replies out in the order of the requests.

Produce appends at once, in the read callback, and its reply waits for the WAL; so a connection's produces overlap. It
waits as long as the request says: what is stuck in the object store must not keep the answers behind it for ever.
Every other request starts when all earlier ones are answered, as in Kafka; a fetch that finds its data in memory is
answered in the read callback too, the rest by a coroutine."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from streamhouse.log.leader import PartitionLeader
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import MalformedRequest
from streamhouse.runtime.measures import stopwatch_s
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.server.kafka.handlers import fetch, produce
from streamhouse.server.kafka.refused_sequences import RefusedSequences
from streamhouse.server.kafka.reply import Reply
from streamhouse.server.kafka.routing import Router
from streamhouse.server.tcp import Connection
from streamhouse.wire.kafka.frame import RequestHeader, decode_request_header

_log = logging.getLogger(__name__)
_MAX_QUEUED_REQUESTS = 16
_MAX_QUEUED_BYTES = 1024 * 1024
_MAX_UNANSWERED_PRODUCES = 1000
# A client that gives us no time at all would have its answer from a Kafka with one replica: a disk may take this long.
_SHORTEST_TIMEOUT_S = 1.0
# Only records are large. Other requests are made of many small things, each of which costs time to read.
_MAX_CONTROL_BYTES = 4 * 1024 * 1024


class KafkaSession:
    def __init__(
        self, connection: Connection, router: Router, tasks: TaskGroup, forget: Callable[[Connection], object]
    ) -> None:
        self.connection = connection
        self._forget = forget
        self.router = router
        self.broker = router.broker
        self._tasks = tasks
        self._loop = asyncio.get_running_loop()
        self._replies: deque[Reply] = deque()
        self._sending = False
        self._queue: deque[memoryview] = deque()
        self._queued_bytes = 0
        self._working = False
        self._poll: asyncio.Task[list[Buffer]] | None = None
        self._all_answered: asyncio.Future[None] | None = None
        self._queue_full = False
        self._too_many_unanswered = False
        self.measures = router.measures
        self.refused = RefusedSequences()
        self._received_s = 0.0
        """When the frames came that are handled now; 0 between them. One look at the clock serves all of them."""

    @property
    def is_idle(self) -> bool:
        """Nothing that was received is left to do."""
        return not self._working and not self._replies

    # --- requests ---

    def frame(self, buffer: memoryview, start: int, end: int, *, owned: bool) -> None:
        if self._working:
            if end - start > _MAX_CONTROL_BYTES:
                _check_size(decode_request_header(buffer, start, end), end - start)  # until its turn it would be kept
            self._enqueue(buffer[start:end], owned=owned)
            return
        if produce.handle_common(self, buffer, start, end, owned=owned):
            return
        header = decode_request_header(buffer, start, end)
        if header.api is produce.API:
            if not produce.handle(self, header, buffer, end, owned=owned):
                self._enqueue(buffer[start:end], owned=owned)
            return
        _check_size(header, end - start)
        if self._replies or not self._answer_now(header, buffer, end):
            self._enqueue(buffer[start:end], owned=owned)

    def frames_done(self) -> None:
        self._received_s = 0.0
        self.broker.commit_appends()

    def time_passes(self) -> None:
        """Answer the produces whose time is up. Looked at in turns for all, so that no produce needs a timer.

        Who polls and is not read from could go unnoticed, and would leave what it has sent behind for days."""
        if self._queue_full and self._poll is not None and self.connection.has_hung_up:
            self.connection.abort()
        now_s = stopwatch_s()
        for reply in self._replies:
            waited_s = now_s - reply.received_s
            if waited_s < _SHORTEST_TIMEOUT_S:
                break  # those behind it came later
            if reply.buffers is None and waited_s * 1000 >= reply.timeout_ms:
                reply.timed_out()

    def disconnected(self) -> None:
        self._forget(self.connection)
        self._queue.clear()
        self.connection.let_go(self._queued_bytes)
        self._queued_bytes = 0
        self._replies.clear()
        self._note_answered()
        if self._poll is not None:
            self._poll.cancel()

    def _answer_now(self, header: RequestHeader, buffer: memoryview, end: int) -> bool:
        buffers = self.router.answer_now(header, buffer, end, self.connection.host)
        if buffers is None:
            return False
        self.connection.write(buffers)
        return True

    def _enqueue(self, request: memoryview, *, owned: bool) -> None:
        self._queue.append(request if owned else memoryview(bytes(request)))
        self._queued_bytes += len(request)
        self.connection.hold(len(request))
        if not self._working:
            self._working = True
            self.connection.busy = True
            self._tasks.start(self._work(), "requests")
        elif not self._queue_full and (
            len(self._queue) >= _MAX_QUEUED_REQUESTS or self._queued_bytes >= _MAX_QUEUED_BYTES
        ):
            self._queue_full = True
            self.connection.pause()

    def _dequeue(self) -> memoryview:
        request = self._queue.popleft()
        self._queued_bytes -= len(request)
        if self._queue_full and not self._queue:
            self._queue_full = False
            self.connection.resume()
        return request

    async def _work(self) -> None:
        """Answer what is queued, one request after the other."""
        try:
            while self._queue and self.connection.is_open:
                request = self._dequeue()
                try:
                    await self._serve(request)
                finally:
                    self.connection.let_go(len(request))
        except MalformedRequest as problem:
            _log.info("closing %s: %s", self.connection.peer, problem)
            self.connection.abort()
        except Exception:
            _log.exception("closing %s after an unexpected error", self.connection.peer)
            self.connection.abort()
        finally:
            self._working = False
            self.connection.busy = False

    async def _serve(self, request: memoryview) -> None:
        header = decode_request_header(request, 0, len(request))
        if header.api is produce.API:
            await produce.handle_in_turn(self, header, request, len(request))
            self.frames_done()
            return
        await self._until_all_answered()
        self.connection.write(await self._answer(header, request))

    async def _answer(self, header: RequestHeader, request: memoryview) -> list[Buffer]:
        """A fetch waits for records to come, but not for a client that has gone; what changes things is finished."""
        host = self.connection.host
        if header.api is not fetch.API:
            return await self.router.answer(header, request, host)
        message = await self.router.read(header, request)
        self._poll = self._tasks.start(self.router.answer_read(header, message, host), "poll")
        try:
            return await self._poll
        finally:
            self._poll = None

    async def _until_all_answered(self) -> None:
        if self._replies:
            self._all_answered = self._loop.create_future()
            await self._all_answered

    def pause_while_full(self, leader: PartitionLeader) -> None:
        """Read no more while the partition, or the node, holds as much as it may."""
        if leader.buffer.is_full:
            self.connection.pause_until(leader.buffer)
        elif self.broker.buffer.is_full:
            self.connection.pause_until(self.broker.buffer)

    # --- replies ---

    def expect(self, reply: Reply) -> None:
        """Give a reply the next place in the order."""
        if not self._received_s:
            self._received_s = stopwatch_s()
        reply.received_s = self._received_s
        self._replies.append(reply)
        if len(self._replies) >= _MAX_UNANSWERED_PRODUCES and not self._too_many_unanswered:
            self._too_many_unanswered = True
            self.connection.pause()

    def reply_filled(self) -> None:
        """Send on the loop's next turn, so that the replies of one commit leave together."""
        if not self._sending:
            self._sending = True
            self._loop.call_soon(self._send_filled)

    def _send_filled(self) -> None:
        self._sending = False
        replies = self._replies
        buffers: list[Buffer] = []
        received_s, count, now_s = 0.0, 0, stopwatch_s()
        while replies and (filled := replies[0].buffers) is not None:
            buffers += filled
            reply = replies.popleft()
            if reply.received_s != received_s:
                self._note_produced(now_s - received_s, count)
                received_s, count = reply.received_s, 0
            count += 1
        self._note_produced(now_s - received_s, count)
        if buffers:
            self.connection.write(buffers)
        if self._too_many_unanswered and len(replies) < _MAX_UNANSWERED_PRODUCES // 2:
            self._too_many_unanswered = False
            self.connection.resume()
        if not replies:
            self._note_answered()

    def _note_produced(self, seconds: float, count: int) -> None:
        """Requests that came together and are answered together took the same time."""
        if count:
            self.measures.produce_seconds.observe(seconds, count)

    def _note_answered(self) -> None:
        if self._all_answered is not None:
            if not self._all_answered.done():
                self._all_answered.set_result(None)
            self._all_answered = None


def _check_size(header: RequestHeader, size_bytes: int) -> None:
    if size_bytes > _MAX_CONTROL_BYTES and header.api is not produce.API:
        raise MalformedRequest(f"a request of {size_bytes} bytes is too large for API {header.api_key}")
