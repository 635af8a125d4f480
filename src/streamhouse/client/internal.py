"""Another node, asked over gRPC (`wire/grpc/internal.proto`); its errors are raised here as what they were there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import TypeVar
from uuid import UUID

import grpc
from google.protobuf.message import Message

from streamhouse.client.peer import ANY_EPOCH, Fetched, FoundOffset, NewSegment, Produced
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import BatchTooLarge, OutcomeUnknown, StreamHouseError, Unavailable, Unsupported
from streamhouse.model.names import TopicPartition
from streamhouse.wire.grpc import internal_pb2 as pb
from streamhouse.wire.grpc.error_kinds import ERROR_KIND_KEY, error_named

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)

CONNECT_TIMEOUT_MS = 2_000
_FIRST_RECONNECT_MS = 100
_LONGEST_RECONNECT_MS = 1_000
# A peer that vanished without a word is noticed after this, also by calls without much of a deadline.
_KEEPALIVE_TIME_MS = 10_000
_KEEPALIVE_TIMEOUT_MS = 5_000
_SERVICE = pb.DESCRIPTOR.services_by_name["Internal"].full_name
_NO_PEER = (grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN)


class PeerClient:
    """One node by its address. The connection is made when it is first needed, kept, and made again when it was lost.

    A call is only sent on a connection that stands. So what cannot be reached has surely done nothing, and what was
    sent and not answered is told from it: for a produce that is OutcomeUnknown."""

    def __init__(self, address: str, *, max_message_bytes: int, connect_timeout_ms: int = CONNECT_TIMEOUT_MS) -> None:
        """`max_message_bytes`: the largest message that peers take, and the largest that is taken from them."""
        self.address = address
        self._max_message_bytes = max_message_bytes
        self._connect_timeout_ms = connect_timeout_ms
        self._is_closed = False
        self._channel = grpc.aio.insecure_channel(
            address,
            options=(
                # Peers are addressed directly, whatever the environment says about proxies.
                ("grpc.enable_http_proxy", 0),
                ("grpc.use_local_subchannel_pool", 1),
                ("grpc.max_receive_message_length", max_message_bytes),
                ("grpc.max_send_message_length", -1),
                ("grpc.initial_reconnect_backoff_ms", _FIRST_RECONNECT_MS),
                ("grpc.min_reconnect_backoff_ms", connect_timeout_ms),
                ("grpc.max_reconnect_backoff_ms", _LONGEST_RECONNECT_MS),
                ("grpc.keepalive_time_ms", _KEEPALIVE_TIME_MS),
                ("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
            ),
        )
        self._produce = self._method("Produce", pb.ProduceRequest, pb.ProduceResponse)
        self._fetch = self._method("Fetch", pb.FetchRequest, pb.FetchResponse)
        self._offset_at = self._method("OffsetAt", pb.OffsetAtRequest, pb.OffsetAtResponse)
        self._replace_segments = self._method("ReplaceSegments", pb.ReplaceSegmentsRequest, pb.ReplaceSegmentsResponse)
        self._flush = self._method("Flush", pb.FlushRequest, pb.FlushResponse)
        self._nudge_transfers = self._method("NudgeTransfers", pb.NudgeTransfersRequest, pb.NudgeTransfersResponse)

    async def produce(
        self, partition: TopicPartition, batch: Buffer, *, leader_epoch: int = ANY_EPOCH, timeout_ms: int
    ) -> Produced:
        request = pb.ProduceRequest(partition=_message(partition), leader_epoch=leader_epoch, batch=bytes(batch))
        size_bytes = request.ByteSize()
        if size_bytes > self._max_message_bytes:
            raise BatchTooLarge(f"a message of {size_bytes} bytes is larger than peers take, {self._max_message_bytes}")
        response = await self._call(self._produce, request, timeout_ms, if_lost=OutcomeUnknown)
        return Produced(
            base_offset=response.base_offset,
            append_time_ms=response.append_time_ms,
            leader_epoch=response.leader_epoch,
        )

    async def fetch(
        self,
        partition: TopicPartition,
        offset: int,
        *,
        max_bytes: int,
        min_bytes: int = 0,
        max_wait_ms: int = 0,
        timeout_ms: int,
    ) -> Fetched:
        request = pb.FetchRequest(
            partition=_message(partition),
            offset=offset,
            max_bytes=max_bytes,
            min_bytes=min_bytes,
            max_wait_ms=max_wait_ms,
        )
        response = await self._call(self._fetch, request, max_wait_ms + timeout_ms)
        return Fetched(
            batches=response.batches,
            high_watermark=response.high_watermark,
            log_start_offset=response.log_start_offset,
            leader_epoch=response.leader_epoch,
        )

    async def offset_at(self, partition: TopicPartition, timestamp_ms: int, *, timeout_ms: int) -> FoundOffset:
        request = pb.OffsetAtRequest(partition=_message(partition), timestamp_ms=timestamp_ms)
        response = await self._call(self._offset_at, request, timeout_ms)
        return FoundOffset(
            offset=response.offset if response.HasField("offset") else None,
            log_start_offset=response.log_start_offset,
            committed_end=response.committed_end,
            high_watermark=response.high_watermark,
            uncommitted_bytes=response.uncommitted_bytes,
            leader_epoch=response.leader_epoch,
        )

    async def replace_segments(
        self,
        partition: TopicPartition,
        commit_id: UUID,
        removed: Sequence[str],
        added: Sequence[NewSegment],
        *,
        timeout_ms: int,
    ) -> None:
        request = pb.ReplaceSegmentsRequest(
            partition=_message(partition),
            commit_id=commit_id.bytes,
            removed=removed,
            added=[pb.Segment(**asdict(segment)) for segment in added],
        )
        await self._call(self._replace_segments, request, timeout_ms, if_lost=OutcomeUnknown)

    async def flush(self, partition: TopicPartition, *, timeout_ms: int) -> int:
        response = await self._call(self._flush, pb.FlushRequest(partition=_message(partition)), timeout_ms)
        return response.committed_end

    async def nudge_transfers(self, *, timeout_ms: int) -> None:
        await self._call(self._nudge_transfers, pb.NudgeTransfersRequest(), timeout_ms)

    async def close(self) -> None:
        """Calls under way fail as if the connection were lost."""
        self._is_closed = True
        await self._channel.close()

    def _method(
        self, name: str, request: type[Request], response: type[Response]
    ) -> grpc.aio.UnaryUnaryMultiCallable[Request, Response]:
        return self._channel.unary_unary(
            f"/{_SERVICE}/{name}",
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString,
        )

    async def _call(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        timeout_ms: int,
        *,
        if_lost: type[Unavailable] = Unavailable,
    ) -> Response:
        """`if_lost`: what it means that a request was sent and not answered."""
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        await self._connected(min(timeout_ms, self._connect_timeout_ms))
        try:
            return await method(request, timeout=max(0.0, deadline - asyncio.get_running_loop().time()))
        except grpc.aio.AioRpcError as problem:
            raise self._error_of(problem, if_lost) from None
        except asyncio.CancelledError:
            # gRPC raises this also when its channel is closed. It must not pass for a cancellation of the caller's.
            task = asyncio.current_task()
            if not self._is_closed or (task is not None and task.cancelling()):
                raise
            raise if_lost(f"the connection to {self.address} was closed") from None

    async def _connected(self, timeout_ms: int) -> None:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while not self._is_closed:
                    state = self._channel.get_state(try_to_connect=True)
                    if state is grpc.ChannelConnectivity.READY:
                        return
                    if state in _NO_PEER:
                        break
                    await self._channel.wait_for_state_change(state)
        except TimeoutError:
            raise Unavailable(f"{self.address} did not accept a connection within {timeout_ms} ms") from None
        raise Unavailable(f"{self.address} cannot be reached", hint="try again")

    def _error_of(self, problem: grpc.aio.AioRpcError, if_lost: type[Unavailable]) -> StreamHouseError:
        details = problem.details() or problem.code().name
        named = next((value for key, value in problem.trailing_metadata() if key == ERROR_KIND_KEY), None)
        if named is not None:
            kind = error_named(named if isinstance(named, str) else named.decode("ascii", "replace"))
            return (kind or StreamHouseError)(details)
        match problem.code():
            case grpc.StatusCode.RESOURCE_EXHAUSTED:  # refused before anything was done: too many calls, too many bytes
                return Unavailable(f"{self.address} refused a call: {details}")
            case grpc.StatusCode.UNIMPLEMENTED:
                return Unsupported(f"{self.address} does not offer {_SERVICE}", hint="is it a node of this cluster?")
            case _:
                return if_lost(f"{self.address} did not answer: {details}")


def _message(partition: TopicPartition) -> pb.Partition:
    return pb.Partition(topic_id=partition.topic_id.bytes, number=partition.partition)
