"""The expressions in dashboards and rules, and the names and labels that they use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

_METRIC = re.compile(r"\b((?:streamhouse|process)_[a-z0-9_]+|up)\b(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'([a-z_]+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')
_GROUPING = re.compile(r"\bby \(([^)]*)\)")
_VARIABLES = {"$instance": ".*", "$__rate_interval": "1m"}


def panels(dashboard: Path) -> Iterator[tuple[str, str]]:
    """(the panel's title, an expression as Grafana would send it)."""
    for panel in json.loads(dashboard.read_text())["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], _filled(target["expr"])


def rules(path: Path) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]


def metrics_in(expression: str) -> dict[str, set[tuple[str, str]]]:
    """The names in an expression, each with the labels and values that it asks for."""
    found: dict[str, set[tuple[str, str]]] = {}
    for name, matchers in _METRIC.findall(expression):
        found.setdefault(name, set()).update(_MATCHER.findall(matchers))
    return found


def groupings_in(expression: str) -> set[str]:
    return {label.strip() for labels in _GROUPING.findall(expression) for label in labels.split(",")}


def _filled(expression: str) -> str:
    for variable, text in _VARIABLES.items():
        expression = expression.replace(variable, text)
    return expression
