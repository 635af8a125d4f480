"""How subscribers are told: later, and only while they are subscribed."""

from __future__ import annotations

import asyncio

from streamhouse.metadata.cluster import Change
from streamhouse.metadata.subscribers import Subscribers


async def test_subscribers_are_told_later_and_in_order() -> None:
    subscribers = Subscribers()
    told: list[Change] = []
    subscribers.add(told.append)
    subscribers.report(Change.TOPICS, Change.LEASES)
    subscribers.report(Change.TOPICS)
    assert told == []
    await asyncio.sleep(0)
    assert told == [Change.TOPICS, Change.LEASES, Change.TOPICS]


async def test_one_that_ends_before_it_was_told_is_not_told() -> None:
    subscribers = Subscribers()
    told: list[Change] = []
    end = subscribers.add(told.append)
    subscribers.report(Change.TOPICS)
    end()
    await asyncio.sleep(0)
    assert told == []


async def test_one_callback_may_be_subscribed_twice() -> None:
    subscribers = Subscribers()
    told: list[Change] = []
    end_first, _ = subscribers.add(told.append), subscribers.add(told.append)
    end_first()
    end_first()
    subscribers.report(Change.AGENTS)
    await asyncio.sleep(0)
    assert told == [Change.AGENTS]


async def test_subscribers_come_and_go_while_others_are_told() -> None:
    subscribers = Subscribers()
    told: list[Change] = []

    def subscribe_another(change: Change) -> None:
        end()
        subscribers.add(told.append)

    end = subscribers.add(subscribe_another)
    subscribers.report(Change.AGENTS)
    await asyncio.sleep(0)
    subscribers.report(Change.TOPICS)
    await asyncio.sleep(0)
    assert told == [Change.TOPICS]
