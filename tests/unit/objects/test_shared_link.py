"""Many requests over one thin link, on virtual time: each is slow because of the others, and all of them arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial

import pytest

from sim.cluster.loop import VirtualLoop
from streamhouse.model.errors import StorageUnavailable
from streamhouse.objects.patience import SLOWEST_SENDING, Patience
from streamhouse.objects.second_try import SecondTries

MIB = 2**20
MBIT = 10**6 / 8
PAUSE_S = 0.1
TICK_S = 0.05


async def lose(_: Patience) -> None:
    """Over a connection that has died without a word."""
    await asyncio.get_running_loop().create_future()


class Link:
    """Whatever is on its way has the same share of it."""

    def __init__(self, bytes_per_s: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._carrying = 0
        self.most_at_once = 0

    async def carry(self, size_bytes: int, patience: Patience) -> None:
        self._carrying += 1
        self.most_at_once = max(self.most_at_once, self._carrying)
        try:
            left = float(size_bytes)
            if not self._bytes_per_s:
                await lose(patience)
            while left > 0:
                await asyncio.sleep(TICK_S)
                left -= self._bytes_per_s * TICK_S / self._carrying
        finally:
            self._carrying -= 1


class Uploads:
    """As callers make them: again and again until they are done."""

    def __init__(self, loop: VirtualLoop, link: Link) -> None:
        self._loop = loop
        self._link = link
        self._tries = SecondTries(SLOWEST_SENDING)
        self.done_at: list[float] = []
        self.failures = 0

    def start(self, size_bytes: int, *, is_connection_dead: bool = False) -> None:
        self._loop.start(self._upload(size_bytes, is_connection_dead), self._loop.nobody)

    async def _upload(self, size_bytes: int, is_connection_dead: bool) -> None:
        carry = partial(self._link.carry, size_bytes)
        while True:
            try:
                await self._tries.ask(lose if is_connection_dead else carry, carry, size_bytes)
                self.done_at.append(self._loop.time())
                return
            except TimeoutError:
                self.failures += 1
                await asyncio.sleep(PAUSE_S)


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop(lambda: 1.0)
    yield loop
    assert not loop.failures
    loop.close()


@pytest.mark.parametrize("count", [1, 8, 24])
@pytest.mark.parametrize("mbit_per_s", [10, 50, 200])
def test_uploads_that_share_a_thin_link_all_arrive(loop: VirtualLoop, mbit_per_s: int, count: int) -> None:
    link = Link(mbit_per_s * MBIT)
    uploads = Uploads(loop, link)
    for _ in range(count):
        uploads.start(16 * MIB)
    alone_s = count * 16 * MIB / (mbit_per_s * MBIT)
    loop.run_until(2 * alone_s + 1)
    assert (len(uploads.done_at), uploads.failures) == (count, 0), "they kept one another from ever arriving"
    assert link.most_at_once <= count + 2, "second tries took the link from what they should help"


def test_small_requests_beside_large_ones_arrive_too(loop: VirtualLoop) -> None:
    uploads = Uploads(loop, Link(20 * MBIT))
    for size_bytes in [100 * MIB] * 2 + [8 * MIB] * 4 + [64 * 1024] * 40:
        uploads.start(size_bytes)
    loop.run_until(600)
    assert (len(uploads.done_at), uploads.failures) == (46, 0)


def test_a_stream_of_uploads_over_a_thin_link_goes_on(loop: VirtualLoop) -> None:
    uploads = Uploads(loop, Link(50 * MBIT))
    for number in range(60):
        loop.call_later(number * 3.0, partial(uploads.start, 16 * MIB))
    loop.run_until(240)
    assert (len(uploads.done_at), uploads.failures) == (60, 0)


def test_dead_connections_are_left_behind_within_seconds(loop: VirtualLoop) -> None:
    """A few second tries at once are enough: each that is answered lets the next one begin."""
    uploads = Uploads(loop, Link(2_000 * MBIT))
    for size_bytes in [8 * MIB] * 8 + [64 * 1024] * 200:
        uploads.start(size_bytes, is_connection_dead=True)
    loop.run_until(10)
    assert (len(uploads.done_at), uploads.failures) == (208, 0)


def test_dead_connections_over_a_thin_link_are_left_behind_as_fast_as_it_carries(loop: VirtualLoop) -> None:
    uploads = Uploads(loop, Link(20 * MBIT))
    for _ in range(8):
        uploads.start(16 * MIB, is_connection_dead=True)
    loop.run_until(8 * 16 * MIB / (20 * MBIT) + 10)
    assert (len(uploads.done_at), uploads.failures) == (8, 0)


@pytest.mark.parametrize("is_told", [True, False])
def test_a_second_try_whose_connection_dies_too_is_made_again(loop: VirtualLoop, is_told: bool) -> None:
    """And those that are silent keep no others from their turn."""
    tries, answers, seconds = SecondTries(SLOWEST_SENDING), [], [0]

    async def second(_: Patience) -> str:
        seconds[0] += 1
        if seconds[0] > 4:
            return "answer"
        if is_told:
            raise StorageUnavailable("the connection is refused")
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    async def first(_: Patience) -> str:
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    async def ask() -> None:
        answers.append(await tries.ask(first, second, 4 * MIB))

    for _ in range(6):
        loop.start(ask(), loop.nobody)
    loop.run_until(10 if is_told else 30)
    assert answers == ["answer"] * 6


def test_of_a_store_that_is_silent_callers_hear_in_bounded_time(loop: VirtualLoop) -> None:
    silent = Link(0)
    uploads = Uploads(loop, silent)
    uploads.start(64 * 1024)
    for _ in range(3):
        uploads.start(100 * MIB)
    loop.run_until(10)
    assert uploads.failures == 1, "a small request waits for what large ones may need"
    loop.run_until(20 * 60)
    assert uploads.failures >= 4
