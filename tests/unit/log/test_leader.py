"""A partition's leader: offsets, acknowledgements, idempotence, and what is taken back when the disk fails."""

from __future__ import annotations

import pytest

from log_parts.batches import EPOCH, header_of, real, sent
from log_parts.leaders import FOREVER_MS, Partition, log_config, segment_row
from streamhouse.core.producer_state import ProducerTable
from streamhouse.core.segment_roll import PACE_MS
from streamhouse.format.batch import check_crc, iter_headers, read_header
from streamhouse.format.records import decode_records
from streamhouse.log import leader
from streamhouse.model.errors import (
    BatchTooLarge,
    EarlierBatchAwaited,
    NotLeader,
    OffsetOutOfRange,
    OutcomeUnknown,
    OutOfOrderSequence,
    StorageUnavailable,
)

PRODUCER = 9
LARGE_BYTES = 200_000
"""A frame of this size has memory of its own, and its batch may be kept as it is."""


# --- offsets and acknowledgements ---


def test_offsets_follow_one_another_from_where_the_log_ends() -> None:
    partition = Partition(next_offset=40)

    appended = [partition.append(sent(count=count))[0].base_offset for count in (1, 3, 2)]

    assert appended == [40, 41, 44]
    assert partition.leader.next_offset == 46


def test_a_batch_gets_its_offset_and_its_leaders_epoch() -> None:
    partition = Partition(next_offset=40)
    partition.append(sent(count=2))
    partition.wal.sync()

    (stored,) = [header for _, header in iter_headers(partition.read_all())]

    assert (stored.base_offset, stored.end_offset, stored.leader_epoch) == (40, 42, EPOCH)


def test_nothing_is_acknowledged_or_seen_before_it_is_durable() -> None:
    partition = Partition()
    _, ack = partition.append(sent())

    assert ack.heard == []
    assert partition.leader.high_watermark == 0
    assert partition.read_all() == b""
    partition.wal.sync()
    assert ack.is_durable
    assert partition.leader.high_watermark == 1


def test_each_batch_is_acknowledged_when_it_is_durable_and_not_later() -> None:
    partition = Partition()
    acks = [partition.append(sent())[1] for _ in range(3)]

    partition.wal.sync(2)

    assert [ack.is_durable for ack in acks] == [True, True, False]
    assert partition.leader.high_watermark == 2


def test_a_batch_above_the_topics_limit_is_refused_and_one_at_it_is_not() -> None:
    partition = Partition(config=log_config(max_message_bytes="200"))

    partition.append(sent(200))
    with pytest.raises(BatchTooLarge):
        partition.append(sent(201))

    assert partition.leader.next_offset == 1


def test_without_a_lease_nothing_is_appended() -> None:
    partition = Partition()
    partition.leader.writable_until_ms = partition.clock.monotonic_ms() + 10

    partition.append(sent())
    partition.clock.advance(10)
    with pytest.raises(NotLeader):
        partition.append(sent())

    assert partition.leader.next_offset == 1


def test_who_takes_back_a_leadership_that_others_have_given_up_too_does_not_let_it_write() -> None:
    partition = Partition()
    partition.leader.begin_epoch(EPOCH)
    first, second = (partition.leader.give_up_writing() for _ in range(2))

    for taken_back in (first, first):
        partition.leader.take_back(taken_back)
        partition.leader.extend_lease(FOREVER_MS)
        with pytest.raises(NotLeader):
            partition.append(sent())

    partition.leader.reconsider(second)
    partition.leader.extend_lease(FOREVER_MS)
    with pytest.raises(NotLeader):
        partition.append(sent())
    partition.leader.resume_writing(FOREVER_MS)
    partition.append(sent())


def test_while_the_wal_refuses_nothing_changes() -> None:
    partition = Partition()
    partition.wal.problem = StorageUnavailable("full")

    with pytest.raises(StorageUnavailable):
        partition.append(sent(producer=(PRODUCER, 0, 0)))

    assert partition.leader.next_offset == 0
    assert partition.leader.buffered_bytes == 0
    assert partition.leader.producers.get(PRODUCER) is None


