"""DescribeConfigs (32), versions 1 to 4: a topic's configs, and as a broker's the node's defaults for them.

A broker has a few of Kafka's own configs besides, which tools look at before they create a topic; all of them are
read-only."""

from __future__ import annotations

from streamhouse.model.config_key import ConfigKey
from streamhouse.model.errors import InvalidInput, StreamHouseError
from streamhouse.model.topic import CONFIG_KEYS
from streamhouse.server.kafka.broker_configs import BrokerConfig, broker_configs
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.errors import code_of
from streamhouse.server.kafka.partitions import TopicLookup
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
    lookup = TopicLookup(context.broker)
    return DescribeConfigsResponse(
        results=[await _describe(context, lookup, request, item) for item in request.resources]
    )


async def _describe(
    context: Context, lookup: TopicLookup, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    try:
        configs = await _configs(context, lookup, request, resource)
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
        configs=[config for config in configs if wanted is None or config.name in wanted],
    )


async def _configs(
    context: Context, lookup: TopicLookup, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> list[DescribeConfigsResourceResult]:
    topics = context.broker.topics
    if resource.resource_type == TOPIC_RESOURCE:
        topic = await lookup.get(resource.resource_name)
        return [
            _config(context, request, resource, CONFIG_KEYS[name], value, is_own=name in topic.config)
            for name, value in topics.config_of(topic).items()
        ]
    if resource.resource_type == BROKER_RESOURCE:
        if resource.resource_name not in ("", str(context.broker.identity.node_id)):
            raise InvalidInput(f"there is no broker {resource.resource_name!r}")
        return [
            _config(context, request, resource, CONFIG_KEYS[name], value, is_own=False)
            for name, value in topics.node_defaults.items()
        ] + [_setting(request, config) for config in broker_configs(context.broker.settings)]
    raise InvalidInput(f"resources of type {resource.resource_type} have no configs here")


def _setting(request: DescribeConfigsRequest, config: BrokerConfig) -> DescribeConfigsResourceResult:
    synonyms = [DescribeConfigsSynonym(name=config.name, value=config.value, source=_STATIC_BROKER_CONFIG)]
    return DescribeConfigsResourceResult(
        name=config.name,
        value=config.value,
        read_only=True,
        config_source=_STATIC_BROKER_CONFIG,
        synonyms=synonyms if request.include_synonyms else [],
        config_type=config.type.value,
        documentation=config.help if request.include_documentation else None,
    )


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
