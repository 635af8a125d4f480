"""The table of idempotent producers against a model that remembers everything that was ever appended."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from streamhouse.core.producer_state import WINDOW, ProducedBatch, Producer, ProducerTable
from streamhouse.model.errors import CorruptData, OutOfOrderSequence, StaleProducerEpoch

_MODULUS = 2**31
_IDS = st.integers(0, 3)


class _Appended:
    """One batch in the model: all of them are kept, so the model needs no window and no snapshot."""

    def __init__(self, producer_id: int, epoch: int, batch: ProducedBatch, now_ms: int) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.batch = batch
        self.now_ms = now_ms


class ProducerTableAgainstAModel(RuleBasedStateMachine):
    """Kafka's rules, said over the whole history of a log."""

    @initialize()
    def start(self) -> None:
        self.table = ProducerTable()
        self.log: list[_Appended] = []
        self.undo: list[tuple[int, Producer | None]] = []
        self.end_offset = 0
        self.durable = 0
        self.now_ms = 1_000

    def history(self, producer_id: int) -> list[_Appended]:
        """A producer's batches of its newest epoch, oldest first."""
        mine = [item for item in self.log if item.producer_id == producer_id]
        return [item for item in mine if item.epoch == mine[-1].epoch]

    @rule(
        producer_id=_IDS,
        epoch_step=st.sampled_from([-1, 0, 0, 0, 0, 1]),
        sequence=st.sampled_from(["next", "next", "next", "zero", "gap", "wrap", "before"]),
        count=st.sampled_from([1, 1, 2, 7, 1000]),
    )
    def send_something(self, producer_id: int, epoch_step: int, sequence: str, count: int) -> None:
        history = self.history(producer_id)
        epoch = max(0, (history[-1].epoch if history else 0) + epoch_step)
        following = (history[-1].batch.last_sequence + 1) % _MODULUS if history else 0
        first = {
            "next": following,
            "zero": 0,
            "gap": (following + 1) % _MODULUS,
            "wrap": _MODULUS - 2,
            "before": (following - 1) % _MODULUS,
        }[sequence]
        self.attempt(producer_id, epoch, first, (first + count - 1) % _MODULUS, count)

    @rule(producer_id=_IDS, age=st.integers(0, WINDOW + 2))
    def send_again(self, producer_id: int, age: int) -> None:
        history = self.history(producer_id)
        if age < len(history):
            item = history[-1 - age]
            count = item.batch.end_offset - item.batch.base_offset
            self.attempt(producer_id, item.epoch, item.batch.first_sequence, item.batch.last_sequence, count)

    def attempt(self, producer_id: int, epoch: int, first: int, last: int, count: int) -> None:
        history = self.history(producer_id)
        if history and epoch < history[-1].epoch:
            with pytest.raises(StaleProducerEpoch):
                self.table.check(producer_id, epoch, first, last)
            return
        if history and epoch == history[-1].epoch:
            recent = [item.batch for item in history[-WINDOW:]]
            repeats = [batch for batch in recent if (batch.first_sequence, batch.last_sequence) == (first, last)]
            if repeats:
                assert self.table.check(producer_id, epoch, first, last) in repeats
                return
        expected = None
        if history:
            newer = epoch > history[-1].epoch
            expected = 0 if newer else (history[-1].batch.last_sequence + 1) % _MODULUS
        if expected is not None and first != expected:
            with pytest.raises(OutOfOrderSequence):
                self.table.check(producer_id, epoch, first, last)
            return
        assert self.table.check(producer_id, epoch, first, last) is None
        batch = ProducedBatch(first, last, self.end_offset, self.end_offset + count)
        self.undo.append((producer_id, self.table.record(producer_id, epoch, batch, self.now_ms)))
        self.log.append(_Appended(producer_id, epoch, batch, self.now_ms))
        self.end_offset += count

    @rule()
    def all_becomes_durable(self) -> None:
        self.durable = len(self.log)
        self.undo.clear()

    @rule()
    def what_is_not_durable_is_lost(self) -> None:
        while self.undo:
            self.table.restore(*self.undo.pop())
        del self.log[self.durable :]
        self.end_offset = self.log[-1].batch.end_offset if self.log else 0

    @rule(duration_ms=st.sampled_from([1, 1_000]))
    def time_passes(self, duration_ms: int) -> None:
        self.now_ms += duration_ms

    @rule()
    def the_node_starts_again(self) -> None:
        """A snapshot of what is durable, and the rest of the durable log replayed."""
        self.what_is_not_durable_is_lost()
        cut = self.durable // 2
        end_offset = self.log[cut - 1].batch.end_offset if cut else 0
        table = ProducerTable.from_snapshot(self.table.snapshot(end_offset))
        for item in self.log[cut:]:
            table.record(item.producer_id, item.epoch, item.batch, item.now_ms)
        self.table = table

    @invariant()
    def each_producer_is_known_by_its_newest_batches(self) -> None:
        if not hasattr(self, "log"):
            return
        for producer_id in {item.producer_id for item in self.log}:
            history = self.history(producer_id)
            known = self.table.get(producer_id)
            assert known is not None
            assert known.epoch == history[-1].epoch
            assert len(known.batches) <= WINDOW
            assert known.batches[-1] == history[-1].batch
            assert list(known.batches) == [item.batch for item in history[-len(known.batches) :]]


