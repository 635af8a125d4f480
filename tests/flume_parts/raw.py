"""Flume frames by hand: a socket on which a test says exactly what is sent, written from the document alone."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Self

from node.wait import HUNG_SECONDS

PRODUCE, FETCH, JOIN_GROUP, LEAVE_GROUP, HEARTBEAT, OFFSET_COMMIT, OFFSET_FETCH, ASSIGNMENT = range(8)
NONE, UNKNOWN, TOPIC_NOT_FOUND, OFFSET_OUT_OF_RANGE, UNKNOWN_MEMBER, STALE_GENERATION, REBALANCE_NEEDED = range(7)


def text(value: str) -> bytes:
    return struct.pack(">h", len(value.encode())) + value.encode()


def blob(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def request(api_key: int, request_id: int, payload: bytes) -> bytes:
    return struct.pack(">ihi", 6 + len(payload), api_key, request_id) + payload


def produce(topic: str, payload: bytes, *, key: bytes = b"", partition: int = -1) -> bytes:
    return text(topic) + struct.pack(">i", partition) + blob(key) + blob(payload)


def fetch(topic: str, partition: int, offset: int, max_bytes: int = 65536) -> bytes:
    return text(topic) + struct.pack(">iqi", partition, offset, max_bytes)


class RawFlume:
    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=HUNG_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._next_id = 1000

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.socket.close()

    def receive(self) -> tuple[int, bytes]:
        """A response's request id and payload."""
        (size,) = struct.unpack(">i", self._exactly(4))
        response = self._exactly(size)
        return struct.unpack_from(">i", response)[0], response[4:]

    def call(self, api_key: int, payload: bytes) -> bytes:
        self._next_id += 1
        self.socket.sendall(request(api_key, self._next_id, payload))
        request_id, answer = self.receive()
        assert request_id == self._next_id, "the answer carries its request's id"
        return answer

    def produce(self, topic: str, payload: bytes, *, key: bytes = b"", partition: int = -1) -> tuple[int, int, int]:
        """Partition, offset and error code."""
        answer = self.call(PRODUCE, produce(topic, payload, key=key, partition=partition))
        partition, offset, code = struct.unpack(">iqh", answer)
        return partition, offset, code

    def fetch(
        self, topic: str, partition: int, offset: int, max_bytes: int = 65536
    ) -> tuple[int, list[tuple[int, bytes]]]:
        """Error code, and the records' offsets and payloads."""
        answer = self.call(FETCH, fetch(topic, partition, offset, max_bytes))
        code, count = struct.unpack_from(">hi", answer)
        at, records = 6, []
        for _ in range(count):
            record_offset, size = struct.unpack_from(">qi", answer, at)
            records.append((record_offset, answer[at + 12 : at + 12 + size]))
            at += 12 + size
        assert at == len(answer), "nothing follows the last record"
        return code, records

    def join(
        self, group: str, topics: list[str], *, member_id: str = "", session_ms: int = 10_000
    ) -> tuple[int, int, str, str, list[str]]:
        """Error code, generation, leader, member id and members."""
        payload = text(group) + text(member_id) + struct.pack(">ih", session_ms, len(topics))
        answer = self.call(JOIN_GROUP, payload + b"".join(map(text, topics)))
        code, generation = struct.unpack_from(">hi", answer)
        leader, at = _text_at(answer, 6)
        own_id, at = _text_at(answer, at)
        (count,) = struct.unpack_from(">h", answer, at)
        members, at = [], at + 2
        for _ in range(count):
            member, at = _text_at(answer, at)
            members.append(member)
        assert at == len(answer)
        return code, generation, leader, own_id, members

    def leave(self, group: str, member_id: str) -> int:
        return self._code(LEAVE_GROUP, text(group) + text(member_id))

    def heartbeat(self, group: str, generation: int, member_id: str) -> int:
        return self._code(HEARTBEAT, text(group) + struct.pack(">i", generation) + text(member_id))

    def commit(self, group: str, topic: str, partition: int, offset: int) -> int:
        return self._code(OFFSET_COMMIT, text(group) + text(topic) + struct.pack(">iq", partition, offset))

    def committed(self, group: str, topic: str, partition: int) -> tuple[int, int]:
        """Error code and offset."""
        answer = self.call(OFFSET_FETCH, text(group) + text(topic) + struct.pack(">i", partition))
        code, offset = struct.unpack(">hq", answer)
        return code, offset

    def assignment(self, group: str, generation: int, member_id: str) -> tuple[int, list[tuple[str, int]]]:
        """Error code and partitions."""
        answer = self.call(ASSIGNMENT, text(group) + struct.pack(">i", generation) + text(member_id))
        code, count = struct.unpack_from(">hi", answer)
        at, partitions = 6, []
        for _ in range(count):
            topic, at = _text_at(answer, at)
            partitions.append((topic, struct.unpack_from(">i", answer, at)[0]))
            at += 4
        assert at == len(answer)
        return code, partitions

    def is_closed_by_node(self) -> bool:
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _code(self, api_key: int, payload: bytes) -> int:
        (code,) = struct.unpack(">h", self.call(api_key, payload))
        return int(code)

    def _exactly(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            part = self.socket.recv(size - len(received))
            assert part, "the node closed the connection"
            received += part
        return received


def _text_at(data: bytes, at: int) -> tuple[str, int]:
    (size,) = struct.unpack_from(">h", data, at)
    return data[at + 2 : at + 2 + size].decode(), at + 2 + size
