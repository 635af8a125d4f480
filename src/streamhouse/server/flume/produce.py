"""Produce (0): records that arrived together are one batch of each partition, appended in the read callback where this
node leads it; each is answered when the batch is durable. What is led elsewhere is forwarded.

The protocol has no time-out, so both wait for as long as a call to another node would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeAlias

from streamhouse.broker.forwarding import DEFAULT_TIMEOUT_MS
from streamhouse.broker.measures import DoorMeasures
from streamhouse.broker.records import NewRecord
from streamhouse.format.batch import HEADER_BYTES
from streamhouse.format.plain_batch import PLAIN_RECORD_BYTES, encode_plain_batch
from streamhouse.log.leader import PartitionLeader
from streamhouse.model.errors import InvalidName, NotLeader, OutcomeUnknown, StreamHouseError
from streamhouse.model.topic import Topic
from streamhouse.runtime.measures import stopwatch_s
from streamhouse.server.doors import DoorContext
from streamhouse.server.flume.errors import code_of
from streamhouse.wire.flume.codes import ErrorCode
from streamhouse.wire.flume.key_hash import partition_for_hash
from streamhouse.wire.flume.produce_frame import ProduceFrame
from streamhouse.wire.flume.records import ANY_PARTITION, NO_OFFSET, encode_produce_reply

_Gathered: TypeAlias = tuple[PartitionLeader, ProduceFrame]
_KEYLESS_PARTITION = 0


class Replies(Protocol):
    """Where answers go, in any order."""

    def answered(self, replies: list[bytes]) -> None: ...

    def pause_while_full(self, leader: PartitionLeader) -> None: ...


class Producing:
    """The produces of one connection."""

    def __init__(self, context: DoorContext, replies: Replies) -> None:
        self._context = context
        self._topics = context.broker.topics
        self._replies = replies
        self._gathered: list[_Gathered] = []
        self._waiting: dict[_Appended, None] = {}
        """Oldest first."""

    def take(self, produce: ProduceFrame) -> bool:
        """Gather it for the next `append`; False if this node does not lead its partition."""
        leaders = self._topics.leaders_named(produce.topic)
        if leaders is None:
            return False
        partition = _partition_of(produce, len(leaders))
        if not 0 <= partition < len(leaders):
            return False
        leader = leaders[partition]
        if leader is None:
            return False
        self._gathered.append((leader, produce))
        return True

    def append(self) -> list[ProduceFrame]:
        """Append what was gathered; returns what this node turned out not to lead any more."""
        gathered = self._gathered
        if not gathered:
            return []
        self._gathered = []
        now_ms = self._context.broker.clock.now_ms()
        not_led: list[ProduceFrame] = []
        for leader, produces in _by_leader(gathered):
            if not self._append(leader, produces, now_ms):
                not_led += produces
        self._context.broker.commit_appends()
        return not_led

    def _append(self, leader: PartitionLeader, produces: list[ProduceFrame], now_ms: int) -> bool:
        batch, header = encode_plain_batch([(produce.key or None, produce.payload) for produce in produces], now_ms)
        measures = self._context.records.measures
        acknowledgement = _Appended(self, produces, leader.partition.partition, leader.next_offset, measures)
        self._waiting[acknowledgement] = None
        try:
            leader.append(memoryview(batch), header, acknowledgement)
        except NotLeader:
            del self._waiting[acknowledgement]
            return False
        except StreamHouseError as problem:
            acknowledgement.failed(problem)
        else:
            measures.produced(len(produces), len(batch))
        if leader.buffer.is_full or self._context.broker.buffer.is_full:
            self._replies.pause_while_full(leader)
        return True

    def answered(self, acknowledgement: _Appended, replies: list[bytes]) -> None:
        """Once: what becomes of a batch that had timed out is told to nobody."""
        if acknowledgement in self._waiting:
            del self._waiting[acknowledgement]
            self._replies.answered(replies)

    def time_passes(self) -> None:
        """Answer those whose time is up. Their batches keep their places, and may become durable."""
        now_s = stopwatch_s()
        for acknowledgement in list(self._waiting):
            if (now_s - acknowledgement.begun_s) * 1000 < DEFAULT_TIMEOUT_MS:
                break
            acknowledgement.failed(OutcomeUnknown(f"it is not durable after {DEFAULT_TIMEOUT_MS} ms"))

    async def forward(self, produces: Sequence[ProduceFrame]) -> None:
        """Append through whoever leads, and answer, in order and one topic after the other; topics are created here."""
        by_topic: dict[bytes, list[ProduceFrame]] = {}
        for produce in produces:
            by_topic.setdefault(produce.topic, []).append(produce)
        for name, of_topic in by_topic.items():
            try:
                topic = await self._context.records.topic_to_write(
                    _text(name), partition_count=self._context.broker.settings.flume_partitions
                )
                await self._forward(topic, of_topic)
            except StreamHouseError as problem:
                self._replies.answered([_refusal(produce, problem) for produce in of_topic])

    async def _forward(self, topic: Topic, produces: Sequence[ProduceFrame]) -> None:
        records = [
            NewRecord(
                value=produce.payload,
                key=produce.key or None,
                partition=_partition_of(produce, topic.partition_count),
            )
            for produce in produces
        ]
        outcomes = await self._context.records.append(topic, records)
        self._replies.answered(
            [
                _refusal(produce, outcome)
                if isinstance(outcome, StreamHouseError)
                else encode_produce_reply(produce.request_id, outcome.partition, outcome.offset, ErrorCode.NONE)
                for produce, outcome in zip(produces, outcomes, strict=True)
            ]
        )


class _Appended:
    """Answers the produces of one batch. Its offset is known before it is appended: nothing comes in between."""

    __slots__ = ("_base_offset", "_measures", "_partition", "_produces", "_producing", "begun_s")

    def __init__(
        self,
        producing: Producing,
        produces: list[ProduceFrame],
        partition: int,
        base_offset: int,
        measures: DoorMeasures,
    ) -> None:
        self.begun_s = stopwatch_s()
        self._measures = measures
        self._producing = producing
        self._produces = produces
        self._partition = partition
        self._base_offset = base_offset

    def durable(self) -> None:
        partition = self._partition
        self._measures.produce_seconds.observe(stopwatch_s() - self.begun_s)
        self._producing.answered(
            self,
            [
                encode_produce_reply(produce.request_id, partition, offset, 0)
                for offset, produce in enumerate(self._produces, self._base_offset)
            ],
        )

    def failed(self, problem: StreamHouseError) -> None:
        self._measures.produces_refused += 1
        self._measures.produce_seconds.observe(stopwatch_s() - self.begun_s)
        self._producing.answered(self, [_refusal(produce, problem) for produce in self._produces])


def _by_leader(gathered: list[_Gathered]) -> list[tuple[PartitionLeader, list[ProduceFrame]]]:
    """The batches to append: most often one, of one record."""
    if len(gathered) == 1:
        ((leader, produce),) = gathered
        return [(leader, [produce])]
    by_leader: dict[PartitionLeader, list[ProduceFrame]] = {}
    for leader, produce in gathered:
        by_leader.setdefault(leader, []).append(produce)
    return [
        (leader, batch)
        for leader, produces in by_leader.items()
        for batch in _batches(produces, leader.config.max_message_bytes)
    ]


def _batches(produces: list[ProduceFrame], limit_bytes: int) -> Iterator[list[ProduceFrame]]:
    """As few as the topic's limit allows; a record that is too large alone is refused alone."""
    batch: list[ProduceFrame] = []
    room = 0
    for produce in produces:
        needed = produce.size_bytes + PLAIN_RECORD_BYTES
        if batch and needed > room:
            yield batch
            batch = []
        if not batch:
            room = limit_bytes - HEADER_BYTES
        batch.append(produce)
        room -= needed
    yield batch


def _partition_of(produce: ProduceFrame, partition_count: int) -> int:
    if produce.partition != ANY_PARTITION:
        return produce.partition
    return partition_for_hash(produce.key_hash, partition_count) if produce.key else _KEYLESS_PARTITION


def _text(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise InvalidName(f"{name[:80]!r} is not a name") from None


def _refusal(produce: ProduceFrame, problem: StreamHouseError) -> bytes:
    return encode_produce_reply(produce.request_id, produce.partition, NO_OFFSET, code_of(problem))
