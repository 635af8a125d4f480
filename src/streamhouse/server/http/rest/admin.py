"""The part of the REST API that looks after topics, groups, the cluster and this node; and what of it outlives a
request."""

from __future__ import annotations

from streamhouse.client.cluster import Cluster
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.cluster import add_cluster
from streamhouse.server.http.rest.console import add_console
from streamhouse.server.http.rest.group_sessions import GroupSessions
from streamhouse.server.http.rest.groups import add_groups
from streamhouse.server.http.rest.health import add_health
from streamhouse.server.http.rest.members import add_members
from streamhouse.server.http.rest.metrics import add_metrics
from streamhouse.server.http.rest.partitions import add_partitions
from streamhouse.server.http.rest.registry import Rest
from streamhouse.server.http.rest.topics import add_topics


class RestAdmin:
    def __init__(self, rest: Rest, context: DoorContext) -> None:
        clock = context.broker.clock
        self._cluster = Cluster([context.kafka], clock=clock)
        self._sessions = GroupSessions(context.kafka, clock)
        add_topics(rest, context)
        add_partitions(rest, context)
        add_groups(rest, self._cluster)
        add_members(rest, context, self._sessions)
        add_cluster(rest, context)
        add_console(rest, context)
        add_health(rest, context)
        add_metrics(rest, context, lambda: len(self._sessions))

    async def close(self) -> None:
        """Members leave their groups; what they were assigned is others' at once."""
        await self._sessions.close()
        await self._cluster.close()
