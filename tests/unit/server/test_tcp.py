"""Frames over TCP: split anywhere, limited in every way, written in turns."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from log_parts.waiting import HUNG_SECONDS, until
from streamhouse.log.budget import ByteBudget
from streamhouse.model.errors import MalformedRequest
from streamhouse.server import tcp
from streamhouse.server.tcp import OWN_MEMORY_BYTES, RECEIVE_BYTES, Connection, Listener, bind

MAX_FRAME_BYTES = 8 * 2**20


def frame(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


class Recorder:
    """A handler that keeps copies of its frames; `act` may do more with each."""

    def __init__(self, connection: Connection, act: Callable[[Recorder, bytes], None] | None = None) -> None:
        self.connection = connection
        self.frames: list[bytes] = []
        self.owned: list[bool] = []
        self.done = 0
        self.is_connected = True
        self._act = act

    def frame(self, buffer: memoryview, start: int, end: int, *, owned: bool) -> None:
        content = bytes(buffer[start:end])
        self.frames.append(content)
        self.owned.append(owned)
        if self._act is not None:
            self._act(self, content)

    def frames_done(self) -> None:
        self.done += 1

    def time_passes(self) -> None:
        return

    def disconnected(self) -> None:
        assert self.is_connected, "an end is told once"
        self.is_connected = False


class FakeTransport:
    """A socket that a test plays: what is written is kept, reading can be seen to stop."""

    def __init__(self) -> None:
        self.written = b""
        self.is_reading = True
        self.is_open = True
        self.was_aborted = False

    def set_write_buffer_limits(self, high: int, low: int) -> None:
        return

    def writelines(self, buffers: list[Any]) -> None:
        self.written += b"".join(buffers)

    def pause_reading(self) -> None:
        assert self.is_reading
        self.is_reading = False

    def resume_reading(self) -> None:
        assert not self.is_reading
        self.is_reading = True

    def is_closing(self) -> bool:
        return not self.is_open

    def close(self) -> None:
        self.is_open = False

    def abort(self) -> None:
        self.is_open = False
        self.was_aborted = True

    def get_extra_info(self, name: str) -> object:
        return ("192.0.2.1", 1234)


class FakeTime:
    """The loop's clock, which the test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def time(self) -> float:
        return self.now


class Played:
    """A connection without a socket."""

    def __init__(self, listener: Listener) -> None:
        self.connection = Connection(listener)
        self.clock = FakeTime()
        self.connection._loop = self.clock  # type: ignore[assignment]
        self.connection._last_active = self.clock.now
        self.transport = FakeTransport()
        self.unread = b""
        self.connection.connection_made(self.transport)  # type: ignore[arg-type]

    @property
    def handler(self) -> Recorder:
        handler = self.connection._handler
        assert isinstance(handler, Recorder)
        return handler

    def receive(self, data: bytes = b"") -> None:
        """As the loop does it: into the buffer that it is given, as much as fits, while reading is not paused."""
        self.unread += data
        while self.unread and self.transport.is_open and self.transport.is_reading:
            buffer = self.connection.get_buffer(-1)
            part, self.unread = self.unread[: len(buffer)], self.unread[len(buffer) :]
            buffer[: len(part)] = part
            self.connection.buffer_updated(len(part))

    def wait(self, seconds: float) -> None:
        self.clock.now += seconds
        self.connection.check_deadlines(self.clock.now)


def make_listener(act: Callable[[Recorder, bytes], None] | None = None, **options: Any) -> Listener:
    defaults: dict[str, Any] = {
        "name": "test",
        "make_handler": lambda connection: Recorder(connection, act),
        "max_frame_bytes": MAX_FRAME_BYTES,
        "receive_budget": ByteBudget(64 * 2**20),
        "max_connections": 100,
        "idle_timeout_ms": 600_000,
        "request_timeout_ms": 30_000,
    }
    return Listener(**(defaults | options))


# --- splitting ---


_sizes = st.sampled_from([1, 2, 3, 5, 100, 5_000, OWN_MEMORY_BYTES - 1, OWN_MEMORY_BYTES, RECEIVE_BYTES + 3, 1_200_000])


