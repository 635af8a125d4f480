"""Apache Kafka as a peer: its jars through Maven, one combined KRaft node on loopback."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from bench.maven import Artifact, MavenFailed, fetch_jars
from bench.servers import START_SECONDS, Server, ServerFailed

VERSION = "4.1.0"
CLUSTER_ID = "c3RyZWFtaG91c2Vfam9iZQ"


class KafkaMissing(Exception):
    """Apache Kafka cannot be had here; the message says why."""


def fetch_kafka(directory: Path) -> Path:
    """The directory with Kafka's jars and all that they need; downloaded once."""
    try:
        return fetch_jars([Artifact("org.apache.kafka", "kafka_2.13", VERSION)], directory / f"jars-{VERSION}")
    except MavenFailed as problem:
        raise KafkaMissing(f"not measured: {problem}") from None


def start_kafka(jars: Path, directory: Path, settings: Sequence[str]) -> Server:
    directory.mkdir(parents=True)
    port, controller = _free_port(), _free_port()
    properties = directory / "server.properties"
    lines = [
        "process.roles=broker,controller",
        "node.id=1",
        f"controller.quorum.voters=1@127.0.0.1:{controller}",
        f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names=CONTROLLER",
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "inter.broker.listener.name=PLAINTEXT",
        f"log.dirs={(directory / 'logs').absolute()}",
        "offsets.topic.replication.factor=1",
        *settings,
    ]
    properties.write_text("\n".join(lines) + "\n")
    java = ["java", "-Xms1g", "-Xmx1g", "-cp", f"{jars.absolute()}/*"]
    format_storage = [*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)]
    formatted = subprocess.run(format_storage, capture_output=True, text=True, timeout=START_SECONDS)
    if formatted.returncode:
        raise ServerFailed(f"Kafka could not format its storage: {formatted.stderr.strip()}")

    def answered(process: subprocess.Popen[bytes]) -> dict[str, tuple[str, int]]:
        return {"kafka": _wait_until_it_answers(process, port)}

    return Server([*java, "kafka.Kafka", str(properties)], directory / "kafka.log", answered)


def _wait_until_it_answers(process: subprocess.Popen[bytes], port: int) -> tuple[str, int]:
    deadline = time.monotonic() + START_SECONDS
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ServerFailed("it ended before it was ready")
        try:
            admin.list_topics(timeout=1)
        except KafkaException:
            continue
        return "127.0.0.1", port
    raise ServerFailed(f"it was not ready after {START_SECONDS:g} s")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
