"""A stream's patience: seconds with a node that it never reached, and a minute with one that it did, in whichever of
Spark's processes it is asked."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from streamhouse.model.errors import Unavailable
from streamhouse.spark.sink.reached import client_of_stream

OPTIONS = {"topic": "orders", "checkpointLocation": "checkpoints/orders"}
EMPTY = msgspec.json.encode([])


class ComingBack:
    """Hangs up so many times before each answer."""

    def __init__(self) -> None:
        self.hang_ups = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection:
                if self.hang_ups:
                    self.hang_ups -= 1
                    continue
                connection.recv(65536)
                head = f"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {len(EMPTY)}\r\n\r\n"
                connection.sendall(head.encode() + EMPTY)


@pytest.fixture
def node() -> Iterator[ComingBack]:
    started = ComingBack()
    yield started
    started.close()


@pytest.fixture(autouse=True)
def application(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whose patience with a node that it never reached is over after the second time."""
    monkeypatch.setattr("streamhouse.spark.connections._REACH_SECONDS", 0.06)
    begin_application(monkeypatch, tmp_path / "first")


def begin_application(monkeypatch: pytest.MonkeyPatch, scratch: Path) -> None:
    scratch.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{scratch},{scratch}/second")


def reach(node: ComingBack, options: dict[str, str] = OPTIONS, *, hang_ups: int = 0) -> None:
    node.hang_ups = hang_ups
    with client_of_stream(node.endpoint, options) as client:
        assert client.topics() == []


def test_a_node_that_was_never_reached_is_not_waited_for(node: ComingBack) -> None:
    with pytest.raises(Unavailable, match="does not answer"):
        reach(node, hang_ups=5)


def test_a_node_that_was_reached_is_waited_for(node: ComingBack) -> None:
    reach(node)

    reach(node, hang_ups=5)
    assert node.hang_ups == 0


def test_another_stream_and_another_application_have_reached_nobody(
    node: ComingBack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reach(node)

    with pytest.raises(Unavailable):
        reach(node, {**OPTIONS, "checkpointLocation": "checkpoints/others"}, hang_ups=5)
    begin_application(monkeypatch, tmp_path / "another")
    with pytest.raises(Unavailable):
        reach(node, hang_ups=5)


def test_who_begins_a_stream_again_that_lost_its_node_is_told_soon(node: ComingBack) -> None:
    reach(node)
    with pytest.raises(Unavailable), client_of_stream(node.endpoint, OPTIONS):
        raise Unavailable("not within a minute")

    with pytest.raises(Unavailable, match="does not answer"):
        reach(node, hang_ups=5)


def test_where_there_is_no_scratch_directory_a_stream_is_told_soon(
    node: ComingBack, monkeypatch: pytest.MonkeyPatch
) -> None:
    for scratch in ("", "/nonexistent"):
        monkeypatch.setenv("SPARK_LOCAL_DIRS", scratch)
        reach(node)
        with pytest.raises(Unavailable, match="does not answer"):
            reach(node, hang_ups=5)
