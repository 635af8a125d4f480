"""Length-prefixed frames over TCP: what every binary protocol here needs of a socket.

One receive buffer serves the whole loop; a frame that does not fit in it gets memory of its own, which grows with
what really arrives. Reading stops when a budget is used up and when replies are not taken. Requests that wait for those
before them are in the budget too. Who connects has as long for its first request as for any other to arrive."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import Protocol, cast

from streamhouse.log.budget import ByteBudget
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import MalformedRequest
from streamhouse.runtime.memory import unfilled

_log = logging.getLogger(__name__)

SIZE_BYTES = 4
BACKLOG = 1024
_unpack_size = Struct(">i").unpack_from
RECEIVE_BYTES = 256 * 1024
# Frames of at least this size are received into memory of their own, which the log may keep.
OWN_MEMORY_BYTES = 128 * 1024
_FIRST_GROWTH_BYTES = 16 * 1024
# So much every connection may hold, also when what may be held together is used up: thousands of consumers wait for
# records, and their requests must not take the place of others.
_ALWAYS_HELD_BYTES = 16 * 1024
# Replies up to this size are written at once. Larger ones take turns: so much of each, and so much of all together in
# one turn of the loop. Small pieces, so that the copying of a catch-up reader's megabytes does not keep others waiting
# for long, while there are others; else large ones, of which the kernel takes half as many more bytes a second.
_WRITE_AT_ONCE_BYTES = 64 * 1024
_SHORT_SLICE_BYTES = 128 * 1024
_SHORT_TURN_BYTES = 512 * 1024
_LONG_SLICE_BYTES = 1024 * 1024
_LONG_TURN_BYTES = 2 * 1024 * 1024
_SHORT_TURNS_FOR_S = 0.05
_WRITE_HIGH_WATER_BYTES = 256 * 1024
_WRITE_LOW_WATER_BYTES = 64 * 1024
# Linux' numbers of the states CLOSE and CLOSE_WAIT.
_HUNG_UP = (7, 8)


class FrameHandler(Protocol):
    """What a protocol does with a connection's frames."""

    def frame(self, buffer: memoryview, start: int, end: int, *, owned: bool) -> None:
        """One whole frame, without its size. Unless `owned`, the memory is only valid during the call."""

    def frames_done(self) -> None:
        """All frames that had arrived were handed over."""

    def time_passes(self) -> None:
        """Called about once a second: whoever has waited for too long may be told."""

    def disconnected(self) -> None: ...


def bind(host: str, port: int) -> socket.socket:
    """A socket with its address, on which nobody can connect yet: connections are refused until a listener starts."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setblocking(False)
        bound.bind(address)
    except BaseException:
        bound.close()
        raise
    return bound


def listen(bound: socket.socket) -> None:
    """OSError if another process was bound to the same port and began to listen first. The event loop listens too, but
    uvloop keeps that error to itself."""
    bound.listen(BACKLOG)


class Listener:
    """What the connections of one port share."""

    def __init__(
        self,
        *,
        name: str,
        make_handler: Callable[[Connection], FrameHandler],
        max_frame_bytes: int,
        receive_budget: ByteBudget,
        max_connections: int,
        idle_timeout_ms: int,
        request_timeout_ms: int,
    ) -> None:
        self.name = name
        self.make_handler = make_handler
        self.max_frame_bytes = max_frame_bytes
        self.receive_budget = receive_budget
        self.max_connections = max_connections
        self.idle_timeout_s = idle_timeout_ms / 1000
        self.request_timeout_s = request_timeout_ms / 1000
        self.receive_buffer = memoryview(bytearray(RECEIVE_BYTES))
        self.connections: set[Connection] = set()
        self.unsent_bytes = 0
        self._writers: dict[Connection, None] = {}
        self._turn_is_scheduled = False
        self.has_small_replies = False
        """Whether any was written since the last turn."""
        self._short_turns_until = 0.0
        self._server: asyncio.Server | None = None
        self._watchdog: asyncio.TimerHandle | None = None

    async def start(self, bound: socket.socket) -> None:
        """Accept connections on a bound socket, which is the listener's from here on."""
        listen(bound)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Connection(self), sock=bound, backlog=BACKLOG)
        self._watch()

    def stop_accepting(self) -> None:
        if self._server is not None:
            self._server.close()

    async def close(self) -> None:
        self.stop_accepting()
        if self._watchdog is not None:
            self._watchdog.cancel()
        for connection in list(self.connections):
            connection.close()

    def abort(self) -> None:
        for connection in list(self.connections):
            connection.abort()

    def take_turns(self, connection: Connection) -> None:
        """Let a connection with large replies write when it is its turn."""
        self._writers[connection] = None
        if not self._turn_is_scheduled:
            self._turn_is_scheduled = True
            asyncio.get_running_loop().call_soon(self._write_turn)

    def _write_turn(self) -> None:
        self._turn_is_scheduled = False
        now = asyncio.get_running_loop().time()
        if self.has_small_replies:
            self.has_small_replies = False
            self._short_turns_until = now + _SHORT_TURNS_FOR_S
        is_short = now < self._short_turns_until
        slice_bytes = _SHORT_SLICE_BYTES if is_short else _LONG_SLICE_BYTES
        room = _SHORT_TURN_BYTES if is_short else _LONG_TURN_BYTES
        while self._writers and room > 0:
            connection = next(iter(self._writers))
            del self._writers[connection]
            room -= connection.write_slice(min(room, slice_bytes))
            if connection.wants_to_write:
                self._writers[connection] = None
        if self._writers:
            self.take_turns(next(iter(self._writers)))

    def _watch(self) -> None:
        """Close connections that are silent, or too slow with a request; let the others look at the time."""
        loop = asyncio.get_running_loop()
        interval_s = min(1.0, self.request_timeout_s / 4, self.idle_timeout_s / 4)
        self._watchdog = loop.call_later(interval_s, self._watch)
        now = loop.time()
        for connection in list(self.connections):
            connection.check_deadlines(now)


