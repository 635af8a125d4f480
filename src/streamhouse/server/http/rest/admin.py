"""The part of the REST API that looks after topics, groups, the cluster and this node; and what of it outlives a
request."""

from __future__ import annotations

from streamhouse.client.cluster import Cluster
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.cluster import add_cluster
from streamhouse.server.http.rest.configs import add_configs
from streamhouse.server.http.rest.console import add_console
from streamhouse.server.http.rest.consumers import add_consumers
from streamhouse.server.http.rest.group_coordinators import GroupCoordinators
from streamhouse.server.http.rest.group_history import add_group_history
from streamhouse.server.http.rest.group_sessions import GroupSessions
from streamhouse.server.http.rest.groups import add_groups
from streamhouse.server.http.rest.health import add_health
from streamhouse.server.http.rest.history import add_history
from streamhouse.server.http.rest.known_ends import KnownEnds
from streamhouse.server.http.rest.members import add_members
from streamhouse.server.http.rest.metrics import add_metrics
from streamhouse.server.http.rest.orders import add_orders
from streamhouse.server.http.rest.partitions import add_partitions
from streamhouse.server.http.rest.pipeline_history import PipelineSampler, add_pipeline_history
from streamhouse.server.http.rest.pipelines import add_pipelines
from streamhouse.server.http.rest.registry import Rest
from streamhouse.server.http.rest.sampler import Sampler
from streamhouse.server.http.rest.topic_activity import add_topic_activity
from streamhouse.server.http.rest.topics import add_topics
from streamhouse.server.http.rest.watch import ClusterWatch


class RestAdmin:
    def __init__(self, rest: Rest, context: DoorContext) -> None:
        clock = context.broker.clock
        self._cluster = Cluster([context.kafka], clock=clock)
        self._sessions = GroupSessions(context.kafka, clock)
        self._watch = ClusterWatch(context)
        known = KnownEnds()
        self._tasks = TaskGroup("rest-admin")
        # A watch of its own: who looks at what has just been done is not to get what the sampler saw before.
        self._sampler = Sampler(context, ClusterWatch(context), known)
        self._pipelines = PipelineSampler(context)
        coordinators = GroupCoordinators(context, self._cluster, self._watch)
        add_topics(rest, context)
        add_configs(rest, context.broker)
        add_partitions(rest, context, known)
        add_groups(rest, context, self._cluster, coordinators, self._watch, known)
        add_members(rest, context, self._sessions)
        add_cluster(rest, context, self._watch, self._sampler)
        add_pipelines(rest, context)
        add_pipeline_history(rest, context, self._pipelines)
        add_orders(rest, context, self._watch)
        add_console(rest, context, self._watch, known, self._sampler)
        add_history(rest, self._sampler)
        add_consumers(rest, context, coordinators, self._sampler, self._tasks)
        add_group_history(rest, context, self._sampler)
        add_topic_activity(rest, context, self._sampler, self._tasks)
        add_health(rest, context)
        add_metrics(rest, context, lambda: len(self._sessions))

    def start(self) -> None:
        """Begin to measure, once there is somebody to ask."""
        self._sampler.start()
        self._pipelines.start()

    async def end_memberships(self) -> None:
        await self._sessions.end_all()

    async def close(self) -> None:
        """Members leave their groups; what they were assigned is others' at once."""
        await self._tasks.cancel()
        await self._sampler.close()
        await self._pipelines.close()
        await self._watch.close()
        await self._sessions.close()
        await self._cluster.close()
