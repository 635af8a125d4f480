"""Fetch (1), versions 4 to 18: whole batches from memory or segments, long polls woken by the high watermark.

Fetch sessions are refused the way Kafka refuses them: a full fetch is answered with session id 0, a reference to a
session with FETCH_SESSION_ID_NOT_FOUND, and clients go on with full fetches. A consumer with a `client.rack` that has a
whole segment before it is sent to a node of its zone (KIP-392); a node serves segments to readers of its zone and to
those who know the current leader epoch, and sends them to the leader where segments end. A request names at most 10,000
partitions; one that is named twice is read once, as in Kafka. A fetch names no group, member or generation, so a member
that its group has expelled reads on until its next heartbeat, as in Kafka; it is its commits that are refused. Gaps:
there are no transactions, so read_committed sees what read_uncommitted sees."""

from __future__ import annotations

from itertools import groupby

from streamhouse.broker.fetch import PartitionRead
from streamhouse.model.errors import MetadataUnavailable, NotLeader, StreamHouseError
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import Topic
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.errors import code_of
from streamhouse.server.kafka.partitions import (
    NO_LEADER,
    LeaderId,
    check_leader_epoch,
    find_leader,
    find_topic,
    leader_of,
)
from streamhouse.server.kafka.refusals import UnknownTopicId
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import fetch as messages
from streamhouse.wire.kafka.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]
decode_request = messages.decode_request
encode_response = messages.encode_response

_NO_SESSION_EPOCHS = (0, -1)
_MAX_PARTITIONS = 10_000
_UNKNOWN = -1


class _Asked:
    """One partition of the request, with its read, or the answer if there is nothing to read."""

    __slots__ = ("answer", "is_elsewhere", "partition", "read", "topic")

    def __init__(self, context: Context, topic: FetchTopic, partition: FetchPartition, rack: str) -> None:
        self.topic = topic
        self.partition = partition
        self.read: PartitionRead | None = None
        self.answer: PartitionData | None = None
        self.is_elsewhere = False
        try:
            leader = find_leader(context.broker, topic.topic, topic.topic_id, partition.partition)
            check_leader_epoch(leader, partition.current_leader_epoch)
        except NotLeader as problem:
            current = self._current_leader(context)
            # Whoever knows the current epoch nearly always knows the leader too, and asks another node on purpose.
            knows_leader = 0 <= current.leader_epoch == partition.current_leader_epoch
            is_other = current.leader_id != context.broker.identity.node_id
            is_near = bool(rack) and rack == context.broker.settings.zone
            self.is_elsewhere = is_other and (knows_leader or is_near)
            self.answer = _refusal(partition, problem, current_leader=current)
            return
        except StreamHouseError as problem:
            self.answer = _refusal(partition, problem)
            return
        if rack and leader.has_whole_segment_from(partition.fetch_offset):
            nearer = context.broker.nodes.nearer_to(rack, context.broker.identity.node_id)
            if nearer is not None:
                self.answer = PartitionData(
                    partition_index=partition.partition,
                    high_watermark=leader.high_watermark,
                    last_stable_offset=leader.high_watermark,
                    log_start_offset=leader.log_start_offset,
                    preferred_read_replica=nearer.node_id,
                    aborted_transactions=None,
                )
                return
        if partition.last_fetched_epoch >= 0:
            epoch, end_offset = leader.epoch_end(partition.last_fetched_epoch)
            if epoch != partition.last_fetched_epoch or end_offset < partition.fetch_offset:
                self.answer = PartitionData(
                    partition_index=partition.partition,
                    high_watermark=leader.high_watermark,
                    diverging_epoch=EpochEndOffset(epoch=epoch, end_offset=end_offset),
                )
                return
        self.read = PartitionRead(leader, partition.fetch_offset, partition.partition_max_bytes)

    async def read_elsewhere(self, context: Context) -> None:
        """Read what is in segments, although another node leads."""
        topic = self._topic(context)
        if topic is None:
            return
        partition = TopicPartition(topic.topic_id, self.partition.partition)
        try:
            log = await context.broker.committed_logs.at(partition, self.partition.fetch_offset)
        except StreamHouseError as problem:
            self.answer = _refusal(self.partition, problem)
            return
        if self.partition.fetch_offset >= log.committed_end:
            return  # the answer stays that another node leads; "out of range" would make who takes us for it begin anew
        self.answer = None
        self.read = PartitionRead(log, self.partition.fetch_offset, self.partition.partition_max_bytes)

    def _topic(self, context: Context) -> Topic | None:
        """None if it was deleted while the reader waited."""
        try:
            return find_topic(context.broker, self.topic.topic, self.topic.topic_id)
        except UnknownTopicId:
            return None

    def _current_leader(self, context: Context) -> LeaderIdAndEpoch:
        return _named(leader_of(context.broker, self._topic(context), self.partition.partition))

    def found(self, context: Context) -> PartitionData:
        if self.answer is not None:
            return self.answer
        read = self.read
        assert read is not None
        leader = read.leader
        if read.problem is not None:
            return _refusal(
                self.partition,
                read.problem,
                log_start_offset=leader.log_start_offset,
                current_leader=self._current_leader(context),
            )
        # Clients take a reader at the high watermark for one at the end of the log.
        high_watermark = leader.high_watermark if leader.knows_the_end else _UNKNOWN
        return PartitionData(
            partition_index=self.partition.partition,
            high_watermark=high_watermark,
            last_stable_offset=high_watermark,
            log_start_offset=leader.log_start_offset,
            aborted_transactions=None,
            records=list(read.parts),
        )


