"""What a request about configs names: a type of resource, by Kafka's number, and a name."""

from __future__ import annotations

from enum import IntEnum

from streamhouse.broker.broker import Broker
from streamhouse.metadata.configs import ConfigKind, Configured
from streamhouse.model.errors import InvalidInput


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


def _kind_name(resource_type: int) -> str:
    try:
        return f"resources of type {ResourceType(resource_type).name}"
    except ValueError:
        return f"resources of type {resource_type}"


def node_ids(broker: Broker) -> list[str]:
    """The brokers as configs name them: those that clients can reach, and this one."""
    known = {node.node_id for node in broker.nodes.all()} | {broker.identity.node_id}
    return [str(node_id) for node_id in sorted(known) if node_id >= 0]
