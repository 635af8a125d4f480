"""What WAL objects hold of a partition is read back whole and in order, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from log_parts.batches import EPOCH, placed
from log_parts.leaders import PARTITION, TOPIC_ID
from services.clock import ManualClock
from streamhouse.format.wal_object import BatchRun, encode_wal_object
from streamhouse.log.wal_replay import PartitionReads, RememberedReads, replay_wal_objects
from streamhouse.metadata.wal_objects import WalRange
from streamhouse.model.errors import CorruptData, StorageUnavailable
from streamhouse.model.names import TopicPartition
from streamhouse.objects.faulty import FaultyStore, Operation
from streamhouse.objects.memory import MemoryStore

OTHER = TopicPartition(TOPIC_ID, 1)


class Bucket:
    """WAL objects, and the ranges that a metadata store would give for them."""

    def __init__(self) -> None:
        clock = ManualClock()
        self.inner = MemoryStore(clock)
        self.objects = FaultyStore(self.inner, clock)
        self.batches: list[bytes] = []
        self.ranges: list[WalRange] = []

    async def store(self, key: str, *sizes: int, between: bool = False) -> None:
        """An object with a range of one batch for each size, all of one partition; `between` them, another's."""
        runs: list[BatchRun] = []
        for size_bytes in sizes:
            offset = len(self.batches)
            batch = placed(offset, size_bytes, fill=bytes([offset % 256]))
            self.batches.append(bytes(batch))
            runs.append(BatchRun(PARTITION, EPOCH + offset, offset, offset + 1, [batch]))
            if between:
                runs.append(BatchRun(OTHER, EPOCH, offset, offset + 1, [placed(offset)]))
        encoded = encode_wal_object(runs)
        await self.inner.create(key, encoded.parts)
        self.ranges += [
            WalRange(object_key=key, **entry._asdict()) for entry in encoded.entries if entry.partition == PARTITION
        ]

    async def replay(self, ranges: Sequence[WalRange] | None = None) -> list[bytes]:
        wanted = self.ranges if ranges is None else ranges
        return [bytes(batch) async for some in replay_wal_objects(self.objects, wanted) for batch in some]


async def test_nothing_is_read_of_a_partition_without_ranges() -> None:
    bucket = Bucket()
    assert await bucket.replay() == []
    assert bucket.objects.calls[Operation.READ] == 0


async def test_batches_come_in_offset_order_whatever_the_objects() -> None:
    bucket = Bucket()
    for number in range(11):
        await bucket.store(f"wal/{number}", 100, 200)

    assert await bucket.replay() == bucket.batches


async def test_what_a_segment_has_of_the_first_range_is_left_out() -> None:
    bucket = Bucket()
    batches = [placed(offset, count=2) for offset in (0, 2, 4)]
    encoded = encode_wal_object([BatchRun(PARTITION, EPOCH, 0, 6, batches)])
    await bucket.inner.create("wal/a", encoded.parts)
    (entry,) = encoded.entries
    ranges = [WalRange(object_key="wal/a", **entry._asdict())]

    for start_offset, left in ((0, 3), (2, 2), (4, 1), (6, 0)):
        replayed = [
            bytes(batch) async for some in replay_wal_objects(bucket.objects, ranges, start_offset) for batch in some
        ]
        assert replayed == [bytes(batch) for batch in batches[3 - left :]]


async def test_ranges_side_by_side_in_one_object_are_one_read() -> None:
    bucket = Bucket()
    await bucket.store("wal/a", 100, 200, 300)
    assert await bucket.replay() == bucket.batches
    assert bucket.objects.calls[Operation.READ] == 1


async def test_what_lies_between_is_not_read() -> None:
    bucket = Bucket()
    await bucket.store("wal/a", 100, 200, between=True)
    assert await bucket.replay() == bucket.batches
    assert bucket.objects.calls[Operation.READ] == 2


async def test_reads_run_beside_one_another_but_not_too_many() -> None:
    bucket = Bucket()
    for number in range(10):
        await bucket.store(f"wal/{number}", 100)
    hold = bucket.objects.hold(Operation.READ)
    replaying = bucket.replay()
    task = asyncio.ensure_future(replaying)
    for _ in range(20):
        await asyncio.sleep(0)
    assert 1 < bucket.objects.calls[Operation.READ] < 10

    hold.release()
    assert await task == bucket.batches


