"""ListConfigResources (74), versions 0 and 1: topics, brokers, their loggers, and groups with configs of their own.

No metrics are collected from clients, which is all that version 0 asks for."""

from __future__ import annotations

from collections.abc import Sequence

from streamhouse.metadata.configs import ConfigKind
from streamhouse.server.kafka.config_resources import ResourceType, node_ids
from streamhouse.server.kafka.context import Context
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import list_config_resources as messages
from streamhouse.wire.kafka.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    if context.version == 0:
        return ListConfigResourcesResponse()
    wanted = dict.fromkeys(request.resource_types or ResourceType)
    if not all(each in ResourceType.__members__.values() for each in wanted):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=resource_type)
            for resource_type in wanted
            for name in _names(context, ResourceType(resource_type))
        ]
    )


def _names(context: Context, resource_type: ResourceType) -> Sequence[str]:
    match resource_type:
        case ResourceType.TOPIC:
            return [topic.name for topic in context.broker.topics]
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            return node_ids(context.broker)
        case ResourceType.GROUP:
            return context.broker.configs.configured(ConfigKind.GROUP)
        case ResourceType.CLIENT_METRICS:
            return []
