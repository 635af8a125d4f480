"""Kubernetes manifests and systemd units: what they say of nodes is what nodes know, and a stop outlasts a drain."""

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

DEPLOY = Path(__file__).parents[2] / "deploy"
MANIFESTS = [
    document for path in sorted((DEPLOY / "k8s").glob("*.yaml")) for document in yaml.safe_load_all(path.open())
]
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
KNOWN = {variable_name(name) for name in setting_kinds()}
DEFAULTS = Settings()
DRAIN_SECONDS = DEFAULTS.shutdown_timeout / 1000


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
    probes = {name: container(kind)[f"{name}Probe"]["httpGet"] for name in ("startup", "readiness", "liveness")}
    assert {probe["port"] for probe in probes.values()} == {"http"}
    assert probes["liveness"]["path"] == "/health/live"
    assert {probes["startup"]["path"], probes["readiness"]["path"]} == {"/health/ready"}


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment"])
def test_a_pod_is_given_longer_than_its_drain_may_take(kind: str) -> None:
    (seconds,) = re.findall(r"sleep\((\d+)\)", container(kind)["lifecycle"]["preStop"]["exec"]["command"][-1])
    assert manifest("ConfigMap")["data"]["STREAMHOUSE_SHUTDOWN_TIMEOUT"] == f"{DRAIN_SECONDS:.0f}s"
    assert pod(kind)["terminationGracePeriodSeconds"] > int(seconds) + DRAIN_SECONDS


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


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_a_unit_starts_a_command_that_there_is_and_waits_for_its_drain(unit: Path) -> None:
    entries = re.findall(r"^(\w+)=(.*)$", unit.read_text(), re.MULTILINE)
    settings = dict(entries)
    program, command, *options = settings["ExecStart"].split()
    assert program.endswith("/bin/streamhouse")
    assert CliRunner().invoke(cli, [command, *options, "--help"]).exit_code == 0
    assert settings["KillSignal"] == "SIGTERM"
    assert float(settings["TimeoutStopSec"].removesuffix("s")) > DRAIN_SECONDS
    given = {value.split("=")[0] for name, value in entries if name == "Environment"}
    assert given <= KNOWN | {"DISABLE_EMBEDDED_AGENT"}


def test_every_line_of_the_units_environment_is_a_setting() -> None:
    names = re.findall(r"^(\w+)=", (DEPLOY / "systemd" / "streamhouse.env").read_text(), re.MULTILINE)
    assert len(names) > 3
    assert set(names) <= KNOWN
