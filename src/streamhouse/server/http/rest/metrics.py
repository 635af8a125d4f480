"""What this node counts, in Prometheus' text format: read when asked for, so that nobody pays who does not ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.registry import Call, Rest
from streamhouse.server.metrics.cluster import cluster_families, rebalance_families
from streamhouse.server.metrics.doors import connection_families, door_families
from streamhouse.server.metrics.exposition import TEXT_FORMAT, Family, written
from streamhouse.server.metrics.groups import GroupMetrics, member_families
from streamhouse.server.metrics.process import process_families
from streamhouse.server.metrics.storage import memory_families, object_families, segment_families, wal_families


def add_metrics(rest: Rest, context: DoorContext, group_members: Callable[[], int]) -> None:
    metrics = _Metrics(context, group_members)
    rest.route(
        "GET",
        "/metrics",
        metrics.read,
        summary="Measurements for Prometheus",
        tag="health",
        media_type=TEXT_FORMAT,
        answer_example="# HELP streamhouse_topics Topics that this node knows of.\n"
        "# TYPE streamhouse_topics gauge\nstreamhouse_topics 3\n",
    )


class _Metrics:
    def __init__(self, context: DoorContext, group_members: Callable[[], int]) -> None:
        self._broker = context.broker
        self._node = context.measures
        self._groups = GroupMetrics(context)
        self._group_members = group_members

    async def read(self, _: Call) -> str:
        groups = await self._groups.families()
        return written([*self._own(), *groups])

    def _own(self) -> Iterator[Family]:
        node, broker = self._node, self._broker
        yield from process_families(node.loop_delay_seconds)
        yield from cluster_families(node, broker)
        yield from rebalance_families(node)
        yield from door_families(node)
        yield from connection_families(node)
        yield from wal_families(node, broker)
        yield from segment_families(node, broker)
        yield from object_families(node)
        yield from memory_families(node, broker)
        yield from member_families(self._group_members())
