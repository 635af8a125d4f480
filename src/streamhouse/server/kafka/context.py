"""What a handler is given besides the request."""

from __future__ import annotations

from typing import NamedTuple

from streamhouse.broker.broker import Broker
from streamhouse.wire.kafka.frame import RequestHeader


class Endpoint(NamedTuple):
    """Where clients are told to connect."""

    host: str
    port: int


class Context(NamedTuple):
    broker: Broker
    endpoint: Endpoint
    header: RequestHeader
    largest_reply_bytes: int
    client_host: str

    @property
    def version(self) -> int:
        return self.header.api_version