# --- the disk fails ---


def test_what_is_lost_is_taken_back_and_its_offsets_are_given_again() -> None:
    partition = Partition()
    _, kept = partition.append(sent(fill=b"a"))
    partition.wal.sync()
    _, lost = partition.append(sent(fill=b"b"))
    partition.wal.lose()

    assert kept.is_durable
    assert [type(heard) for heard in lost.heard] == [StorageUnavailable]
    again, _ = partition.append(sent(fill=b"c"))
    partition.wal.sync()

    assert again.base_offset == 1
    assert partition.read_all()[61:].count(b"b") == 0
    assert [header.base_offset for _, header in iter_headers(partition.read_all())] == [0, 1]


def test_what_is_lost_gives_its_memory_back() -> None:
    partition = Partition()
    partition.append(sent(300))
    partition.wal.lose()

    assert partition.leader.buffered_bytes == 0
    assert partition.node_buffer.used_bytes == 0


def test_a_producer_whose_batches_were_lost_may_send_them_again() -> None:
    partition = Partition()
    partition.append(sent(producer=(PRODUCER, 0, 0)))
    partition.wal.sync()
    partition.append(sent(producer=(PRODUCER, 0, 1)))
    partition.append(sent(producer=(PRODUCER, 0, 2)))
    partition.wal.lose()

    with pytest.raises(OutOfOrderSequence):
        partition.append(sent(producer=(PRODUCER, 0, 2)))
    again, ack = partition.append(sent(producer=(PRODUCER, 0, 1)))
    partition.wal.sync()

    assert again.base_offset == 1
    assert ack.is_durable


def test_readers_keep_what_they_hold_when_later_batches_are_lost() -> None:
    partition = Partition()
    partition.append(sent(fill=b"a"))
    partition.wal.sync()
    held = partition.leader.tail.read(0, 1, 2**20)
    before = b"".join(held)

    partition.append(sent(fill=b"b"))
    partition.wal.lose()
    partition.append(sent(fill=b"c"))

    assert b"".join(held) == before


# --- idempotent producers ---


def test_a_repeat_of_a_durable_batch_is_acknowledged_at_once_with_its_first_offset() -> None:
    partition = Partition()
    partition.append(sent(count=2, producer=(PRODUCER, 0, 0)))
    partition.wal.sync()

    again, ack = partition.append(sent(count=2, producer=(PRODUCER, 0, 0)))

    assert again.base_offset == 0
    assert ack.is_durable
    assert partition.leader.next_offset == 2


def test_a_repeat_of_a_batch_on_its_way_waits_with_it() -> None:
    partition = Partition()
    _, first = partition.append(sent(producer=(PRODUCER, 0, 0)))
    again, second = partition.append(sent(producer=(PRODUCER, 0, 0)))

    assert (again.base_offset, second.heard) == (0, [])
    partition.wal.sync()
    assert first.is_durable
    assert second.is_durable
    assert partition.leader.next_offset == 1


def test_a_repeat_of_a_batch_that_is_then_lost_fails_with_it() -> None:
    partition = Partition()
    partition.append(sent(producer=(PRODUCER, 0, 0)))
    _, second = partition.append(sent(producer=(PRODUCER, 0, 0)))

    partition.wal.lose()

    assert [type(heard) for heard in second.heard] == [StorageUnavailable]


def test_a_repeat_waits_for_its_own_batch_and_not_for_an_earlier_one() -> None:
    partition = Partition()
    partition.append(sent(producer=(PRODUCER, 0, 0)))
    partition.append(sent(producer=(PRODUCER, 0, 1)))
    _, repeat = partition.append(sent(producer=(PRODUCER, 0, 1)))

    partition.wal.sync(1)
    assert repeat.heard == []
    partition.wal.sync()
    assert repeat.is_durable


