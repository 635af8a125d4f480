"""A Kafka connection on which a test wants things to go wrong: it stands before the connection's session, lets pass
what is to go well, and takes the rest in turn, as the session does with what it cannot answer at once."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec

from streamhouse.app.node import Node
from streamhouse.format.batch import HEADER_BYTES, read_header
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import MalformedRequest, NotLeader
from streamhouse.runtime.tasks import begin
from streamhouse.server.kafka.session import KafkaSession
from streamhouse.server.tcp import SIZE_BYTES, Connection
from streamhouse.testing.kafka_refusals import METADATA, REFUSALS, Refusal
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.frame import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request,
    encode_response,
)
from streamhouse.wire.kafka.registry import Api

if TYPE_CHECKING:
    from streamhouse.testing.kafka_faults import KafkaFault, KafkaFaults

_LOOK_EVERY_MS = 1
_LOOK_AGAIN_MS = 10
"""Whether a delay goes on."""


class FaultySession:
    def __init__(self, connection: Connection, session: KafkaSession, faults: KafkaFaults, node: Node) -> None:
        self.session = session
        self._connection = connection
        self._faults = faults
        self._node = node
        self._clock = node.broker.clock
        self._queue: deque[bytes] = deque()
        self._working: asyncio.Task[None] | None = None

    # --- as a connection sees it ---

    def frame(self, buffer: memoryview, start: int, end: int, *, owned: bool) -> None:
        if self._working is None and not self._faults.may_meet(decode_request_header(buffer, start, end).api):
            self.session.frame(buffer, start, end, owned=owned)
            return
        self._queue.append(bytes(buffer[start:end]))
        if self._working is None:
            self._connection.pause()  # until all that came with it is done
            self._working = begin(self._work())

    def frames_done(self) -> None:
        self.session.frames_done()

    def time_passes(self) -> None:
        self.session.time_passes()

    def disconnected(self) -> None:
        self._queue.clear()
        self.session.disconnected()

    def step_aside(self) -> None:
        """There are no faults any more."""
        if self._working is None:
            self._connection.hand_to(self.session)

    # --- in turn ---

    async def _work(self) -> None:
        try:
            while self._queue and self._connection.is_open:
                await self._serve(self._queue.popleft())
        except MalformedRequest:
            self._connection.abort()
        finally:
            self._working = None
            self._connection.resume()
            if self._faults.are_none:
                self.step_aside()

    async def _serve(self, request: bytes) -> None:
        view = memoryview(request)
        header = decode_request_header(view, 0, len(view))
        await self._until_idle()
        if header.api is None:
            self._pass_on(view)
            return
        message = header.api.decode_request(view, header.body_pos, len(view), header.api_version)
        met = self._faults.meet(header.api, _topics_of(self._node, header.api, message))
        await self._delay(sum(fault.delay_ms for fault in met))
        ending = next((fault for fault in met if fault.error is not None or fault.drop is not None), None)
        if ending is None:
            self._pass_on(view)
        elif ending.error is not None:
            await self._refuse(header, header.api, message, ending, ending.error)
        else:
            if ending.drop is not None and ending.drop.value == "answer":
                await self._answer_to(view)
            self._connection.abort()

    async def _delay(self, delay_ms: float) -> None:
        """A heal ends it, and so does the end of the connection."""
        heals, until_ms = self._faults.heals, self._clock.monotonic_ms() + delay_ms
        while (left_ms := until_ms - self._clock.monotonic_ms()) > 0:
            if self._faults.heals != heals or not self._connection.is_open:
                break
            await self._clock.sleep_ms(min(left_ms, _LOOK_AGAIN_MS))

    async def _until_idle(self) -> None:
        """Everything before it is answered, as requests of one connection are in order."""
        while not self.session.is_idle and self._connection.is_open:
            await self._clock.sleep_ms(_LOOK_EVERY_MS)

    def _pass_on(self, request: memoryview) -> None:
        self.session.frame(request, 0, len(request), owned=False)
        self.session.frames_done()

    async def _answer_to(self, request: memoryview) -> bytes:
        """What the session would answer, which the client does not get; nothing if there is no answer."""
        taken: list[Buffer] = []

        def take(buffers: list[Buffer]) -> None:
            taken.extend(buffers)

        # In place of the connection's own, for so long: nothing looks for it on the way that answers take elsewhere.
        self._connection.write = take  # type: ignore[method-assign]
        try:
            self._pass_on(request)
            await self._until_idle()
        finally:
            del self._connection.write
        return b"".join(taken)

    async def _refuse(self, header: RequestHeader, api: Api, message: Any, fault: KafkaFault, code: ErrorCode) -> None:
        if api.name == "Produce":
            self._note_refused(header, message, fault, code)
            if message.acks == 0:
                self._connection.close()
                return
        answer = await self._refusal(header, api, message, fault, code)
        body = api.encode_response(answer, header.api_version)
        self._connection.write(encode_response(header.correlation_id, api, header.api_version, body))

    async def _refusal(self, header: RequestHeader, api: Api, message: Any, fault: KafkaFault, code: ErrorCode) -> Any:
        refusal = REFUSALS[api.name]
        if api.name == METADATA:
            answer = await self._carried_out(header, api, message)
            return msgspec.structs.replace(
                answer, topics=[_refused(topic, code) if _is(fault, topic.name) else topic for topic in answer.topics]
            )
        if fault.topic is None or not refusal.topics:
            return refusal.refuse(message, code)
        refused, rest = self._divided(message, refusal, fault)
        answer = refusal.refuse(refused, code)
        if not getattr(rest, refusal.topics):
            return answer
        served = await self._carried_out(header, api, rest)
        both = [*getattr(served, refusal.answers), *getattr(answer, refusal.answers)]
        return msgspec.structs.replace(served, **{refusal.answers: both})

    def _divided(self, message: Any, refusal: Refusal, fault: KafkaFault) -> tuple[Any, Any]:
        """What is refused of a request, and what is not. A fetch of the rest does not wait: it is answered with errors,
        and so at once."""
        topics = getattr(message, refusal.topics)
        hit = [topic for topic in topics if _name_of(self._node, topic) == fault.topic]
        rest: dict[str, Any] = {refusal.topics: [topic for topic in topics if topic not in hit]}
        if hasattr(message, "max_wait_ms"):
            rest["max_wait_ms"] = 0
        return msgspec.structs.replace(message, **{refusal.topics: hit}), msgspec.structs.replace(message, **rest)

    async def _carried_out(self, header: RequestHeader, api: Api, message: Any) -> Any:
        """What the session answers to this message in the request's place."""
        version = header.api_version
        body = api.encode_request(message, version)
        frame = b"".join(encode_request(api, version, header.correlation_id, header.client_id, body))
        answer = memoryview(await self._answer_to(memoryview(frame)[SIZE_BYTES:]))
        if not answer:
            raise MalformedRequest(f"{api.name} was not answered")
        body_pos = decode_response_header(answer, SIZE_BYTES, len(answer), api, version).body_pos
        return api.decode_response(answer, body_pos, len(answer), version)

    def _note_refused(self, header: RequestHeader, message: Any, fault: KafkaFault, code: ErrorCode) -> None:
        """So that what an idempotent producer has sent behind it is refused too, as when a leader refuses it."""
        if not code.retriable:
            return
        for topic in message.topic_data:
            if not _is(fault, _name_of(self._node, topic)):
                continue
            key = topic.name.encode() or topic.topic_id.bytes
            for data in topic.partition_data:
                if isinstance(data.records, memoryview) and len(data.records) >= HEADER_BYTES:
                    problem = NotLeader(f"refused by a test with {code.name}")
                    self.session.refused.note((key, data.index), read_header(data.records), problem)


def _is(fault: KafkaFault, topic: str | None) -> bool:
    return fault.topic is None or fault.topic == topic


def _refused(topic: Any, code: ErrorCode) -> Any:
    return msgspec.structs.replace(topic, error_code=int(code), partitions=[])


def _topics_of(node: Node, api: Api, message: Any) -> list[str] | None:
    """The topics that a request names; None if that is not what it is about."""
    if api.name == METADATA and message.topics is None:
        return [topic.name for topic in node.broker.topics]
    if api.name == "DeleteTopics":
        return [*message.topic_names, *(_name_of(node, topic) or "" for topic in message.topics)]
    field = REFUSALS[api.name].topics if api.name in REFUSALS else ""
    return [_name_of(node, topic) or "" for topic in getattr(message, field)] if field else None


def _name_of(node: Node, topic: Any) -> str | None:
    name: str | None = getattr(topic, "name", None) or getattr(topic, "topic", None)
    if name:
        return name
    found = node.broker.topics.find_id(topic.topic_id) if hasattr(topic, "topic_id") else None
    return found.name if found is not None else None
