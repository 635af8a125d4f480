"""What the web console asks for beyond topics, records and groups: the overview, the ring, the WAL, opened segments."""

from __future__ import annotations

from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.known_ends import KnownEnds
from streamhouse.server.http.rest.overview import add_overview
from streamhouse.server.http.rest.registry import Rest
from streamhouse.server.http.rest.ring import add_ring
from streamhouse.server.http.rest.sampler import Sampler
from streamhouse.server.http.rest.segment_blocks import add_segment_blocks
from streamhouse.server.http.rest.wal import add_wal
from streamhouse.server.http.rest.watch import ClusterWatch


def add_console(rest: Rest, context: DoorContext, watch: ClusterWatch, known: KnownEnds, sampler: Sampler) -> None:
    add_overview(rest, context, watch, known, sampler)
    add_ring(rest, context.broker.topics, watch)
    add_wal(rest, context, watch)
    add_segment_blocks(rest, context)
