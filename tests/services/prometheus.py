"""A real Prometheus, with the project's own configuration and rules, that looks at one node every second."""

from __future__ import annotations

import json
import shutil
import signal
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from node.wait import HUNG_SECONDS, eventually
from services.ports import free_port
from services.process import start_process, stop_process


class Prometheus:
    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def ask(self, path: str, **query: str) -> Any:
        """What its API calls `data`; an answer that is no success is an error."""
        url = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=HUNG_SECONDS) as answer:
            document = json.load(answer)
        assert document["status"] == "success", document
        return document["data"]

    def query(self, expression: str) -> list[Any]:
        """The samples that there are now."""
        found: list[Any] = self.ask("query", query=expression)["result"]
        return found

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready", timeout=HUNG_SECONDS) as answer:
                return answer.status == 200
        except OSError:
            return False


@contextmanager
def prometheus_server(directory: Path, configuration: Path, target: str) -> Iterator[Prometheus]:
    """Ready, and with several looks at the target behind it. The configuration is the one that is shipped, but for its
    intervals and targets."""
    port = free_port()
    _adapt(configuration, directory, target)
    server = Prometheus(port)
    process = start_process(
        [
            "prometheus",
            f"--config.file={directory / configuration.name}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        log=directory / "prometheus.log",
        ready=server.is_ready,
    )
    try:
        eventually(lambda: _looks(server) >= 3, "three looks of Prometheus at the node", pause=0.2)
        yield server
    finally:
        stop_process(process, signal.SIGTERM)


def _adapt(configuration: Path, directory: Path, target: str) -> None:
    document = yaml.safe_load(configuration.read_text())
    document["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    for job in document["scrape_configs"]:
        job["static_configs"] = [{"targets": [target]}]
    (directory / configuration.name).write_text(yaml.safe_dump(document))
    for rules in document["rule_files"]:
        shutil.copy(configuration.parent / rules, directory / rules)


def _looks(server: Prometheus) -> float:
    counted = server.query('count_over_time(up{job="streamhouse"}[1m])')
    return float(counted[0]["value"][1]) if counted else 0
