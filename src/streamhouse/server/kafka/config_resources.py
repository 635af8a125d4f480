"""What a request about configs names: a type of resource, by Kafka's number, and a name."""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum

from streamhouse.broker.broker import Broker
from streamhouse.metadata.configs import ConfigKind, Configured
from streamhouse.model.errors import InvalidInput
from streamhouse.server.kafka.distinct import repeated
from streamhouse.wire.kafka.messages import alter_configs, incremental_alter_configs


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


def configured(broker: Broker, resource_type: int, name: str) -> Configured:
    """Whose configs are meant, where they can be set while nodes run."""
    if resource_type == ResourceType.BROKER:
        if name and name not in node_ids(broker):
            raise InvalidInput(f"there is no broker {name[:100]!r}", hint="name one by its node id, or all by none")
        return Configured(ConfigKind.BROKER, name)
    if resource_type == ResourceType.GROUP:
        if not name:
            raise InvalidInput("a group's configs need the group's name")
        return Configured(ConfigKind.GROUP, name)
    raise InvalidInput(
        f"{_kind_name(resource_type)} have no configs that can be set here",
        hint="topics, brokers and groups have; a node's settings are its flags, STREAMHOUSE_* variables and file",
    )


AlteredResource = alter_configs.AlterConfigsResource | incremental_alter_configs.AlterConfigsResource


def named_twice(resources: Collection[AlteredResource]) -> set[tuple[int, str]]:
    """By type and name, for `check_named_once`."""
    return repeated((resource.resource_type, resource.resource_name) for resource in resources)


def check_named_once(resource: AlteredResource, twice: Collection[tuple[int, str]]) -> None:
    """That the request changes the resource, and each config of it, no more than once."""
    if (resource.resource_type, resource.resource_name) in twice:
        raise InvalidInput("the request names this resource more than once", hint="put all changes of it into one")
    names = repeated(config.name for config in resource.configs)
    if names:
        raise InvalidInput(f"config {min(names)[:100]!r} is given more than once", hint="give each config once")


def _kind_name(resource_type: int) -> str:
    try:
        return f"resources of type {ResourceType(resource_type).name}"
    except ValueError:
        return f"resources of type {resource_type}"


def node_ids(broker: Broker) -> list[str]:
    """The brokers as configs name them: those that clients can reach, and this one."""
    known = {node.node_id for node in broker.nodes.all()} | {broker.identity.node_id}
    return [str(node_id) for node_id in sorted(known) if node_id >= 0]