TestProducerTable = ProducerTableAgainstAModel.TestCase
TestProducerTable.settings = settings(max_examples=150, stateful_step_count=40, deadline=None, database=None)

_sequences = st.integers(0, _MODULUS - 1)
_offsets = st.integers(0, 2**62)
_batches = st.builds(ProducedBatch, _sequences, _sequences, _offsets, _offsets)
_tables = st.dictionaries(
    st.integers(0, 2**63 - 1),
    st.tuples(st.integers(0, 2**15 - 1), st.lists(_batches, min_size=1, max_size=7), st.integers(0, 2**45)),
    max_size=6,
)


def _table_of(producers: dict[int, tuple[int, list[ProducedBatch], int]]) -> ProducerTable:
    table = ProducerTable()
    for producer_id, (epoch, batches, now_ms) in producers.items():
        for batch in batches:
            table.record(producer_id, epoch, batch, now_ms)
    return table


@settings(database=None)
@given(_tables)
def test_a_snapshot_of_everything_comes_back_as_it_was(
    producers: dict[int, tuple[int, list[ProducedBatch], int]],
) -> None:
    table = _table_of(producers)

    again = ProducerTable.from_snapshot(table.snapshot(2**63 - 1))

    assert len(again) == len(table)
    for producer_id in producers:
        assert again.get(producer_id) == table.get(producer_id)


@settings(database=None)
@given(_tables, _offsets)
def test_a_snapshot_has_no_batch_that_ends_after_its_offset(
    producers: dict[int, tuple[int, list[ProducedBatch], int]], end_offset: int
) -> None:
    table = _table_of(producers)

    again = ProducerTable.from_snapshot(table.snapshot(end_offset))

    for producer_id in producers:
        known = table.get(producer_id)
        kept = again.get(producer_id)
        assert known is not None
        expected = tuple(batch for batch in known.batches if batch.end_offset <= end_offset)
        assert (kept.batches if kept is not None else ()) == expected


@settings(database=None)
@given(_tables.filter(bool), st.data())
def test_a_snapshot_that_is_cut_short_is_refused(
    producers: dict[int, tuple[int, list[ProducedBatch], int]], data: st.DataObject
) -> None:
    snapshot = _table_of(producers).snapshot(2**63 - 1)
    cut = data.draw(st.integers(1, len(snapshot) - 1))

    with pytest.raises(CorruptData):
        ProducerTable.from_snapshot(snapshot[:cut])
