"""Another node, asked over gRPC (`wire/grpc/internal.proto`); its errors are raised here as what they were there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from uuid import UUID

from streamhouse.client.grpc_channel import CONNECT_TIMEOUT_MS, GrpcChannel
from streamhouse.client.peer import (
    ANY_EPOCH,
    Fetched,
    FoundOffset,
    NewSegment,
    NodeWal,
    NodeWork,
    Produced,
    WalFile,
    WalObject,
    WalOnDisk,
)
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import BatchTooLarge, OutcomeUnknown
from streamhouse.model.names import TopicPartition
from streamhouse.wire.grpc import internal_pb2 as pb

_SERVICE = pb.DESCRIPTOR.services_by_name["Internal"].full_name


class PeerClient:
    """One node by its address. The connection is made when it is first needed, kept, and made again when it was lost.

    A call is only sent on a connection that stands. So what cannot be reached has surely done nothing, and what was
    sent and not answered is told from it: for a produce that is OutcomeUnknown."""

    def __init__(
        self,
        address: str,
        *,
        max_message_bytes: int,
        max_answer_bytes: int | None = None,
        connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
    ) -> None:
        """`max_message_bytes`: the largest message that peers take, and the largest that is taken from them unless that
        is said."""
        self.address = address
        self._max_message_bytes = max_message_bytes
        self._channel = GrpcChannel(
            address, max_message_bytes=max_answer_bytes or max_message_bytes, connect_timeout_ms=connect_timeout_ms
        )
        method = self._channel.unary
        self._produce = method(_SERVICE, "Produce", pb.ProduceRequest, pb.ProduceResponse)
        self._fetch = method(_SERVICE, "Fetch", pb.FetchRequest, pb.FetchResponse)
        self._offset_at = method(_SERVICE, "OffsetAt", pb.OffsetAtRequest, pb.OffsetAtResponse)
        self._replace_segments = method(
            _SERVICE, "ReplaceSegments", pb.ReplaceSegmentsRequest, pb.ReplaceSegmentsResponse
        )
        self._flush = method(_SERVICE, "Flush", pb.FlushRequest, pb.FlushResponse)
        self._nudge_transfers = method(_SERVICE, "NudgeTransfers", pb.NudgeTransfersRequest, pb.NudgeTransfersResponse)
        self._work = method(_SERVICE, "Work", pb.WorkRequest, pb.WorkResponse)
        self._wal = method(_SERVICE, "Wal", pb.WalRequest, pb.WalResponse)

    async def produce(
        self,
        partition: TopicPartition,
        batch: Buffer,
        *,
        leader_epoch: int = ANY_EPOCH,
        is_admitted: bool = False,
        timeout_ms: int,
    ) -> Produced:
        request = pb.ProduceRequest(
            partition=_message(partition), leader_epoch=leader_epoch, batch=bytes(batch), is_admitted=is_admitted
        )
        size_bytes = request.ByteSize()
        if size_bytes > self._max_message_bytes:
            raise BatchTooLarge(
                f"a message of {size_bytes} bytes is larger than peers take, {self._max_message_bytes}",
                hint="raise max_message_bytes on all nodes, or use a Kafka client, which goes to the leader itself",
            )
        response = await self._channel.call(self._produce, request, timeout_ms, if_lost=OutcomeUnknown)
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
        response = await self._channel.call(self._fetch, request, max_wait_ms + timeout_ms)
        return Fetched(
            batches=response.batches,
            high_watermark=response.high_watermark,
            log_start_offset=response.log_start_offset,
            leader_epoch=response.leader_epoch,
        )

    async def offset_at(self, partition: TopicPartition, timestamp_ms: int, *, timeout_ms: int) -> FoundOffset:
        request = pb.OffsetAtRequest(partition=_message(partition), timestamp_ms=timestamp_ms)
        response = await self._channel.call(self._offset_at, request, timeout_ms)
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
        await self._channel.call(self._replace_segments, request, timeout_ms, if_lost=OutcomeUnknown)

    async def flush(self, partition: TopicPartition, *, timeout_ms: int) -> int:
        response = await self._channel.call(self._flush, pb.FlushRequest(partition=_message(partition)), timeout_ms)
        return response.committed_end

    async def nudge_transfers(self, *, timeout_ms: int) -> None:
        await self._channel.call(self._nudge_transfers, pb.NudgeTransfersRequest(), timeout_ms)

    async def work(self, *, timeout_ms: int) -> NodeWork:
        told = await self._channel.call(self._work, pb.WorkRequest(), timeout_ms)
        return NodeWork(
            records_in=told.records_in,
            bytes_in=told.bytes_in,
            records_out=told.records_out,
            bytes_out=told.bytes_out,
            produce_p50_ms=told.produce_p50_ms if told.HasField("produce_p50_ms") else None,
            produce_p99_ms=told.produce_p99_ms if told.HasField("produce_p99_ms") else None,
            buffered_bytes=told.buffered_bytes,
            buffer_limit_bytes=told.buffer_limit_bytes,
            ends={
                TopicPartition(UUID(bytes=end.partition.topic_id), end.partition.number): end.high_watermark
                for end in told.ends
            },
            oldest_upload_ms=told.oldest_upload_ms,
            wal_problem=told.wal_problem if told.HasField("wal_problem") else None,
        )

    async def wal(self, *, timeout_ms: int) -> NodeWal:
        told = await self._channel.call(self._wal, pb.WalRequest(), timeout_ms)
        return NodeWal(
            disk=_wal_on_disk(told.disk) if told.HasField("disk") else None,
            gathered_batches=told.gathered_batches,
            gathered_bytes=told.gathered_bytes,
            in_flight=[
                WalObject(
                    key=each.key,
                    size_bytes=each.size_bytes,
                    partition_count=each.partition_count,
                    is_stored=each.is_stored,
                )
                for each in told.in_flight
            ],
            uncovered_records=told.uncovered_records,
            uncovered_bytes=told.uncovered_bytes,
        )

    async def close(self) -> None:
        """Calls under way fail as if the connection were lost."""
        await self._channel.close()


def _message(partition: TopicPartition) -> pb.Partition:
    return pb.Partition(topic_id=partition.topic_id.bytes, number=partition.partition)


def _wal_on_disk(told: pb.WalOnDisk) -> WalOnDisk:
    return WalOnDisk(
        files=[
            WalFile(
                name=each.name, size_bytes=each.size_bytes, is_current=each.is_current, owner_count=each.owner_count
            )
            for each in told.files
        ],
        unsynced_batches=told.unsynced_batches,
        unsynced_bytes=told.unsynced_bytes,
        problem=told.problem if told.HasField("problem") else None,
    )
