"""IncrementalAlterConfigs (44), versions 0 and 1: sets, deletes, appends to and subtracts from the configs of a topic,
of a broker, of all brokers, or of a group.

Those of brokers and groups are kept in the metadata store, for every node and across restarts. What a node was given by
flag or variable wins over them. A group's timeouts are held to the limits that Kafka has by default, or to the node's
own setting where that is further out. No metrics are collected from clients: nothing of theirs can be set, and to
delete them is answered as done."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from streamhouse.broker.dynamic_configs import changeable
from streamhouse.metadata.configs import Configured
from streamhouse.model.config_key import ConfigKey, ConfigType
from streamhouse.model.errors import InvalidConfig, InvalidInput, StreamHouseError
from streamhouse.model.topic import CONFIG_KEYS, Topic, unknown_config
from streamhouse.server.kafka.config_resources import ResourceType, check_named_once, configured, named_twice
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.errors import code_of
from streamhouse.server.kafka.partitions import TopicLookup
from streamhouse.wire.kafka.messages import incremental_alter_configs as messages
from streamhouse.wire.kafka.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)


async def handle(context: Context, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    lookup, twice = TopicLookup(context.broker), named_twice(request.resources)
    return IncrementalAlterConfigsResponse(
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
        _check_values(resource.configs)
        if resource.resource_type == ResourceType.TOPIC:
            topic = await lookup.get(resource.resource_name)
            change = partial(_change, context, topic, resource.configs)
            await context.broker.topics.change_config(topic, change, validate_only=validate_only)
        elif not _only_removes_client_metrics(resource):
            whose = configured(context.broker, resource.resource_type, resource.resource_name)
            changes = partial(_changes, context, whose, resource.configs)
            await context.broker.configs.change(whose, changes, validate_only=validate_only)
    except StreamHouseError as problem:
        code, message = code_of(problem), str(problem)
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _check_values(changes: list[AlterableConfig]) -> None:
    for change in changes:
        if change.value is None and change.config_operation != _DELETE:
            raise InvalidInput(f"config {change.name[:100]!r} has no value", hint="to remove it, delete it")


def _only_removes_client_metrics(resource: AlterConfigsResource) -> bool:
    """What tools ask for that clean up: there are none, so they are gone already."""
    return (
        resource.resource_type == ResourceType.CLIENT_METRICS
        and bool(resource.resource_name)
        and all(change.config_operation == _DELETE for change in resource.configs)
    )


def _change(
    context: Context, topic: Topic, changes: list[AlterableConfig], config: Mapping[str, str]
) -> dict[str, str]:
    changed = dict(config)
    for change in changes:
        if change.config_operation == _DELETE:
            changed.pop(change.name, None)
            continue
        key = CONFIG_KEYS.get(change.name)
        if key is None:
            raise unknown_config(change.name)
        current = config.get(change.name)
        if current is None:
            current = context.broker.topics.config_of(topic)[change.name]
        changed[change.name] = _changed(key, current, change)
    return changed


def _changes(
    context: Context, whose: Configured, asked: list[AlterableConfig], own: Mapping[str, str]
) -> dict[str, str | None]:
    """Of a broker or a group: what is to be stored, None where it is to be removed."""
    changes: dict[str, str | None] = {}
    for change in asked:
        if change.config_operation == _DELETE:
            changes[change.name] = None
            continue
        key = changeable(whose.kind, change.name)
        current = own.get(change.name)
        if current is None:
            current = context.broker.configs.inherited(whose, change.name)
        changes[change.name] = _changed(key, current, change)
    return changes


def _changed(key: ConfigKey, current: str, change: AlterableConfig) -> str:
    assert change.value is not None
    if change.config_operation == _SET:
        return change.value
    if change.config_operation not in (_APPEND, _SUBTRACT) or key.type is not ConfigType.LIST:
        raise InvalidConfig(f"operation {change.config_operation} does not apply to {change.name!r}")
    items = [item for item in current.split(",") if item]
    changes = [item.strip() for item in change.value.split(",")]
    if change.config_operation == _APPEND:
        items += [item for item in changes if item not in items]
    else:
        items = [item for item in items if item not in changes]
    return ",".join(items)
