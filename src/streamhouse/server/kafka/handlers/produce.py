"""Produce (0), versions 3 to 13: appends at once, answers when the records are durable.

acks=0 gets no answer, and a closed connection if something was refused, as in Kafka. acks=1 and acks=all both wait for
the WAL's sync: one leader, one copy, so they mean the same. They wait for as long as the request says, and a second at
least; then partitions that are not durable are answered with REQUEST_TIMED_OUT. Their batches keep their places, and
what an idempotent producer sends again gets the first offset. Gaps: transactions are refused.

What comes behind a batch that was refused for a reason that passes is refused too (refused_sequences.py).

What was made wrong is refused for good, as in Kafka: no batch or more than one for a partition, a message format before
v2, fields that do not go together (INVALID_RECORD), zstd before version 7 (UNSUPPORTED_COMPRESSION_TYPE). What may have
been damaged on its way is answered with CORRUPT_MESSAGE, and clients send it again: a wrong CRC, an unknown magic, a
length that is not that of the bytes. Of the last, Kafka takes a batch that is cut short for none, and cuts off what is
too much.

A batch that its topic's rules do not allow (core/record_rules.py) is refused whole, and the first thousand of its bad
records are named: records without a key on a compacted topic, times beyond message.timestamp.before.max.ms and
.after.max.ms, which have no limit by default (Kafka's is an hour into the future, by KIP-1030). Where records have to
be read for that, a thread does so, and the connection's later requests wait. What becomes larger than 16 MiB then is
answered with MESSAGE_TOO_LARGE.

A batch whose largest timestamp lies before its first one, as sarama wrote them before version 1.45.1, is stored with
the true one, for retention and lookups by time go by it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING
from uuid import UUID

from streamhouse.broker.admission import Look
from streamhouse.broker.broker import Broker
from streamhouse.core.record_rules import Admitted, are_cheap
from streamhouse.format.batch import HEADER_BYTES, BatchHeader, check_produced, read_header
from streamhouse.format.compression import Codec
from streamhouse.log.leader import Appended, PartitionLeader
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import (
    InvalidRecords,
    NotLeader,
    OutcomeUnknown,
    StreamHouseError,
    Unsupported,
)
from streamhouse.server.kafka.errors import code_of
from streamhouse.server.kafka.partitions import NO_LEADER, find_leader, known_topic, leader_of
from streamhouse.server.kafka.refusals import InvalidAcks, UnsupportedCompression
from streamhouse.server.kafka.refused_sequences import Place, RefusedSequences
from streamhouse.server.kafka.reply import Reply, ReplySender
from streamhouse.wire.kafka.frame import RequestHeader, encode_response
from streamhouse.wire.kafka.messages import produce as messages
from streamhouse.wire.kafka.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from streamhouse.wire.kafka.primitives import Records
from streamhouse.wire.kafka.produce_scan import encode_reply, scan
from streamhouse.wire.kafka.produce_size import check_batch_count
from streamhouse.wire.kafka.registry import APIS

if TYPE_CHECKING:
    from streamhouse.server.kafka.session import KafkaSession

_log = logging.getLogger(__name__)
API = APIS[messages.API_KEY]
_VALID_ACKS = (-1, 0, 1)
_ZSTD_SINCE = 7
_TOPIC_IDS_SINCE = 13
_LARGE_BYTES = 4 * 1024
_MAX_BATCHES = 20_000
_FEW_BATCHES = 100
_NO_ID = UUID(int=0)
_NOTHING = memoryview(b"")


class PendingProduce(Reply):
    """A request whose partitions become durable one by one; the last one, or the end of its time, sends the reply."""

    __slots__ = ("_header", "_session", "_unsettled", "outcomes", "request")

    def __init__(self, header: RequestHeader, request: ProduceRequest, session: KafkaSession) -> None:
        super().__init__(session, request.timeout_ms)
        self._header = header
        self.request = request
        self._session = session
        self._unsettled = 1
        self.outcomes: list[PartitionOutcome] = []

    @property
    def version(self) -> int:
        return self._header.api_version

    def expect(self, outcome: PartitionOutcome) -> None:
        self.outcomes.append(outcome)
        self._unsettled += 1

    def settled(self) -> None:
        self._unsettled -= 1
        if not self._unsettled and self.buffers is None:
            self._answer()

    def timed_out(self) -> None:
        for outcome in self.outcomes:
            outcome.timed_out(self.timeout_ms)
        self._answer()

    def _answer(self) -> None:
        """Never raises: who reports durability has others to tell."""
        measures = self._session.measures
        measures.produces_refused += any(outcome.problem is not None for outcome in self.outcomes)
        if self.request.acks == 0:
            measures.produces_unanswered += 1
            return
        try:
            self.fill(self._encode())
        except Exception:
            _log.exception("closing %s: the answer to a produce cannot be made", self._session.connection.peer)
            self._session.connection.abort()

    def _encode(self) -> list[Buffer]:
        outcomes = iter(self.outcomes)
        responses = [
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    next(outcomes).response(self._session.broker, topic, data.index) for data in topic.partition_data
                ],
            )
            for topic in self.request.topic_data
        ]
        response = ProduceResponse(responses=responses, node_endpoints=self._other_leaders(responses))
        body = messages.encode_response(response, self.version)
        return encode_response(self._header.correlation_id, API, self.version, body)

    def _other_leaders(self, responses: list[TopicProduceResponse]) -> list[NodeEndpoint]:
        """Where the leaders are that the answers name, so that the client need not ask."""
        named = {partition.current_leader.leader_id for topic in responses for partition in topic.partition_responses}
        return [
            NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack or None)
            for node in (self._session.broker.nodes.all() if named != {NO_LEADER.node_id} else [])
            if node.node_id in named
        ]


class PartitionOutcome:
    """What became of one partition's batch."""

    __slots__ = (
        "_is_settled",
        "_pending",
        "_place",
        "_refused",
        "admitted",
        "appended",
        "batch",
        "header",
        "leader",
        "must_look",
        "not_led",
        "problem",
    )

    def __init__(
        self, pending: PendingProduce, refused: RefusedSequences, place: Place, records: Records | None
    ) -> None:
        self._pending = pending
        self._refused = refused
        self._place = place
        self._is_settled = False
        self.batch = records if isinstance(records, memoryview) else _NOTHING
        self.header: BatchHeader | None = read_header(self.batch) if len(self.batch) >= HEADER_BYTES else None
        self.leader: PartitionLeader | None = None
        self.not_led: StreamHouseError | None = None
        self.must_look = False
        self.admitted: Admitted | StreamHouseError | None = None
        self.appended: Appended | None = None
        self.problem: StreamHouseError | None = None

    def find_leader(self, broker: Broker, topic: TopicProduceData) -> None:
        try:
            self.leader = find_leader(broker, topic.name, topic.topic_id, self._place[1])
        except StreamHouseError as problem:
            self.not_led = problem
        else:
            self.must_look = self.header is not None and broker.admission.is_needed(self.leader, self.header)

    @property
    def look(self) -> Look:
        assert self.leader is not None
        return self.leader.rules, self.batch

    def durable(self) -> None:
        self._is_settled = True
        self._pending.settled()

    def failed(self, problem: StreamHouseError) -> None:
        """Also of a batch that had timed out: it was not refused then, and is now."""
        self._is_settled = True
        self.problem = problem
        if self.header is not None:
            self._refused.note(self._place, self.header, problem)
        self._pending.settled()

    def timed_out(self, timeout_ms: int) -> None:
        if not self._is_settled:
            self.problem = _too_late(timeout_ms)

    def check_turn(self) -> None:
        if self._refused.waiting and self.header is not None:
            self._refused.check(self._place, self.header)

    def response(self, broker: Broker, topic: TopicProduceData, index: int) -> PartitionProduceResponse:
        problem = self.problem
        if problem is None:
            assert self.appended is not None
            assert self.leader is not None
            base_offset, append_time_ms = self.appended
            return PartitionProduceResponse(
                index=index,
                base_offset=base_offset,
                log_append_time_ms=append_time_ms,
                log_start_offset=self.leader.log_start_offset,
            )
        current = NO_LEADER
        if isinstance(problem, NotLeader):
            # The topic may have been deleted while the request's other partitions waited.
            current = leader_of(broker, known_topic(broker, topic.name, topic.topic_id), index)
        return PartitionProduceResponse(
            index=index,
            error_code=code_of(problem),
            base_offset=-1,
            record_errors=_record_errors(problem),
            error_message=str(problem),
            current_leader=LeaderIdAndEpoch(leader_id=current.node_id, leader_epoch=current.epoch),
        )