def test_a_repeat_is_answered_although_the_wal_refuses_new_batches() -> None:
    partition = Partition()
    partition.append(sent(producer=(PRODUCER, 0, 0)))
    partition.wal.sync()
    partition.wal.problem = StorageUnavailable("full")

    again, ack = partition.append(sent(producer=(PRODUCER, 0, 0)))

    assert again.base_offset == 0
    assert ack.is_durable


def test_a_gap_is_refused_and_changes_nothing() -> None:
    partition = Partition()
    partition.append(sent(producer=(PRODUCER, 0, 0)))

    with pytest.raises(OutOfOrderSequence):
        partition.append(sent(producer=(PRODUCER, 0, 2)))

    assert partition.leader.next_offset == 1


def test_after_another_leader_an_unknown_producers_start_in_the_middle_has_to_come_again() -> None:
    """An earlier batch of it may still be on its way here; taken, this one would be acknowledged for both."""
    partition = Partition()
    partition.leader.begin_epoch(EPOCH + 1)

    with pytest.raises(EarlierBatchAwaited):
        partition.append(sent(producer=(PRODUCER, 0, 1)))

    assert partition.leader.next_offset == 0
    assert [partition.append(sent(producer=(PRODUCER, 0, at)))[0].base_offset for at in (0, 1)] == [0, 1]


def test_producers_are_known_from_the_stored_state() -> None:
    before = Partition()
    before.append(sent(producer=(PRODUCER, 0, 0)))
    before.wal.sync()

    after = Partition(next_offset=1, producer_state=before.leader.producers.snapshot(1))
    again, ack = after.append(sent(producer=(PRODUCER, 0, 0)))

    assert again.base_offset == 0
    assert ack.is_durable


def test_a_replayed_batch_is_durable_and_known_to_be_its_producers() -> None:
    before = Partition(next_offset=5)
    before.append(sent(count=2, producer=(PRODUCER, 1, 0)))
    before.wal.sync()
    stored = memoryview(before.read_all())

    after = Partition(next_offset=5)
    after.leader.epoch = EPOCH + 1
    after.leader.replay(stored)
    again, ack = after.append(sent(count=2, producer=(PRODUCER, 1, 0)))

    assert after.read_all() == stored
    assert after.leader.high_watermark == after.leader.next_offset == 7
    assert (again.base_offset, ack.is_durable) == (5, True)
    assert after.leader.buffered_bytes == len(stored)


# --- batches that are rewritten ---


def test_log_append_time_is_stamped_and_told() -> None:
    partition = Partition(config=log_config(message_timestamp_type="LogAppendTime"))
    appended, _ = partition.append(real(b"a", b"b", timestamps=(1, 2)))
    partition.wal.sync()
    stored = partition.read_all()

    assert appended.append_time_ms == partition.clock.now_ms()
    check_crc(stored, read_header(stored))
    assert [record.timestamp_ms for record in decode_records(stored)] == [partition.clock.now_ms()] * 2


def test_create_time_is_left_alone() -> None:
    partition = Partition()
    appended, _ = partition.append(real(b"a", timestamps=(7,)))
    partition.wal.sync()

    assert appended.append_time_ms == -1
    assert [record.timestamp_ms for record in decode_records(partition.read_all())] == [7]


def test_a_large_batch_in_memory_of_its_own_can_be_rewritten() -> None:
    partition = Partition(config=log_config(message_timestamp_type="LogAppendTime"))
    partition.append(real(b"x" * LARGE_BYTES), owned=True)
    partition.wal.sync()
    stored = partition.read_all()

    check_crc(stored, read_header(stored))
    assert read_header(stored).base_offset == 0
    assert [record.value for record in decode_records(stored)] == [b"x" * LARGE_BYTES]


# --- uploading ---


