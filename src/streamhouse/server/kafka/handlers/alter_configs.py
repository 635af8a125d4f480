"""AlterConfigs (33), versions 0 to 2: replaces all of a topic's own configs. A broker's are its settings."""

from __future__ import annotations

from streamhouse.model.errors import InvalidInput, StreamHouseError
from streamhouse.model.topic import Topic
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.errors import code_of
from streamhouse.server.kafka.handlers.describe_configs import TOPIC_RESOURCE
from streamhouse.server.kafka.partitions import TopicLookup
from streamhouse.wire.kafka.messages import alter_configs as messages
from streamhouse.wire.kafka.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: AlterConfigsRequest) -> AlterConfigsResponse:
    lookup = TopicLookup(context.broker)
    return AlterConfigsResponse(
        responses=[
            await _alter(context, lookup, item, validate_only=request.validate_only) for item in request.resources
        ]
    )


async def _alter(
    context: Context, lookup: TopicLookup, resource: AlterConfigsResource, *, validate_only: bool
) -> AlterConfigsResourceResponse:
    code, message = 0, None
    try:
        topic = await topic_to_configure(lookup, resource.resource_type, resource.resource_name)
        # A config without a value goes back to its default.
        config = {item.name: item.value for item in resource.configs if item.value is not None}
        await context.broker.topics.configure(topic, config, validate_only=validate_only)
    except StreamHouseError as problem:
        code, message = code_of(problem), str(problem)
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


async def topic_to_configure(lookup: TopicLookup, resource_type: int, name: str) -> Topic:
    if resource_type != TOPIC_RESOURCE:
        raise InvalidInput(
            "only topics can be configured through the protocol",
            hint="a node's settings are its flags, STREAMHOUSE_* variables and configuration file",
        )
    return await lookup.get(name)
