"""The tail against a list: whatever is appended, read, truncated and evicted, it holds what a list would hold."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from format_samples.batches import batch
from streamhouse.format.batch import iter_headers
from streamhouse.log import tail as tail_module
from streamhouse.log.tail import Tail

_EPOCH = 5
# Small enough that a few batches fill a chunk.
_SMALLEST, _LARGEST = 256, 1024


class TailAgainstAList(RuleBasedStateMachine):
    @initialize(start_offset=st.integers(0, 2**40))
    def start(self, start_offset: int) -> None:
        sizes = patch.multiple(tail_module, SMALLEST_CHUNK_BYTES=_SMALLEST, LARGEST_CHUNK_BYTES=_LARGEST)
        sizes.start()
        self.sizes = sizes
        self.tail = Tail(start_offset)
        self.batches: list[tuple[int, int, bytes]] = []
        self.end_offset = start_offset
        self.durable = start_offset
        self.handed_out: list[tuple[memoryview, bytes]] = []
        self.number = 0

    def teardown(self) -> None:
        if hasattr(self, "sizes"):
            self.sizes.stop()

    @rule(size=st.sampled_from([0, 0, 1, 30, 120, 300, 900, 2_000]), count=st.integers(1, 5), owned=st.booleans())
    def append(self, size: int, count: int, owned: bool) -> None:
        self.number += 1
        sent = bytearray(batch(99, count=count, records=self.number.to_bytes(4, "big") * (size // 4)))
        end_offset = self.end_offset + count
        placed = self.tail.append(memoryview(sent), end_offset, _EPOCH, owned=owned)
        expected = batch(self.end_offset, count=count, records=self.number.to_bytes(4, "big") * (size // 4))
        stored = bytes(placed)
        assert stored[:8] == expected[:8]
        assert stored[12:16] == _EPOCH.to_bytes(4, "big")
        assert stored[16:] == expected[16:]
        if not owned:
            sent[:] = bytes(len(sent))  # the receive buffer is used again
        self.batches.append((self.end_offset, end_offset, stored))
        self.end_offset = end_offset

    @rule()
    def becomes_durable(self) -> None:
        self.durable = self.end_offset

    @rule(data=st.data())
    def some_becomes_durable(self, data: st.DataObject) -> None:
        borders = [end for _, end, _ in self.batches if end >= self.durable]
        if borders:
            self.durable = data.draw(st.sampled_from(borders))

    @rule()
    def what_is_not_durable_is_lost(self) -> None:
        self.tail.truncate(self.durable)
        self.batches = [item for item in self.batches if item[1] <= self.durable]
        self.end_offset = self.durable

    @rule()
    def evict(self) -> None:
        if self.tail.evictable(self.durable):
            freed = self.tail.evict()
            assert freed > 0
            gone = [item for item in self.batches if item[1] <= self.tail.start_offset]
            assert gone, "an evicted chunk held something"
            self.batches = self.batches[len(gone) :]

    @precondition(lambda self: self.durable > self.tail.start_offset)
    @rule(data=st.data(), max_bytes=st.sampled_from([0, 1, 61, 100, 300, 1_000, 5_000, 2**31]))
    def read(self, data: st.DataObject, max_bytes: int) -> None:
        bases = [self.tail.start_offset, *(base for base, end, _ in self.batches if end <= self.durable)]
        offset = data.draw(st.sampled_from(bases) | st.integers(self.tail.start_offset, self.durable))
        end_offset = self.durable
        parts = self.tail.read(offset, end_offset, max_bytes)
        found = [item for item in self.batches if item[1] > offset and item[1] <= end_offset]
        expected = b""
        for index, (_, _, content) in enumerate(found):
            if index and len(expected) + len(content) > max_bytes:
                break
            expected += content
            if len(expected) >= max_bytes:
                break
        read = b"".join(parts)
        assert read == expected
        assert all(len(part) for part in parts)
        self.handed_out += [(part, bytes(part)) for part in parts]

    @invariant()
    def nothing_that_was_handed_out_has_changed(self) -> None:
        for view, content in getattr(self, "handed_out", []):
            assert view == content

    @invariant()
    def the_whole_is_what_the_list_holds(self) -> None:
        if not hasattr(self, "tail"):
            return
        assert self.tail.end_offset == self.end_offset
        whole = b"".join(self.tail.read(self.tail.start_offset, self.end_offset, 2**40))
        assert whole == b"".join(content for _, _, content in self.batches)
        assert self.tail.size_bytes >= len(whole)


TestTail = TailAgainstAList.TestCase
TestTail.settings = settings(max_examples=200, stateful_step_count=40, deadline=None, database=None)


@settings(max_examples=30, deadline=None, database=None)
@given(st.lists(st.integers(61, 200_000), min_size=1, max_size=12))
def test_the_real_chunk_sizes_hold_batches_of_any_size(sizes: list[int]) -> None:
    tail = Tail(0)
    for number, size in enumerate(sizes):
        tail.append(memoryview(bytearray(batch(records=bytes(size - 61)))), number + 1, _EPOCH, owned=number % 2 == 0)

    read = b"".join(tail.read(0, len(sizes), 2**40))

    assert [(header.base_offset, header.size_bytes) for _, header in iter_headers(read)] == list(enumerate(sizes))