class Connection(asyncio.BufferedProtocol):
    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._handler: FrameHandler | None = None
        self._partial = b""
        self._held_bytes = 0
        """Of whole requests that are not done with."""
        self._held_since = 0.0
        """When the last of them was done, or the first one came."""
        self._counted_bytes = 0
        """How much of the budget all of these have taken."""
        self._own: bytearray | None = None
        self._own_view = memoryview(b"")
        self._own_filled = 0
        self._own_frame_bytes = 0
        self._outbox: deque[Buffer] = deque()
        self._unsent_bytes = 0
        self._writable = True
        self._stuck_since = 0.0
        self._all_taken: asyncio.Future[None] | None = None
        self._closes_when_sent = False
        self._pauses = 0
        self._full_budgets: dict[ByteBudget, Callable[[], None]] = {}
        self._last_active = self._loop.time()
        self._request_since: float | None = None
        """Since when a request is awaited: the first one, or the rest of one."""
        self.busy = False

    # --- reading ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods of asyncio.Transport without being one.
        transport = self._transport = cast(asyncio.Transport, transport)
        transport.set_write_buffer_limits(high=_WRITE_HIGH_WATER_BYTES, low=_WRITE_LOW_WATER_BYTES)
        if len(self._listener.connections) >= self._listener.max_connections:
            _log.warning("%s: refused a connection, there are %d", self._listener.name, len(self._listener.connections))
            transport.abort()
            return
        self._request_since = self._last_active
        self._listener.connections.add(self)
        self._handler = self._listener.make_handler(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._own is not None:
            return self._own_view[self._own_filled :]
        listener = self._listener
        buffer = listener.receive_buffer
        held = len(self._partial)
        buffer[:held] = self._partial
        if listener.receive_budget.is_full:
            return buffer[held : held + _ALWAYS_HELD_BYTES]
        return buffer[held:]

    def buffer_updated(self, nbytes: int) -> None:
        if self._handler is None:
            return
        self._last_active = self._loop.time()
        try:
            if self._own is not None:
                self._fill_own(nbytes)
            else:
                filled = len(self._partial) + nbytes
                self._partial = b""
                self._split(self._listener.receive_buffer, filled)
        except MalformedRequest as problem:
            _log.info("%s: closing %s: %s", self._listener.name, self.peer, problem)
            self.abort()
        finally:
            self._handler.frames_done()
            self._count()

    def _split(self, buffer: memoryview, filled: int) -> None:
        """Hand over the whole frames in [0, filled) and keep the rest."""
        assert self._handler is not None
        position = 0
        while filled - position >= SIZE_BYTES and self._transport is not None:
            (size,) = _unpack_size(buffer, position)
            if not 0 < size <= self._listener.max_frame_bytes:
                raise MalformedRequest(f"a frame of {size} bytes is not between 1 and {self._listener.max_frame_bytes}")
            end = position + SIZE_BYTES + size
            if end > filled:
                if size >= OWN_MEMORY_BYTES:
                    self._begin_own(size, buffer[position + SIZE_BYTES : filled])
                    return
                break
            self._handler.frame(buffer, position + SIZE_BYTES, end, owned=False)
            position = end
        self._partial = bytes(buffer[position:filled])
        if not self._partial:
            self._request_since = None
        elif position or self._request_since is None:
            self._request_since = self._last_active

    def _count(self) -> None:
        """Bring the budget up to date with what is held here."""
        size_bytes = len(self._partial)
        if self._held_bytes > _ALWAYS_HELD_BYTES:
            size_bytes += self._held_bytes
        if self._own is not None:
            size_bytes += len(self._own)
        change_bytes = size_bytes - self._counted_bytes
        if not change_bytes:
            return
        budget = self._listener.receive_budget
        self._counted_bytes = size_bytes
        if change_bytes < 0:
            budget.give_back(-change_bytes)
            if size_bytes <= _ALWAYS_HELD_BYTES:
                self._read_on(budget)
            return
        budget.take(change_bytes)
        if budget.is_full and size_bytes > _ALWAYS_HELD_BYTES and budget.used_bytes > size_bytes:
            self.pause_until(budget)

    def _begin_own(self, frame_bytes: int, received: memoryview) -> None:
        self._own_frame_bytes = frame_bytes
        self._own_filled = 0
        self._own = bytearray()
        self._request_since = self._last_active
        self._grow_own(min(frame_bytes, max(_FIRST_GROWTH_BYTES, 4 * len(received))))
        self._own_view[: len(received)] = received
        self._own_filled = len(received)

    def _grow_own(self, size_bytes: int) -> None:
        """Memory follows what arrives, not what was promised: it doubles when it is full."""
        assert self._own is not None
        grown = unfilled(size_bytes)
        grown[: self._own_filled] = self._own_view[: self._own_filled]
        self._own = grown
        self._own_view = memoryview(grown)

    def _fill_own(self, nbytes: int) -> None:
        assert self._own is not None
        assert self._handler is not None
        self._own_filled += nbytes
        if self._own_filled == self._own_frame_bytes:
            view = self._own_view
            self._own = None
            self._own_view = memoryview(b"")
            self._request_since = None
            self._handler.frame(view, 0, len(view), owned=True)
        elif self._own_filled == len(self._own):
            self._grow_own(min(self._own_frame_bytes, 2 * len(self._own)))

    # --- who handles it ---

    @property
    def handler(self) -> FrameHandler | None:
        return self._handler

    def hand_to(self, handler: FrameHandler) -> None:
        """From the next frame on (a fault hook: tests stand before a handler by this)."""
        self._handler = handler

    # --- flow control ---

    def hold(self, size_bytes: int) -> None:
        """A request that was handed over has to wait. It is in the budget until it is let go, also when the peer has
        gone: somebody may be at work on it."""
        if not self._held_bytes:
            self._held_since = self._loop.time()
        self._held_bytes += size_bytes

    def let_go(self, size_bytes: int) -> None:
        self._held_bytes -= size_bytes
        self._held_since = self._loop.time()
        self._count()

    def pause_until(self, budget: ByteBudget) -> None:
        """Stop reading until a budget has room. Saying it twice is saying it once."""
        if budget in self._full_budgets:
            return

        def has_room() -> None:
            del self._full_budgets[budget]
            self.resume()

        self._full_budgets[budget] = has_room
        self.pause()
        budget.when_free(has_room)

    def _read_on(self, budget: ByteBudget) -> None:
        """Whether or not the budget has room."""
        has_room = self._full_budgets.get(budget)
        if has_room is not None:
            budget.forget(has_room)
            has_room()

    def pause(self) -> None:
        """Stop reading; each pause needs its own resume."""
        self._pauses += 1
        if self._pauses == 1 and self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        self._pauses -= 1
        if self._pauses == 0 and self._transport is not None and not self._transport.is_closing():
            self._last_active = self._loop.time()
            if self._request_since is not None:
                self._request_since = self._last_active
            self._transport.resume_reading()

    def check_deadlines(self, now: float) -> None:
        listener = self._listener
        if self._handler is not None:
            self._handler.time_passes()
        if not self._writable and now - self._stuck_since > listener.idle_timeout_s:
            _log.info("%s: closing %s: it does not take its replies", listener.name, self.peer)
            self.abort()
            return
        # Half the time that those have who wait for the room.
        if self._stands_in_the_way and now - self._held_since > listener.request_timeout_s / 2:
            _log.info("%s: closing %s: its requests wait, and others need the room", listener.name, self.peer)
            self.abort()
            return
        if self._pauses and listener.receive_budget not in self._full_budgets:
            return  # it is we who keep it waiting
        if self._request_since is not None and now - self._request_since > listener.request_timeout_s:
            _log.info("%s: closing %s: a request took too long to arrive", listener.name, self.peer)
            self.abort()
        elif not self.busy and now - self._last_active > listener.idle_timeout_s:
            self.close()

    @property
    def _stands_in_the_way(self) -> bool:
        """It has a place in the budget that others wait for, and its requests wait, maybe for days."""
        is_large = self._counted_bytes > _ALWAYS_HELD_BYTES
        return self._held_bytes > 0 and is_large and self._listener.receive_budget.is_waited_for

    # --- writing ---

    def write(self, buffers: list[Buffer]) -> None:
        """Send buffers, in order. They must not change any more."""
        transport = self._transport
        if transport is None:
            return
        size_bytes = sum(map(len, buffers))
        if self._writable and not self._outbox and size_bytes <= _WRITE_AT_ONCE_BYTES:
            self._listener.has_small_replies = True
            transport.writelines(buffers)
            return
        self._outbox.extend(buffers)
        self._note_unsent(size_bytes)
        if self._writable:
            self._listener.take_turns(self)

    async def until_taken(self) -> None:
        """Until the peer has taken what was written, but for what the transport may hold; or has gone."""
        while self._transport is not None and (self._outbox or not self._writable):
            if self._all_taken is None:
                self._all_taken = self._loop.create_future()
            await self._all_taken

    def _note_taken(self) -> None:
        if self._all_taken is not None and (self._transport is None or (self._writable and not self._outbox)):
            self._all_taken.set_result(None)
            self._all_taken = None

    @property
    def wants_to_write(self) -> bool:
        return self._writable and bool(self._outbox)

    def write_slice(self, max_bytes: int) -> int:
        """Give the transport up to so much of what waits, and return how much that was."""
        if not self.wants_to_write or self._transport is None:
            return 0
        parts: list[Buffer] = []
        room = max_bytes
        while self._outbox and room > 0:
            buffer = self._outbox.popleft()
            if len(buffer) > room:
                view = memoryview(buffer)
                self._outbox.appendleft(view[room:])
                buffer = view[:room]
            parts.append(buffer)
            room -= len(buffer)
        self._transport.writelines(parts)
        self._note_unsent(room - max_bytes)
        if self._closes_when_sent and not self._outbox:
            self._transport.close()
        self._note_taken()
        return max_bytes - room

    def _note_unsent(self, change_bytes: int) -> None:
        self._unsent_bytes += change_bytes
        self._listener.unsent_bytes += change_bytes

    def pause_writing(self) -> None:
        """The peer does not take its replies: give it no more, and read no more from it."""
        if self._writable:
            self._writable = False
            self._stuck_since = self._loop.time()
            self.pause()

    def resume_writing(self) -> None:
        if not self._writable:
            self._writable = True
            if self._outbox:
                self._listener.take_turns(self)
            self.resume()
            self._note_taken()

    # --- ending ---

    @property
    def peer(self) -> str:
        name = self._transport.get_extra_info("peername") if self._transport is not None else None
        return f"{name[0]}:{name[1]}" if name else "a client"

    @property
    def host(self) -> str:
        return self.peer.rpartition(":")[0]

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def has_hung_up(self) -> bool:
        """Whether the peer has, also where that is not read because reading is paused."""
        end = self._transport.get_extra_info("socket") if self._transport is not None else None
        return end is not None and end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in _HUNG_UP

    def close(self) -> None:
        """After what was written is sent."""
        if self._outbox:
            self._closes_when_sent = True
        elif self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: BaseException | None) -> None:
        self._listener.connections.discard(self)
        self._transport = None
        self._note_unsent(-self._unsent_bytes)
        self._outbox.clear()
        self._note_taken()
        self._partial = b""
        self._own = None
        self._own_view = memoryview(b"")
        self._count()
        for budget, has_room in self._full_budgets.items():
            budget.forget(has_room)
        if self._handler is not None:
            self._handler.disconnected()
