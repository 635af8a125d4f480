"""A sequenced append is over only when every batch is known to be stored, whatever leaders refuse on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from log_parts.batches import real
from streamhouse.broker.sequenced_append import Produce, SequencedAppend
from streamhouse.core.producer_state import WINDOW, ProducedBatch, ProducerTable
from streamhouse.format.batch import read_header, stamp_producer
from streamhouse.format.records import decode_records
from streamhouse.model.errors import OutOfOrderSequence, Unavailable

PRODUCER_ID, PRODUCER_EPOCH = 7, 0
RECORDS = 2
# Only the first one, which goes alone; less than a window after it, a whole one, more.
COUNTS = [1, 2, 4, 6, 7, 9, 13]


@dataclass
class Leader:
    """One partition, and the rules of a real one for what it takes, recognises and refuses."""

    values: list[bytes] = field(default_factory=list)
    producers: ProducerTable = field(default_factory=ProducerTable)

    async def produce(self, batch: bytes) -> object:
        header = read_header(batch)
        last_sequence = header.base_sequence + header.record_count - 1
        if self.producers.check(PRODUCER_ID, PRODUCER_EPOCH, header.base_sequence, last_sequence) is None:
            base_offset = len(self.values)
            self.values += [record.value or b"" for record in decode_records(batch)]
            produced = ProducedBatch(header.base_sequence, last_sequence, base_offset, len(self.values))
            self.producers.record(PRODUCER_ID, PRODUCER_EPOCH, produced, now_ms=0)
        return None

    async def take(self, numbers: range) -> None:
        """What somebody else sends who is at the same work."""
        for number in numbers:
            await self.produce(stamp_producer(batch_of(number), PRODUCER_ID, PRODUCER_EPOCH, number * RECORDS))

    async def die(self, *, durable: int) -> None:
        """The next one knows of so many batches."""
        self.values, self.producers = [], ProducerTable()
        await self.take(range(durable))


def values_of(number: int) -> list[bytes]:
    return [b"%d-%d" % (number, record) for record in range(RECORDS)]


def batch_of(number: int) -> memoryview:
    return real(*values_of(number))


def all_values(count: int) -> list[bytes]:
    return [value for number in range(count) for value in values_of(number)]


async def append(produce: Produce, count: int) -> None:
    async def batches() -> AsyncIterator[memoryview]:
        for number in range(count):
            yield batch_of(number)

    await SequencedAppend(produce, PRODUCER_ID, PRODUCER_EPOCH).append_all(batches())


@pytest.mark.parametrize("stored", [0, *COUNTS])
@pytest.mark.parametrize("count", COUNTS)
async def test_what_an_earlier_try_stored_is_not_stored_again(count: int, stored: int) -> None:
    leader = Leader()
    await leader.take(range(min(stored, count)))
    await append(leader.produce, count)
    assert leader.values == all_values(count)


@pytest.mark.parametrize("count", [7, 8, 9, 11, 12])
async def test_what_was_refused_before_its_turn_is_sent_again(count: int) -> None:
    """All of a window is refused, and only its first batch is stored: the others overtook it on the way. When it came,
    somebody else had got so far that the leader no longer recognised it; and with that leader this was lost."""
    leader = Leader()
    overtakers_refused = asyncio.Event()
    refused: list[int] = []

    async def produce(batch: bytes) -> object:
        number = read_header(batch).base_sequence // RECORDS
        if number == 1:
            await overtakers_refused.wait()
            await leader.take(range(1, 1 + WINDOW + 1))
        try:
            return await leader.produce(batch)
        except OutOfOrderSequence:
            refused.append(number)
            if len(refused) == WINDOW - 1:
                overtakers_refused.set()
            if number == 1:
                await leader.die(durable=2)
            raise

    await append(produce, count)

    assert refused[:WINDOW] == [2, 3, 4, 5, 1]
    assert leader.values == all_values(count)


@pytest.mark.parametrize("count", COUNTS[1:])
async def test_refused_to_the_last_batch_is_not_taken_for_stored(count: int) -> None:
    """A leader that lost what it had said to be durable."""
    leader = Leader()

    async def produce(batch: bytes) -> object:
        if read_header(batch).base_sequence:
            raise OutOfOrderSequence("not now")
        return await leader.produce(batch)

    with pytest.raises(Unavailable, match="lost track"):
        await append(produce, count)
