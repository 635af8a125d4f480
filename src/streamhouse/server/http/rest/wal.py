"""Write-ahead logs over REST: of this node, or of every agent. Their files and objects, what is not safe yet, what they
are needed for."""

from __future__ import annotations

from collections.abc import Mapping

from streamhouse.broker.broker import NOT_A_NODE
from streamhouse.broker.cluster_work import Asked
from streamhouse.client.peer import NodeWal, WalOnDisk
from streamhouse.model.errors import NotFound
from streamhouse.runtime.watched import Silence
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.recent import Recent
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.http.rest.watch import ClusterWatch
from streamhouse.wire.http.rest import console as api

_AGE_MS = 1_000
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
_UNANSWERED = api.UnansweredAgent(
    agent_id="agent-2", since_ms=1_767_225_600_000, why="10.0.0.2:50052 cannot be reached"
)


def add_wal(rest: Rest, context: DoorContext, watch: ClusterWatch) -> None:
    routes = _WalRoutes(context, watch)
    rest.route(
        "GET",
        f"{API}/wal",
        routes.own,
        summary="What this node's write-ahead logs hold",
        tag="cluster",
        answer=api.WalAnswer,
        errors=(NotFound,),
        answer_example=_EXAMPLE,
    )
    rest.route(
        "GET",
        f"{API}/wals",
        routes.all,
        summary="What the write-ahead logs of all agents hold",
        tag="cluster",
        answer=api.WalsAnswer,
        answer_example=api.WalsAnswer(wals=[_EXAMPLE], unanswered=[_UNANSWERED]),
    )


class _WalRoutes:
    def __init__(self, context: DoorContext, watch: ClusterWatch) -> None:
        self._identity = context.broker.identity
        self._work = context.work
        self._watch = watch
        self._others = Recent(self._ask, context.broker.clock, _AGE_MS)

    @property
    def _has_agent(self) -> bool:
        return self._identity.node_id != NOT_A_NODE

    async def own(self, _: Call) -> api.WalAnswer:
        if not self._has_agent:
            raise NotFound(
                "this server has no agent, and so no write-ahead log", hint=f"{API}/wals has those of the agents"
            )
        return _answer(self._identity.agent_id, self._work.own_wal())

    async def all(self, _: Call) -> api.WalsAnswer:
        others = await self._others.get()
        wals = {**others.answers, self._identity.agent_id: self._work.own_wal()} if self._has_agent else others.answers
        return api.WalsAnswer(
            wals=[_answer(agent_id, wals[agent_id]) for agent_id in sorted(wals)],
            unanswered=[
                api.UnansweredAgent(agent_id=agent_id, since_ms=silence.since_ms, why=silence.why)
                for agent_id, silence in sorted(others.silent.items())
            ],
        )

    async def _ask(self) -> Asked[NodeWal]:
        """Those that were known last, also while the metadata store is silent."""
        seen = await self._watch.seen()
        return since_it_is_known(await self._work.ask_wals(seen.state.agents), seen.work.silent)


def since_it_is_known(asked: Asked[NodeWal], silent: Mapping[str, Silence]) -> Asked[NodeWal]:
    """Whoever is `silent` about what it does was so before somebody asked for its write-ahead log."""
    earliest = {
        agent_id: min(silence, silent.get(agent_id, silence), key=lambda each: each.since_ms)
        for agent_id, silence in asked.silent.items()
    }
    return asked._replace(silent=earliest)


def _answer(agent_id: str, wal: NodeWal) -> api.WalAnswer:
    return api.WalAnswer(
        agent_id=agent_id,
        local=None if wal.disk is None else _local_answer(wal.disk),
        object=api.ObjectWalAnswer(
            gathered_batches=wal.gathered_batches,
            gathered_bytes=wal.gathered_bytes,
            in_flight=[
                api.WalObjectAnswer(
                    key=sealed.key,
                    size_bytes=sealed.size_bytes,
                    partitions=sealed.partition_count,
                    is_stored=sealed.is_stored,
                )
                for sealed in wal.in_flight
            ],
        ),
        uncovered_records=wal.uncovered_records,
        uncovered_bytes=wal.uncovered_bytes,
    )


def _local_answer(disk: WalOnDisk) -> api.LocalWalAnswer:
    return api.LocalWalAnswer(
        files=[
            api.WalFileAnswer(
                name=file.name,
                size_bytes=file.size_bytes,
                is_written_now=file.is_current,
                partitions_needing_it=file.owner_count,
            )
            for file in disk.files
        ],
        size_bytes=sum(file.size_bytes for file in disk.files),
        unsynced_batches=disk.unsynced_batches,
        unsynced_bytes=disk.unsynced_bytes,
        problem=disk.problem,
    )