def test_a_full_segment_makes_an_upload_due_but_only_when_it_is_durable() -> None:
    partition = Partition(config=log_config(segment_bytes="1024"))
    partition.append(sent(1024))
    partition.clock.advance(PACE_MS)

    assert partition.due == []
    partition.wal.sync()
    assert partition.due == [partition.leader]
    assert partition.leader.upload_is_due()


def test_an_old_record_makes_an_upload_due_but_only_when_it_is_durable() -> None:
    partition = Partition(config=log_config(segment_ms="500"))
    partition.append(sent())
    partition.clock.advance(500)
    assert not partition.leader.upload_is_due()

    partition.wal.sync()

    assert partition.leader.upload_is_due()


def test_a_buffer_smaller_than_a_segment_is_uploaded_before_it_is_full() -> None:
    partition = Partition(config=log_config(segment_bytes="1048576"), partition_buffer_bytes=10_000)

    while not partition.leader.buffer.is_full and not partition.due:
        partition.append(sent(1_000))
        partition.clock.advance(PACE_MS)
        partition.wal.sync()

    assert partition.due
    assert not partition.leader.buffer.is_full


def test_a_buffer_that_is_full_at_once_is_due_a_moment_later() -> None:
    partition = Partition(config=log_config(segment_bytes="1048576"), partition_buffer_bytes=10_000)
    partition.append(sent(10_000))
    partition.wal.sync()

    partition.clock.advance(PACE_MS)

    assert partition.leader.upload_is_due()


def test_only_durable_batches_are_given_for_upload() -> None:
    partition = Partition()
    partition.append(sent(fill=b"a"))
    partition.wal.sync()
    partition.append(sent(fill=b"b"))

    uploaded = b"".join(partition.leader.unuploaded(2**20))

    assert [header.base_offset for _, header in iter_headers(uploaded)] == [0]


def test_a_committed_segment_frees_the_buffer_and_the_wal_and_the_rest_goes_on() -> None:
    partition = Partition()
    for _ in range(3):
        partition.append(sent(100))
    partition.wal.sync()

    partition.leader.segment_committed(segment_row(0, 2), 200)

    assert partition.leader.committed_end == 2
    assert partition.leader.buffered_bytes == 100
    assert partition.wal.covered_up_to == {partition.leader: 2}
    rest = b"".join(partition.leader.unuploaded(2**20))
    assert [header.base_offset for _, header in iter_headers(rest)] == [2]


def test_what_is_not_uploaded_is_never_evicted() -> None:
    partition = Partition(tail_bytes=0)
    for _ in range(10):
        partition.append(sent(10_000))
    partition.wal.sync()

    partition.leader.segment_committed(segment_row(0, 5), 50_000)

    assert partition.leader.tail.start_offset <= 5
    assert len(b"".join(partition.leader.unuploaded(2**20))) == 50_000


# --- epochs and the ends of the log ---


def test_an_epochs_end_is_where_the_next_one_starts_and_the_newest_ends_at_the_high_watermark() -> None:
    partition = Partition(next_offset=30, epochs=((1, 0), (2, 10), (5, 10), (6, 20)))

    assert partition.leader.epoch_end(1) == (1, 10)
    assert partition.leader.epoch_end(2) == (2, 10)
    assert partition.leader.epoch_end(5) == (5, 20)
    assert partition.leader.epoch_end(6) == (6, 30)


def test_an_epoch_that_never_was_ends_where_the_one_before_it_does() -> None:
    partition = Partition(next_offset=30, epochs=((1, 0), (5, 10)))

    assert partition.leader.epoch_end(3) == (1, 10)


def test_an_epoch_before_all_that_are_known_ends_where_they_begin() -> None:
    assert Partition(epochs=((3, 7),)).leader.epoch_end(2) == (2, 7)


@pytest.mark.parametrize("epochs", [(), ((1, 0),), ((3, 7), (5, 20))])
def test_the_epoch_that_no_lease_has_ends_where_the_log_does(epochs: tuple[tuple[int, int], ...]) -> None:
    """Kafka's first epoch, which clients bring along: neither unknown nor truncated."""
    assert Partition(next_offset=30, epochs=epochs).leader.epoch_end(0) == (0, 30)