async def test_a_changed_byte_is_refused_and_the_object_and_the_range_are_named() -> None:
    bucket = Bucket()
    await bucket.store("wal/a", 100, 200)
    content = bytearray(await bucket.inner.get("wal/a"))
    content[bucket.ranges[1].position + 150] ^= 1
    await bucket.inner.delete(["wal/a"])
    await bucket.inner.create("wal/a", [content])

    with pytest.raises(CorruptData, match=r"wal/a .*\[1, 2\).*CRC"):
        await bucket.replay()


async def test_an_object_that_is_gone_is_damage() -> None:
    bucket = Bucket()
    await bucket.store("wal/a", 100)
    await bucket.store("wal/b", 100)
    await bucket.inner.delete(["wal/b"])

    with pytest.raises(CorruptData, match=r"wal/b .*\[1, 2\)"):
        await bucket.replay()


async def test_an_object_that_was_cut_is_damage() -> None:
    bucket = Bucket()
    await bucket.store("wal/a", 100)
    content = await bucket.inner.get("wal/a")
    await bucket.inner.delete(["wal/a"])
    await bucket.inner.create("wal/a", [content[:50]])

    with pytest.raises(CorruptData, match=r"wal/a .*\[0, 1\)"):
        await bucket.replay()


async def test_a_gap_between_ranges_is_damage() -> None:
    bucket = Bucket()
    for number in range(3):
        await bucket.store(f"wal/{number}", 100)

    with pytest.raises(CorruptData, match="goes on at offset 2, not at 1"):
        await bucket.replay([bucket.ranges[0], bucket.ranges[2]])


@pytest.mark.parametrize("change", [{"end_offset": 3}, {"base_offset": 1}])
async def test_a_range_that_does_not_hold_the_offsets_it_should_is_damage(change: dict[str, int]) -> None:
    bucket = Bucket()
    await bucket.store("wal/a", 100)

    with pytest.raises(CorruptData, match="wal/a"):
        await bucket.replay([replace(bucket.ranges[0], **change)])


async def test_a_store_that_is_away_is_not_damage() -> None:
    bucket = Bucket()
    await bucket.store("wal/a", 100)
    bucket.objects.fail(Operation.READ)

    with pytest.raises(StorageUnavailable):
        await bucket.replay()
    assert await bucket.replay() == bucket.batches


# --- what was read before ---


async def replayed(bucket: Bucket, reads: PartitionReads) -> list[bytes]:
    return [
        bytes(batch) async for some in replay_wal_objects(bucket.objects, bucket.ranges, 0, reads) for batch in some
    ]


async def test_what_was_read_before_is_not_read_again_whatever_lies_beside_it_by_now() -> None:
    bucket = Bucket()
    await bucket.store("wal/a", 100, 200, 300)
    await bucket.store("wal/b", 100)
    memory = RememberedReads(2**20)
    assert await replayed(bucket, memory.of(PARTITION, 0)) == bucket.batches
    assert bucket.objects.calls[Operation.READ] == 2
    del bucket.ranges[0]  # a segment has it
    await bucket.store("wal/c", 100)

    assert await replayed(bucket, memory.of(PARTITION, 1)) == bucket.batches[1:]
    assert bucket.objects.calls[Operation.READ] == 3


async def test_no_more_is_kept_than_there_is_room_for() -> None:
    bucket = Bucket()
    for number in range(4):
        await bucket.store(f"wal/{number}", 1_000)
    size_bytes = bucket.ranges[0].size_bytes
    memory = RememberedReads(2 * size_bytes)
    for _ in range(2):
        assert await replayed(bucket, memory.of(PARTITION, 0)) == bucket.batches
    assert bucket.objects.calls[Operation.READ] == 4 + 2
    assert memory.of(PARTITION, 0).size_bytes <= 2 * size_bytes


async def test_what_nobody_comes_back_to_is_forgotten() -> None:
    bucket = Bucket()
    await bucket.store("wal/a", 100)
    memory = RememberedReads(2**20)
    await replayed(bucket, memory.of(PARTITION, 1_000))
    memory.forget_unused(1_000)
    await replayed(bucket, memory.of(PARTITION, 2_000))
    assert bucket.objects.calls[Operation.READ] == 1
    memory.forget_unused(2_001)
    await replayed(bucket, memory.of(PARTITION, 3_000))
    assert bucket.objects.calls[Operation.READ] == 2