@settings(max_examples=60, deadline=None, database=None)
@given(st.lists(_sizes, min_size=1, max_size=8), st.lists(st.integers(1, 400_000), min_size=1, max_size=12))
def test_however_the_stream_is_cut_the_frames_are_the_same(sizes: list[int], cuts: list[int]) -> None:
    async def play() -> None:
        played = Played(make_listener())
        frames = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
        stream = b"".join(map(frame, frames))
        while stream:
            cut = cuts.pop(0) if cuts else len(stream)
            played.receive(stream[:cut])
            stream = stream[cut:]
        assert played.handler.frames == frames
        assert played.connection._listener.receive_budget.used_bytes == 0

    asyncio.run(play())


async def test_a_stream_that_comes_byte_by_byte_gives_the_same_frames() -> None:
    played = Played(make_listener())
    for byte in frame(b"abc") + frame(b"d") + frame(b"efgh" * 10):
        played.receive(bytes([byte]))

    assert played.handler.frames == [b"abc", b"d", b"efgh" * 10]


async def test_connections_that_share_the_receive_buffer_do_not_see_one_another() -> None:
    listener = make_listener()
    first, second = Played(listener), Played(listener)
    one, other = frame(b"a" * 1000), frame(b"b" * 1000)

    for start in range(0, len(one), 7):
        first.receive(one[start : start + 7])
        second.receive(other[start : start + 7])

    assert first.handler.frames == [b"a" * 1000]
    assert second.handler.frames == [b"b" * 1000]


async def test_a_large_frame_that_is_only_partly_there_gets_memory_of_its_own() -> None:
    played = Played(make_listener())

    played.receive(frame(b"x" * OWN_MEMORY_BYTES)[:100])
    played.receive(frame(b"x" * OWN_MEMORY_BYTES)[100:] + frame(b"small"))

    assert played.handler.frames == [b"x" * OWN_MEMORY_BYTES, b"small"]
    assert played.handler.owned == [True, False]


async def test_the_handler_hears_when_all_that_had_arrived_was_handed_over() -> None:
    played = Played(make_listener())

    played.receive(frame(b"a") + frame(b"b") + frame(b"c")[:2])

    assert played.handler.done == 1


# --- limits ---


@pytest.mark.parametrize("size", [0, -1, -(2**31), MAX_FRAME_BYTES + 1, 2**31 - 1])
async def test_a_size_that_no_frame_has_closes_the_connection_before_anything_is_allocated(size: int) -> None:
    played = Played(make_listener())

    played.receive(frame(b"good") + struct.pack(">i", size) + b"rest")

    assert played.handler.frames == [b"good"]
    assert played.transport.was_aborted
    assert played.connection._listener.receive_budget.used_bytes == 0


async def test_a_frame_of_the_largest_size_is_taken() -> None:
    played = Played(make_listener())

    played.receive(frame(b"x" * MAX_FRAME_BYTES))

    assert [len(content) for content in played.handler.frames] == [MAX_FRAME_BYTES]


async def test_memory_grows_with_what_arrives_and_not_with_what_was_promised() -> None:
    played = Played(make_listener())
    budget = played.connection._listener.receive_budget

    played.receive(struct.pack(">i", MAX_FRAME_BYTES) + b"x" * 10)
    assert budget.used_bytes <= 2**20
    played.receive(b"x" * (2**20 + 1))
    assert budget.used_bytes <= 2**21 + 10


async def test_a_handler_that_refuses_a_frame_closes_the_connection() -> None:
    def refuse(handler: Recorder, content: bytes) -> None:
        if content == b"bad":
            raise MalformedRequest("bad")

    played = Played(make_listener(refuse))
    played.receive(frame(b"good") + frame(b"bad") + frame(b"later"))

    assert played.transport.was_aborted
    assert b"later" not in played.handler.frames


async def test_what_was_taken_before_a_bad_frame_is_still_finished() -> None:
    """Its handler may have gathered work for the end of what arrived, such as batches for the disk."""

    def refuse(handler: Recorder, content: bytes) -> None:
        if content == b"bad":
            raise MalformedRequest("bad")

    played = Played(make_listener(refuse))
    played.receive(frame(b"good") + frame(b"bad"))

    assert played.handler.done == 1


async def test_a_disconnect_gives_back_the_memory_of_a_half_received_frame() -> None:
    played = Played(make_listener())
    played.receive(struct.pack(">i", MAX_FRAME_BYTES) + b"x" * 10)

    played.connection.connection_lost(None)

    assert played.connection._listener.receive_budget.used_bytes == 0
    assert played.connection not in played.connection._listener.connections
    assert not played.handler.is_connected


