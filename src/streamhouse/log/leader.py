"""The owner of one led partition: it gives out offsets, and acknowledges what the WAL has made durable.

Everything here runs on the event loop without awaiting, so each call is atomic. Offsets, oldest to newest:

    log_start_offset <= committed_end <= high_watermark <= next_offset
    (in segments ..............)
                      (durable in the WAL ...)
                                                (appended, not yet durable: nobody sees it)
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, Protocol, TypeAlias

from streamhouse.core.producer_state import ProducedBatch, Producer, ProducerTable
from streamhouse.core.record_rules import RecordRules
from streamhouse.core.segment_roll import is_due
from streamhouse.format.batch import BatchHeader, read_header, stamp_append_time
from streamhouse.format.wal_entry import entry_prefix
from streamhouse.log.budget import ByteBudget
from streamhouse.log.tail import Tail
from streamhouse.log.tail_memory import TailMemory
from streamhouse.log.wal import Wal
from streamhouse.metadata.store import PartitionRow, SegmentRow
from streamhouse.model.errors import BatchTooLarge, NotLeader, OffsetOutOfRange, OutcomeUnknown, StreamHouseError
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import LogConfig
from streamhouse.runtime.clock import Clock

NO_LEASE_EPOCH = 0
"""Leases begin with 1. Kafka's epochs begin here, and clients bring offsets with this one from there."""

# Each repeat that waits takes memory and no buffer, and a client whose request has timed out sends another one.
_MAX_REPEATS = 5_000


class Acknowledgement(Protocol):
    """Who appended a batch and wants to know. Neither call may raise: others are told after it."""

    def durable(self) -> None: ...

    def failed(self, problem: StreamHouseError) -> None: ...


class _Nobody:
    """Who waited has been told something else already."""

    def durable(self) -> None:
        return

    def failed(self, problem: StreamHouseError) -> None:
        return


NOBODY = _Nobody()

# Plain tuples: one of each is made for every batch, and a named one takes three times as long.
Appended: TypeAlias = tuple[int, int]
"""Base offset, and append time or -1."""
_Pending: TypeAlias = tuple[int, Acknowledgement, int, int, Producer | None]
"""End offset, who waits for it, size in bytes, producer id, and what was known of that producer before."""


class GivenUp:
    """That somebody is about to end a leadership: whoever has this may take it back, and nobody else."""

    __slots__ = ()


class LogResources(NamedTuple):
    """What all partitions of a node share."""

    clock: Clock
    buffer: ByteBudget
    partition_buffer_bytes: int
    tail_memory: TailMemory
    upload_due: Callable[[PartitionLeader], None]


