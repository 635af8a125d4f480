"""Readers of an event stream, line by line."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from node.wait import HUNG_SECONDS, eventually
from rest_parts.caller import API
from streamhouse.testing import Broker


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """As a browser understands it: without data it only says where to go on."""

    id: str
    data: Any
    type: str = "message"


class EventReader:
    """What EventSource does in a browser, but for connecting again."""

    def __init__(self, endpoint: str, topic: str, query: str = "", headers: Mapping[str, str] | None = None) -> None:
        self._connection = HTTPConnection(urlsplit(endpoint).netloc, timeout=HUNG_SECONDS)
        self._connection.request("GET", f"{API}/topics/{topic}/stream?{query}", headers=dict(headers or {}))
        self.response: HTTPResponse = self._connection.getresponse()
        assert self.response.status == 200, self.response.read()
        self.last_id = ""
        self.comments = 0
        self._blocks = self._read()
        next(self._blocks)  # where it begins

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        connection = self._connection.sock
        if connection is not None:
            connection.shutdown(socket.SHUT_RDWR)
        self.response.close()
        self._connection.close()

    def next_block(self) -> Event | None:
        """None at the end."""
        return next(self._blocks, None)

    def next_event(self) -> Event:
        while True:
            block = self.next_block()
            assert block is not None, "the stream ended"
            if block.data is not None:
                return block

    def values(self, count: int) -> list[Any]:
        return [self.next_event().data["value"] for _ in range(count)]

    def _read(self) -> Iterator[Event]:
        data: list[str] = []
        kind = "message"
        for line in self.response:
            name, _, value = line.decode().rstrip("\n").partition(":")
            value = value.removeprefix(" ")
            match name:
                case "id":
                    self.last_id = value
                case "data":
                    data.append(value)
                case "event":
                    kind = value
                case "" if value:
                    self.comments += 1
                case "" if line == b"\n":
                    yield Event(id=self.last_id, data=json.loads("\n".join(data)) if data else None, type=kind)
                    data, kind = [], "message"


def waiting_readers(broker: Broker) -> int:
    """How many the node keeps places for."""
    http = broker.node.doors.http
    assert http is not None
    assert http._rest is not None
    return http._rest._waiting._waiting


def wait_for_readers(broker: Broker, count: int) -> None:
    eventually(lambda: waiting_readers(broker) == count, f"{count} to wait for records")