def answer_now(context: Context, request: FetchRequest) -> FetchResponse | None:
    """The reply, if everything asked for is in memory and it is enough; else None."""
    refusal = _refusal_of_all(request)
    if refusal:
        return FetchResponse(error_code=refusal)
    asked = _asked(context, request)
    if any(item.is_elsewhere for item in asked):
        return None
    reads = [item.read for item in asked if item.read is not None]
    max_bytes = min(request.max_bytes, context.largest_reply_bytes)
    if not context.broker.fetcher.read_memory(reads, max_bytes):
        return None
    enough = sum(read.size_bytes for read in reads) >= request.min_bytes or request.max_wait_ms <= 0
    failed = len(reads) < len(asked) or any(read.problem is not None for read in reads)
    return _response(context, asked) if enough or failed or not asked else None


async def handle(context: Context, request: FetchRequest) -> FetchResponse:
    refusal = _refusal_of_all(request)
    if refusal:
        return FetchResponse(error_code=refusal)
    asked = _asked(context, request)
    for item in asked:
        if item.is_elsewhere:
            await item.read_elsewhere(context)
    reads = [item.read for item in asked if item.read is not None]
    max_bytes = min(request.max_bytes, context.largest_reply_bytes)
    if len(reads) == len(asked) and request.max_wait_ms > 0 and asked:
        await context.broker.fetcher.wait(reads, request.min_bytes, max_bytes, request.max_wait_ms)
    else:
        await context.broker.fetcher.read(reads, max_bytes)
    return _response(context, asked)


def _refusal_of_all(request: FetchRequest) -> ErrorCode:
    if request.session_id != 0 and request.session_epoch not in _NO_SESSION_EPOCHS:
        return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    if sum(len(topic.partitions) for topic in request.topics) > _MAX_PARTITIONS:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _asked(context: Context, request: FetchRequest) -> list[_Asked]:
    """A partition that is named more than once is read once, as the last one says: so Kafka does it."""
    named = {
        (topic.topic or topic.topic_id, partition.partition): (topic, partition)
        for topic in request.topics
        for partition in topic.partitions
    }
    return [_Asked(context, topic, partition, request.rack_id) for topic, partition in named.values()]


def _response(context: Context, asked: list[_Asked]) -> FetchResponse:
    responses = [
        FetchableTopicResponse(
            topic=topic.topic,
            topic_id=topic.topic_id,
            partitions=[item.found(context) for item in items],
        )
        for topic, items in _by_topic(asked)
    ]
    return FetchResponse(responses=responses, node_endpoints=_other_leaders(context, responses))


def _other_leaders(context: Context, responses: list[FetchableTopicResponse]) -> list[NodeEndpoint]:
    """Where the leaders are that the answers name, so that the client need not ask."""
    named = {partition.current_leader.leader_id for topic in responses for partition in topic.partitions}
    return [
        NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack or None)
        for node in (context.broker.nodes.all() if named != {NO_LEADER.node_id} else [])
        if node.node_id in named
    ]


def _named(leader: LeaderId) -> LeaderIdAndEpoch:
    return LeaderIdAndEpoch(leader_id=leader.node_id, leader_epoch=leader.epoch)


def _by_topic(asked: list[_Asked]) -> list[tuple[FetchTopic, list[_Asked]]]:
    return [
        (items[0].topic, items)
        for items in (list(group) for _, group in groupby(asked, key=lambda item: id(item.topic)))
    ]


def _refusal(
    partition: FetchPartition,
    problem: StreamHouseError,
    *,
    log_start_offset: int = -1,
    current_leader: LeaderIdAndEpoch | None = None,
) -> PartitionData:
    """Without a high watermark: librdkafka takes a reader that stands on it for one at the end of the log, whatever the
    error says."""
    return PartitionData(
        partition_index=partition.partition,
        error_code=_code(problem),
        high_watermark=_UNKNOWN,
        log_start_offset=log_start_offset,
        current_leader=current_leader or LeaderIdAndEpoch(),
        aborted_transactions=None,
    )


def _code(problem: StreamHouseError) -> ErrorCode:
    """A reader knows no coordinator: to it, segments that cannot be looked up are storage that is away."""
    return ErrorCode.KAFKA_STORAGE_ERROR if isinstance(problem, MetadataUnavailable) else code_of(problem)
