"""The quick start of the architecture document, command by command, as it is printed; only the port is another."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from node.process import Node
from node.wait import HUNG_SECONDS

LIST_AGENTS = "curl -s http://localhost:8080/api/v1/agents | python3 -m json.tool"
CREATE_TOPIC = """\
curl -X POST http://localhost:8080/api/v1/topics \\
  -H "Content-Type: application/json" \\
  -d '{"name": "my-topic", "partition_count": 6}'"""
LIST_PARTITIONS = "curl -s http://localhost:8080/api/v1/topics/my-topic/partitions | python3 -m json.tool"

PAGE = Path(__file__).parents[2] / "docs" / "rest-api.md"


def typed(node: Node, command: str) -> Any:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command.replace("localhost:8080", f"localhost:{node.http_port}")],
        capture_output=True,
        timeout=HUNG_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_quick_start_runs_as_printed(tmp_path: Path) -> None:
    with Node(tmp_path, "--agent-id", "agent-1") as node:
        (agent,) = typed(node, LIST_AGENTS)["agents"]
        assert (agent["agent_id"], agent["state"]) == ("agent-1", "live")
        made = typed(node, CREATE_TOPIC)
        assert (made["name"], made["partition_count"]) == ("my-topic", 6)
        partitions = typed(node, LIST_PARTITIONS)["partitions"]
        assert [each["partition"] for each in partitions] == list(range(6))
        assert {(each["leader"], each["high_watermark"]) for each in partitions} == {("agent-1", 0)}
        assert all(each["epoch"] >= 1 for each in partitions)


def test_the_documentation_prints_the_same_commands() -> None:
    page = PAGE.read_text()
    for command in (LIST_AGENTS, CREATE_TOPIC, LIST_PARTITIONS):
        assert command in page
