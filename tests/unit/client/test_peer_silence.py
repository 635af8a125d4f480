"""A connection between nodes that died without a word is noticed, and the next call has a new one."""

from __future__ import annotations

import asyncio

import pytest

from peers.scripted import HUNG_MS, PARTITION, PRODUCED, WORK, ScriptedPeer, connected, listening
from services.proxy import proxy_before
from streamhouse.model.errors import OutcomeUnknown, StreamHouseError, Unavailable

ENDLESS_MS = 600_000


async def test_a_call_over_a_dead_connection_fails_long_before_its_deadline_and_the_next_one_works() -> None:
    async with listening(ScriptedPeer()) as port, proxy_before(port) as proxy, connected(proxy.port) as client:
        assert await client.work(timeout_ms=HUNG_MS) == WORK
        proxy.hold()
        async with asyncio.timeout(HUNG_MS / 1000):
            with pytest.raises(Unavailable):
                await client.work(timeout_ms=ENDLESS_MS)
            while True:
                try:
                    assert await client.work(timeout_ms=HUNG_MS) == WORK
                    break
                except StreamHouseError:
                    continue  # the old connection is not quite gone


async def test_calls_with_short_deadlines_do_not_go_on_over_a_dead_connection() -> None:
    async with listening(ScriptedPeer()) as port, proxy_before(port) as proxy, connected(proxy.port) as client:
        assert await client.work(timeout_ms=HUNG_MS) == WORK
        proxy.hold()
        async with asyncio.timeout(HUNG_MS / 1000):
            while True:
                try:
                    assert await client.work(timeout_ms=2_000) == WORK
                    break
                except Unavailable:
                    continue


async def test_a_produce_over_a_dead_connection_is_unknown() -> None:
    async with listening(ScriptedPeer()) as port, proxy_before(port) as proxy, connected(proxy.port) as client:
        assert await client.produce(PARTITION, b"batch", timeout_ms=HUNG_MS) == PRODUCED
        proxy.hold()
        async with asyncio.timeout(HUNG_MS / 1000):
            with pytest.raises(OutcomeUnknown):
                await client.produce(PARTITION, b"batch", timeout_ms=ENDLESS_MS)
