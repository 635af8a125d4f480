"""Sends records over one `ProduceStream`: gathered into requests, answered in order, bounded on their way."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import grpc

from streamhouse.client.api_records import Delivery, NewRecord
from streamhouse.client.grpc_channel import GrpcChannel
from streamhouse.model.errors import OutcomeUnknown, StreamHouseError
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.wire.grpc import streamhouse_v1_pb2 as pb
from streamhouse.wire.grpc.error_kinds import error_named

SERVICE = pb.DESCRIPTOR.services_by_name["Records"].full_name
_REQUEST_BYTES = 512 * 1024
_REQUEST_RECORDS = 5_000
_BUFFER_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Waiting:
    topic: str
    message: pb.NewRecord
    size_bytes: int
    answer: asyncio.Future[Delivery]


_Settle: TypeAlias = Callable[[list[_Waiting], pb.ProduceStreamResponse | StreamHouseError], None]


class _Call:
    """One stream while it lasts, and the requests that it has not answered."""

    def __init__(self, channel: GrpcChannel) -> None:
        self._channel = channel
        self.unanswered: deque[list[_Waiting]] = deque()
        self.is_over = False
        self.stream = channel.channel.stream_stream(
            f"/{SERVICE}/ProduceStream",
            request_serializer=pb.ProduceStreamRequest.SerializeToString,
            response_deserializer=pb.ProduceStreamResponse.FromString,
        )()

    async def read_answers(self, settle: _Settle) -> None:
        """Until the stream ends, for whatever reason; what it has not answered then may be stored or not."""
        problem: StreamHouseError = OutcomeUnknown("the stream ended before an answer came")
        try:
            async for answer in self.stream:
                settle(self.unanswered.popleft(), answer)
        except grpc.aio.AioRpcError as failure:
            problem = self._channel.error_of(failure, OutcomeUnknown)
        finally:
            self.is_over = True
            while self.unanswered:
                settle(self.unanswered.popleft(), problem)


class GrpcSink:
    """The node tries again what it can; what it could not, or what a lost connection leaves open, is the sender's to
    decide."""

    def __init__(self, channel: GrpcChannel) -> None:
        self._channel = channel
        self._waiting: deque[_Waiting] = deque()
        self._on_its_way_bytes = 0
        self._arrived = asyncio.Event()
        self._progress = asyncio.Event()
        self._call: _Call | None = None
        self._tasks = TaskGroup("gRPC producer")
        self._is_running = False

    async def send(self, record: NewRecord) -> asyncio.Future[Delivery]:
        message = _message(record)
        size_bytes = message.ByteSize()
        while self._on_its_way_bytes and self._on_its_way_bytes + size_bytes > _BUFFER_BYTES:
            await self._wait_progress()
        self._on_its_way_bytes += size_bytes
        answer: asyncio.Future[Delivery] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(record.topic, message, size_bytes, answer))
        self._arrived.set()
        if not self._is_running:
            self._is_running = True
            self._tasks.start(self._run(), "requests")
        return answer

    async def flush(self) -> None:
        while self._on_its_way_bytes:
            await self._wait_progress()

    async def close(self) -> None:
        if self._call is not None:
            self._call.stream.cancel()
        await self._tasks.cancel()
        self._settle(list(self._waiting), OutcomeUnknown("the producer was closed before an answer came"))
        self._waiting.clear()

    async def _run(self) -> None:
        while True:
            await self._arrived.wait()
            request = self._cut()
            try:
                await self._write(request)
            except StreamHouseError as problem:
                self._settle(request, problem)

    def _cut(self) -> list[_Waiting]:
        """The next records of one topic, as many as make a request; a record larger than that is one of its own."""
        topic, size = self._waiting[0].topic, 0
        request: list[_Waiting] = []
        while self._waiting and self._waiting[0].topic == topic and len(request) < _REQUEST_RECORDS:
            size += self._waiting[0].size_bytes
            if request and size > _REQUEST_BYTES:
                break
            request.append(self._waiting.popleft())
        if not self._waiting:
            self._arrived.clear()
        return request

    async def _write(self, request: list[_Waiting]) -> None:
        call = self._call
        if call is None or call.is_over:
            await self._channel.connected()
            call = self._call = _Call(self._channel)
            self._tasks.start(call.read_answers(self._settle), "answers")
        call.unanswered.append(request)
        message = pb.ProduceStreamRequest(topic=request[0].topic, records=[each.message for each in request])
        try:
            await call.stream.write(message)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            pass  # the stream has ended, and whoever reads its answers hears why and tells those who wait

    def _settle(self, request: list[_Waiting], outcome: pb.ProduceStreamResponse | StreamHouseError) -> None:
        for waiting, result in zip(request, _results(request, outcome), strict=True):
            self._on_its_way_bytes -= waiting.size_bytes
            if waiting.answer.done():
                continue
            if isinstance(result, StreamHouseError):
                waiting.answer.set_exception(result)
            else:
                waiting.answer.set_result(result)
        self._progress.set()

    async def _wait_progress(self) -> None:
        self._progress.clear()
        await self._progress.wait()


def _results(
    request: list[_Waiting], outcome: pb.ProduceStreamResponse | StreamHouseError
) -> Iterable[Delivery | StreamHouseError]:
    if isinstance(outcome, StreamHouseError):
        return [outcome] * len(request)
    if outcome.HasField("error"):
        return [_error(outcome.error)] * len(request)
    stored = outcome.stored
    refused = {each.index: _error(each.error) for each in stored.errors}
    return [
        refused.get(index) or Delivery(topic=waiting.topic, partition=partition, offset=offset)
        for index, (waiting, partition, offset) in enumerate(
            zip(request, stored.partitions, stored.offsets, strict=True)
        )
    ]


def _error(error: pb.Error) -> StreamHouseError:
    return (error_named(error.code) or StreamHouseError)(error.message)


def _message(record: NewRecord) -> pb.NewRecord:
    return pb.NewRecord(
        key=record.key,
        value=record.value,
        headers=[pb.Header(key=name, value=value) for name, value in record.headers],
        partition=record.partition,
        timestamp_ms=record.timestamp_ms,
    )
