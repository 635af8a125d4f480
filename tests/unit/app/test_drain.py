"""A stop has one deadline: whoever waits for it may kill the process then."""

from __future__ import annotations

import pytest

from streamhouse.testing import Broker

SHUTDOWN_MS = 60_000


def test_handing_over_and_flushing_share_the_time_that_a_stop_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, int] = {}
    passed_ms = 0
    with Broker(shutdown_timeout=SHUTDOWN_MS) as broker:
        node = broker.node
        now_ms = node._clock.monotonic_ms

        async def nobody_takes_over(timeout_ms: int) -> None:
            nonlocal passed_ms
            given["hand over"] = passed_ms = timeout_ms

        async def flush(timeout_ms: int) -> None:
            given["flush"] = timeout_ms

        monkeypatch.setattr(node._clock, "monotonic_ms", lambda: now_ms() + passed_ms)
        monkeypatch.setattr(node._assigner, "drain", nobody_takes_over)
        monkeypatch.setattr(node.engine, "stop", flush)
        broker.stop()

    assert 0 < given["hand over"] < SHUTDOWN_MS
    assert given["flush"] >= SHUTDOWN_MS / 10, "what nobody took over has to be flushed"
    assert sum(given.values()) <= SHUTDOWN_MS
