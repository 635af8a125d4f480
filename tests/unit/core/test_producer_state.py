"""What a partition remembers of its producers, case by case."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from streamhouse.core import producer_state
from streamhouse.core.producer_state import EXPIRY_MS, WINDOW, ProducedBatch, ProducerTable
from streamhouse.model.errors import CorruptData, EarlierBatchAwaited, OutOfOrderSequence, StaleProducerEpoch

LAST = 2**31 - 1


def batch(first: int, base_offset: int, count: int = 1) -> ProducedBatch:
    return ProducedBatch(first, (first + count - 1) % 2**31, base_offset, base_offset + count)


def test_a_producer_that_is_not_known_may_start_anywhere() -> None:
    assert ProducerTable().check(1, 4, 1234, 1240) is None


def taken_over(before: ProducerTable | None = None, at: int = 100) -> ProducerTable:
    """Another leader had the partition up to this offset."""
    table = ProducerTable.from_snapshot((before or ProducerTable()).snapshot(at))
    table.take_over(at)
    return table


def test_after_another_leader_a_start_in_the_middle_is_taken_when_it_comes_again() -> None:
    """Each of several batches on their way is sent away once, for they come in order."""
    table = taken_over()
    for sequence in (5, 10, 15):
        with pytest.raises(EarlierBatchAwaited):
            table.check(1, 0, sequence, sequence + 4)

    assert table.check(1, 0, 5, 9) is None


@pytest.mark.parametrize("first", [0, 3])
def test_after_another_leader_what_comes_before_a_start_in_the_middle_is_taken(first: int) -> None:
    table = taken_over()
    with pytest.raises(EarlierBatchAwaited):
        table.check(1, 0, 5, 9)

    assert table.check(1, 0, first, 4) is None
    table.record(1, 0, ProducedBatch(first, 4, 100, 105 - first), 0)
    assert table.check(1, 0, 5, 9) is None


def known() -> ProducerTable:
    """Producer 1 has sent sequences 0 to 7."""
    table = ProducerTable()
    table.record(1, 0, batch(0, 0, count=8), 0)
    return table


@pytest.mark.parametrize(("epoch", "first"), [(0, 10), (1, 5)])
def test_after_another_leader_a_gap_is_a_gap_when_it_comes_again(epoch: int, first: int) -> None:
    table = taken_over(known())
    with pytest.raises(EarlierBatchAwaited):
        table.check(1, epoch, first, first)

    with pytest.raises(OutOfOrderSequence):
        table.check(1, epoch, first, first)


def test_after_another_leader_what_is_missing_may_come_behind_the_gap() -> None:
    table = taken_over(known())
    with pytest.raises(EarlierBatchAwaited):
        table.check(1, 0, 10, 14)

    assert table.check(1, 0, 8, 9) is None
    table.record(1, 0, ProducedBatch(8, 9, 100, 102), 0)
    assert table.check(1, 0, 10, 14) is None


def test_a_producer_that_this_leader_has_heard_of_is_told_of_a_gap_at_once() -> None:
    repeating, going_on = taken_over(known()), taken_over(known())
    assert repeating.check(1, 0, 0, 7) is not None
    going_on.record(1, 0, ProducedBatch(8, 9, 100, 102), 0)

    for table in (repeating, going_on):
        with pytest.raises(OutOfOrderSequence):
            table.check(1, 0, 20, 20)


def test_after_another_leader_what_is_behind_is_out_of_order_at_once() -> None:
    """Whoever appends the same batches again relies on it: they are stored."""
    before = ProducerTable()
    for number in range(WINDOW + 1):
        before.record(1, 0, batch(number, number), 0)

    with pytest.raises(OutOfOrderSequence):
        taken_over(before).check(1, 0, 0, 0)


def test_after_another_leader_producers_that_start_at_the_beginning_or_go_on_are_taken() -> None:
    table = taken_over(known())

    assert table.check(2, 0, 0, 4) is None
    assert table.check(1, 0, 8, 9) is None


def test_when_too_many_were_sent_away_others_are_judged_at_once() -> None:
    table = taken_over()
    with patch.object(producer_state, "MAX_PRODUCERS", 3):
        for producer_id in range(3):
            with pytest.raises(EarlierBatchAwaited):
                table.check(producer_id, 0, 5, 9)

        assert table.check(3, 0, 5, 9) is None
        assert [table.check(producer_id, 0, 5, 9) for producer_id in range(3)] == [None] * 3


def test_a_repeat_of_any_of_the_last_five_batches_gives_the_original_back() -> None:
    table = ProducerTable()
    sent = [batch(number, 100 + number) for number in range(WINDOW)]
    for item in sent:
        table.record(1, 0, item, 0)

    assert [table.check(1, 0, item.first_sequence, item.last_sequence) for item in sent] == sent


def test_a_repeat_of_an_older_batch_is_out_of_order() -> None:
    table = ProducerTable()
    for number in range(WINDOW + 1):
        table.record(1, 0, batch(number, number), 0)

    with pytest.raises(OutOfOrderSequence):
        table.check(1, 0, 0, 0)


def test_a_batch_with_the_first_sequence_of_another_but_a_different_length_is_no_repeat() -> None:
    table = ProducerTable()
    table.record(1, 0, batch(0, 0, count=3), 0)

    with pytest.raises(OutOfOrderSequence):
        table.check(1, 0, 0, 1)


def test_sequences_go_on_at_zero_after_the_largest() -> None:
    table = ProducerTable()
    table.record(1, 0, batch(LAST - 1, 0, count=2), 0)

    assert table.check(1, 0, 0, 5) is None
    with pytest.raises(OutOfOrderSequence):
        table.check(1, 0, 1, 5)


def test_a_batch_may_itself_go_over_the_largest_sequence() -> None:
    table = ProducerTable()
    over = batch(LAST, 0, count=3)
    table.record(1, 0, over, 0)

    assert over.last_sequence == 1
    assert table.check(1, 0, LAST, 1) == over
    assert table.check(1, 0, 2, 2) is None


def test_a_newer_epoch_starts_again_at_zero_and_fences_the_older_one() -> None:
    table = ProducerTable()
    table.record(1, 0, batch(0, 0), 0)

    with pytest.raises(OutOfOrderSequence):
        table.check(1, 1, 1, 1)
    assert table.check(1, 1, 0, 0) is None
    table.record(1, 1, batch(0, 1), 0)
    with pytest.raises(StaleProducerEpoch):
        table.check(1, 0, 1, 1)


def test_what_the_older_epoch_sent_is_no_repeat_for_the_newer_one() -> None:
    table = ProducerTable()
    table.record(1, 0, batch(0, 0), 0)
    table.record(1, 1, batch(0, 1), 0)

    repeated = table.check(1, 1, 0, 0)

    assert repeated is not None
    assert repeated.base_offset == 1


def test_an_append_that_was_lost_is_forgotten_as_if_it_had_never_been() -> None:
    table = ProducerTable()
    table.record(1, 0, batch(0, 0), 0)
    before = table.record(1, 0, batch(1, 1), 0)
    before_again = table.record(1, 0, batch(2, 2), 0)

    table.restore(1, before_again)
    table.restore(1, before)

    assert table.check(1, 0, 1, 1) is None
    assert table.check(1, 0, 0, 0) == batch(0, 0)


def test_a_producer_whose_only_append_was_lost_is_not_known_any_more() -> None:
    table = ProducerTable()
    before = table.record(1, 0, batch(7, 0), 0)

    table.restore(1, before)

    assert len(table) == 0
    assert table.check(1, 0, 99, 99) is None


def test_producers_are_forgotten_after_a_day_without_use_but_not_before() -> None:
    table = ProducerTable()
    table.record(1, 0, batch(0, 0), 0)
    table.record(2, 0, batch(0, 1), 1)

    table.expire(EXPIRY_MS - 1)
    assert len(table) == 2
    table.expire(EXPIRY_MS)
    assert table.get(1) is None
    assert table.get(2) is not None


def test_use_keeps_a_producer_from_being_forgotten() -> None:
    table = ProducerTable()
    table.record(1, 0, batch(0, 0), 0)
    table.record(2, 0, batch(0, 1), 0)
    table.record(1, 0, batch(1, 2), 5_000)

    table.expire(EXPIRY_MS)

    assert table.get(1) is not None
    assert table.get(2) is None


def test_beyond_the_limit_the_producer_that_was_longest_silent_is_forgotten() -> None:
    table = ProducerTable()
    with patch.object(producer_state, "MAX_PRODUCERS", 2):
        table.record(1, 0, batch(0, 0), 0)
        table.record(2, 0, batch(0, 1), 0)
        table.record(1, 0, batch(1, 2), 0)
        table.record(3, 0, batch(0, 3), 0)

    assert [table.get(producer_id) is not None for producer_id in (1, 2, 3)] == [True, False, True]


def test_a_snapshot_of_nothing_is_empty_and_comes_back_as_nothing() -> None:
    assert ProducerTable().snapshot(0) == b""
    assert len(ProducerTable.from_snapshot(b"")) == 0


def test_a_snapshot_of_a_newer_version_is_refused() -> None:
    table = ProducerTable()
    table.record(1, 0, batch(0, 0), 0)
    snapshot = b"\x02" + table.snapshot(10)[1:]

    with pytest.raises(CorruptData, match="version 2"):
        ProducerTable.from_snapshot(snapshot)
