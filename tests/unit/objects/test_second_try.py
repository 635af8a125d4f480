"""Two tries beside each other: which one's answer counts, and what becomes of the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from streamhouse.model.errors import NotFound, StorageUnavailable
from streamhouse.objects import patience
from streamhouse.objects.patience import SLOWEST_RECEIVING, SLOWEST_SENDING, Patience, Traffic
from streamhouse.objects.second_try import SecondTries

MIB = 2**20


class Attempt:
    """A try that stays under way until it is told its outcome."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.outcome: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.was_cancelled = False

    async def __call__(self, _: Patience) -> str:
        self.begun.set()
        try:
            return await self.outcome
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_SECOND_TRY_S", 0.01)


class Pair:
    def __init__(self) -> None:
        self.first, self.second = Attempt(), Attempt()
        self.outruns = 0
        self.asking = asyncio.ensure_future(
            SecondTries(SLOWEST_SENDING).ask(self.first, self.second, outrun=self._outrun)
        )

    def _outrun(self) -> None:
        self.outruns += 1

    async def settle(self) -> str | BaseException:
        (outcome,) = await asyncio.gather(self.asking, return_exceptions=True)
        await asyncio.sleep(0)  # for what was cancelled to end
        return outcome


async def test_what_is_answered_in_time_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_SECOND_TRY_S", 60.0)
    pair = Pair()
    await pair.first.begun.wait()
    pair.first.outcome.set_result("first")
    assert await pair.settle() == "first"
    assert not pair.second.begun.is_set()


async def test_what_fails_in_time_is_not_tried_again_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_SECOND_TRY_S", 60.0)
    pair = Pair()
    pair.first.outcome.set_exception(StorageUnavailable("refused"))
    assert isinstance(await pair.settle(), StorageUnavailable)
    assert not pair.second.begun.is_set()


async def test_the_second_try_is_taken_when_it_is_sooner_and_the_first_is_ended() -> None:
    pair = Pair()
    await pair.second.begun.wait()
    pair.second.outcome.set_result("second")
    assert await pair.settle() == "second"
    assert (pair.first.was_cancelled, pair.outruns) == (True, 1)


async def test_a_first_try_that_was_only_slow_still_counts() -> None:
    pair = Pair()
    await pair.second.begun.wait()
    pair.first.outcome.set_result("first")
    assert await pair.settle() == "first"
    assert (pair.second.was_cancelled, pair.outruns) == (True, 0)


@pytest.mark.parametrize("failing", ["first", "second"])
async def test_a_failure_is_no_answer_while_the_other_may_have_one(failing: str) -> None:
    pair = Pair()
    await pair.second.begun.wait()
    lost, won = (pair.first, pair.second) if failing == "first" else (pair.second, pair.first)
    lost.outcome.set_exception(StorageUnavailable("lost"))
    await asyncio.sleep(0)
    assert not pair.asking.done()
    won.outcome.set_result("won")
    assert await pair.settle() == "won"
    assert pair.outruns == 0


async def test_that_there_is_no_object_is_an_answer() -> None:
    pair = Pair()
    await pair.second.begun.wait()
    pair.second.outcome.set_exception(NotFound("none"))
    assert isinstance(await pair.settle(), NotFound)
    assert pair.first.was_cancelled


async def test_two_failures_are_a_failure() -> None:
    pair = Pair()
    await pair.second.begun.wait()
    pair.first.outcome.set_exception(StorageUnavailable("first"))
    pair.second.outcome.set_exception(StorageUnavailable("second"))
    assert isinstance(await pair.settle(), StorageUnavailable)


async def test_when_neither_is_answered_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_LIMIT_S", 0.5)
    pair = Pair()
    assert isinstance(await pair.settle(), TimeoutError)
    assert pair.first.was_cancelled
    # On a machine that pauses until the limit, the second is ended before its first step.
    assert pair.second.was_cancelled == pair.second.begun.is_set()
    assert pair.outruns == 0


async def test_whoever_stops_waiting_ends_both() -> None:
    pair = Pair()
    await pair.second.begun.wait()
    pair.asking.cancel()
    assert isinstance(await pair.settle(), asyncio.CancelledError)
    assert (pair.first.was_cancelled, pair.second.was_cancelled) == (True, True)


async def test_an_answer_that_says_how_large_it_is_gets_the_time_for_it() -> None:
    heard = asyncio.Event()

    def first(outcome: asyncio.Future[str]) -> Callable[[Patience], Awaitable[str]]:
        async def read(patience: Patience) -> str:
            patience.expect(1_000 * MIB)
            heard.set()
            return await outcome

        return read

    outcome: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    second = Attempt()
    asking = asyncio.ensure_future(SecondTries(SLOWEST_SENDING).ask(first(outcome), second))  # type: ignore[arg-type]
    await heard.wait()
    small = Pair()
    await small.second.begun.wait()
    assert not second.begun.is_set()
    outcome.set_result("whole")
    assert await asking == "whole"
    small.asking.cancel()


def test_small_requests_have_seconds_and_the_largest_segment_has_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    small, window, segment = (Traffic(SLOWEST_SENDING).begin(size_bytes) for size_bytes in (0, 8 * MIB, 100 * MIB))
    assert small.second_try_s() + small.limit_s() <= 10
    assert window.second_try_s() < 5
    assert window.limit_s() < 30
    assert 25 < segment.second_try_s() < segment.attempt_s() < 60 < segment.limit_s() < 240


def test_readers_hear_within_seconds() -> None:
    traffic = Traffic(SLOWEST_RECEIVING)
    assert [traffic.begin(4 * MIB).limit_s() for _ in range(8)][-1] < 30


def test_a_request_has_the_time_that_those_beside_it_explain() -> None:
    traffic = Traffic(SLOWEST_SENDING)
    request = traffic.begin(16 * MIB)
    alone_s = request.limit_s()
    others = [traffic.begin(16 * MIB) for _ in range(7)]
    together_s = request.limit_s()
    assert together_s - 8 == 8 * (alone_s - 8)
    for other in others:
        traffic.end(other)
    assert request.limit_s() == together_s, "what arrived meanwhile has taken its share"
    assert traffic.begin(16 * MIB).limit_s() < together_s


def test_a_small_request_does_not_wait_as_long_as_large_ones_beside_it_need() -> None:
    traffic = Traffic(SLOWEST_SENDING)
    for _ in range(8):
        traffic.begin(100 * MIB)
    assert traffic.begin(64 * 1024).limit_s() < 10


def test_a_second_try_counts_as_one_more_beside_the_others() -> None:
    traffic = Traffic(SLOWEST_SENDING)
    request = traffic.begin(16 * MIB)
    alone_s = request.limit_s()
    request.attempts += 1
    assert request.limit_s() - 8 == 2 * (alone_s - 8)
