"""docker-compose.yml without Docker: its nodes run here, by the same commands, environment and image settings.

Only what a network of containers provides is another: names lead to 127.0.0.1, ports are free ones, volumes are
temporary directories, and PostgreSQL and S3 are those of the tests. The S3 server is also started once by its own
command.

Not run here: the images of `postgres`, `prometheus` and `grafana`, nor those of the others, since images have to come
from a registry and need a container engine. The health check of `postgres` is asked of the PostgreSQL of the tests; the
rules and dashboards that are mounted into the other two are run by a Prometheus without a container, in
test_dashboards.py. Grafana itself is run by no test."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import confluent_kafka
import pytest
import yaml

from node.process import clean_environment
from node.wait import HUNG_SECONDS, eventually
from services.ports import free_port
from services.postgres import PostgresServer
from services.process import accepts_connections, start_process, stop_process
from services.seaweed import SeaweedServer
from streamhouse.model.settings import Settings

REPOSITORY = Path(__file__).parents[2]
AGENTS = ("agent-1", "agent-2", "agent-3")
NODES = ("streamhouse", *AGENTS)
TOPIC = "my-topic"
PARTITIONS = 6
RECORDS = 120
BUILT_IN_PORTS = {"KAFKA": 9092, "HTTP": 8080, "GRPC": 50051, "FLUME": 9094}
DATA_DIRECTORY = "/var/lib/streamhouse"
DRAIN_SECONDS = Settings().shutdown_timeout / 1000
MARGIN_SECONDS = 15
"""What a stop takes besides the drain: to close listeners and stores, and to exit."""


def interpolated(text: str) -> str:
    """`${NAME:-default}` as compose replaces it where the variable is not set."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)


COMPOSE: dict[str, Any] = yaml.safe_load(interpolated((REPOSITORY / "docker-compose.yml").read_text()))
SERVICES: dict[str, Any] = COMPOSE["services"]
OPERATIONS = (REPOSITORY / "docs" / "operations.md").read_text()
DOCKERFILE = (REPOSITORY / "Dockerfile").read_text()


def image_environment() -> dict[str, str]:
    return dict(re.findall(r"^ENV (STREAMHOUSE_\w+)=(\S+)$", DOCKERFILE, re.MULTILINE))


def image_instruction(name: str) -> list[str]:
    (arguments,) = re.findall(rf"^{name} (\[.*\])$", DOCKERFILE, re.MULTILINE)
    return list(json.loads(arguments))


def published(service: str) -> dict[int, int]:
    """Its ports: those inside, and where the host has them, for itself alone."""
    found = {}
    for text in SERVICES[service].get("ports", ()):
        address, outside, inside = text.split(":")
        assert address == "127.0.0.1", f"{service} is open to the network"
        found[int(inside)] = int(outside)
    return found


def port_of(service: str, door: str) -> int:
    given = SERVICES[service]["environment"].get(f"STREAMHOUSE_{door}_PORT")
    return int(given or BUILT_IN_PORTS[door])


