"""What the web console asks for beyond topics, records and groups: the overview, the ring, the WAL, opened segments."""

from __future__ import annotations

from streamhouse.cluster.state import ClusterState, read_cluster_health
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.overview import add_overview
from streamhouse.server.http.rest.recent import Recent
from streamhouse.server.http.rest.registry import Rest
from streamhouse.server.http.rest.ring import add_ring
from streamhouse.server.http.rest.segment_blocks import add_segment_blocks
from streamhouse.server.http.rest.wal import add_wal

_CLUSTER_AGE_MS = 500
"""Browsers ask every second or two, each of them; the metadata store hears of it twice a second at most."""


def add_console(rest: Rest, context: DoorContext) -> None:
    broker = context.broker

    async def read() -> ClusterState:
        return await read_cluster_health(context.metadata, broker.settings.liveness)

    cluster = Recent(read, broker.clock, _CLUSTER_AGE_MS)
    add_overview(rest, context, cluster)
    add_ring(rest, broker.topics, cluster)
    add_wal(rest, broker)
    add_segment_blocks(rest, context)
