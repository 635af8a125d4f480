"""DescribeConfigs (32), versions 1 to 4: the configs of topics, brokers and groups.

A broker has the defaults of topic configs under Kafka's names for them, which can be set while nodes run, and besides
what tools look at, and where its HTTP port is (streamhouse.http.address), which is read-only. The broker without a name
has what was set for all of them. Each broker answers for itself. A broker's loggers are one, the root, whose level is a
setting; no metrics are collected from clients."""

from __future__ import annotations

from collections.abc import Sequence

from streamhouse.broker.dynamic_configs import ALL_BROKERS, ConfigSource, SourcedValue
from streamhouse.broker.inherited_configs import inherited_values
from streamhouse.metadata.configs import Configured
from streamhouse.model.broker_config import BROKER_CONFIG_KEYS, THROTTLES, broker_spelling
from streamhouse.model.config_key import ConfigKey, ConfigType
from streamhouse.model.errors import InvalidInput, StreamHouseError
from streamhouse.model.group_config import GROUP_CONFIG_KEYS
from streamhouse.model.topic import CONFIG_KEYS, Topic
from streamhouse.server.kafka.broker_configs import broker_configs
from streamhouse.server.kafka.config_resources import ResourceType, configured
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.distinct import distinct
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
_DYNAMIC_TOPIC_CONFIG = 1
_STATIC_BROKER_CONFIG = 4
_DEFAULT_CONFIG = 5
_BROKER_LOGGER_CONFIG = 6
_GROUP_CONFIG = 8
_SOURCES = {
    ConfigSource.GIVEN: _STATIC_BROKER_CONFIG,
    ConfigSource.NODE: 2,
    ConfigSource.CLUSTER: 3,
    ConfigSource.SETTING: _STATIC_BROKER_CONFIG,
    ConfigSource.DEFAULT: _DEFAULT_CONFIG,
}


async def handle(context: Context, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    lookup = TopicLookup(context.broker)
    resources = distinct(request.resources, lambda item: (item.resource_type, item.resource_name))
    return DescribeConfigsResponse(results=[await _describe(context, lookup, request, item) for item in resources])


async def _describe(
    context: Context, lookup: TopicLookup, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    try:
        configs = await _configs(context, lookup, _Shown(request), resource)
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


class _Shown:
    """How configs are shown to whoever asked."""

    def __init__(self, request: DescribeConfigsRequest) -> None:
        self._request = request

    def config(
        self, key: ConfigKey, synonyms: Sequence[DescribeConfigsSynonym], *, is_read_only: bool = False
    ) -> DescribeConfigsResourceResult:
        """With the value of the first synonym, which is the config itself."""
        counts = synonyms[0]
        return DescribeConfigsResourceResult(
            name=counts.name,
            value=counts.value,
            read_only=is_read_only,
            config_source=counts.source,
            synonyms=list(synonyms) if self._request.include_synonyms else [],
            config_type=key.type.value,
            documentation=key.help if self._request.include_documentation else None,
        )

    def fact(self, name: str, type: ConfigType, value: str, source: int, help: str) -> DescribeConfigsResourceResult:
        """What nobody can change while the node runs."""
        key = ConfigKey(name=name, type=type, default=value, check=str, help=help)
        return self.config(key, [DescribeConfigsSynonym(name=name, value=value, source=source)], is_read_only=True)


async def _configs(
    context: Context, lookup: TopicLookup, shown: _Shown, resource: DescribeConfigsResource
) -> list[DescribeConfigsResourceResult]:
    name = resource.resource_name
    match resource.resource_type:
        case ResourceType.TOPIC:
            return _of_topic(context, shown, await lookup.get(name))
        case ResourceType.BROKER:
            return _of_broker(context, shown, name)
        case ResourceType.BROKER_LOGGER:
            _check_is_this_broker(context, name)
            level = context.broker.settings.log_level.upper()
            return [shown.fact("root", ConfigType.STRING, level, _BROKER_LOGGER_CONFIG, "the setting log_level")]
        case ResourceType.GROUP:
            return _of_group(context, shown, configured(context.broker, resource.resource_type, name))
        case ResourceType.CLIENT_METRICS:
            return []
    raise InvalidInput(f"resources of type {resource.resource_type} have no configs here")


def _of_topic(context: Context, shown: _Shown, topic: Topic) -> list[DescribeConfigsResourceResult]:
    found = []
    for name, key in CONFIG_KEYS.items():
        values = inherited_values(context.broker.topics, context.broker.configs, topic, name)
        inherited = _synonyms(broker_spelling(name), values)
        counts = inherited[0]
        if name in topic.config:
            own = DescribeConfigsSynonym(name=name, value=topic.config[name], source=_DYNAMIC_TOPIC_CONFIG)
            found.append(shown.config(key, [own, *inherited]))
        else:
            itself = DescribeConfigsSynonym(name=name, value=counts.value, source=counts.source)
            found.append(shown.config(key, [itself, *(inherited if counts.name != name else inherited[1:])]))
    return found


def _synonyms(spelling: str, values: Sequence[SourcedValue]) -> list[DescribeConfigsSynonym]:
    return [DescribeConfigsSynonym(name=spelling, value=value, source=_SOURCES[source]) for source, value in values]


def _of_broker(context: Context, shown: _Shown, name: str) -> list[DescribeConfigsResourceResult]:
    configs = context.broker.configs
    if not name:
        return [
            shown.config(BROKER_CONFIG_KEYS[spelling], _synonyms(spelling, [SourcedValue(ConfigSource.CLUSTER, value)]))
            for spelling, value in configs.own(ALL_BROKERS).items()
            if spelling in BROKER_CONFIG_KEYS
        ]
    _check_is_this_broker(context, name)
    found = {spelling: configs.values(spelling, key) for spelling, key in BROKER_CONFIG_KEYS.items()}
    changeable = [
        shown.config(BROKER_CONFIG_KEYS[spelling], _synonyms(spelling, values))
        for spelling, values in found.items()
        if spelling not in THROTTLES or values[0].source is not ConfigSource.DEFAULT
    ]
    facts = broker_configs(context.broker.settings, context.broker.identity, context.endpoint)
    return changeable + [
        shown.fact(fact.name, fact.type, fact.value, _STATIC_BROKER_CONFIG, fact.help) for fact in facts
    ]


def _check_is_this_broker(context: Context, name: str) -> None:
    own_id = context.broker.identity.node_id
    if name != str(own_id):
        raise InvalidInput(f"this is broker {own_id}, not {name[:100]!r}", hint="ask that one for its configs")


def _of_group(context: Context, shown: _Shown, group: Configured) -> list[DescribeConfigsResourceResult]:
    configs = context.broker.configs
    own = configs.own(group)
    found = []
    for name, key in GROUP_CONFIG_KEYS.items():
        value = configs.inherited(group, name)
        source = _DEFAULT_CONFIG if value == key.default else _STATIC_BROKER_CONFIG
        synonyms = [DescribeConfigsSynonym(name=name, value=value, source=source)]
        if name in own:
            synonyms.insert(0, DescribeConfigsSynonym(name=name, value=own[name], source=_GROUP_CONFIG))
        found.append(shown.config(key, synonyms))
    return found
