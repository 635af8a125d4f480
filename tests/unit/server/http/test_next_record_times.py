"""When the next records were written: each place is read once, and what hangs holds up no answer."""

from __future__ import annotations

import asyncio
from collections import Counter
from uuid import UUID

from services.clock import ManualClock
from streamhouse.model.errors import Unavailable
from streamhouse.model.topic import Topic
from streamhouse.server.http.rest import next_record_times
from streamhouse.server.http.rest.next_record_times import MOST_READS, NextRecordTimes, Place

TOPIC = Topic(name="orders", topic_id=UUID(int=1), partition_count=1_000, config={}, created_at_ms=0)
HANGING, REFUSED = 500, 501
"""Partitions from the first on hang, and this one refuses."""


class Log:
    """Of each place it says its offset as the time, once it may."""

    def __init__(self) -> None:
        self.reads: Counter[Place] = Counter()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __call__(self, topic: Topic, place: Place) -> int | None:
        self.reads[place] += 1
        if place[0] == REFUSED:
            raise Unavailable("no")
        if place[0] >= HANGING:
            await asyncio.Event().wait()
        await self.may_answer.wait()
        return place[1]


async def test_a_place_is_read_once_however_many_ask_for_it() -> None:
    log = Log()
    times = NextRecordTimes(log, ManualClock())
    places = [(number, 7) for number in range(20)]
    log.may_answer.clear()
    asking = [asyncio.ensure_future(times.find(TOPIC, places)) for _ in range(3)]
    await asyncio.sleep(0)
    log.may_answer.set()

    assert await asyncio.gather(*asking) == [dict.fromkeys(places, 7)] * 3
    assert await times.find(TOPIC, places) == dict.fromkeys(places, 7)
    assert set(log.reads.values()) == {1}


async def test_reads_that_hang_hold_up_the_answer_no_longer_than_one_of_them() -> None:
    log, clock = Log(), ManualClock()
    times = NextRecordTimes(log, clock, patience_ms=20)
    at_once = next_record_times._AT_ONCE
    places = [(number, 7) for number in range(at_once - 1)] + [(HANGING + 2 + number, 7) for number in range(64)]

    assert await times.find(TOPIC, places) == dict.fromkeys(places[: at_once - 1], 7)
    hung = sum(count for (number, _), count in log.reads.items() if number >= HANGING)
    assert hung == at_once, "the others never had a turn"


async def test_what_could_not_be_read_is_not_tried_again_at_once() -> None:
    log, clock = Log(), ManualClock()
    times = NextRecordTimes(log, clock, patience_ms=20)
    places = [(0, 7), (REFUSED, 7), (HANGING, 7)]
    for _ in range(3):
        assert await times.find(TOPIC, places) == {(0, 7): 7}
    assert set(log.reads.values()) == {1}

    clock.advance(next_record_times._FAILED_AGE_MS)
    await times.find(TOPIC, places)
    assert log.reads == {(0, 7): 1, (REFUSED, 7): 2, (HANGING, 7): 2}


async def test_who_leaves_ends_what_was_read_for_him_and_others_read_it_again() -> None:
    log = Log()
    times = NextRecordTimes(log, ManualClock())
    log.may_answer.clear()
    asking = asyncio.ensure_future(times.find(TOPIC, [(0, 7)]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    log.may_answer.set()

    assert await times.find(TOPIC, [(0, 7)]) == {(0, 7): 7}
    assert log.reads[0, 7] == 2


async def test_an_answer_takes_so_many_reads_and_the_next_one_goes_on() -> None:
    log = Log()
    times = NextRecordTimes(log, ManualClock())
    places = [(0, offset) for offset in range(MOST_READS + 5)]

    assert len(await times.find(TOPIC, places)) == MOST_READS
    assert len(await times.find(TOPIC, places)) == MOST_READS + 5
    assert set(log.reads.values()) == {1}
