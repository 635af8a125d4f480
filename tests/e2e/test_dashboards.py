"""Dashboards and alert rules against what a live node exports, looked at by a real Prometheus."""

from __future__ import annotations

import json
import math
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Consumer, Producer

from metrics_parts.asked import groupings_in, metrics_in, panels, rules
from metrics_parts.exported import Sample, samples
from node.process import Node
from node.wait import HUNG_SECONDS, eventually
from rest_parts.caller import RestCaller
from services.prometheus import Prometheus, prometheus_server

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CONFIGURATION = DEPLOY / "prometheus" / "prometheus.yml"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
FIRING = Path(__file__).with_name("alerts_firing.yml")
DASHBOARDS = sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
OPERATIONS = ROOT / "docs" / "operations.md"
METRICS = ROOT / "docs" / "metrics.md"
# What Prometheus adds to every sample by itself.
ADDED_LABELS = {"job", "instance"}
RECORDS = 200


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """What it uploaded is not kept in memory, so that it has to be read from segments."""
    options = ("--segment-bytes", "4KiB", "--segment-age", "100ms", "--tail-bytes", "0")
    with Node(tmp_path_factory.mktemp("node"), *options) as node:
        yield node


@pytest.fixture(scope="module")
def busy_node(node: Node) -> Node:
    """One that has done a little of everything: it wrote, uploaded, read back, and has a group that lags."""
    write_and_read(node)
    consumer = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": 'slow "readers"\\',
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    message = eventually(lambda: consumer.poll(1.0), "a record")
    consumer.commit(message=message, asynchronous=False)
    consumer.close()
    return node


def write_and_read(node: Node) -> None:
    producer = Producer({"bootstrap.servers": node.bootstrap})
    for number in range(RECORDS):
        producer.produce("orders", f"order {number}".encode() * 10)
    assert producer.flush(HUNG_SECONDS) == 0
    rest = RestCaller(node.http)
    rest.post("topics/orders/records", {"records": [{"value": "by REST"}]})
    rest.get("topics/orders/partitions/0/records?offset=0")


@pytest.fixture(scope="module")
def exposition(busy_node: Node) -> str:
    return RestCaller(busy_node.http).call("GET", "/metrics").body.decode()


@pytest.fixture(scope="module")
def exported(exposition: str) -> list[Sample]:
    return samples(exposition)


@pytest.fixture(scope="module")
def prometheus(busy_node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    target = busy_node.http.removeprefix("http://")
    with prometheus_server(tmp_path_factory.mktemp("prometheus"), CONFIGURATION, target) as server:
        yield server


def expressions() -> list[tuple[str, str]]:
    shown = [(f"{path.stem}: {title}", text) for path in DASHBOARDS for title, text in panels(path)]
    return shown + [(rule["alert"], rule["expr"]) for rule in rules(ALERTS)]


@pytest.mark.parametrize("expression", [pytest.param(text, id=where) for where, text in expressions()])
def test_every_name_and_label_that_is_asked_for_is_exported(expression: str, exported: list[Sample]) -> None:
    asked = metrics_in(expression)
    assert asked, "an expression without a metric"
    labels: set[str] = set()
    for name, matchers in asked.items():
        if name == "up":  # Prometheus' own
            continue
        found = [sample.labels for sample in exported if sample.name == name]
        assert found, f"{name} is not exported"
        labels |= {label for sample in found for label in sample}
        for label, wanted in matchers:
            if label not in ADDED_LABELS:
                assert any(sample.get(label) == wanted for sample in found), f'{name} never has {label}="{wanted}"'
    assert groupings_in(expression) <= labels | ADDED_LABELS


@pytest.mark.parametrize("expression", [pytest.param(text, id=where) for where, text in expressions()])
def test_rates_are_of_what_only_grows_and_quantiles_of_buckets_that_are_told_apart(expression: str) -> None:
    for function, name in re.findall(r"(\w+)\(((?:streamhouse|process)_\w+)[^()]*\[", expression):
        grows = re.search(r"_(total|bucket|sum|count)$", name) is not None
        assert grows == (function in ("rate", "increase")), f"{function} of {name}"
    quantiles = re.findall(r"histogram_quantile\([\d.]+, sum by \(([^)]*)\) \(rate\(\w+_bucket\b", expression)
    assert len(quantiles) == expression.count("histogram_quantile")
    assert all("le" in labels.split(", ") for labels in quantiles)


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda path: path.stem)
def test_every_panel_shows_a_number_while_the_node_works(
    dashboard: Path, prometheus: Prometheus, busy_node: Node
) -> None:
    """A quantile of nothing, or a share of nothing, is there too, but is none."""
    for title, expression in panels(dashboard):

        def is_shown(expression: str = expression) -> bool:
            if shows_a_number(prometheus, expression):
                return True
            write_and_read(busy_node)
            return False

        eventually(is_shown, f"a number in {title}: {expression}", pause=0.5)


