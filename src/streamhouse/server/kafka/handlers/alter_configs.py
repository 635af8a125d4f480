"""AlterConfigs (33), versions 0 to 2: replaces all configs that a topic, a broker, all brokers or a group have of their
own."""

from __future__ import annotations

from collections.abc import Collection

from streamhouse.model.errors import InvalidInput, StreamHouseError
from streamhouse.server.kafka.config_resources import ResourceType, check_named_once, configured, named_twice
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.errors import code_of
from streamhouse.server.kafka.partitions import TopicLookup
from streamhouse.wire.kafka.messages import alter_configs as messages
from streamhouse.wire.kafka.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: AlterConfigsRequest) -> AlterConfigsResponse:
    lookup, twice = TopicLookup(context.broker), named_twice(request.resources)
    return AlterConfigsResponse(
        responses=[
            await _alter(context, lookup, item, twice, validate_only=request.validate_only)
            for item in request.resources
        ]
    )


async def _alter(
    context: Context,
    lookup: TopicLookup,
    resource: AlterConfigsResource,
    twice: Collection[tuple[int, str]],
    *,
    validate_only: bool,
) -> AlterConfigsResourceResponse:
    code, message = 0, None
    try:
        check_named_once(resource, twice)
        config = {item.name: _given(item) for item in resource.configs}
        if resource.resource_type == ResourceType.TOPIC:
            topic = await lookup.get(resource.resource_name)
            await context.broker.topics.configure(topic, config, validate_only=validate_only)
        else:
            whose = configured(context.broker, resource.resource_type, resource.resource_name)
            await context.broker.configs.change(
                whose, lambda own: {**dict.fromkeys(own), **config}, validate_only=validate_only
            )
    except StreamHouseError as problem:
        code, message = code_of(problem), str(problem)
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _given(item: AlterableConfig) -> str:
    if item.value is None:
        raise InvalidInput(f"config {item.name[:100]!r} has no value", hint="to remove it, leave it out")
    return item.value