async def test_a_full_receive_budget_stops_reading_until_others_are_done() -> None:
    listener = make_listener(receive_budget=ByteBudget(4 * 2**20))
    first, second = Played(listener), Played(listener)
    large = frame(b"x" * (3 * 2**20))

    first.receive(large[:-1])
    second.receive(large)
    assert not second.transport.is_reading
    first.receive(large[-1:])
    assert second.transport.is_reading
    second.receive()

    assert [len(content) for content in second.handler.frames] == [3 * 2**20]


@pytest.mark.parametrize("size", [10, 5_000, OWN_MEMORY_BYTES - 1])
async def test_a_part_of_a_small_frame_is_in_the_budget_until_it_is_whole(size: int) -> None:
    listener = make_listener()
    budget = listener.receive_budget
    played, gone = Played(listener), Played(listener)
    part = frame(b"x" * size)[:-1]

    played.receive(part)
    assert budget.used_bytes == len(part)
    gone.receive(part)
    assert budget.used_bytes == 2 * len(part)
    gone.connection.connection_lost(None)
    assert budget.used_bytes == len(part)
    played.receive(b"x" + part[:7])
    assert budget.used_bytes == 7


async def test_many_parts_of_small_frames_stop_at_the_budget_and_a_small_share_of_each() -> None:
    """However much each has sent: what the kernel holds is its business. Small requests get through all the while."""
    listener = make_listener(receive_budget=ByteBudget(2**20), max_connections=1_000)
    players = [Played(listener) for _ in range(200)]
    for played in players:
        played.receive(frame(b"x" * (OWN_MEMORY_BYTES - 1))[:-1])
    decent = Played(listener)
    decent.receive(frame(b"decent")[:-1])
    decent.receive(b"t")

    assert listener.receive_budget.used_bytes <= 2**20 + OWN_MEMORY_BYTES + 200 * 2 * 16 * 1024
    assert decent.handler.frames == [b"decent"]
    assert decent.transport.is_reading
    for played in players:
        played.wait(31)
    assert not any(played.transport.is_open for played in players)


async def test_frames_that_fill_the_receive_budget_by_themselves_still_arrive_or_are_given_up() -> None:
    """Whoever holds the memory must get on: by its frame's end, or by the time that a request may take."""
    listener = make_listener(receive_budget=ByteBudget(2 * 2**20))
    players = [Played(listener), Played(listener)]
    large = frame(b"x" * (2 * 2**20))
    for played in players:
        played.receive(large)
    for _ in range(3):
        for played in players:
            played.receive()
            played.wait(31)

    for played in players:
        assert played.handler.frames or not played.transport.is_open, "it waits for ever"


async def test_a_request_that_waits_is_in_the_budget_until_it_is_let_go_also_when_its_client_has_gone() -> None:
    """Never twice, and never not at all: others that wait would be let in when it goes from the one to the other."""
    size = 2**20
    used: list[int] = []

    def keep(handler: Recorder, content: bytes) -> None:
        used.append(handler.connection._listener.receive_budget.used_bytes)
        handler.connection.hold(len(content))

    listener = make_listener(keep)
    played = Played(listener)
    played.receive(frame(b"x" * size))
    assert used == [size]
    assert listener.receive_budget.used_bytes == size
    played.connection.connection_lost(None)
    assert listener.receive_budget.used_bytes == size
    played.connection.let_go(size)

    assert listener.receive_budget.used_bytes == 0


async def test_small_requests_that_wait_take_nobodys_place() -> None:
    """Thousands of consumers poll for long."""
    listener = make_listener(
        lambda handler, content: handler.connection.hold(len(content)), receive_budget=ByteBudget(2**20)
    )
    for _ in range(200):
        Played(listener).receive(frame(b"x" * 10_000))

    assert listener.receive_budget.used_bytes == 0


async def test_who_holds_requests_that_wait_gives_way_when_others_need_the_room_and_not_before() -> None:
    """A poll may last for days; while there is room, so may what was sent behind it."""
    listener = make_listener(
        lambda handler, content: handler.connection.hold(len(content)), receive_budget=ByteBudget(4 * 2**20)
    )
    greedy, small = Played(listener), Played(listener)
    greedy.receive(frame(b"x" * 3 * 2**20))
    small.receive(frame(b"x" * 1_000))
    for played in (greedy, small):
        played.connection.busy = True
        played.wait(1_000)
        assert played.transport.is_open
    decent = Played(listener)
    decent.receive(frame(b"x" * 2 * 2**20)[:-1])
    assert not decent.transport.is_reading
    for played in (greedy, small):
        played.wait(1)
    assert greedy.transport.was_aborted
    assert small.transport.is_open
    greedy.connection.connection_lost(None)
    greedy.connection.let_go(3 * 2**20)
    decent.receive(b"x")

    assert [len(content) for content in decent.handler.frames] == [2 * 2**20]