def _record_errors(problem: StreamHouseError) -> list[BatchIndexAndErrorMessage]:
    refused = problem.refused if isinstance(problem, InvalidRecords) else ()
    return [BatchIndexAndErrorMessage(batch_index=position, batch_index_error_message=why) for position, why in refused]


class CommonProduce(Reply):
    """A request with one batch, whose reply was encoded when its batch was appended."""

    __slots__ = ("_correlation_id", "_encoded", "_header", "_is_durable", "_partition", "_topic", "_version")

    def __init__(
        self,
        sender: ReplySender,
        version: int,
        correlation_id: int,
        timeout_ms: int,
        topic: bytes,
        partition: int,
        header: BatchHeader,
    ) -> None:
        self._sender = sender
        self.timeout_ms = timeout_ms
        self.buffers = None
        self._version = version
        self._correlation_id = correlation_id
        self._topic = topic
        self._partition = partition
        self._header = header
        self._encoded = b""
        self._is_durable = False

    def appended(self, encoded: bytes) -> None:
        self._encoded = encoded
        if self._is_durable:
            self.fill([encoded])

    def durable(self) -> None:
        """A repeat of what is durable already gets here before `appended`."""
        self._is_durable = True
        if self._encoded:
            self.buffers = [self._encoded]
            self._sender.reply_filled()

    def failed(self, problem: StreamHouseError) -> None:
        """Also after it had timed out: it was not refused then, and is now."""
        self._sender.refused.note((self._topic, self._partition), self._header, problem)
        if self.buffers is None:
            self._refuse(problem)

    def timed_out(self) -> None:
        self._encoded = b""  # when it becomes durable, nobody waits for that any more
        self._refuse(_too_late(self.timeout_ms))

    def _refuse(self, problem: StreamHouseError) -> None:
        """Rare, so this takes the general way."""
        names_by_id = self._version >= _TOPIC_IDS_SINCE
        response = ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name="" if names_by_id else self._topic.decode(),
                    topic_id=UUID(bytes=self._topic) if names_by_id else _NO_ID,
                    partition_responses=[
                        PartitionProduceResponse(
                            index=self._partition,
                            error_code=code_of(problem),
                            base_offset=-1,
                            error_message=str(problem),
                        )
                    ],
                )
            ]
        )
        body = messages.encode_response(response, self._version)
        self._sender.measures.produces_refused += 1
        self.fill(encode_response(self._correlation_id, API, self._version, body))


