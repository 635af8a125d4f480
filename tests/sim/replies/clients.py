"""Producers that share connections, as those of one process do, and note when each request is answered."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

from sim.cluster.clients import Producer, World
from sim.cluster.history import MAX_RECORDS, batch_of
from sim.replies.door import DoorAgent, ServerEnd
from streamhouse.model.errors import SequenceRefused, Unavailable
from streamhouse.model.names import TopicPartition
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.frame import SIZE_BYTES, decode_response_header, encode_request
from streamhouse.wire.kafka.messages import metadata, produce
from streamhouse.wire.kafka.registry import APIS, Api

PRODUCE_VERSION = 9
METADATA_VERSION = 9
NEVER_MS = 3_600_000
_SLACK_SECONDS = 2.5
"""The shortest time-out is a second, the node looks at the time once a second, and bytes travel."""
_SEQUENCE_CODES = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH)


class ReplyWorld(World, Protocol):
    agents: dict[str, DoorAgent]
    topic_names: dict[TopicPartition, str]
    keeps_time: bool
    """Whether every request is read when it comes: not where buffers are so small that sockets are left unread."""


@dataclass(slots=True, eq=False)
class Request:
    api: Api
    version: int
    correlation_id: int
    sent_at: float
    timeout_ms: int
    answer: asyncio.Future[Any]

    def __str__(self) -> str:
        return f"{self.api.name} {self.correlation_id}, sent at {self.sent_at:.3f}"


class ClientEnd:
    """One connection. Its answers come in the order of its requests, each in its time."""

    def __init__(self, world: ReplyWorld, agent: DoorAgent) -> None:
        self._world = world
        self._agent = agent
        self._received = b""
        self._correlation_ids = count(1)
        self._may_begin_at = 0.0
        """A request waits for those before it, unless all of them are produces."""
        self.unanswered: deque[Request] = deque()
        self.server: ServerEnd | None = agent.accept(self)

    async def call(self, messages: Any, request: Any, version: int, timeout_ms: int) -> Any:
        if self.server is None:
            raise ConnectionError
        api = APIS[messages.API_KEY]
        correlation_id = next(self._correlation_ids)
        loop = self._world.loop
        asked = Request(api, version, correlation_id, loop.time(), timeout_ms, loop.create_future())
        self.unanswered.append(asked)
        frame = encode_request(api, version, correlation_id, "simulated", messages.encode_request(request, version))
        self.server.send(b"".join(frame))
        return await asked.answer

    def received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= SIZE_BYTES:
            end = SIZE_BYTES + int.from_bytes(self._received[:SIZE_BYTES], "big")
            if len(self._received) < end:
                return
            frame, self._received = memoryview(self._received[SIZE_BYTES:end]), self._received[end:]
            self._answered(self.unanswered.popleft(), frame)

    def _answered(self, request: Request, frame: memoryview) -> None:
        header = decode_response_header(frame, 0, len(frame), request.api, request.version)
        assert header.correlation_id == request.correlation_id, "answers come in the order of the requests"
        self._check_time(request)
        if not request.answer.done():
            request.answer.set_result(request.api.decode_response(frame, header.body_pos, len(frame), request.version))

    def _check_time(self, request: Request) -> None:
        world, now = self._world, self._world.loop.time()
        # A produce is begun when it comes, if nothing but produces is before it; anything else when it is first.
        begun = max(request.sent_at, self._may_begin_at, self._agent.resumed_at)
        late = now - begun - request.timeout_ms / 1000 - _SLACK_SECONDS
        if world.keeps_time and late > 0:
            world.history.violations.append(f"R1 {request} was answered {late:.3f} s late by {self._agent.agent_id}")
        if request.api.key != produce.API_KEY or not self.unanswered or self.unanswered[0].api.key != produce.API_KEY:
            self._may_begin_at = now

    def closed(self) -> None:
        self.server = None
        while self.unanswered:
            answer = self.unanswered.popleft().answer
            if not answer.done():
                answer.set_exception(ConnectionError())


class Client:
    """One process with producers: a connection to each agent, and one patience for all requests. Mixed on a connection,
    the less patient would wait behind the others, for answers come in order."""

    def __init__(self, world: ReplyWorld, timeout_ms: int) -> None:
        self._world = world
        self.timeout_ms = timeout_ms
        self.ends: list[ClientEnd] = []
        self._by_agent: dict[str, ClientEnd] = {}

    def end_at(self, agent: DoorAgent) -> ClientEnd:
        end = self._by_agent.get(agent.agent_id)
        if end is None or end.server is None:
            end = self._by_agent[agent.agent_id] = ClientEnd(self._world, agent)
            self.ends.append(end)
        return end

    async def ask_around(self) -> None:
        """Metadata, again and again, on connections on which others produce; some break for no reason."""
        world = self._world
        while not world.is_storm_over:
            await asyncio.sleep(world.random.random())
            end = self.end_at(world.random.choice(list(world.agents.values())))
            if end.server is not None and world.random.random() < world.answers_lost:
                end.server.cut()
            try:
                await end.call(metadata, metadata.MetadataRequest(topics=None), METADATA_VERSION, 0)
            except ConnectionError:
                pass


class ConnectedProducer(Producer):
    """Sends its batches as Kafka does, and waits for an answer however long it takes."""

    def __init__(self, world: ReplyWorld, partition: TopicPartition, producer_id: int | None, client: Client) -> None:
        super().__init__(world, partition, producer_id)
        self._replies = world
        self._client = client
        self._timeout_ms = client.timeout_ms

    async def _send(self, values: list[int]) -> object:
        producer = (-1, -1, -1) if self._producer_id is None else (self._producer_id, self._epoch, self._sequence)
        (answer,) = await self._produce([(self._partition, values)], producer)
        return answer

    async def _produce(
        self, batches: Sequence[tuple[TopicPartition, list[int]]], producer: tuple[int, int, int]
    ) -> list[object]:
        """The offset of each batch, or what was said instead."""
        world = self._replies
        agent = world.guess_leader(batches[0][0])
        assert isinstance(agent, DoorAgent)
        request = produce.ProduceRequest(
            acks=-1,
            timeout_ms=self._timeout_ms,
            topic_data=[
                produce.TopicProduceData(
                    name=world.topic_names[partition],
                    partition_data=[
                        produce.PartitionProduceData(index=partition.partition, records=batch_of(values, producer))
                    ],
                )
                for partition, values in batches
            ],
        )
        self.waits_for = f"an answer of {agent.agent_id} for {batches}"
        try:
            answer = await self._client.end_at(agent).call(produce, request, PRODUCE_VERSION, self._timeout_ms)
        except ConnectionError as problem:
            return [problem] * len(batches)
        finally:
            self.waits_for = ""
        outcomes = [_outcome(topic.partition_responses[0]) for topic in answer.responses]
        for (partition, values), outcome in zip(batches, outcomes, strict=True):
            if isinstance(outcome, int):
                world.history.acked(partition, outcome, values)
        return outcomes


class WideProducer(ConnectedProducer):
    """Batches of two partitions in one request, each sent once."""

    def __init__(self, world: ReplyWorld, partitions: Sequence[TopicPartition], client: Client) -> None:
        super().__init__(world, partitions[0], None, client)
        self._partitions = partitions

    async def run(self) -> None:
        world = self._replies
        while not world.is_storm_over:
            await asyncio.sleep(world.random.random())
            batches = [
                (partition, [next(world.values) for _ in range(world.random.randint(1, MAX_RECORDS))])
                for partition in self._partitions
            ]
            for partition, values in batches:
                world.history.sent(partition, "wide", values, is_idempotent=False)
            await self._produce(batches, (-1, -1, -1))


def _outcome(answer: produce.PartitionProduceResponse) -> object:
    if answer.error_code == ErrorCode.NONE:
        return answer.base_offset
    name = ErrorCode(answer.error_code).name
    return SequenceRefused(name) if answer.error_code in _SEQUENCE_CODES else Unavailable(name)