async def test_who_gets_on_with_its_requests_does_not_have_to_give_way() -> None:
    listener = make_listener(lambda handler, content: handler.connection.hold(len(content)))
    pipelining = Played(listener)
    for _ in range(5):
        pipelining.receive(frame(b"x" * 2**20))
    listener.receive_budget.take(listener.receive_budget.limit_bytes)
    listener.receive_budget.when_free(lambda: None)
    for _ in range(4):
        pipelining.wait(14)
        pipelining.connection.let_go(2**20)
    assert pipelining.transport.is_open
    pipelining.wait(31)

    assert pipelining.transport.was_aborted


async def test_who_waits_for_room_and_has_done_with_its_requests_is_read_again_though_there_is_none() -> None:
    listener = make_listener(
        lambda handler, content: handler.connection.hold(len(content)), receive_budget=ByteBudget(2**20)
    )
    listener.receive_budget.take(2**20)
    played = Played(listener)
    played.receive(frame(b"x" * 20_000))
    assert not played.transport.is_reading

    played.connection.let_go(20_000)

    assert played.transport.is_reading
    assert not listener.receive_budget.is_waited_for


async def test_who_holds_requests_gives_way_to_those_who_wait_though_a_little_room_is_there() -> None:
    """They are not read until there is more."""
    listener = make_listener(
        lambda handler, content: handler.connection.hold(len(content)), receive_budget=ByteBudget(4 * 2**20)
    )
    greedy, decent, ready = Played(listener), Played(listener), Played(listener)
    greedy.receive(frame(b"x" * 3 * 2**20))
    ready.receive(frame(b"x" * 2**19))
    decent.receive(frame(b"x" * 2**20)[:-1])
    assert not decent.transport.is_reading
    ready.connection.let_go(2**19)
    assert not listener.receive_budget.is_full

    greedy.wait(16)

    assert greedy.transport.was_aborted


# --- pausing ---


async def test_each_pause_needs_its_own_resume() -> None:
    played = Played(make_listener())
    played.connection.pause()
    played.connection.pause()

    played.connection.resume()
    assert not played.transport.is_reading
    played.connection.resume()
    assert played.transport.is_reading


async def test_waiting_for_one_budget_twice_is_waiting_once() -> None:
    played = Played(make_listener())
    budget = ByteBudget(100)
    budget.take(100)

    played.connection.pause_until(budget)
    played.connection.pause_until(budget)
    budget.give_back(100)

    assert played.transport.is_reading


async def test_waiting_for_two_budgets_waits_for_both() -> None:
    played = Played(make_listener())
    budgets = [ByteBudget(100), ByteBudget(100)]
    for budget in budgets:
        budget.take(100)
        played.connection.pause_until(budget)

    budgets[0].give_back(100)
    assert not played.transport.is_reading
    budgets[1].give_back(100)
    assert played.transport.is_reading


async def test_a_connection_that_is_gone_is_not_called_when_there_is_room() -> None:
    played = Played(make_listener())
    budget = ByteBudget(100)
    budget.take(100)
    played.connection.pause_until(budget)

    played.transport.close()
    played.connection.connection_lost(None)
    budget.give_back(100)

    assert not played.transport.is_reading


# --- deadlines ---


async def test_a_silent_connection_is_closed_after_its_time_and_not_before() -> None:
    played = Played(make_listener(idle_timeout_ms=10_000))

    played.wait(10)
    assert played.transport.is_open
    played.wait(1)
    assert not played.transport.is_open


async def test_a_connection_that_works_on_a_request_is_not_idle() -> None:
    played = Played(make_listener(idle_timeout_ms=10_000))
    played.receive(frame(b"x"))
    played.connection.busy = True

    played.wait(1_000)

    assert played.transport.is_open


