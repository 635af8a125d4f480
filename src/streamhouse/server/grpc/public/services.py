"""All services that a node has for gRPC clients."""

from __future__ import annotations

import grpc

from streamhouse.server.doors import DoorContext
from streamhouse.server.grpc.listener import message_room
from streamhouse.server.grpc.public import cluster, groups, health, records, topics
from streamhouse.server.grpc.public.cluster import ClusterService
from streamhouse.server.grpc.public.groups import GroupsService
from streamhouse.server.grpc.public.health import HealthService
from streamhouse.server.grpc.public.records import RecordsService
from streamhouse.server.grpc.public.reflection import ReflectionService
from streamhouse.server.grpc.public.streams import CONVERSATIONS_FOR_ROOM, MAX_STREAMS, Streams
from streamhouse.server.grpc.public.topics import TopicsService

SERVICES = (topics.SERVICE, records.SERVICE, groups.SERVICE, cluster.SERVICE)


class PublicServices:
    def __init__(self, context: DoorContext) -> None:
        room = message_room(context.broker.settings)
        self._streams = Streams(max_conversations=min(MAX_STREAMS, CONVERSATIONS_FOR_ROOM * room))
        self._groups = GroupsService(context, self._streams)
        self._health = HealthService(SERVICES, self._streams)
        self.handlers: list[grpc.GenericRpcHandler] = [
            TopicsService(context).handler(),
            RecordsService(context, self._streams).handler(),
            self._groups.handler(),
            ClusterService(context).handler(),
            self._health.handler(),
            *ReflectionService([*SERVICES, health.SERVICE], self._streams).handlers(),
        ]

    def serving(self, is_serving: bool) -> None:
        """Whether clients are welcome. When they are no more, open streams end, so that theirs go elsewhere."""
        self._health.set(is_serving)
        if not is_serving:
            self._streams.stop()

    async def close(self) -> None:
        """Those who are still members of groups leave them."""
        await self._groups.close()
