"""The client: `AsyncClient` and its twin `Client`; below them our own Kafka client, which the rest of the system uses.

Loaded when it is asked for, so that who only needs a part pays only for that."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamhouse.client.api import AsyncClient
    from streamhouse.client.api_consumer import AsyncConsumer
    from streamhouse.client.api_producer import AsyncProducer
    from streamhouse.client.api_records import Delivery, Record, TopicInfo
    from streamhouse.client.serde import BadRecord, Serde
    from streamhouse.client.sync import Client

__all__ = [
    "AsyncClient",
    "AsyncConsumer",
    "AsyncProducer",
    "BadRecord",
    "Client",
    "Delivery",
    "Record",
    "Serde",
    "TopicInfo",
]

_HOMES = {
    "AsyncClient": "api",
    "AsyncConsumer": "api_consumer",
    "AsyncProducer": "api_producer",
    "BadRecord": "serde",
    "Client": "sync",
    "Delivery": "api_records",
    "Record": "api_records",
    "Serde": "serde",
    "TopicInfo": "api_records",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"streamhouse.client.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
