"""The service between nodes (`wire/grpc/internal.proto`): a peer's questions, put to this node's partitions."""

from __future__ import annotations

from dataclasses import asdict
from uuid import UUID

import grpc

from streamhouse.client.peer import NewSegment, Peer, WalOnDisk
from streamhouse.model.errors import InvalidInput
from streamhouse.model.names import TopicPartition
from streamhouse.server.grpc.calls import unary
from streamhouse.wire.grpc import internal_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["Internal"].full_name
_UUID_BYTES = 16


class InternalService:
    """`local` answers for this node, and never forwards: what was forwarded to the wrong node goes back."""

    def __init__(self, local: Peer) -> None:
        self._local = local

    def handler(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Produce": unary(pb.ProduceRequest, self._produce),
                "Fetch": unary(pb.FetchRequest, self._fetch),
                "OffsetAt": unary(pb.OffsetAtRequest, self._offset_at),
                "ReplaceSegments": unary(pb.ReplaceSegmentsRequest, self._replace_segments),
                "Flush": unary(pb.FlushRequest, self._flush),
                "NudgeTransfers": unary(pb.NudgeTransfersRequest, self._nudge_transfers),
                "Work": unary(pb.WorkRequest, self._work),
                "Wal": unary(pb.WalRequest, self._wal),
            },
        )

    async def _produce(self, request: pb.ProduceRequest, timeout_ms: int) -> pb.ProduceResponse:
        produced = await self._local.produce(
            _partition(request.partition),
            request.batch,
            leader_epoch=request.leader_epoch,
            is_admitted=request.is_admitted,
            timeout_ms=timeout_ms,
        )
        return pb.ProduceResponse(
            base_offset=produced.base_offset,
            append_time_ms=produced.append_time_ms,
            leader_epoch=produced.leader_epoch,
        )

    async def _fetch(self, request: pb.FetchRequest, timeout_ms: int) -> pb.FetchResponse:
        max_wait_ms = min(request.max_wait_ms, timeout_ms)
        fetched = await self._local.fetch(
            _partition(request.partition),
            request.offset,
            max_bytes=request.max_bytes,
            min_bytes=request.min_bytes,
            max_wait_ms=max_wait_ms,
            timeout_ms=timeout_ms - max_wait_ms,
        )
        return pb.FetchResponse(
            batches=fetched.batches,
            high_watermark=fetched.high_watermark,
            log_start_offset=fetched.log_start_offset,
            leader_epoch=fetched.leader_epoch,
        )

    async def _offset_at(self, request: pb.OffsetAtRequest, timeout_ms: int) -> pb.OffsetAtResponse:
        found = await self._local.offset_at(_partition(request.partition), request.timestamp_ms, timeout_ms=timeout_ms)
        return pb.OffsetAtResponse(
            offset=found.offset,
            log_start_offset=found.log_start_offset,
            committed_end=found.committed_end,
            high_watermark=found.high_watermark,
            uncommitted_bytes=found.uncommitted_bytes,
            leader_epoch=found.leader_epoch,
        )

    async def _replace_segments(
        self, request: pb.ReplaceSegmentsRequest, timeout_ms: int
    ) -> pb.ReplaceSegmentsResponse:
        await self._local.replace_segments(
            _partition(request.partition),
            _uuid("commit id", request.commit_id),
            list(request.removed),
            [_segment(segment) for segment in request.added],
            timeout_ms=timeout_ms,
        )
        return pb.ReplaceSegmentsResponse()

    async def _flush(self, request: pb.FlushRequest, timeout_ms: int) -> pb.FlushResponse:
        committed_end = await self._local.flush(_partition(request.partition), timeout_ms=timeout_ms)
        return pb.FlushResponse(committed_end=committed_end)

    async def _nudge_transfers(self, _: pb.NudgeTransfersRequest, timeout_ms: int) -> pb.NudgeTransfersResponse:
        await self._local.nudge_transfers(timeout_ms=timeout_ms)
        return pb.NudgeTransfersResponse()

    async def _work(self, _: pb.WorkRequest, timeout_ms: int) -> pb.WorkResponse:
        work = await self._local.work(timeout_ms=timeout_ms)
        return pb.WorkResponse(
            records_in=work.records_in,
            bytes_in=work.bytes_in,
            records_out=work.records_out,
            bytes_out=work.bytes_out,
            produce_p50_ms=work.produce_p50_ms,
            produce_p99_ms=work.produce_p99_ms,
            buffered_bytes=work.buffered_bytes,
            buffer_limit_bytes=work.buffer_limit_bytes,
            ends=[
                pb.PartitionEnd(
                    partition=pb.Partition(topic_id=at.topic_id.bytes, number=at.partition), high_watermark=end
                )
                for at, end in work.ends.items()
            ],
            wal_problem=work.wal_problem,
            oldest_upload_ms=work.oldest_upload_ms,
        )

    async def _wal(self, _: pb.WalRequest, timeout_ms: int) -> pb.WalResponse:
        wal = await self._local.wal(timeout_ms=timeout_ms)
        return pb.WalResponse(
            disk=None if wal.disk is None else _wal_on_disk(wal.disk),
            gathered_batches=wal.gathered_batches,
            gathered_bytes=wal.gathered_bytes,
            in_flight=[pb.WalObject(**asdict(each)) for each in wal.in_flight],
            uncovered_records=wal.uncovered_records,
            uncovered_bytes=wal.uncovered_bytes,
        )


def _wal_on_disk(disk: WalOnDisk) -> pb.WalOnDisk:
    return pb.WalOnDisk(
        files=[pb.WalFile(**asdict(each)) for each in disk.files],
        unsynced_batches=disk.unsynced_batches,
        unsynced_bytes=disk.unsynced_bytes,
        problem=disk.problem,
    )


def _partition(partition: pb.Partition) -> TopicPartition:
    return TopicPartition(_uuid("topic id", partition.topic_id), partition.number)


def _uuid(what: str, data: bytes) -> UUID:
    if len(data) != _UUID_BYTES:
        raise InvalidInput(f"a {what} has {_UUID_BYTES} bytes, not {len(data)}")
    return UUID(bytes=data)


def _segment(segment: pb.Segment) -> NewSegment:
    return NewSegment(
        base_offset=segment.base_offset,
        end_offset=segment.end_offset,
        record_count=segment.record_count,
        size_bytes=segment.size_bytes,
        min_timestamp_ms=segment.min_timestamp_ms,
        max_timestamp_ms=segment.max_timestamp_ms,
        epoch=segment.epoch,
        object_key=segment.object_key,
        checksum=segment.checksum,
    )