def shows_a_number(prometheus: Prometheus, expression: str) -> bool:
    return any(math.isfinite(float(sample["value"][1])) for sample in prometheus.query(expression))


def test_what_is_exported_is_as_prometheus_wants_it(exposition: str) -> None:
    """Its linter knows the format, and the conventions for names, types and units."""
    outcome = subprocess.run(
        ["promtool", "check", "metrics"], input=exposition, capture_output=True, text=True, check=False
    )
    assert (outcome.returncode, outcome.stdout + outcome.stderr) == (0, "")


def test_dashboards_can_be_told_apart_and_their_panels_too() -> None:
    documents = [json.loads(path.read_text()) for path in DASHBOARDS]
    assert len({document["uid"] for document in documents}) == len(documents) == 3
    for document in documents:
        identifiers = [panel["id"] for panel in document["panels"]]
        assert len(identifiers) == len(set(identifiers))


def test_prometheus_takes_every_rule_and_none_fires_on_a_healthy_node(prometheus: Prometheus) -> None:
    wanted = {rule["alert"] for rule in rules(ALERTS)}

    def evaluated() -> bool:
        taken = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
        assert {rule["name"] for rule in taken} == wanted
        assert not [rule for rule in taken if rule["health"] == "err"]
        return all(rule["health"] == "ok" for rule in taken)

    eventually(evaluated, "an evaluation of every rule", pause=0.2)
    # Some may begin to wait, and fire only if what they wait for goes on.
    assert [alert for alert in prometheus.ask("alerts")["alerts"] if alert["state"] == "firing"] == []


def test_each_alert_fires_when_what_it_is_for_happens() -> None:
    """By Prometheus' own tester, on series that show it, and not on those that show all well."""
    tried: defaultdict[str, set[bool]] = defaultdict(set)
    for test in yaml.safe_load(FIRING.read_text())["tests"]:
        (question,) = test["promql_expr_test"]
        assert question["expr"] == f'count(ALERTS{{alertname="{test["name"]}",alertstate="firing"}})'
        tried[test["name"]].add(bool(question["exp_samples"]))
    assert tried == {rule["alert"]: {True, False} for rule in rules(ALERTS)}
    outcome = subprocess.run(["promtool", "test", "rules", FIRING], capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


@pytest.mark.parametrize("rule", rules(ALERTS), ids=lambda rule: str(rule["alert"]))
def test_each_alert_says_how_bad_it_is_and_has_a_section_in_the_operations_page(rule: dict[str, object]) -> None:
    assert rule["labels"] in ({"severity": "critical"}, {"severity": "warning"})
    annotations = rule["annotations"]
    assert isinstance(annotations, dict)
    assert set(annotations) == {"summary", "description"}
    assert re.search(rf"^#+ .*\b{rule['alert']}\b", OPERATIONS.read_text(), re.MULTILINE)


def test_every_metric_is_on_its_page_and_nothing_else_is(exported: list[Sample]) -> None:
    described = set(re.findall(r"^\| `([a-z_]+)` \| (?:counter|gauge|histogram) \|", METRICS.read_text(), re.MULTILINE))
    families = {re.sub(r"_(bucket|sum|count)$", "", sample.name) for sample in exported}
    assert described == families


def test_prometheus_is_told_of_every_node_of_the_compose_file() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    nodes = {name for name in services if name == "streamhouse" or name.startswith("agent")}
    (job,) = yaml.safe_load(CONFIGURATION.read_text())["scrape_configs"]
    (targets,) = [each["targets"] for each in job["static_configs"]]
    assert {target.partition(":")[0] for target in targets} == nodes