def _too_late(timeout_ms: int) -> OutcomeUnknown:
    return OutcomeUnknown(f"it is not durable after {timeout_ms} ms, and may become so later")


def handle_common(session: KafkaSession, buffer: memoryview, start: int, end: int, *, owned: bool) -> bool:
    """Append a request of the most common shape; False if it is another request, or wrong, or not led here."""
    found = scan(buffer, start, end)
    if found is None:
        return False
    version, correlation_id, acks, timeout_ms, topic, partition, batch_start, batch_end, header = found
    leader = session.broker.topics.leader_by_key(topic, partition, is_id=version >= _TOPIC_IDS_SINCE)
    if leader is None or (version < _ZSTD_SINCE and header.codec == Codec.ZSTD):
        return False
    produce = CommonProduce(session, version, correlation_id, timeout_ms, topic, partition, header)
    if acks != 0:
        session.expect(produce)
    else:
        session.measures.produces_unanswered += 1
    try:
        if session.refused.waiting:
            session.refused.check((topic, partition), header)
        base_offset, append_time_ms = leader.append(buffer[batch_start:batch_end], header, produce, owned=owned)
    except StreamHouseError as problem:
        produce.failed(problem)
        if acks == 0:
            session.connection.close()
        return True
    measures = session.measures
    measures.produced_records += header.last_offset_delta + 1
    measures.produced_bytes += batch_end - batch_start
    produce.appended(
        encode_reply(version, correlation_id, topic, partition, base_offset, append_time_ms, leader.log_start_offset)
    )
    if leader.buffer.is_full or session.broker.buffer.is_full:
        session.pause_while_full(leader)
    return True


