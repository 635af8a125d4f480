"""The REST door: records, messages, server-sent events and WebSockets."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from http.client import HTTPConnection
from typing import Any

from websockets.sync.client import connect

from doors.record import Sample, Shown
from node.process import Node
from node.wait import HUNG_SECONDS
from rest_parts.caller import API, RestCaller

_AS_BYTES = "key_format=base64&value_format=base64"


def write(node: Node, topic: str, samples: tuple[Sample, ...]) -> list[int]:
    records = [
        {
            "key": _text(sample.key),
            "value": _text(sample.value),
            "headers": [{"name": name, "value": _text(value), "format": "base64"} for name, value in sample.headers],
            "partition": 0,
            "timestamp_ms": sample.timestamp_ms,
        }
        for sample in samples
    ]
    body = {"records": records, "key_format": "base64", "value_format": "base64"}
    answer = RestCaller(node.http).post(f"topics/{topic}/records", body)
    return [record["offset"] for record in answer["records"]]


def read(node: Node, topic: str, count: int) -> list[Shown]:
    """In two pages, to see that they fit together."""
    first = _page(node, topic, 0, count // 2)
    rest = _page(node, topic, first["next_offset"], count)
    return [_shown(record) for record in first["records"] + rest["records"]]


def _page(node: Node, topic: str, offset: int, limit: int) -> Any:
    query = f"offset={offset}&limit={limit}&max_wait_ms=10000&{_AS_BYTES}"
    return RestCaller(node.http).get(f"topics/{topic}/partitions/0/records?{query}")


def read_messages(node: Node, topic: str, count: int) -> list[Shown]:
    """As the console does: newest first."""
    answer = RestCaller(node.http).get(f"topics/{topic}/messages?limit={count}&{_AS_BYTES}")
    return sorted((_shown(record) for record in answer["records"]), key=lambda shown: shown.offset)


def read_events(node: Node, topic: str, count: int) -> list[Shown]:
    connection = HTTPConnection(node.host, node.http_port, timeout=HUNG_SECONDS)
    try:
        connection.request("GET", f"{API}/topics/{topic}/stream?from=earliest&{_AS_BYTES}")
        response = connection.getresponse()
        assert response.status == 200, response.read()
        found: list[Shown] = []
        while len(found) < count:
            line = response.readline()
            assert line, "the stream ended"
            if line.startswith(b"data:"):
                found.append(_shown(json.loads(line.removeprefix(b"data:"))))
        return found
    finally:
        connection.close()


def read_socket(node: Node, topic: str, count: int) -> list[Shown]:
    url = f"ws://{node.host}:{node.http_port}{API}/topics/{topic}/ws?from=earliest&{_AS_BYTES}"
    with connect(url) as socket:
        return [_shown(json.loads(socket.recv(HUNG_SECONDS))["record"]) for _ in range(count)]


def _shown(record: dict[str, Any]) -> Shown:
    return Shown(
        offset=record["offset"],
        key=_bytes(record["key"]),
        value=_bytes(record["value"]),
        headers=tuple(
            (
                header["name"],
                _bytes(header["value"]) if header.get("format") == "base64" else _utf8(header.get("value")),
            )
            for header in record["headers"]
        ),
        timestamp_ms=record["timestamp_ms"],
    )


def _text(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def _utf8(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def partitions_of(node: Node, topic: str, keys: list[bytes]) -> list[int]:
    records = [{"key": key.decode(), "value": 1} for key in keys]
    answer = RestCaller(node.http).post(f"topics/{topic}/records", {"records": records})
    return [record["partition"] for record in answer["records"]]
