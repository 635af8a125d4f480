"""Reading back from segments: whole batches, few requests, damage never served."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import Iterator

import pytest

from log_parts.batches import real
from log_parts.segments import Stored, at, new_store, reader_of, run_of, store_segments
from log_parts.waiting import until
from streamhouse.broker.fetch import Fetcher, PartitionRead
from streamhouse.log.leader import PartitionLeader
from streamhouse.log.reader import SegmentReader
from streamhouse.log.time_search import TimeSearch
from streamhouse.model.errors import CorruptData, OffsetOutOfRange, StorageUnavailable, StreamHouseError
from streamhouse.objects.faulty import FaultyStore, Operation
from streamhouse.objects.memory import MemoryStore

EVERYTHING = 2**31
BLOCK_BYTES = 400


@pytest.fixture
def stores() -> tuple[FaultyStore, MemoryStore]:
    return new_store()


@pytest.fixture
def reader(stores: tuple[FaultyStore, MemoryStore]) -> Iterator[SegmentReader]:
    with reader_of(stores[0]) as reader:
        yield reader


@pytest.fixture
def stored(stores: tuple[FaultyStore, MemoryStore], reader: SegmentReader, event_loop_runner: asyncio.Runner) -> Stored:
    """Three segments of ten batches, each in several blocks; the values do not compress."""
    segments = [run_of([os.urandom(60) for _ in range(10)], base_offset) for base_offset in (0, 10, 20)]
    return event_loop_runner.run(store_segments(reader, *stores, segments, block_bytes=BLOCK_BYTES))


async def replace(stored: Stored, number: int, content: bytes) -> None:
    key = stored.leader.segments[number].object_key
    await stored.inner.delete([key])
    await stored.inner.create(key, [content])


async def content_of(stored: Stored, number: int) -> bytes:
    return await stored.inner.get(stored.leader.segments[number].object_key)


async def found_at(reader: SegmentReader, leader: PartitionLeader, timestamp_ms: int) -> tuple[int, int] | None:
    return await reader.find_in_segments(TimeSearch(timestamp_ms, leader.log_start_offset), leader)


# --- what is read ---


async def test_from_every_offset_everything_behind_it_is_read_across_segments(stored: Stored) -> None:
    for offset in range(30):
        parts = await stored.reader.read(stored.leader, offset, EVERYTHING)
        assert stored.offsets(parts) == list(range(offset, 30))


async def test_whatever_the_limit_whole_batches_come_and_at_least_one(stored: Stored) -> None:
    size = len(stored.batches[0])
    for offset in (0, 3, 9, 10, 28, 29):
        for max_bytes in (-1, 0, 1, size - 1, size, size + 1, 3 * size, BLOCK_BYTES, 7 * size, 25 * size):
            parts = await stored.reader.read(stored.leader, offset, max_bytes)
            expected = min(max(1, max_bytes // size), 30 - offset)
            found = stored.offsets(parts)
            assert found == list(range(offset, offset + len(found)))
            assert 1 <= len(found) <= expected, (offset, max_bytes)


async def test_reading_on_from_where_a_read_ended_leaves_nothing_out(stored: Stored) -> None:
    for max_bytes in (1, 200, 450, 1_000, 5_000):
        offset, found = 0, []
        while offset < 30:
            read = stored.offsets(await stored.reader.read(stored.leader, offset, max_bytes))
            found += read
            offset = read[-1] + 1
        assert found == list(range(30)), max_bytes


async def test_an_offset_inside_a_batch_gives_the_whole_batch(
    stores: tuple[FaultyStore, MemoryStore], reader: SegmentReader
) -> None:
    batches = [at(0, real(b"a", b"b", b"c")), at(3, real(b"d", b"e")), at(5, real(b"f"))]
    stored = await store_segments(reader, *stores, [batches], block_bytes=1)

    for offset, expected in ((0, 0), (1, 0), (2, 0), (3, 3), (4, 3), (5, 5)):
        assert stored.offsets(await reader.read(stored.leader, offset, 1)) == [expected]


async def test_an_offset_that_compaction_removed_gives_what_comes_after_it(
    stores: tuple[FaultyStore, MemoryStore], reader: SegmentReader
) -> None:
    batches = [at(offset, real(b"v%d" % offset)) for offset in (0, 5, 6, 20)]
    stored = await store_segments(reader, *stores, [batches[:3], batches[3:]], block_bytes=1)

    for offset, expected in ((1, 5), (4, 5), (7, 20), (19, 20)):
        assert stored.offsets(await reader.read(stored.leader, offset, 1)) == [expected]


async def test_blocks_that_compress_are_read_like_others(
    stores: tuple[FaultyStore, MemoryStore], reader: SegmentReader
) -> None:
    stored = await store_segments(reader, *stores, [run_of([b"a" * 500] * 40)], block_bytes=4_000)
    assert stored.leader.segments[0].size_bytes < 20_000

    for offset in (0, 7, 39):
        for max_bytes in (1, 600, 2_000, EVERYTHING):
            found = stored.offsets(await reader.read(stored.leader, offset, max_bytes))
            assert found == list(range(offset, offset + len(found)))


# --- how many requests ---


async def test_what_was_read_once_is_not_asked_for_again(stored: Stored) -> None:
    await stored.reader.read(stored.leader, 0, EVERYTHING)
    calls = stored.objects.calls[Operation.READ]

    await stored.reader.read(stored.leader, 0, EVERYTHING)

    assert stored.objects.calls[Operation.READ] == calls


async def test_a_read_of_everything_takes_one_request_for_each_small_segment(stored: Stored) -> None:
    await stored.reader.read(stored.leader, 0, EVERYTHING)

    assert stored.objects.calls[Operation.READ] == 3


async def test_a_read_of_a_little_takes_an_index_and_a_block(stored: Stored) -> None:
    await stored.reader.read(stored.leader, 12, 1)

    assert stored.objects.calls[Operation.READ] == 2


async def test_however_many_miss_the_same_block_at_once_it_is_asked_for_once(stored: Stored) -> None:
    hold = stored.objects.hold(Operation.READ)
    readers = [asyncio.ensure_future(stored.reader.read(stored.leader, 12, 1)) for _ in range(20)]
    await hold.reached.wait()
    await asyncio.sleep(0)
    hold.release()

    found = [stored.offsets(parts) for parts in await asyncio.gather(*readers)]

    assert found == [[12]] * 20
    assert stored.objects.calls[Operation.READ] == 2


async def test_a_reader_that_is_cancelled_does_not_take_the_block_from_the_others(stored: Stored) -> None:
    hold = stored.objects.hold(Operation.READ)
    first = asyncio.ensure_future(stored.reader.read(stored.leader, 0, 1))
    await hold.reached.wait()
    second = asyncio.ensure_future(stored.reader.read(stored.leader, 0, 1))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    hold.release()

    assert stored.offsets(await second) == [0]


async def test_a_reader_that_goes_on_finds_the_next_segments_loaded(stored: Stored) -> None:
    size = len(stored.batches[0])
    await stored.reader.read(stored.leader, 0, size)
    await stored.reader.read(stored.leader, 1, size)
    await until(lambda: not stored.reader._tasks, "what comes next is loaded")
    calls = stored.objects.calls[Operation.READ]

    for offset in range(2, 30):
        assert stored.offsets(await stored.reader.read(stored.leader, offset, size)) == [offset]
        await until(lambda: not stored.reader._tasks, "nothing more is loaded")

    assert stored.objects.calls[Operation.READ] == calls


async def test_a_reader_that_goes_on_after_a_gap_finds_the_next_segments_loaded(
    stores: tuple[FaultyStore, MemoryStore], reader: SegmentReader
) -> None:
    """It asks for what follows the last record that it has, at which there is none any more."""
    segments = [
        [at(offset, real(os.urandom(60))) for offset in range(base_offset, base_offset + 10, 3)]
        for base_offset in (0, 10, 20)
    ]
    stored = await store_segments(reader, *stores, segments, block_bytes=BLOCK_BYTES)
    await reader.read(stored.leader, 0, 1)
    await reader.read(stored.leader, 1, 1)
    await until(lambda: not reader._reading_ahead, "the rest is read ahead")
    calls = stored.objects.calls[Operation.READ]

    assert stored.offsets(await reader.read(stored.leader, 4, EVERYTHING)) == [6, 9, 10, 13, 16, 19, 20, 23, 26, 29]
    assert stored.objects.calls[Operation.READ] == calls


async def test_read_ahead_that_fails_is_met_by_the_reader_that_asks(stored: Stored) -> None:
    size = len(stored.batches[0])
    second = stored.leader.segments[1].object_key
    stored.objects.fail(Operation.READ, times=1, matches=lambda key: key == second)
    await stored.reader.read(stored.leader, 0, size)
    await stored.reader.read(stored.leader, 1, size)
    await until(lambda: not stored.reader._tasks, "reading ahead has failed")

    assert stored.offsets(await stored.reader.read(stored.leader, 10, size)) == [10]


async def test_a_cache_of_nothing_still_reads(stores: tuple[FaultyStore, MemoryStore]) -> None:
    with reader_of(stores[0], cache_bytes=0) as reader:
        stored = await store_segments(reader, *stores, [run_of([b"x" * 50] * 10)], block_bytes=BLOCK_BYTES)

        assert stored.offsets(await reader.read(stored.leader, 0, EVERYTHING)) == list(range(10))


async def test_a_cached_block_holds_no_more_memory_than_it_is_counted_for(stored: Stored) -> None:
    """A block that is a view of a larger answer would keep all of it."""
    await stored.reader.read(stored.leader, 0, EVERYTHING)

    for block, size_bytes in stored.reader.blocks._entries.values():
        held = len(block.obj) if isinstance(block, memoryview) else len(block)
        assert held <= size_bytes + 100


# --- failures ---


async def test_a_store_that_is_away_is_an_error_and_the_next_read_tries_again(stored: Stored) -> None:
    stored.objects.fail(Operation.READ, times=1)
    with pytest.raises(StorageUnavailable):
        await stored.reader.read(stored.leader, 0, 1)

    assert stored.offsets(await stored.reader.read(stored.leader, 0, 1)) == [0]


async def test_a_changed_byte_anywhere_in_the_object_is_never_served(stored: Stored) -> None:
    content = await content_of(stored, 0)
    expected = stored.batches[:10]
    for position in range(0, len(content), 3):
        changed = bytearray(content)
        changed[position] ^= 0x20
        await replace(stored, 0, bytes(changed))
        with reader_of(stored.objects) as fresh:
            try:
                parts = await fresh.read(stored.leader, 0, sum(map(len, expected)))
            except CorruptData:
                continue
        assert b"".join(parts) == b"".join(expected)[: sum(map(len, parts))], position


@pytest.mark.parametrize("max_bytes", [1, EVERYTHING])
async def test_an_object_that_was_cut_short_is_damage(stored: Stored, max_bytes: int) -> None:
    content = await content_of(stored, 0)
    for size in (0, 1, 50, len(content) // 2, len(content) - 1):
        await replace(stored, 0, content[:size])
        with reader_of(stored.objects) as fresh, pytest.raises(CorruptData):
            await fresh.read(stored.leader, 0, max_bytes)


@pytest.mark.parametrize("max_bytes", [1, EVERYTHING])
async def test_another_segments_object_in_the_place_of_one_is_damage(stored: Stored, max_bytes: int) -> None:
    """Of the right size and in itself good, but not the offsets that the row says."""
    content = await content_of(stored, 1)
    await replace(stored, 0, content)
    stored.leader.segments[0] = dataclasses.replace(stored.leader.segments[0], size_bytes=len(content))

    with pytest.raises(CorruptData):
        await stored.reader.read(stored.leader, 0, max_bytes)


async def test_an_object_that_is_gone_is_an_error_of_ours(stored: Stored) -> None:
    await stored.inner.delete([stored.leader.segments[0].object_key])

    with pytest.raises(StreamHouseError):
        await stored.reader.read(stored.leader, 0, 1)


async def test_segments_dropped_while_they_are_read_are_out_of_range_and_not_a_crash(stored: Stored) -> None:
    hold = stored.objects.hold(Operation.READ)
    read = PartitionRead(stored.leader, 0, EVERYTHING)
    reading = asyncio.ensure_future(Fetcher(stored.reader).read([read], EVERYTHING))
    await hold.reached.wait()
    stored.leader.log_start_moved(30)
    hold.release()
    await reading

    assert isinstance(read.problem, OffsetOutOfRange)


# --- by time ---


async def test_a_time_is_found_at_its_first_record_wherever_it_lies(
    stores: tuple[FaultyStore, MemoryStore], reader: SegmentReader
) -> None:
    times = [10, 20, 20, 15, 30, 40, 35, 50]
    segments = [
        run_of([b"v"] * 4, 0, timestamps=times[:4]),
        run_of([b"v"] * 4, 4, timestamps=times[4:]),
    ]
    stored = await store_segments(reader, *stores, segments, block_bytes=150)

    for wanted in range(5, 55):
        later = [(offset, time) for offset, time in enumerate(times) if time >= wanted]
        assert await found_at(reader, stored.leader, wanted) == (later[0] if later else None), wanted


async def test_a_time_is_found_inside_a_batch(stores: tuple[FaultyStore, MemoryStore], reader: SegmentReader) -> None:
    stored = await store_segments(
        reader, *stores, [[at(0, real(b"a", b"b", b"c", timestamps=(1, 5, 9)))]], block_bytes=BLOCK_BYTES
    )

    assert await found_at(reader, stored.leader, 4) == (1, 5)


@pytest.mark.parametrize("log_start", range(10))
async def test_a_time_before_the_start_of_the_log_is_found_at_its_start(
    stores: tuple[FaultyStore, MemoryStore], reader: SegmentReader, log_start: int
) -> None:
    """The start lies inside a segment after DeleteRecords."""
    stored = await store_segments(
        reader,
        *stores,
        [run_of([b"v" * 50] * 10, timestamps=range(100, 110))],
        block_bytes=200,
        log_start_offset=log_start,
    )

    assert await found_at(reader, stored.leader, 50) == (log_start, 100 + log_start)