def test_an_epoch_after_all_that_are_known_has_no_end() -> None:
    assert Partition(epochs=((3, 7),)).leader.epoch_end(4) == (-1, -1)


def test_an_offset_is_found_in_its_segment_and_one_below_all_was_deleted() -> None:
    partition = Partition(
        next_offset=30,
        log_start_offset=10,
        segments=[segment_row(10, 20), segment_row(20, 30)],
    )

    assert partition.leader.segment_at(10).base_offset == 10
    assert partition.leader.segment_at(19).base_offset == 10
    assert partition.leader.segment_at(20).base_offset == 20
    with pytest.raises(OffsetOutOfRange):
        partition.leader.segment_at(9)


# --- removal ---


def test_a_removed_leader_fails_what_is_on_its_way_and_gives_everything_back() -> None:
    partition = Partition()
    partition.append(sent())
    partition.wal.sync()
    _, pending = partition.append(sent())

    partition.leader.remove(NotLeader("another agent leads"))

    assert [type(heard) for heard in pending.heard] == [OutcomeUnknown]
    assert partition.leader.buffered_bytes == 0
    assert partition.node_buffer.used_bytes == 0
    assert partition.wal.forgotten == [partition.leader]
    with pytest.raises(NotLeader):
        partition.append(sent())


def test_a_removed_leader_hears_no_more_from_the_wal() -> None:
    partition = Partition()
    _, pending = partition.append(sent())
    partition.leader.remove(NotLeader("gone"))

    partition.wal.sync()

    assert len(pending.heard) == 1
    assert partition.leader.high_watermark == 0


def test_watchers_are_called_when_the_high_watermark_moves_and_on_removal_until_they_leave() -> None:
    partition = Partition()
    called: list[int] = []

    def changed() -> None:
        called.append(partition.leader.high_watermark)

    partition.leader.watch(changed)
    partition.append(sent())
    assert called == []
    partition.wal.sync()
    partition.leader.remove(NotLeader("gone"))
    partition.leader.unwatch(changed)

    assert called == [1, 1]


def test_the_snapshot_of_a_leader_knows_nothing_of_what_might_be_lost() -> None:
    partition = Partition()
    partition.append(sent(producer=(PRODUCER, 0, 0)))
    partition.wal.sync()
    partition.append(sent(producer=(PRODUCER, 0, 1)))

    state = ProducerTable.from_snapshot(partition.leader.producers.snapshot(partition.leader.high_watermark))

    assert state.check(PRODUCER, 0, 1, 1) is None
    assert header_of(sent()).producer_id == -1


def test_who_waits_for_a_lease_that_ran_out_is_sent_on_and_the_batches_stay() -> None:
    partition = Partition()
    _, first = partition.append(sent())
    partition.leader.send_waiters_on()

    assert [type(heard) for heard in first.heard] == [OutcomeUnknown]
    partition.wal.sync()
    assert partition.leader.high_watermark == 1
    assert [type(heard) for heard in first.heard] == [OutcomeUnknown]


def test_no_more_repeats_wait_than_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client whose request has timed out sends its batch again, and again."""
    monkeypatch.setattr(leader, "_MAX_REPEATS", 2)
    partition = Partition()
    _, first = partition.append(sent(producer=(PRODUCER, 0, 0)))
    repeats = [partition.append(sent(producer=(PRODUCER, 0, 0)))[1] for _ in range(2)]

    with pytest.raises(OutcomeUnknown, match="not durable yet"):
        partition.append(sent(producer=(PRODUCER, 0, 0)))
    partition.wal.sync()

    assert all(waiting.is_durable for waiting in (first, *repeats))
    assert partition.append(sent(producer=(PRODUCER, 0, 0)))[0].base_offset == 0
