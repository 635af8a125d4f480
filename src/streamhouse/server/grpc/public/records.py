"""The service `streamhouse.v1.Records`: produce, consume, and where in the logs a time is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc

from streamhouse.broker.records import LATEST, RecordDoor
from streamhouse.model.errors import InvalidInput, NotFound, StreamHouseError
from streamhouse.model.topic import Topic
from streamhouse.server.doors import DoorContext
from streamhouse.server.grpc.calls import unary, unary_read_by
from streamhouse.server.grpc.public.appending import append_rows, read_request
from streamhouse.server.grpc.public.consume import Consumption
from streamhouse.server.grpc.public.message_limits import check_question
from streamhouse.server.grpc.public.messages import error_message, log_ends, time_of
from streamhouse.server.grpc.public.produce_stream import ProduceStream
from streamhouse.server.grpc.public.streams import Answers, Streams
from streamhouse.wire.grpc import streamhouse_v1_pb2 as pb
from streamhouse.wire.grpc.produce_rows import ProduceRows

SERVICE = pb.DESCRIPTOR.services_by_name["Records"].full_name


class RecordsService:
    def __init__(self, context: DoorContext, streams: Streams) -> None:
        self._records = context.records
        self._clock = context.broker.clock
        self._streams = streams

    def handler(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Produce": unary_read_by(self._read, self._produce),
                "ProduceStream": self._streams.conversing(bytes, self._produce_stream),
                "Consume": self._streams.answering(pb.ConsumeRequest, self._consume),
                "ListOffsets": unary(pb.ListOffsetsRequest, self._list_offsets, check=check_question),
            },
        )

    def _read(self, raw: bytes) -> ProduceRows:
        return read_request(raw, self._clock.now_ms())

    async def _produce(self, rows: ProduceRows, timeout_ms: int) -> pb.ProduceResponse:
        topic = await self._records.topic_to_write(rows.topic.decode())
        return (await append_rows(self._records, topic, rows, timeout_ms=timeout_ms)).response()

    async def _produce_stream(self, requests: AsyncIterator[bytes], answers: Answers[pb.ProduceStreamResponse]) -> None:
        await ProduceStream(self._records, self._clock, answers).run(requests)

    async def _consume(self, request: pb.ConsumeRequest, answers: Answers[pb.ConsumeResponse]) -> None:
        await Consumption(self._records, answers).run(request)

    async def _list_offsets(self, request: pb.ListOffsetsRequest, _: int) -> pb.ListOffsetsResponse:
        topic = await self._records.topic(request.topic, max(request.partitions, default=0))
        timestamp_ms = time_of(request.at, LATEST)
        if timestamp_ms is None:
            raise InvalidInput("an offset is no time", hint="ask for a time, or an edge of the log")
        partitions = sorted(set(request.partitions)) or range(topic.partition_count)
        for partition in partitions:
            if not 0 <= partition < topic.partition_count:
                raise NotFound(f"there is no partition {partition} of {topic.name}")
        return pb.ListOffsetsResponse(
            partitions=await asyncio.gather(
                *(_offset_at(self._records, topic, partition, timestamp_ms) for partition in partitions)
            )
        )


async def _offset_at(records: RecordDoor, topic: Topic, partition: int, timestamp_ms: int) -> pb.PartitionOffset:
    try:
        found = await records.offset_at(topic, partition, timestamp_ms)
    except StreamHouseError as problem:
        return pb.PartitionOffset(partition=partition, error=error_message(problem))
    return pb.PartitionOffset(partition=partition, offset=found.offset, ends=log_ends(found))
