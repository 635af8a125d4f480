"""This node's write-ahead logs over REST: their files and objects, what is not safe yet, what they are needed for."""

from __future__ import annotations

from streamhouse.broker.broker import Broker
from streamhouse.log.wal_state import LocalWalState, ObjectWalState
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.wire.http.rest import console as api

_EXAMPLE = api.WalAnswer(
    agent_id="agent-1",
    local=api.LocalWalAnswer(
        files=[
            api.WalFileAnswer(
                name="00000000000000000001.wal", size_bytes=67_108_864, is_written_now=True, partitions_needing_it=6
            )
        ],
        size_bytes=67_108_864,
        unsynced_batches=2,
        unsynced_bytes=32_768,
        problem=None,
    ),
    object=api.ObjectWalAnswer(gathered_batches=0, gathered_bytes=0, in_flight=[]),
    uncovered_records=1042,
    uncovered_bytes=524_288,
)


def add_wal(rest: Rest, broker: Broker) -> None:
    async def wal(_: Call) -> api.WalAnswer:
        local, in_objects = broker.wal_states()
        led = broker.led
        return api.WalAnswer(
            agent_id=broker.identity.agent_id,
            local=None if local is None else _local_answer(local),
            object=_object_answer(in_objects),
            uncovered_records=sum(leader.high_watermark - leader.committed_end for leader in led),
            uncovered_bytes=sum(leader.buffered_bytes for leader in led),
        )

    rest.route(
        "GET",
        f"{API}/wal",
        wal,
        summary="What this node's write-ahead logs hold",
        tag="cluster",
        answer=api.WalAnswer,
        answer_example=_EXAMPLE,
    )


def _local_answer(state: LocalWalState) -> api.LocalWalAnswer:
    return api.LocalWalAnswer(
        files=[
            api.WalFileAnswer(
                name=file.name,
                size_bytes=file.size_bytes,
                is_written_now=file.is_current,
                partitions_needing_it=file.owner_count,
            )
            for file in state.files
        ],
        size_bytes=sum(file.size_bytes for file in state.files),
        unsynced_batches=state.unsynced_batches,
        unsynced_bytes=state.unsynced_bytes,
        problem=state.problem,
    )


def _object_answer(state: ObjectWalState) -> api.ObjectWalAnswer:
    return api.ObjectWalAnswer(
        gathered_batches=state.gathered_batches,
        gathered_bytes=state.gathered_bytes,
        in_flight=[
            api.WalObjectAnswer(
                key=sealed.key,
                size_bytes=sealed.size_bytes,
                partitions=sealed.partition_count,
                is_stored=sealed.is_stored,
            )
            for sealed in state.in_flight
        ],
    )
