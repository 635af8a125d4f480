"""DescribeConfigs (32), versions 1 to 4: a topic's configs, and the node's defaults for them as a broker's."""

from __future__ import annotations

from streamhouse.model.errors import InvalidInput, StreamHouseError
from streamhouse.model.topic import CONFIG_KEYS, ConfigKey
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.errors import code_of
from streamhouse.wire.kafka.messages import describe_configs as messages
from streamhouse.wire.kafka.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]
TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
_DYNAMIC_TOPIC_CONFIG = 1
_STATIC_BROKER_CONFIG = 4
_DEFAULT_CONFIG = 5


async def handle(context: Context, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[_describe(context, request, item) for item in request.resources])


def _describe(
    context: Context, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    try:
        own, effective = _configs(context, resource)
    except StreamHouseError as problem:
        return DescribeConfigsResult(
            error_code=code_of(problem),
            error_message=str(problem),
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
    wanted = resource.configuration_keys or None
    return DescribeConfigsResult(
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[
            _config(context, request, resource, CONFIG_KEYS[name], value, is_own=name in own)
            for name, value in effective.items()
            if wanted is None or name in wanted
        ],
    )


def _configs(context: Context, resource: DescribeConfigsResource) -> tuple[set[str], dict[str, str]]:
    """Which configs were set on the resource itself, and all effective ones."""
    topics = context.broker.topics
    if resource.resource_type == TOPIC_RESOURCE:
        topic = topics.get(resource.resource_name)
        return set(topic.config), topics.config_of(topic)
    if resource.resource_type == BROKER_RESOURCE:
        if resource.resource_name not in ("", str(context.broker.identity.node_id)):
            raise InvalidInput(f"there is no broker {resource.resource_name!r}")
        return set(), topics.node_defaults
    raise InvalidInput(f"resources of type {resource.resource_type} have no configs here")


def _config(
    context: Context,
    request: DescribeConfigsRequest,
    resource: DescribeConfigsResource,
    key: ConfigKey,
    value: str,
    *,
    is_own: bool,
) -> DescribeConfigsResourceResult:
    default = context.broker.topics.node_defaults[key.name]
    inherited = _STATIC_BROKER_CONFIG if default != key.default else _DEFAULT_CONFIG
    source = _DYNAMIC_TOPIC_CONFIG if is_own else inherited
    synonyms = [DescribeConfigsSynonym(name=key.name, value=value, source=source)]
    if is_own:
        synonyms.append(DescribeConfigsSynonym(name=key.name, value=default, source=inherited))
    return DescribeConfigsResourceResult(
        name=key.name,
        value=value,
        read_only=resource.resource_type == BROKER_RESOURCE,
        config_source=source,
        synonyms=synonyms if request.include_synonyms else [],
        config_type=key.type.value,
        documentation=key.help if request.include_documentation else None,
    )
