"""What a node says on stderr: a line for each event, in the form that was asked for, without its secrets."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from node.process import Node, NodeDied
from services.seaweed import S3Bucket

SECRET = "do-not-say-this"


def run_briefly(directory: Path, *options: str) -> list[str]:
    with Node(directory, *options) as node:
        assert node.terminate() == 0
        return node.stderr().splitlines()


def test_lines_for_machines_are_json(tmp_path: Path) -> None:
    events = [json.loads(line) for line in run_briefly(tmp_path / "data", "--log-format", "json")]
    assert "draining" in [event["message"] for event in events]
    assert all({"time", "level", "logger", "message"} <= set(event) for event in events)


def test_lines_for_people_begin_with_time_level_and_logger(tmp_path: Path) -> None:
    lines = run_briefly(tmp_path / "data")
    assert lines
    for line in lines:
        assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO|WARNING|ERROR) [a-z_.]+ \S", line), line


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_node_that_fails_with_its_store_does_not_say_its_secrets(
    tmp_path: Path, s3_bucket: S3Bucket, log_format: str
) -> None:
    options = ["--objects", "s3://missing-bucket", "--s3-endpoint", s3_bucket.endpoint]
    options += ["--s3-access-key-id", "me", "--s3-secret-access-key", SECRET]
    with pytest.raises(NodeDied) as died:
        Node(tmp_path / "data", *options, "--log-level", "debug", "--log-format", log_format).start()
    assert died.value.stderr
    assert SECRET not in died.value.stderr