class PartitionLeader:
    def __init__(
        self,
        *,
        topic: str,
        row: PartitionRow,
        segments: list[SegmentRow],
        epoch: int,
        config: LogConfig,
        resources: LogResources,
        wal: Wal,
        is_local: bool = True,
    ) -> None:
        """`is_local`: what is not in segments yet can be read by this agent alone."""
        self.topic = topic
        self.is_local = is_local
        self.partition: TopicPartition = row.partition
        self.wal_prefix = entry_prefix(row.partition.topic_id, row.partition.partition)
        self.epoch = epoch
        self.epochs: list[tuple[int, int]] = []
        for known_epoch, start_offset in row.epochs:
            self._note_epoch(known_epoch, start_offset)
        self.configure(config)
        self.log_start_offset = row.log_start_offset
        self.committed_end = row.next_offset
        self.high_watermark = row.next_offset
        self.segments = segments
        self.tail = Tail(row.next_offset)
        self.producers = ProducerTable.from_snapshot(row.producer_state)
        self.writable_until_ms = 0
        self.removed = False
        self.buffer = ByteBudget(resources.partition_buffer_bytes)
        self._node_buffer = resources.buffer
        self._wal = wal
        self._is_stopped = False
        self._given_up: set[GivenUp] = set()
        self._clock = resources.clock
        self._tail_memory = resources.tail_memory
        self._upload_due = resources.upload_due
        self._buffered_since_ms = 0
        self._pending: deque[_Pending] = deque()
        self._repeats: list[tuple[int, Acknowledgement]] = []
        self._watchers: dict[Callable[[], None], None] = {}

    @property
    def next_offset(self) -> int:
        return self.tail.end_offset

    @property
    def buffered_bytes(self) -> int:
        """What is in no segment yet."""
        return self.buffer.used_bytes

    # --- writing ---

    def append(
        self, batch: memoryview, header: BatchHeader, acknowledgement: Acknowledgement, *, owned: bool = False
    ) -> Appended:
        """Give a checked batch, which the `rules` allow, its offset and start making it durable; `acknowledgement` is
        told when it is.

        An idempotent producer's repeat is not appended again: it gets the first offset back, once that is durable."""
        if self._clock.monotonic_ms() >= self.writable_until_ms:
            raise NotLeader(f"this agent does not hold the lease of {self.topic}/{self.partition.partition}")
        size_bytes = len(batch)
        if size_bytes > self.config.max_message_bytes:
            raise BatchTooLarge(
                f"a batch of {size_bytes} bytes is larger than {self.topic}'s max.message.bytes, "
                f"{self.config.max_message_bytes}"
            )
        producer_id = header.producer_id
        if producer_id >= 0:
            repeated = self._find_repeat(header)
            if repeated is not None:
                return self._repeat(repeated, acknowledgement)
        self._wal.check_writable()
        append_time_ms = -1
        if self.config.stamps_append_time:
            append_time_ms = self._clock.now_ms()
            batch, owned = memoryview(stamp_append_time(batch, append_time_ms)), False
        base_offset = self.tail.end_offset
        before = self._remember_producer(header, base_offset) if producer_id >= 0 else None
        end_offset = base_offset + header.last_offset_delta + 1
        placed = self.tail.append(batch, end_offset, self.epoch, owned=owned)
        self._pending.append((end_offset, acknowledgement, size_bytes, producer_id, before))
        self._take_buffer(size_bytes)
        self._wal.append(self, placed, end_offset)
        return base_offset, append_time_ms

    def _repeat(self, repeated: ProducedBatch, acknowledgement: Acknowledgement) -> Appended:
        if repeated.end_offset <= self.high_watermark:
            acknowledgement.durable()
        elif len(self._repeats) >= _MAX_REPEATS:
            raise OutcomeUnknown(f"{self.topic}/{self.partition.partition} has it, and it is not durable yet")
        else:
            self._repeats.append((repeated.end_offset, acknowledgement))
        return repeated.base_offset, -1

    def replay(self, batch: memoryview) -> None:
        """Put back what the WAL held at the last stop: already durable, offsets as they were."""
        header = read_header(batch)
        assert header.base_offset == self.next_offset, "recovery replays a log without gaps"
        if header.producer_id >= 0:
            self._remember_producer(header, header.base_offset)
        self.tail.append(batch, header.end_offset, header.leader_epoch)
        self._take_buffer(len(batch))
        self.high_watermark = header.end_offset

    def durable(self, end_offset: int) -> None:
        if self.removed:
            return
        self.high_watermark = end_offset
        pending = self._pending
        while pending and pending[0][0] <= end_offset:
            pending.popleft()[1].durable()
        if self._repeats:
            ready = [repeat for repeat in self._repeats if repeat[0] <= end_offset]
            self._repeats = [repeat for repeat in self._repeats if repeat[0] > end_offset]
            for _, acknowledgement in ready:
                acknowledgement.durable()
        if self.buffer.used_bytes >= self._segment_bytes and self.upload_is_due():
            self._upload_due(self)
        self._notify_watchers()

    def not_durable(self, problem: StreamHouseError) -> None:
        """Take back every append that was not reported durable, newest first, as if it had never been."""
        while self._pending:
            _, acknowledgement, size_bytes, producer_id, producer_before = self._pending.pop()
            if producer_id >= 0:
                self.producers.restore(producer_id, producer_before)
            self._give_back_buffer(size_bytes)
            acknowledgement.failed(problem)
        repeats, self._repeats = self._repeats, []
        for _, acknowledgement in repeats:
            acknowledgement.failed(problem)
        self.tail.truncate(self.high_watermark)

    def send_waiters_on(self) -> None:
        """Answer those who wait for durability: it is no longer for us to say when. Their batches stay as they are, and
        become durable or not; a producer that sends one again is recognised by its sequence."""
        waiting = [pending[1] for pending in self._pending] + [repeat[1] for repeat in self._repeats]
        self._pending = deque((pending[0], NOBODY, *pending[2:]) for pending in self._pending)
        self._repeats = []
        for acknowledgement in waiting:
            acknowledgement.failed(self._unknown())

    # --- uploading ---

    def upload_is_due(self) -> bool:
        if self.high_watermark == self.committed_end:
            return False  # what is buffered is not durable yet
        if self._node_buffer.has_little_room():
            return True  # many partitions, each below its segment size, fill the memory together
        age_ms = self._clock.monotonic_ms() - self._buffered_since_ms
        return is_due(self.buffered_bytes, age_ms, self._segment_bytes, self.config.segment_age_ms)

    def roll_reason(self) -> str:
        """Why a segment is made now of what is buffered."""
        if self.buffered_bytes >= self._segment_bytes:
            return "size"
        return "memory" if self._node_buffer.has_little_room() else "age"

    @property
    def unuploaded_ms(self) -> int:
        """For how long records have been in no segment; 0 if all are."""
        if self.high_watermark == self.committed_end:
            return 0
        return self._clock.monotonic_ms() - self._buffered_since_ms

    def unuploaded(self, max_bytes: int) -> list[memoryview]:
        """The oldest durable batches that are in no segment yet."""
        return self.tail.read(self.committed_end, self.high_watermark, max_bytes)

    def step(self, name: str, end_offset: int) -> AbstractContextManager[None]:
        """Around a step on the way of what is below an offset to the object store, for leaders that trace it."""
        return nullcontext()

    def segment_committed(self, segment: SegmentRow, raw_bytes: int) -> None:
        """These batches are in the object store, and the metadata store says so."""
        assert segment.base_offset == self.committed_end, "segments follow one another"
        self.segments.append(segment)
        self.committed_end = segment.end_offset
        self._give_back_buffer(raw_bytes)
        self._buffered_since_ms = self._clock.monotonic_ms()
        self._wal.covered(self, self.committed_end)
        self._tail_memory.uploaded(self, raw_bytes)

    def evict_uploaded_chunk(self) -> int:
        return self.tail.evict() if self.tail.evictable(self.committed_end) else 0

    # --- reading ---

    @property
    def knows_the_end(self) -> bool:
        """Whether nobody else can have written: not if the lease may have run out, unless what is on our disk keeps
        others from leading."""
        return self.is_local or self._clock.monotonic_ms() < self.writable_until_ms

    def watch(self, changed: Callable[[], None]) -> None:
        """Call whenever the high watermark moves, or the partition is removed, until `unwatch`."""
        self._watchers[changed] = None

    def unwatch(self, changed: Callable[[], None]) -> None:
        self._watchers.pop(changed, None)

    def has_whole_segment_from(self, offset: int) -> bool:
        """Whether a reader at this offset could read a segment to its end, and not only the rest of one."""
        return bool(self.segments) and self.log_start_offset <= offset <= self.segments[-1].base_offset

    def segment_at(self, offset: int) -> SegmentRow:
        """The segment that holds an offset below `committed_end`, if it has not been dropped."""
        index = bisect_right(self.segments, offset, key=lambda segment: segment.base_offset) - 1
        if index < 0:
            raise OffsetOutOfRange(f"offset {offset} of {self.topic}/{self.partition.partition} was deleted")
        return self.segments[index]

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """(the largest known epoch not above the one asked for, where its records end), as Kafka answers it.

        An epoch before all known ones ends where they begin; one after all of them is unknown: (-1, -1). What is said
        to be of the epoch that no lease has may be anywhere: nothing was ever taken back that had it."""
        if epoch == NO_LEASE_EPOCH:
            return (epoch, self.high_watermark)
        if not self.epochs or epoch > self.epochs[-1][0]:
            return (-1, -1)
        if epoch == self.epochs[-1][0]:
            return (epoch, self.high_watermark)
        following = bisect_right(self.epochs, epoch, key=lambda known: known[0])
        end_offset = self.epochs[following][1]
        return (self.epochs[following - 1][0] if following else epoch, end_offset)

    # --- leadership ---

    def configure(self, config: LogConfig) -> None:
        self.config = config
        self.rules = RecordRules.of(config)
        self.has_rules = not self.rules.are_none

    @property
    def has_begun(self) -> bool:
        """Whether it is known where the current epoch's records start."""
        return bool(self.epochs) and self.epochs[-1][0] == self.epoch

    def begin_epoch(self, epoch: int) -> None:
        """What is appended from here on is of this epoch."""
        self.epoch = epoch
        self._note_epoch(epoch, self.next_offset)
        if epoch > 1:
            self.producers.take_over(self.next_offset)

    def _note_epoch(self, epoch: int, start_offset: int) -> None:
        """After an unclean election an epoch may start before the one that it follows, whose records from there on do
        not count."""
        while self.epochs and self.epochs[-1][1] > start_offset:
            self.epochs.pop()
        self.epochs.append((epoch, start_offset))

    def is_superseded(self, epoch: int, offset: int) -> bool:
        """Whether a later leader began at or before this offset: what that epoch wrote there does not count."""
        following = bisect_right(self.epochs, epoch, key=lambda known: known[0])
        return following < len(self.epochs) and self.epochs[following][1] <= offset

    # A leader writes while its lease lasts, under an epoch that has begun, unless
    # - it is stopped: its lease was lost, or may have been. It goes on when it has been taken again, in a new epoch;
    # - it is given up, by one or several who want its leadership to end: a hand-over, a change of durability, a stop.
    #   Each relies on it that nothing more is written. So it goes on when every one of them has taken back what it gave
    #   up; a lease that is renewed or taken again changes nothing about that.

    def extend_lease(self, writable_until_ms: int) -> None:
        if self.has_begun and not self._is_stopped and not self._given_up:
            self.writable_until_ms = writable_until_ms

    def stop_writing(self) -> None:
        """Refuse appends, whatever the lease says, until `resume_writing`."""
        self._is_stopped = True
        self.writable_until_ms = 0

    def resume_writing(self, writable_until_ms: int) -> None:
        self._is_stopped = False
        self.extend_lease(writable_until_ms)

    def give_up_writing(self) -> GivenUp:
        """Refuse appends: what is there now is all that the next leader shall find."""
        given_up = GivenUp()
        self._given_up.add(given_up)
        self.writable_until_ms = 0
        return given_up

    def take_back(self, given_up: GivenUp) -> None:
        """Nobody was asked to end it after all, or who was has refused: it goes on when its lease is next renewed."""
        self._given_up.discard(given_up)

    def reconsider(self, given_up: GivenUp) -> None:
        """What was asked to end it may have done so, or not: it goes on with `resume_writing`."""
        self._given_up.discard(given_up)
        self.stop_writing()

    @property
    def is_given_up(self) -> bool:
        return bool(self._given_up)

    @property
    def is_drained(self) -> bool:
        """Whether everything that was ever appended is in segments."""
        return self.next_offset == self.committed_end

    def log_start_moved(self, log_start_offset: int) -> None:
        """Judged by offsets and not by what the store dropped, so that it does not matter whether this is heard of
        before or after a replacement which the store did at the same time."""
        self.log_start_offset = max(self.log_start_offset, log_start_offset)
        self.segments = [segment for segment in self.segments if segment.end_offset > self.log_start_offset]

    def segments_replaced(self, removed: Collection[str], added: Sequence[SegmentRow]) -> None:
        """Other segments hold these offsets now, perhaps with fewer records, so what the tail has of them is no longer
        the log. Readers that are at the old ones may finish: their objects stay for a while. Hearing of it twice
        changes nothing, for the old ones are gone by then and never come back."""
        if not any(segment.object_key in removed for segment in self.segments):
            return
        kept = [segment for segment in self.segments if segment.object_key not in removed]
        new = [segment for segment in added if segment.end_offset > self.log_start_offset]
        self.segments = sorted([*kept, *new], key=lambda segment: segment.base_offset)
        self._tail_memory.freed(self, self.tail.pass_over(added[-1].end_offset))

    def remove(self, problem: StreamHouseError) -> None:
        """The topic is gone, or another agent leads: nothing more is written, waiting readers are woken."""
        self.removed = True
        self.writable_until_ms = 0
        self.not_durable(self._unknown() if isinstance(problem, NotLeader) else problem)
        self._give_back_buffer(self.buffered_bytes)
        self._wal.forget(self)
        self._tail_memory.forget(self)
        self._notify_watchers()

    # --- inside ---

    def _unknown(self) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"this agent may no longer lead {self.topic}/{self.partition.partition}; it is not known if this was stored"
        )

    @property
    def _segment_bytes(self) -> int:
        """Never so much that the buffer would be full before it is reached."""
        return min(self.config.segment_bytes, self.buffer.limit_bytes // 2)

    def _find_repeat(self, header: BatchHeader) -> ProducedBatch | None:
        return self.producers.check(
            header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence
        )

    def _remember_producer(self, header: BatchHeader, base_offset: int) -> Producer | None:
        batch = ProducedBatch(
            header.base_sequence, header.last_sequence, base_offset, base_offset + header.last_offset_delta + 1
        )
        return self.producers.record(header.producer_id, header.producer_epoch, batch, self._clock.now_ms())

    def _take_buffer(self, size_bytes: int) -> None:
        if not self.buffer.used_bytes:
            self._buffered_since_ms = self._clock.monotonic_ms()
        self.buffer.take(size_bytes)
        self._node_buffer.take(size_bytes)

    def _give_back_buffer(self, size_bytes: int) -> None:
        self.buffer.give_back(size_bytes)
        self._node_buffer.give_back(size_bytes)

    def _notify_watchers(self) -> None:
        for changed in list(self._watchers):
            changed()
