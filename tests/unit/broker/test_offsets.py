"""Which offset a time is at, across segments, memory and the start of the log."""

from __future__ import annotations

import pytest

from log_parts.batches import real
from log_parts.engines import Running, bench
from streamhouse.broker.offsets import newest_timestamp, offset_at


async def log_of(running: Running, in_segments: list[int], in_memory: list[int]) -> None:
    """One batch for each timestamp."""
    await running.create()
    for timestamp_ms in in_segments:
        await running.produce(real(b"v", timestamps=(timestamp_ms,)))
    await running.engine.flush()
    for timestamp_ms in in_memory:
        await running.produce(real(b"v", timestamps=(timestamp_ms,)))


@pytest.mark.parametrize("split", range(7))
async def test_a_time_is_found_wherever_the_log_is_cut(split: int) -> None:
    times = [100, 300, 200, 400, 400, 350]
    async with bench() as shared, shared.engine() as running:
        await log_of(running, times[:split], times[split:])
        for wanted in (0, 100, 101, 250, 301, 351, 400, 401):
            later = [(offset, time) for offset, time in enumerate(times) if time >= wanted]
            found = await offset_at(running.engine.reader, running.leader(), wanted)
            assert found == (later[0] if later else None), wanted
        assert await newest_timestamp(running.engine.reader, running.leader()) == (3, 400)


async def test_an_empty_log_has_no_newest_record() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create()

        assert await newest_timestamp(running.engine.reader, running.leader()) is None
        assert await offset_at(running.engine.reader, running.leader(), 0) is None


@pytest.mark.parametrize("in_segments", [True, False])
async def test_the_newest_record_is_one_that_was_not_deleted(in_segments: bool) -> None:
    """The start of the log lies inside a segment, behind the record with the largest timestamp."""
    times = [900, 500, 700, 600]
    async with bench() as shared, shared.engine() as running:
        await log_of(running, times if in_segments else times[:1], [] if in_segments else times[1:])
        await running.engine.maintenance.move_log_start(running.leader(), 1)

        assert await newest_timestamp(running.engine.reader, running.leader()) == (2, 700)