@dataclass
class World:
    """Where the containers' names and ports lead on this machine."""

    directory: Path
    settings: Mapping[str, str]
    ports: dict[tuple[str, str], int] = field(default_factory=dict)

    def port(self, service: str, door: str) -> int:
        return self.ports.setdefault((service, door), free_port())

    def environment(self, service: str) -> dict[str, str]:
        variables = {**image_environment(), **SERVICES[service]["environment"], **self.settings}
        assert variables["STREAMHOUSE_DATA_DIR"] == DATA_DIRECTORY
        host, port = variables["STREAMHOUSE_ADVERTISE"].split(":")
        assert (host, int(port)) == (service, port_of(service, "KAFKA"))
        for door in BUILT_IN_PORTS:
            variables[f"STREAMHOUSE_{door}_PORT"] = str(self.port(service, door))
        variables["STREAMHOUSE_ADVERTISE"] = f"127.0.0.1:{self.port(service, 'KAFKA')}"
        variables["STREAMHOUSE_DATA_DIR"] = str(self.directory / service)
        return variables

    def start(self, service: str) -> subprocess.Popen[bytes]:
        program, *arguments = [*image_instruction("ENTRYPOINT"), *SERVICES[service]["command"]]
        with (self.directory / f"{service}.log").open("ab") as log:
            return subprocess.Popen(
                [Path(sys.executable).parent / program, *arguments],
                env={**clean_environment(), **self.environment(service)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def url(self, service: str, path: str) -> str:
        return f"http://127.0.0.1:{self.port(service, 'HTTP')}{path}"

    def bootstrap(self, service: str) -> str:
        return f"127.0.0.1:{self.port(service, 'KAFKA')}"

    def is_healthy(self, service: str) -> bool:
        """By the very probe of the image, at the port that this node has here."""
        program, *arguments = image_instruction(r"HEALTHCHECK [^\[]*CMD")
        assert program == "python"
        probe = [each.replace(":8080/", f":{self.port(service, 'HTTP')}/") for each in arguments]
        return subprocess.run([sys.executable, *probe], capture_output=True).returncode == 0


@pytest.fixture(scope="module")
def world(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer, s3_server: SeaweedServer
) -> Iterator[World]:
    """All four nodes, ready; they are drained at the end, by the signal that the image names."""
    dsn, bucket = postgres_server.create_database(), s3_server.create_bucket()
    settings = {
        "STREAMHOUSE_METADATA": dsn,
        "STREAMHOUSE_OBJECTS": f"{bucket.url}/log",
        "STREAMHOUSE_S3_ENDPOINT": bucket.endpoint,
        "STREAMHOUSE_S3_REGION": bucket.region,
        "STREAMHOUSE_S3_ACCESS_KEY_ID": bucket.access_key_id,
        "STREAMHOUSE_S3_SECRET_ACCESS_KEY": bucket.secret_access_key,
    }
    world = World(tmp_path_factory.mktemp("compose"), settings)
    processes: dict[str, subprocess.Popen[bytes]] = {}
    with ExitStack() as ending:
        ending.callback(s3_server.delete_bucket, bucket)
        ending.callback(postgres_server.drop_database, dsn)
        for service in NODES:
            processes[service] = world.start(service)
            ending.callback(end, processes[service])
        for service in NODES:
            eventually(lambda name=service: world.is_healthy(name), f"{service} to be healthy", pause=0.2)
        yield world
        drain(world, processes)


def drain(world: World, processes: Mapping[str, subprocess.Popen[bytes]]) -> None:
    (stop_signal,) = re.findall(r"^STOPSIGNAL (\w+)$", DOCKERFILE, re.MULTILINE)
    for service, process in processes.items():
        process.send_signal(signal.Signals[stop_signal])
        assert process.wait(grace_seconds(service)) == 0, (world.directory / f"{service}.log").read_text()[-4000:]


def grace_seconds(service: str) -> float:
    return float(SERVICES[service]["stop_grace_period"].removesuffix("s"))


def end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(HUNG_SECONDS)


def asked(url: str, body: object = None) -> Any:
    request = urllib.request.Request(
        url, None if body is None else json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=HUNG_SECONDS) as answer:
        return json.load(answer)


def live_agents(world: World) -> dict[str, str]:
    """Their zones, as the server without an agent sees them."""
    agents = asked(world.url("streamhouse", "/api/v1/agents"))["agents"]
    return {agent["agent_id"]: agent["zone"] for agent in agents if agent["state"] == "live"}


@pytest.fixture(scope="module")
def topic(world: World) -> str:
    """Made through REST at the server, led by the agents."""
    eventually(lambda: set(live_agents(world)) >= set(AGENTS), "all agents")
    asked(world.url("streamhouse", "/api/v1/topics"), {"name": TOPIC, "partition_count": PARTITIONS})
    eventually(lambda: len(leaders(world)) == PARTITIONS, "a leader of each partition", pause=0.2)
    return TOPIC


def leaders(world: World) -> list[str]:
    partitions = asked(world.url("streamhouse", f"/api/v1/topics/{TOPIC}/partitions"))["partitions"]
    return [each["leader"] for each in partitions if each["leader"]]


def test_the_agents_register_in_their_zones(world: World) -> None:
    eventually(lambda: live_agents(world) == {"agent-1": "a", "agent-2": "b", "agent-3": "a"}, "all agents, no other")


def test_the_partitions_of_a_topic_made_at_the_server_are_spread_evenly_over_the_agents(
    world: World, topic: str
) -> None:
    eventually(lambda: Counter(leaders(world)) == dict.fromkeys(AGENTS, 2), "two partitions on each agent", pause=0.2)


def test_records_flow_through_the_server_that_leads_nothing(world: World, topic: str) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": world.bootstrap("streamhouse"), "enable.idempotence": True}
    )
    for number in range(RECORDS):
        producer.produce(topic, f"over Kafka {number}", partition=number % PARTITIONS)
    assert producer.flush(HUNG_SECONDS) == 0
    over_rest = [{"value": {"over REST": number}, "partition": number} for number in range(PARTITIONS)]
    asked(world.url("streamhouse", f"/api/v1/topics/{topic}/records"), {"records": over_rest})

    expected = {f"over Kafka {number}" for number in range(RECORDS)} | {
        f'{{"over REST": {number}}}' for number in range(PARTITIONS)
    }
    assert sorted(read_at(world, "streamhouse", topic)) == sorted(expected)


def read_at(world: World, service: str, topic: str) -> list[str]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": world.bootstrap(service), "group.id": "reading", "enable.partition.eof": True}
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        values, unfinished = [], set(range(PARTITIONS))
        while unfinished:
            message = eventually(lambda: consumer.poll(1), "a record or the end of a partition")
            if message.error() is None:
                values.append(message.value().decode())
            else:
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, message.error()
                unfinished.discard(message.partition())
        return values
    finally:
        consumer.close()


def test_prometheus_asks_every_node_where_it_answers(world: World) -> None:
    config = yaml.safe_load((REPOSITORY / "deploy/prometheus/prometheus.yml").read_text())
    targets = {
        target for job in config["scrape_configs"] for each in job["static_configs"] for target in each["targets"]
    }
    assert targets >= {f"{service}:{port_of(service, 'HTTP')}" for service in NODES}
    for service in NODES:
        with urllib.request.urlopen(world.url(service, "/metrics"), timeout=HUNG_SECONDS) as answer:
            assert b"streamhouse_build_info" in answer.read()


def test_the_s3_server_starts_by_its_command_and_has_the_bucket(tmp_path: Path) -> None:
    service = SERVICES["s3"]
    assert service["entrypoint"] == ["weed"]
    port = free_port()
    changed = {"-dir=/data": f"-dir={tmp_path}", "-s3.port=9000": f"-s3.port={port}"}
    changed["-admin.port=9001"] = f"-admin.port={free_port()}"
    assert changed.keys() <= set(service["command"])
    # Everything else that it opens is inside its container there, and would be in the way of other tests here.
    inside = [f"-{name}.port={free_port()}" for name in ("master", "volume", "filer")]
    inside += [f"-{name}.port.grpc={free_port()}" for name in ("s3", "master", "volume", "filer", "admin")]
    inside += [f"-{name}.localSocket={tmp_path / name}.sock" for name in ("s3", "filer")]
    command = ["env", *(f"{name}={value}" for name, value in service["environment"].items())]
    command += [str(Path(sys.executable).parent / "weed"), *(changed.get(each, each) for each in service["command"])]
    process = start_process([*command, *inside], log=tmp_path / "log", ready=lambda: accepts_connections(port))
    try:
        eventually(lambda: has_bucket(port, service["environment"]), "the bucket", pause=0.2)
    finally:
        stop_process(process, signal.SIGKILL)


def has_bucket(port: int, credentials: Mapping[str, str]) -> bool:
    import boto3  # type: ignore[import-untyped]
    from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

    client = boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="us-east-1",
        aws_access_key_id=credentials["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=credentials["AWS_SECRET_ACCESS_KEY"],
    )
    try:
        return [bucket["Name"] for bucket in client.list_buckets()["Buckets"]] == ["streamhouse"]
    except (BotoCoreError, ClientError):
        return False


@pytest.mark.parametrize("service", NODES)
def test_a_node_is_led_to_the_stores_that_the_file_starts(service: str) -> None:
    environment = SERVICES[service]["environment"]
    metadata = urlsplit(environment["STREAMHOUSE_METADATA"])
    database = SERVICES["postgres"]["environment"]
    assert (metadata.username, metadata.password) == (database["POSTGRES_USER"], database["POSTGRES_PASSWORD"])
    assert (metadata.hostname, metadata.port) == ("postgres", 5432)
    assert metadata.path == f"/{database['POSTGRES_DB']}"

    store = SERVICES["s3"]
    assert environment["STREAMHOUSE_S3_ENDPOINT"] == "http://s3:9000"
    assert {"-s3.port=9000", "-bucket=" + urlsplit(environment["STREAMHOUSE_OBJECTS"]).netloc} <= set(store["command"])
    assert environment["STREAMHOUSE_S3_ACCESS_KEY_ID"] == store["environment"]["AWS_ACCESS_KEY_ID"]
    assert environment["STREAMHOUSE_S3_SECRET_ACCESS_KEY"] == store["environment"]["AWS_SECRET_ACCESS_KEY"]


@pytest.mark.parametrize("service", NODES)
def test_a_node_is_given_longer_to_stop_than_its_drain_may_take(service: str) -> None:
    assert "STREAMHOUSE_SHUTDOWN_TIMEOUT" not in SERVICES[service]["environment"]
    assert grace_seconds(service) >= DRAIN_SECONDS + MARGIN_SECONDS


def test_a_database_is_healthy_when_it_answers_where_nodes_ask(postgres_server: PostgresServer) -> None:
    """Not at its socket, where the image has a server for a moment before the database is made."""
    kind, program, *arguments = SERVICES["postgres"]["healthcheck"]["test"]
    assert (kind, program) == ("CMD", "pg_isready")
    address = urlsplit(postgres_server.dsn("postgres"))
    assert "--host=127.0.0.1" in arguments
    here = [each.replace("127.0.0.1", address.hostname or "") for each in arguments]

    def outcome(port: int | None) -> int:
        return subprocess.run([program, *here, f"--port={port}"], capture_output=True).returncode

    assert outcome(address.port) == 0
    assert outcome(free_port()) != 0


def test_the_containers_have_names_of_their_own() -> None:
    named = {service: SERVICES[service]["container_name"] for service in SERVICES}
    assert named == {service: f"{COMPOSE['name']}-{service}" for service in SERVICES} | {
        "streamhouse": "streamhouse-server"
    }


def test_the_command_that_opens_the_database_names_what_the_file_starts() -> None:
    command = "docker exec -it streamhouse-postgres psql -U streamhouse -d streamhouse_metadata"
    assert f"$ {command}\n" in OPERATIONS
    assert f"#   {command}\n" in (REPOSITORY / "docker-compose.yml").read_text()
    container, _, _, user, _, database = command.split()[3:]
    service = SERVICES["postgres"]
    assert service["container_name"] == container
    assert (service["environment"]["POSTGRES_USER"], service["environment"]["POSTGRES_DB"]) == (user, database)
    assert f"--dbname={database}" in service["healthcheck"]["test"]


def test_the_database_answers_what_the_page_asks_it(world: World, topic: str) -> None:
    (queries,) = re.findall(r"^```sql\n(.*?)^```", OPERATIONS, re.MULTILINE | re.DOTALL)
    command = ["psql", "--no-psqlrc", "--csv", "--tuples-only", "--set=ON_ERROR_STOP=1"]
    asked = [*command, f"--dbname={world.settings['STREAMHOUSE_METADATA']}"]
    agents, leases, partitions = (
        subprocess.run([*asked, f"--command={query}"], check=True, capture_output=True, text=True).stdout.splitlines()
        for query in queries.split(";\n")[:-1]
    )
    assert {line.split(",")[0] for line in agents} >= set(AGENTS)
    led = [line.split(",") for line in leases if line.startswith(f"{TOPIC},")]
    assert len(led) == PARTITIONS
    assert all(leader in AGENTS and float(ttl_ms) > 0 and int(epoch) > 0 for _, _, leader, ttl_ms, epoch in led)
    assert [line.split(",")[1] for line in sorted(partitions) if line.startswith(f"{TOPIC},")] == list("012345")


def test_the_file_and_the_page_say_why_the_s3_server_is_not_minio() -> None:
    for text in ((REPOSITORY / "docker-compose.yml").read_text(), OPERATIONS):
        assert re.search(r"SeaweedFS\b.*?\bnot MinIO\b.*?\bsource only\b", text, re.DOTALL)


def test_the_host_has_the_ports_that_the_architecture_draws() -> None:
    drawn = {
        "postgres": {5432},
        "s3": {9000, 9001},
        "streamhouse": {8080, 50051},
        "prometheus": {9091},
        "grafana": {3001},
    }
    for service, ports in drawn.items():
        assert ports <= set(published(service).values())
    outside = [port for service in SERVICES for port in published(service).values()]
    assert len(outside) == len(set(outside))


@pytest.mark.parametrize("service", NODES)
def test_a_node_publishes_its_kafka_port_as_it_advertises_it(service: str) -> None:
    port = port_of(service, "KAFKA")
    assert published(service)[port] == port
    assert SERVICES[service]["environment"]["STREAMHOUSE_ADVERTISE"] == f"{service}:{port}"


@pytest.mark.parametrize("service", AGENTS)
def test_what_an_agent_keeps_is_on_a_volume_of_its_own(service: str) -> None:
    assert SERVICES[service]["volumes"] == [f"{service}:{image_environment()['STREAMHOUSE_DATA_DIR']}"]
    assert service in COMPOSE["volumes"]


def test_files_that_are_mounted_exist_and_so_does_everything_that_the_image_is_built_from() -> None:
    mounted = [volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", ())]
    copied = re.findall(r"^!(\S+)$", (REPOSITORY / ".dockerignore").read_text(), re.MULTILINE)
    for path in [*(each for each in mounted if each.startswith("./")), *copied]:
        assert (REPOSITORY / path).exists(), path
