"""The pre-commit hooks are local and run tools that are there."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).parents[3]


def hooks() -> list[dict[str, Any]]:
    config = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text("utf-8"))
    assert [repo["repo"] for repo in config["repos"]] == ["local"]
    found: list[dict[str, Any]] = config["repos"][0]["hooks"]
    return found


def test_the_hooks_are_the_lint_steps() -> None:
    entries = {hook["id"]: hook["entry"] for hook in hooks()}
    assert entries["ruff-check"].startswith(".venv/bin/ruff check")
    assert entries["ruff-format"].startswith(".venv/bin/ruff format")
    assert entries["mypy"] == ".venv/bin/mypy"
    assert entries["lint-imports"] == ".venv/bin/lint-imports"


def test_every_hook_runs_a_command_that_exists() -> None:
    for hook in hooks():
        command, *arguments = shlex.split(hook["entry"])
        assert command.startswith(".venv/bin/")
        # The environment that runs this test is the one that `make setup` makes.
        assert (Path(sys.executable).parent / Path(command).name).exists(), hook["id"]
        for script in (argument for argument in arguments if argument.endswith(".py")):
            assert (REPOSITORY / script).exists(), hook["id"]


def test_hooks_that_look_at_the_whole_project_get_no_file_names() -> None:
    whole = {hook["id"] for hook in hooks() if hook.get("pass_filenames") is False}
    assert whole == {hook["id"] for hook in hooks()} - {"ruff-check", "ruff-format"}