async def test_the_first_request_has_its_time_from_the_beginning() -> None:
    """Otherwise who connects and says nothing would keep its place for as long as somebody who has worked."""
    silent, slow, decent = (Played(make_listener(request_timeout_ms=10_000)) for _ in range(3))
    decent.receive(frame(b"x"))
    for _ in range(10):
        silent.wait(1)
        slow.receive(frame(b"x" * 1_000)[:4] if not slow.connection._partial else b"x")
        slow.wait(1)
    decent.wait(100)
    assert silent.transport.is_open
    assert slow.transport.is_open
    silent.wait(1)
    slow.wait(1)

    assert silent.transport.was_aborted
    assert slow.transport.was_aborted
    assert decent.transport.is_open


@pytest.mark.parametrize("size", [1_000, OWN_MEMORY_BYTES, 2 * 2**20])
async def test_a_request_that_stops_arriving_is_given_up(size: int) -> None:
    played = Played(make_listener(request_timeout_ms=10_000))
    played.receive(frame(b"x" * size)[:500])

    played.wait(10)
    assert played.transport.is_open
    played.wait(1)
    assert played.transport.was_aborted


@pytest.mark.parametrize("size", [1_000, OWN_MEMORY_BYTES, 2 * 2**20])
async def test_a_request_that_comes_a_byte_at_a_time_is_given_up(size: int) -> None:
    played = Played(make_listener(request_timeout_ms=10_000))
    played.receive(frame(b"x" * size)[:500])
    for _ in range(40):
        played.receive(b"x")
        played.wait(1)

    assert played.transport.was_aborted


async def test_requests_that_follow_one_another_each_have_their_own_time() -> None:
    played = Played(make_listener(request_timeout_ms=10_000))
    stream = b"".join(frame(bytes(100)) for _ in range(50))
    for start in range(0, len(stream), 60):
        played.receive(stream[start : start + 60])
        played.wait(5)

    assert played.transport.is_open


async def test_a_sender_that_we_ourselves_kept_waiting_has_its_time_again_afterwards() -> None:
    played = Played(make_listener(request_timeout_ms=10_000))
    played.receive(frame(b"x" * 2 * 2**20)[:500])
    played.connection.pause()
    played.wait(60)
    played.connection.resume()

    played.wait(1)

    assert played.transport.is_open


async def test_a_peer_that_takes_no_replies_for_the_idle_time_is_closed() -> None:
    """Otherwise its replies would be held for ever."""
    played = Played(make_listener(idle_timeout_ms=10_000))
    played.connection.write([b"x" * 2**20])
    await until(lambda: played.transport.written, "the first slice is written")
    played.connection.pause_writing()

    for _ in range(30):
        played.wait(1)

    assert not played.transport.is_open


# --- writing ---


async def test_replies_are_written_in_order_whatever_their_sizes() -> None:
    played = Played(make_listener())
    replies = [bytes([number]) * size for number, size in enumerate([10, 3_000_000, 5, 0, 700_000, 1])]

    for reply in replies:
        played.connection.write([reply])
    await until(lambda: len(played.transport.written) == sum(map(len, replies)), "all is written")

    assert played.transport.written == b"".join(replies)
    assert played.connection._listener.unsent_bytes == 0


async def test_a_large_reply_does_not_leave_in_one_piece() -> None:
    played = Played(make_listener())

    played.connection.write([b"x" * 5_000_000])
    await asyncio.sleep(0)

    assert 0 < len(played.transport.written) < 2_500_000
    await until(lambda: len(played.transport.written) == 5_000_000, "all is written")


async def test_where_others_have_small_replies_a_large_one_leaves_in_smaller_pieces() -> None:
    listener = make_listener()
    played, other = Played(listener), Played(listener)
    other.connection.write([b"small"])

    played.connection.write([b"x" * 5_000_000])
    await asyncio.sleep(0)

    assert 0 < len(played.transport.written) < 1_000_000
    await until(lambda: len(played.transport.written) == 5_000_000, "all is written")


@pytest.mark.parametrize("has_small", [True, False])
async def test_connections_with_large_replies_take_turns(has_small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "_SHORT_TURNS_FOR_S", 3_600.0)  # for as long as this takes on any machine
    listener = make_listener()
    players = [Played(listener) for _ in range(4)]
    if has_small:
        Played(listener).connection.write([b"small"])
    for played in players:
        played.connection.write([b"x" * 3_000_000])

    spread: list[int] = []

    def halfway() -> bool:
        written = [len(played.transport.written) for played in players]
        spread.append(max(written) - min(written))
        return min(written) >= 1_500_000

    await until(halfway, "half of each is written")

    assert max(spread) < (500_000 if has_small else 1_500_000)


