"""Of several places the first that answers counts, and one that is silent holds nobody up."""

from __future__ import annotations

import asyncio

import pytest

from streamhouse.client.first_answer import NoneAnswers, first_answer
from streamhouse.model.errors import InvalidInput, Unavailable


class Places:
    """Of which some are silent, and some fail."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.given_up: list[str] = []
        self.is_silent = asyncio.Event()

    async def ask(self, place: str) -> str:
        self.asked.append(place)
        if place == "silent":
            self.is_silent.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.given_up.append(place)
        if place == "wrong":
            raise InvalidInput("wrong")
        if place.startswith("down"):
            raise Unavailable(place)
        return place


async def test_those_behind_the_first_that_answers_are_not_asked() -> None:
    places = Places()
    assert await first_answer(["down", "there", "other"], places.ask) == "there"
    assert places.asked == ["down", "there"]


async def test_a_silent_one_is_given_up_when_another_has_answered() -> None:
    places = Places()
    assert await first_answer(["silent", "down", "there"], places.ask) == "there"
    assert places.given_up == ["silent"]


async def test_all_problems_are_told_in_the_order_of_the_places() -> None:
    with pytest.raises(NoneAnswers) as silence:
        await first_answer(["down1", "down2"], Places().ask)
    assert [problem.message for problem in silence.value.problems] == ["down1", "down2"]


async def test_what_another_place_would_not_mend_is_raised_at_once() -> None:
    with pytest.raises(InvalidInput):
        await first_answer(["down", "wrong", "there"], Places().ask)


async def test_whoever_stops_waiting_leaves_nobody_asked() -> None:
    places = Places()
    waiting = asyncio.get_running_loop().create_task(first_answer(["silent"], places.ask))
    await places.is_silent.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert places.given_up == ["silent"]