def handle(session: KafkaSession, header: RequestHeader, buffer: memoryview, end: int, *, owned: bool) -> bool:
    """Append every batch; the reply, if one is wanted, takes its place in the order of replies now. False, and nothing
    is done, if a thread must look at records first: then it is for `handle_in_turn`."""
    pending = _read(session, header, buffer, end)
    looked_at = [outcome for outcome in pending.outcomes if outcome.must_look]
    if looked_at:
        if not are_cheap([outcome.batch for outcome in looked_at]):
            return False
        _note(looked_at, session.broker.admission.admit_now([outcome.look for outcome in looked_at]))
    _append_all(session, pending, owned=owned)
    return True


async def handle_in_turn(session: KafkaSession, header: RequestHeader, buffer: memoryview, end: int) -> None:
    """The same, while everything that comes behind it on the connection waits."""
    pending = _read(session, header, buffer, end)
    looked_at = [outcome for outcome in pending.outcomes if outcome.must_look]
    _note(looked_at, await session.broker.admission.admit([outcome.look for outcome in looked_at]))
    if session.connection.is_open:
        _append_all(session, pending, owned=False)


def _note(looked_at: Iterable[PartitionOutcome], found: Iterable[Admitted | StreamHouseError]) -> None:
    for outcome, admitted in zip(looked_at, found, strict=True):
        outcome.admitted = admitted


def _read(session: KafkaSession, header: RequestHeader, buffer: memoryview, end: int) -> PendingProduce:
    """The request, and who leads each of its partitions."""
    size_bytes = end - header.body_pos
    if size_bytes > _LARGE_BYTES:
        # As many topics and partitions as there is room for with a batch in each: without one they are cheap to name.
        limit = min(_MAX_BATCHES, _FEW_BATCHES + 2 * size_bytes // HEADER_BYTES)
        check_batch_count(buffer, header.body_pos, end, header.api_version, limit)
    request = messages.decode_request(buffer, header.body_pos, end, header.api_version)
    pending = PendingProduce(header, request, session)
    for topic in request.topic_data:
        key = topic.topic_id.bytes if header.api_version >= _TOPIC_IDS_SINCE else topic.name.encode()
        for data in topic.partition_data:
            outcome = PartitionOutcome(pending, session.refused, (key, data.index), data.records)
            outcome.find_leader(session.broker, topic)
            pending.expect(outcome)
    return pending


def _append_all(session: KafkaSession, pending: PendingProduce, *, owned: bool) -> None:
    request = pending.request
    is_before_zstd = pending.version < _ZSTD_SINCE
    if request.acks != 0:
        session.expect(pending)
    for outcome in pending.outcomes:
        try:
            if request.acks not in _VALID_ACKS:
                raise InvalidAcks(f"acks={request.acks} is not -1, 0 or 1")
            if request.transactional_id is not None:
                raise Unsupported("transactions are not supported")
            _append(session, outcome, is_before_zstd=is_before_zstd, owned=owned)
        except StreamHouseError as problem:
            outcome.failed(problem)
    pending.settled()
    if request.acks == 0 and any(outcome.problem is not None for outcome in pending.outcomes):
        session.connection.close()


def _append(session: KafkaSession, outcome: PartitionOutcome, *, is_before_zstd: bool, owned: bool) -> None:
    if outcome.not_led is not None:
        raise outcome.not_led
    leader, batch, admitted = outcome.leader, outcome.batch, outcome.admitted
    assert leader is not None
    if not batch:
        raise InvalidRecords("a partition came without records")
    if is_before_zstd and outcome.header is not None and outcome.header.codec == Codec.ZSTD:
        check_produced(batch)
        raise UnsupportedCompression(f"zstd came with version {_ZSTD_SINCE} of the request", hint="use another codec")
    outcome.check_turn()
    if isinstance(admitted, StreamHouseError):
        raise admitted
    end_offset = leader.next_offset
    if admitted is None:
        outcome.appended = session.broker.produce(leader, batch, outcome, owned=owned)
    else:
        outcome.appended = leader.append(admitted.batch, admitted.header, outcome)
    session.measures.produced(leader.next_offset - end_offset, len(batch))
    session.pause_while_full(leader)