async def test_a_peer_that_does_not_take_its_replies_is_given_no_more_and_read_no_more() -> None:
    played = Played(make_listener())
    played.connection.pause_writing()

    played.connection.write([b"reply"])
    await asyncio.sleep(0)
    assert played.transport.written == b""
    assert not played.transport.is_reading
    assert played.connection._listener.unsent_bytes == 5
    played.connection.resume_writing()
    await until(lambda: played.transport.written == b"reply", "it is written")

    assert played.transport.is_reading


async def test_what_was_not_sent_to_a_peer_that_is_gone_is_not_counted_any_more() -> None:
    played = Played(make_listener())
    played.connection.write([b"x" * 5_000_000])
    played.connection.connection_lost(None)
    await asyncio.sleep(0)

    played.connection.write([b"late"])

    assert played.connection._listener.unsent_bytes == 0


# --- a real socket ---


@asynccontextmanager
async def listening(listener: Listener) -> AsyncIterator[tuple[str, int]]:
    bound = bind("127.0.0.1", 0)
    address: tuple[str, int] = bound.getsockname()
    await listener.start(bound)
    try:
        yield address
    finally:
        await listener.close()


def echo(handler: Recorder, content: bytes) -> None:
    handler.connection.write([frame(content)])


async def test_a_bound_port_refuses_connections_until_its_listener_starts() -> None:
    bound = bind("127.0.0.1", 0)
    address = bound.getsockname()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*address)

    listener = make_listener(echo)
    await listener.start(bound)
    _, writer = await asyncio.open_connection(*address)
    with pytest.raises(OSError, match="in use"):
        bind(*address)
    writer.close()
    await listener.close()


async def test_a_port_on_which_another_began_to_listen_first_is_an_error() -> None:
    """Two processes can be bound to one port; only one can listen, and the other must not take itself for open."""
    first = bind("127.0.0.1", 0)
    second = bind("127.0.0.1", first.getsockname()[1])
    first.listen()

    with first, second, pytest.raises(OSError, match="in use"):
        await make_listener().start(second)


async def test_frames_go_through_a_real_socket_both_ways() -> None:
    async with listening(make_listener(echo)) as address:
        reader, writer = await asyncio.open_connection(*address)
        frames = [b"a", b"b" * 300_000, b"c" * 3_000_000, b"d"]
        writer.write(b"".join(map(frame, frames)))

        for expected in frames:
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            assert await reader.readexactly(size) == expected
        writer.close()


async def test_more_connections_than_allowed_are_refused_and_room_is_used_again() -> None:
    listener = make_listener(echo, max_connections=2)
    async with listening(listener) as address:
        kept = [await asyncio.open_connection(*address) for _ in range(2)]
        await until(lambda: len(listener.connections) == 2, "two are connected")
        reader, refused = await asyncio.open_connection(*address)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        refused.close()

        kept[0][1].close()
        await until(lambda: len(listener.connections) == 1, "one has left")
        reader, writer = await asyncio.open_connection(*address)
        writer.write(frame(b"hello"))
        assert await reader.readexactly(9) == frame(b"hello")
        for _, open_writer in [*kept, (reader, writer)]:
            open_writer.close()


async def test_a_peer_that_stops_in_the_middle_of_a_request_is_disconnected() -> None:
    listener = make_listener(echo, request_timeout_ms=100)
    async with listening(listener) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(frame(b"x" * 1_000)[:10])

        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(reader.readexactly(1), HUNG_SECONDS)
        writer.close()


async def test_a_consumer_that_never_reads_does_not_keep_others_waiting() -> None:
    def reply(handler: Recorder, content: bytes) -> None:
        handler.connection.write([b"x" * 20_000_000 if content == b"large" else frame(content)])

    async with listening(make_listener(reply)) as address:
        stuck = socket.create_connection(address)
        stuck.sendall(frame(b"large"))
        reader, writer = await asyncio.open_connection(*address)
        for number in range(50):
            content = str(number).encode()
            writer.write(frame(content))
            assert await asyncio.wait_for(reader.readexactly(4 + len(content)), HUNG_SECONDS) == frame(content)
        writer.close()
        stuck.close()
