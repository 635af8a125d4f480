"""What is looked at again and again: its last answer, and since when there is none."""

from __future__ import annotations

import asyncio

from services.clock import ManualClock
from streamhouse.model.errors import Unavailable
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.runtime.watched import Answer, Silence, Watched


class Far:
    """Answers with how often it was asked, once it may; or refuses."""

    def __init__(self) -> None:
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.refuses = False

    async def __call__(self) -> int:
        self.asked += 1
        await self.may_answer.wait()
        if self.refuses:
            raise Unavailable("connection refused")
        return self.asked


async def test_what_refuses_is_silent_from_the_first_question_on_until_it_answers() -> None:
    clock, far = ManualClock(), Far()
    watched = Watched(far, clock, TaskGroup("test"), "far", patience_ms=60_000)
    begin_ms = clock.now_ms()
    await watched.look()
    assert (watched.answer, watched.silence) == (Answer(begin_ms, 1), None)

    far.refuses = True
    for _ in range(2):
        clock.advance(1_000)
        await watched.look()
        assert watched.silence == Silence(begin_ms + 1_000, "connection refused")
        assert watched.answer == Answer(begin_ms, 1), "what it said last stays"

    far.refuses = False
    clock.advance(1_000)
    await watched.look()
    assert (watched.answer, watched.silence) == (Answer(begin_ms + 3_000, 4), None)


async def test_who_does_not_answer_is_asked_once_and_holds_up_nobody() -> None:
    clock, far = ManualClock(), Far()
    far.may_answer.clear()
    watched = Watched(far, clock, TaskGroup("test"), "far", patience_ms=10)
    asked_at_ms = clock.now_ms()
    for _ in range(3):
        await watched.look()
        clock.advance(1_000)
    assert far.asked == 1
    assert watched.silence == Silence(asked_at_ms, "no answer within 10 ms")

    far.may_answer.set()
    await watched.look()
    assert (watched.answer, watched.silence) == (Answer(asked_at_ms, 1), None)


async def test_who_looks_for_what_was_just_done_is_not_content_with_an_older_question() -> None:
    far = Far()
    watched = Watched(far, ManualClock(), TaskGroup("test"), "far", patience_ms=60_000)
    far.may_answer.clear()
    before = asyncio.ensure_future(watched.look())
    await asyncio.sleep(0)
    anew = asyncio.ensure_future(watched.look_anew())
    await asyncio.sleep(0)
    far.may_answer.set()
    await asyncio.gather(before, anew)
    assert watched.answer is not None
    assert watched.answer.value == 2

    await watched.look_anew()
    assert far.asked == 3, "where none is under way, one is enough"


async def test_a_question_that_another_has_put_since_is_no_silence() -> None:
    far = Far()
    watched = Watched(far, ManualClock(), TaskGroup("test"), "far", patience_ms=60_000)
    far.may_answer.clear()
    looks = [asyncio.ensure_future(watched.look())]
    await asyncio.sleep(0)
    looks += [asyncio.ensure_future(watched.look_anew()) for _ in range(3)]
    await asyncio.sleep(0)
    far.may_answer.set()
    while far.asked < 2:
        far.may_answer.clear()
        await asyncio.sleep(0)
    for _ in range(10):
        await asyncio.sleep(0)
        assert watched.silence is None, "its time has not come"
    far.may_answer.set()
    await asyncio.gather(*looks)
    assert (far.asked, watched.silence) == (2, None)


async def test_those_who_look_together_share_one_question() -> None:
    far = Far()
    watched = Watched(far, ManualClock(), TaskGroup("test"), "far", patience_ms=60_000)
    await asyncio.gather(*(watched.look() for _ in range(10)))
    assert far.asked == 1


async def test_who_looks_anew_is_not_given_the_late_answer_to_an_older_question() -> None:
    far = Far()
    watched = Watched(far, ManualClock(), TaskGroup("test"), "far", patience_ms=1)
    far.may_answer.clear()
    await watched.look()
    anew = asyncio.ensure_future(watched.look_anew())
    before = watched.silence
    while watched.silence is before:
        far.may_answer.clear()
        await asyncio.sleep(0)
    far.may_answer.set()
    await anew
    assert far.asked > 1 or watched.silence is not None, "of what was done since, nobody has told"
