"""What a hostile or broken client sends to the Flume port: refused before anything is allocated, and nobody else
notices."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

import pytest

from faults.sweep import sweep_size
from flume_parts import raw
from flume_parts.raw import RawFlume
from node.process import Node
from node.wait import eventually

MIB = 2**20
GROWTH = 100 * MIB
"""What a node may grow by for reasons of its own; every attack here promises many times that."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Node(tmp_path_factory.mktemp("node") / "data", "--request-timeout", "2s") as node:
        with RawFlume(node.flume_address) as flume:
            assert flume.produce("decent", b"decent") == (0, 0, raw.NONE)
        yield node


@pytest.fixture(autouse=True)
def unharmed(node: Node) -> Iterator[None]:
    """After each attack the node lives, has not grown, and serves others."""
    before = node.rss_bytes
    yield
    assert node.running, node.stderr()
    assert node.rss_bytes - before < GROWTH, "it grew by what the attacker promised"
    with RawFlume(node.flume_address) as flume:
        assert flume.fetch("decent", 0, 0) == (raw.NONE, [(0, b"decent")])
    assert "Traceback" not in node.stderr(), node.stderr()


@pytest.mark.parametrize("size", [2**31 - 1, -1, -(2**31), 101 * MIB, 0, 1, 5])
def test_a_frame_of_impossible_size_ends_the_connection(node: Node, size: int) -> None:
    with RawFlume(node.flume_address) as flume:
        flume.socket.sendall(struct.pack(">i", size) + b"\0" * min(max(size, 0), 64))
        assert flume.is_closed_by_node()


@pytest.mark.parametrize("sent", [b"", b"\0", b"\0\0\0\x20", struct.pack(">ihi", 90 * MIB, raw.PRODUCE, 1)])
def test_a_request_that_does_not_go_on_ends_the_connection(node: Node, sent: bytes) -> None:
    with RawFlume(node.flume_address) as flume:
        flume.socket.sendall(sent)
        assert flume.is_closed_by_node()


@pytest.mark.parametrize(
    ("api_key", "payload"),
    [
        (raw.PRODUCE, struct.pack(">h", 2**15 - 1)),
        (raw.PRODUCE, struct.pack(">h", -1)),
        (raw.PRODUCE, raw.text("t") + struct.pack(">ii", 0, 2**31 - 1)),
        (raw.PRODUCE, raw.text("t") + struct.pack(">ii", 0, -8)),
        (raw.PRODUCE, raw.text("t") + struct.pack(">iii", 0, 0, 2**31 - 1)),
        (raw.PRODUCE, raw.produce("t", b"x") + b"more"),
        (raw.FETCH, b"\0\x01\xff" + struct.pack(">iqi", 0, 0, 0)),
        (raw.FETCH, raw.text("t")),
        (raw.JOIN_GROUP, raw.text("g") + raw.text("") + struct.pack(">ih", 1000, 2**15 - 1)),
        (raw.JOIN_GROUP, raw.text("g") + raw.text("") + struct.pack(">ih", 1000, -1)),
        (raw.LEAVE_GROUP, raw.text("g")),
        (raw.HEARTBEAT, raw.text("g")),
        (raw.OFFSET_COMMIT, raw.text("g")),
        (raw.OFFSET_FETCH, b""),
        (raw.ASSIGNMENT, b"\0"),
        (raw.FETCH, b"x" * 2 * MIB),
    ],
)
def test_lengths_and_counts_beyond_the_frame_end_the_connection(node: Node, api_key: int, payload: bytes) -> None:
    with RawFlume(node.flume_address) as flume:
        flume.socket.sendall(raw.request(api_key, 1, payload))
        assert flume.is_closed_by_node()


def test_what_came_whole_before_a_broken_frame_is_kept(node: Node) -> None:
    with RawFlume(node.flume_address) as flume:
        assert flume.produce("kept", b"first")[2] == raw.NONE
        flume.socket.sendall(
            raw.request(raw.PRODUCE, 1, raw.produce("kept", b"whole")) + raw.request(raw.PRODUCE, 2, b"\xff\xff")
        )
        assert flume.is_closed_by_node()
    with RawFlume(node.flume_address) as flume:
        eventually(lambda: flume.fetch("kept", 0, 1)[1] == [(1, b"whole")], "the record before the broken frame")


def test_one_who_takes_no_replies_is_not_read_any_further(node: Node) -> None:
    """It asks again and again for megabytes and never reads: what waits for it is bounded."""
    with RawFlume(node.flume_address) as flume:
        for _ in range(16):
            assert flume.produce("large", b"x" * 900_000)[2] == raw.NONE
        ask = raw.request(raw.FETCH, 1, raw.fetch("large", 0, 0, 2**31 - 1)) * 100
        flume.socket.settimeout(1)
        sent = 0
        while sent < 64 * MIB:
            try:
                sent += flume.socket.send(ask)
            except TimeoutError:
                break
        assert sent < 64 * MIB, "it was read on and on"


def test_noise_never_hurts(node: Node) -> None:
    generator = random.Random(20_261_116)
    for _ in range(sweep_size(100)):
        with RawFlume(node.flume_address) as flume:
            content = generator.randbytes(generator.randrange(1, 300))
            if generator.random() < 0.7:
                content = raw.request(generator.randrange(-1, 9), generator.randrange(2**31), content)
            flume.socket.sendall(content)
