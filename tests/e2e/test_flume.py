"""Flume's example session as its document prints it; its tools and clients against real nodes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flume_parts import raw
from flume_parts.raw import RawFlume
from node.cluster import Cluster
from node.process import clean_environment
from node.wait import HUNG_SECONDS, eventually
from services.ports import free_port
from services.postgres import PostgresServer
from services.seaweed import SeaweedServer

COMMAND = [sys.executable, "-m", "streamhouse", "flume"]


def run(*arguments: str, broker: str) -> subprocess.CompletedProcess[str]:
    """As it is typed there, but for the port, which on a shared machine may be taken."""
    environment = {**clean_environment(), "STREAMHOUSE_FLUME_BROKER": broker}
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, env=environment, timeout=HUNG_SECONDS)


def output_of(*arguments: str, broker: str) -> str:
    done = run(*arguments, broker=broker)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[str]:
    """`broker --port PORT --data DIR` in a process; its address once it says that it is ready."""
    port = free_port()
    process = subprocess.Popen(
        [*COMMAND, "broker", "--port", str(port), "--data", str(tmp_path / "data")],
        stdout=subprocess.PIPE,
        env=clean_environment(),
        text=True,
    )
    try:
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready.startswith("ready ")
        assert f"flume=127.0.0.1:{port}" in ready
        yield f"localhost:{port}"
        process.terminate()
        assert process.wait(HUNG_SECONDS) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_example_session_prints_what_the_document_prints(broker: str) -> None:
    produced = [
        output_of("produce", "--topic", "orders", "--key", key, "--message", message, broker=broker)
        for key, message in (
            ("user-123", '{"item": "widget"}'),
            ("user-123", '{"item": "gadget"}'),
            ("user-456", '{"item": "thing"}'),
        )
    ]
    assert produced == [
        "Produced to orders partition 1 at offset 0\n",
        "Produced to orders partition 1 at offset 1\n",
        "Produced to orders partition 2 at offset 0\n",
    ]
    first = output_of("consume", "--topic", "orders", "--partition", "1", "--offset", "0", broker=broker)
    assert first == '[0] {"item": "widget"}\n[1] {"item": "gadget"}\n'
    second = output_of("consume", "--topic", "orders", "--partition", "2", "--offset", "0", broker=broker)
    assert second == '[0] {"item": "thing"}\n'


def test_a_topic_that_was_made_for_a_message_is_said_so(broker: str) -> None:
    arguments = ("produce", "--topic", "ordrs", "--key", "k", "--message", "x")
    first, second = run(*arguments, broker=broker), run(*arguments, broker=broker)

    assert first.stderr == "there was no topic 'ordrs': made it\n"
    assert first.stdout.startswith("Produced to ordrs partition ")
    assert second.stderr == ""


def test_the_flags_of_the_usage_section(broker: str) -> None:
    flags = ["--broker", broker, "--topic", "test"]
    assert output_of("produce", *flags, "--message", "hello world", broker="") == (
        "Produced to test partition 0 at offset 0\n"
    )
    assert output_of("produce", *flags, "--key", "user-123", "--message", "event1", broker="") == (
        "Produced to test partition 1 at offset 0\n"
    )
    assert output_of("produce", *flags, "--partition", "0", "--message", "x" * 100, broker="") == (
        "Produced to test partition 0 at offset 1\n"
    )
    read = output_of("consume", *flags, "--partition", "0", "--offset", "0", "--max-bytes", "10", broker="")
    assert read == "[0] hello world\n[1] " + "x" * 100 + "\n", "it reads on to the end, however little at a time"
    missing = run("consume", "--topic", "nothing", broker=broker)
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr.startswith("error: ")
    assert missing.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer, s3_server: SeaweedServer
) -> Iterator[Cluster]:
    dsn = postgres_server.create_database()
    bucket = s3_server.create_bucket()
    with Cluster(2, tmp_path_factory.mktemp("cluster"), dsn, bucket, durability="object") as cluster:
        yield cluster
    postgres_server.drop_database(dsn)
    s3_server.delete_bucket(bucket)


def test_every_node_takes_and_gives_every_partition_whoever_leads_it(cluster: Cluster) -> None:
    topic = cluster.new_topic()
    agents = list(cluster.agents.values())
    connections = [RawFlume(agent.flume_address) for agent in agents]
    try:
        assert connections[0].produce(topic, b"make it")[2] == raw.NONE
        cluster.wait_led(topic)
        for partition in range(3):
            before = 1 if partition == 0 else 0
            for turn, connection in enumerate(connections):
                for number in range(50):
                    payload = raw.produce(topic, b"%d/%d" % (turn, number), partition=partition)
                    connection.socket.sendall(raw.request(raw.PRODUCE, number, payload))
                answers = [connection.receive() for _ in range(50)]
                assert sorted(request_id for request_id, _ in answers) == list(range(50))
            for connection in connections:
                code, records = connection.fetch(topic, partition, before, 2**20)
                assert code == raw.NONE
                assert [payload for _, payload in records] == [b"%d/%d" % (t, n) for t in range(2) for n in range(50)]
    finally:
        for connection in connections:
            connection.socket.close()


def test_members_on_different_nodes_share_one_group(cluster: Cluster) -> None:
    from streamhouse.client.flume import GroupConsumer, Producer

    topic = cluster.new_topic()
    first_address, second_address = (agent.flume_address for agent in cluster.agents.values())
    with Producer(first_address) as producer:
        producer.produce(topic, b"x")
    cluster.wait_led(topic)
    with (
        GroupConsumer(first_address, topic, [topic], session_timeout_ms=4000) as first,
        GroupConsumer(second_address, topic, [topic], session_timeout_ms=4000) as second,
    ):

        def divided() -> bool:
            first.poll(max_wait_ms=0)
            second.poll(max_wait_ms=0)
            owned = sorted([*first.assignment, *second.assignment])
            return owned == [(topic, 0), (topic, 1), (topic, 2)] and bool(first.assignment) and bool(second.assignment)

        eventually(divided, "a division over two nodes", pause=0.1)
