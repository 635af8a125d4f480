"""Kubernetes manifests and systemd units: what they say of nodes is what nodes know, and a stop outlasts a drain.

A node that listens everywhere must say where, in these files and in docker-compose.yml: it does not know it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from streamhouse.cli.main import cli
from streamhouse.cli.settings import variable_name
from streamhouse.model.settings import Settings, setting_kinds
from streamhouse.server.http.rest.health import METADATA_PATIENCE_S

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
MANIFESTS = [
    document for path in sorted((DEPLOY / "k8s").glob("*.yaml")) for document in yaml.safe_load_all(path.open())
]
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
UNITS_ENVIRONMENT = DEPLOY / "systemd" / "streamhouse.env"
KNOWN = {variable_name(name) for name in setting_kinds()}
DEFAULTS = Settings()
DRAIN_SECONDS = DEFAULTS.shutdown_timeout / 1000
MARGIN_SECONDS = 15
"""What a stop takes besides the drain: to close listeners and stores, and to exit."""
NOWHERE = {"", "0.0.0.0", "::", "127.0.0.1", "::1", "localhost"}
"""Addresses that lead to no other machine."""


def manifest(kind: str) -> dict[str, Any]:
    (found,) = [document for document in MANIFESTS if document["kind"] == kind]
    return dict(found)


def pod(kind: str) -> dict[str, Any]:
    return dict(manifest(kind)["spec"]["template"]["spec"])


def container(kind: str) -> dict[str, Any]:
    (only,) = pod(kind)["containers"]
    return dict(only)


@pytest.mark.parametrize(("kind", "durability"), [("StatefulSet", "wal"), ("Deployment", "object")])
def test_each_durability_has_its_kind_of_agents(kind: str, durability: str) -> None:
    command, *options = container(kind)["args"]
    assert (command, options) == ("agent", ["--durability", durability])
    volumes = manifest(kind)["spec"].get("volumeClaimTemplates", [])
    assert [volume["metadata"]["name"] for volume in volumes] == (["data"] if durability == "wal" else [])
    labels = manifest(kind)["spec"]["template"]["metadata"]["labels"]
    assert manifest(kind)["spec"]["selector"]["matchLabels"] == labels


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment"])
def test_ports_and_probes_are_those_of_a_node(kind: str) -> None:
    ports = {port["name"]: port["containerPort"] for port in container(kind)["ports"]}
    assert ports == {
        "kafka": DEFAULTS.kafka_port,
        "http": DEFAULTS.http_port,
        "grpc": DEFAULTS.grpc_port,
        "flume": DEFAULTS.flume_port,
    }
    probes = {name: container(kind)[f"{name}Probe"] for name in ("startup", "readiness", "liveness")}
    assert {probe["httpGet"]["port"] for probe in probes.values()} == {"http"}


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment"])
def test_a_pod_whose_database_is_away_is_not_restarted(kind: str) -> None:
    for name in ("startup", "liveness"):
        probe = container(kind)[f"{name}Probe"]
        assert probe["httpGet"]["path"] == "/health/live"
        # It answers at once, unless the event loop is late.
        assert probe["timeoutSeconds"] >= 5
    readiness = container(kind)["readinessProbe"]
    assert readiness["httpGet"]["path"] == "/health/ready"
    assert readiness["timeoutSeconds"] > METADATA_PATIENCE_S


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment"])
def test_a_pod_is_given_longer_than_its_drain_may_take(kind: str) -> None:
    (seconds,) = re.findall(r"sleep\((\d+)\)", container(kind)["lifecycle"]["preStop"]["exec"]["command"][-1])
    assert manifest("ConfigMap")["data"]["STREAMHOUSE_SHUTDOWN_TIMEOUT"] == f"{DRAIN_SECONDS:.0f}s"
    assert pod(kind)["terminationGracePeriodSeconds"] >= int(seconds) + DRAIN_SECONDS + MARGIN_SECONDS


def test_every_variable_of_the_manifests_is_a_setting() -> None:
    names = set(manifest("ConfigMap")["data"]) | set(manifest("Secret")["stringData"])
    for kind in ("StatefulSet", "Deployment"):
        names |= {each["name"] for each in container(kind)["env"]} - {"POD_IP"}
    assert names <= KNOWN
    assert len(names) > 5


def test_services_lead_to_pods_that_there_are() -> None:
    services = [document["spec"] for document in MANIFESTS if document["kind"] == "Service"]
    labels = [manifest(kind)["spec"]["template"]["metadata"]["labels"] for kind in ("StatefulSet", "Deployment")]
    for service in services:
        assert any(service["selector"].items() <= each.items() for each in labels)
    headless = [service for service in services if service.get("clusterIP") == "None"]
    assert len(headless) == 1
    assert manifest("StatefulSet")["spec"]["serviceName"] == "streamhouse-wal"


def entries_of(file: Path) -> list[tuple[str, str]]:
    return re.findall(r"^(\w+)=(.*)$", file.read_text(), re.MULTILINE)


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_a_command_that_there_is_and_waits_for_its_drain(unit: Path) -> None:
    entries = entries_of(unit)
    settings = dict(entries)
    program, command, *options = settings["ExecStart"].split()
    assert program.endswith("/bin/streamhouse")
    assert CliRunner().invoke(cli, [command, *options, "--help"]).exit_code == 0
    assert settings["KillSignal"] == "SIGTERM"
    assert float(settings["TimeoutStopSec"].removesuffix("s")) >= DRAIN_SECONDS + MARGIN_SECONDS
    given = {value.split("=")[0] for name, value in entries if name == "Environment"}
    assert given <= KNOWN | {"DISABLE_EMBEDDED_AGENT"}


def test_every_line_of_the_units_environment_is_a_setting() -> None:
    settings = dict(entries_of(UNITS_ENVIRONMENT))
    assert len(settings) > 3
    assert settings.keys() <= KNOWN
    assert settings["STREAMHOUSE_SHUTDOWN_TIMEOUT"] == f"{DRAIN_SECONDS:.0f}s"


def test_the_units_name_every_port_that_a_second_node_of_a_machine_needs() -> None:
    (agents,) = [unit for unit in UNITS if "@" in unit.name]
    named = re.findall(r"^#\s+(\w+)=(\d+)$", agents.read_text(), re.MULTILINE)
    ports = [name for name in setting_kinds() if name.endswith("_port")]
    assert {name for name, _ in named} == set(map(variable_name, ports))
    assert not {int(port) for _, port in named} & {getattr(DEFAULTS, name) for name in ports}


def environments() -> dict[str, dict[str, str]]:
    """What each node is started with, of what these files say."""
    image = dict(re.findall(r"^ENV (\w+)=(\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    found = {
        f"compose {name}": image | service["environment"]
        for name, service in compose.items()
        if service["image"].startswith("streamhouse:")
    }
    for kind in ("StatefulSet", "Deployment"):
        given = {each["name"]: each.get("value", "of the pod") for each in container(kind)["env"]}
        found[kind] = image | manifest("ConfigMap")["data"] | given
    for unit in UNITS:
        given = dict(value.split("=", 1) for name, value in entries_of(unit) if name == "Environment")
        found[unit.name] = given | dict(entries_of(UNITS_ENVIRONMENT))  # files go before what the unit says
    return found


@pytest.mark.parametrize("environment", [pytest.param(each, id=node) for node, each in environments().items()])
def test_a_node_that_listens_everywhere_tells_others_where_to_connect(environment: dict[str, str]) -> None:
    assert environment["STREAMHOUSE_HOST"] == "0.0.0.0"
    assert re.sub(r":\d+$", "", environment.get("STREAMHOUSE_ADVERTISE", "")) not in NOWHERE
