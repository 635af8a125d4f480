"""`python -m bench.grpc_stream HOST PORT TOPIC PARTITIONS RECORDS VALUE_BYTES STREAMS IN_FLIGHT WARM_UP SECONDS`:
how many records bidirectional produce streams acknowledge in a second. Requests are serialized beforehand."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator

import grpc
import uvloop

from bench.batches import order_values
from streamhouse.wire.grpc import streamhouse_v1_pb2 as api

METHOD = "/streamhouse.v1.Records/ProduceStream"


class Stream:
    """One stream that keeps so many requests unanswered."""

    def __init__(self, channel: grpc.aio.Channel, request: bytes, in_flight: int) -> None:
        self._call = channel.stream_stream(METHOD)
        self._request = request
        self._room = asyncio.Semaphore(in_flight)
        self.answered = 0

    async def run(self, until: float) -> None:
        async for answer in self._call(self._requests(until)):
            response = api.ProduceStreamResponse.FromString(answer)
            if response.WhichOneof("outcome") != "stored" or response.stored.errors:
                raise SystemExit(f"refused: {response}")
            self.answered += 1
            self._room.release()

    async def _requests(self, until: float) -> AsyncIterator[bytes]:
        while time.perf_counter() < until:
            await self._room.acquire()
            yield self._request


async def measure(
    target: str, requests: list[bytes], streams: int, in_flight: int, warm_up: float, seconds: float
) -> dict[str, float]:
    start = time.perf_counter()
    async with grpc.aio.insecure_channel(target) as channel:
        running = [Stream(channel, requests[index % len(requests)], in_flight) for index in range(streams)]
        work = asyncio.gather(*(stream.run(start + warm_up + seconds) for stream in running))
        await asyncio.sleep(warm_up)
        before, measured_from = sum(stream.answered for stream in running), time.perf_counter()
        await work
        return {
            "requests": sum(stream.answered for stream in running) - before,
            "seconds": time.perf_counter() - measured_from,
        }


def main() -> None:
    host, port, topic, *numbers = sys.argv[1:]
    partitions, records, value_bytes, streams, in_flight = (int(number) for number in numbers[:5])
    values = order_values(value_bytes, records)
    requests = [
        api.ProduceStreamRequest(
            topic=topic, records=[api.NewRecord(value=value, partition=partition) for value in values]
        ).SerializeToString()
        for partition in range(partitions)
    ]
    warm_up, seconds = (float(number) for number in numbers[5:])
    print(json.dumps(uvloop.run(measure(f"{host}:{port}", requests, streams, in_flight, warm_up, seconds))))


if __name__ == "__main__":
    main()
