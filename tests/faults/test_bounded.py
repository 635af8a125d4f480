"""Too many, too slow, too greedy: connections, readers and senders have limits, and others keep being served."""

from __future__ import annotations

import resource
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psutil
import pytest

from faults.workload import create_topic
from node.process import Node
from node.raw import Closed, RawConnection, build_batch, fetch_request, read_values
from node.wait import eventually

MIB = 2**20
CONNECTIONS = 1000
LARGE = MIB - 1000


@pytest.fixture
def many_files() -> Iterator[None]:
    """This process needs a descriptor per connection, too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def assert_serves_others(node: Node, value: bytes) -> None:
    with RawConnection(node.address) as raw:
        answer = raw.produce("decent", build_batch(value))
        assert answer.error_code == 0
        assert value in read_values(raw.fetch("decent", answer.base_offset).records).values()


@pytest.mark.usefixtures("many_files")
def test_a_thousand_connections_are_cheap_and_hinder_nobody(data_dir: Path) -> None:
    with Node(data_dir) as node, ExitStack() as stack:
        create_topic(node.bootstrap, "decent", 1)
        before = node.rss_bytes
        connections = [stack.enter_context(RawConnection(node.address)) for _ in range(CONNECTIONS)]
        assert all(connection.metadata().brokers for connection in connections)
        assert (node.rss_bytes - before) / CONNECTIONS < 64 * 1024, "bytes per connection"
        assert_serves_others(node, b"among a thousand")
        stack.close()
        process = psutil.Process(node.pid)
        eventually(lambda: process.num_fds() < 100, "the descriptors of closed connections to be given back")


@pytest.mark.usefixtures("many_files")
def test_connections_that_only_begin_a_request_are_closed_at_their_deadline(data_dir: Path) -> None:
    with Node(data_dir, "--request-timeout", "2s") as node, ExitStack() as stack:
        create_topic(node.bootstrap, "decent", 1)
        connections = besiege(node, stack, CONNECTIONS, b"\0\0\x10\0\0\0")
        assert_serves_others(node, b"among slow senders")
        assert all(connection.is_closed_by_node() for connection in connections)
        assert_serves_others(node, b"after slow senders")


@pytest.mark.usefixtures("many_files")
def test_connections_that_never_say_a_word_are_closed_as_soon(data_dir: Path) -> None:
    with Node(data_dir, "--request-timeout", "2s") as node, ExitStack() as stack:
        create_topic(node.bootstrap, "decent", 1)
        kafka = besiege(node, stack, CONNECTIONS // 2, b"")
        host, _, port = node.flume_address.rpartition(":")
        flume = [stack.enter_context(closing(socket.create_connection((host, int(port))))) for _ in range(100)]
        assert_serves_others(node, b"among the silent")
        assert all(connection.is_closed_by_node() for connection in kafka)
        assert all(connection.recv(1) == b"" for connection in flume)


@pytest.mark.usefixtures("many_files")
def test_halves_of_small_requests_stay_within_the_budget(data_dir: Path) -> None:
    """A thousand times 120 kB, against a budget of 4 MiB; small requests come through all the same."""
    limits = ("--request-timeout", "10s", "--max-message-bytes", "1MiB", "--max-request-bytes", "4MiB")
    with Node(data_dir, *limits, "--receive-bytes", "4MiB") as node, ExitStack() as stack:
        create_topic(node.bootstrap, "decent", 1)
        assert_serves_others(node, b"before")
        before = node.rss_bytes
        besiege(node, stack, CONNECTIONS, struct.pack(">i", 120_000) + bytes(119_000))
        for number in range(20):
            assert_serves_others(node, f"besieged {number}".encode())
        assert node.rss_bytes - before < 80 * MIB, "parts of requests are in no budget"


def besiege(node: Node, stack: ExitStack, count: int, sent: bytes) -> list[RawConnection]:
    """Each says its piece as soon as it has come: the first request has a deadline of its own."""
    besiegers = []
    for _ in range(count):
        besieger = stack.enter_context(RawConnection(node.address))
        besieger.socket.sendall(sent)
        besiegers.append(besieger)
    return besiegers


PROMISE = struct.pack(">ihhih", 30 * MIB, 0, 9, 1, 3) + b"bad\0"
"""The beginning of a produce request of 30 MiB, of which no more will come."""


@pytest.fixture
def besieged(data_dir: Path) -> Iterator[tuple[Node, Callable[[], list[RawConnection]]]]:
    """A node with a budget of 32 MiB, and how to have two hundred connections promise 6 GiB in all."""
    limits = ("--request-timeout", "2s", "--max-request-bytes", "32MiB", "--receive-bytes", "32MiB")
    with Node(data_dir, *limits) as node, ExitStack() as stack:
        create_topic(node.bootstrap, "decent", 1)
        assert_serves_others(node, b"before")
        yield node, lambda: besiege(node, stack, 200, PROMISE)


def test_promises_of_large_frames_allocate_little(besieged: tuple[Node, Callable[[], list[RawConnection]]]) -> None:
    node, attack = besieged
    before = node.rss_bytes
    attack()
    for number in range(20):
        assert_serves_others(node, f"besieged {number}".encode())
    assert node.rss_bytes - before < 80 * MIB, "memory follows promises instead of the budget"


def test_promises_of_large_frames_end_at_their_deadline(
    besieged: tuple[Node, Callable[[], list[RawConnection]]],
) -> None:
    """Whether their bytes were given a place or wait for one."""
    _, attack = besieged
    assert all(besieger.is_closed_by_node() for besieger in attack())


def test_a_decent_large_request_gets_its_turn_despite_promises(
    besieged: tuple[Node, Callable[[], list[RawConnection]]],
) -> None:
    node, attack = besieged
    attack()

    def served() -> bool:
        """As clients do, it tries again if it was its own request that had to go."""
        try:
            with RawConnection(node.address) as raw:
                return bool(raw.produce("decent", build_batch(b"large" * 100_000)).error_code == 0)
        except (Closed, OSError):
            return False

    eventually(served, "a large request's turn")


def test_silent_connections_are_closed_and_busy_ones_are_not(data_dir: Path) -> None:
    with Node(data_dir, "--idle-timeout", "1s") as node:
        create_topic(node.bootstrap, "decent", 1)
        with RawConnection(node.address) as silent, RawConnection(node.address) as busy:
            # Waiting for records is not silence: the node owes an answer.
            busy.send(fetch_request("decent", 0, max_wait_ms=3000))
            assert silent.is_closed_by_node()
            assert busy.receive_frame()


def test_connections_above_the_limit_are_refused_and_the_others_live(data_dir: Path) -> None:
    with Node(data_dir, "--max-connections", "20") as node, ExitStack() as stack:
        accepted = [stack.enter_context(RawConnection(node.address)) for _ in range(20)]
        assert all(connection.metadata().brokers for connection in accepted)
        with closing(socket.create_connection(node.address, timeout=30)) as excess:
            assert excess.recv(1) == b"", "the connection above the limit is served"
        assert all(connection.metadata().brokers for connection in accepted)
        accepted[0].close()

        def served() -> bool:
            try:
                with RawConnection(node.address) as raw:
                    return bool(raw.metadata().brokers)
            except (Closed, OSError):
                return False

        eventually(served, "a place for one more")


@pytest.fixture(scope="module")
def full_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """Sixty MiB that a greedy reader may ask for, and a small cache."""
    bounds = ("--tail-bytes", "8MiB", "--cache-bytes", "8MiB", "--segment-age", "100ms", "--segment-bytes", "4MiB")
    with Node(tmp_path_factory.mktemp("full") / "data", *bounds) as node:
        create_topic(node.bootstrap, "decent", 1)
        create_topic(node.bootstrap, "large", 1)
        with RawConnection(node.address) as raw:
            for number in range(60):
                assert raw.produce("large", build_batch(bytes([number]) * LARGE)).error_code == 0
        yield node


@pytest.mark.parametrize("readers", [1, 30])
def test_readers_that_never_read_pin_little_and_hinder_nobody(full_node: Node, readers: int) -> None:
    """Each asks for everything twenty times and takes nothing."""
    before = full_node.rss_bytes
    with ExitStack() as stack:
        for _ in range(readers):
            greedy = stack.enter_context(RawConnection(full_node.address))
            greedy.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            for _ in range(20):
                greedy.send(fetch_request("large", 0))
        for number in range(20):
            assert_serves_others(full_node, f"beside {readers} greedy readers {number}".encode())
        grown = full_node.rss_bytes - before
        assert grown < 120 * MIB + readers * 8 * MIB, f"it grew by {grown // MIB} MiB"
    eventually(lambda: full_node.rss_bytes - before < 200 * MIB, "what greedy readers pinned to be given back")


def test_a_catch_up_reader_reads_everything_within_the_budget(full_node: Node) -> None:
    before = full_node.rss_bytes
    with RawConnection(full_node.address) as raw:
        offset = 0
        while offset < 60:
            for at, value in read_values(raw.fetch("large", offset, max_bytes=5 * MIB).records).items():
                assert value == bytes([at]) * LARGE
                offset = at + 1
    assert full_node.rss_bytes - before < 150 * MIB
