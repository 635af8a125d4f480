"""The command itself: help, exit codes, errors of one line, and a start that imports nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from streamhouse import __version__
from streamhouse.cli import main as cli_main
from streamhouse.cli.main import cli, run
from streamhouse.model.errors import NotFound


def commands(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    context = click.Context(group)
    found: list[tuple[str, ...]] = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        found.append((*path, name))
        if isinstance(command, click.Group):
            found += commands(command, (*path, name))
    return found


@pytest.mark.parametrize("path", commands(cli), ids=" ".join)
def test_every_command_explains_itself_with_examples(path: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, [*path, "--help"])

    assert result.exit_code == 0
    assert "Examples:" in result.output
    assert f"streamhouse {' '.join(path)}" in result.output


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"streamhouse {__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["topic"], ["segment"]])
def test_a_noun_without_a_verb_shows_what_there_is(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    assert "Commands:" in capsys.readouterr().out


def test_help_imports_nothing_that_takes_long() -> None:
    script = (
        "import sys; from streamhouse.cli.main import run; assert run(['--help']) == 0;"
        "heavy = {'asyncio', 'rich', 'uvloop', 'obstore', 'msgspec', 'sqlite3', 'asyncpg', 'pyarrow'};"
        "print(sorted(heavy & sys.modules.keys()), file=sys.stderr)"
    )

    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert result.stderr.strip() == "[]"


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["topic", "create"],
        ["topic", "create", "x", "--partitions", "none"],
        ["topic", "create", "x", "--config", "novalue"],
        ["topic", "create", "x", "--config", "a=1", "--config", "a=2"],
        ["topic", "alter", "x"],
        ["produce", "x", "--message", "m", "--null"],
        ["produce", "x", "--message", "m", "--key-separator", ":"],
        ["produce", "x", "--key", "k", "--key-separator", ":"],
        ["produce", "x", "--key-separator", ""],
        ["produce", "x", "--message", "m", "--timeout", "soon"],
        ["consume", "x", "--from-beginning", "--offset", "3"],
        ["consume", "x", "--max-messages", "0"],
        ["serve", "--segment-byte", "1"],
        ["bench", "--size", "big"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_line_and_exit_code_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert "--help" in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["serve", "--segment-age", "soon"], "--segment-age: 'soon' is not a duration"),
        (["serve", "--kafka-port", "70000"], "kafka_port must be 0 to 65535"),
        (["serve", "--config", "/no/such/file.toml"], "no settings file"),
        (["consume", "x", "--format", "yaml"], "not a format"),
        (["consume", "x", "--offset", "yesterday"], "not where to start"),
        (["topic", "list", "--bootstrap", "http://x"], "not a broker address"),
        (["wal", "show", "--data-dir", "/no/such/dir"], "no WAL in '/no/such/dir'"),
        (["wal", "show", "/no/such/file.wal"], "no file"),
        (["segment", "show", "key", "--data-dir", "/no/such/dir"], "no object store"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_failure_is_one_line_and_exit_code_one(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 1

    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("problem", [NotFound("nothing\x1b[2J here"), KeyError("a bug")])
def test_a_traceback_is_shown_only_on_request(
    problem: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise problem

    monkeypatch.setattr(cli_main.cli, "invoke", fail)

    assert run(["topic", "list"]) == 1
    quiet = capsys.readouterr().err
    assert "Traceback" not in quiet
    assert "\x1b" not in quiet
    assert run(["--debug", "topic", "list"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interruption_has_its_own_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_main.cli, "invoke", interrupt)

    assert run(["topic", "list"]) == 130


def test_config_shows_where_each_setting_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "node.toml"
    file.write_text('segment_age = "30s"\ndata_dir = "/data"\nmetadata = "postgresql://u:hunter2@host/db"\n')
    monkeypatch.setenv("STREAMHOUSE_DATA_DIR", "/elsewhere")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")

    assert run(["config", "--config", str(file), "--segment-bytes", "8MiB", "--json"]) == 0

    printed = capsys.readouterr().out
    shown = json.loads(printed)
    assert shown["segment_bytes"] == {"value": 8 * 2**20, "source": "--segment-bytes"}
    assert shown["segment_age"] == {"value": 30_000, "source": f"{file}: segment_age"}
    assert shown["data_dir"] == {"value": "/elsewhere", "source": "STREAMHOUSE_DATA_DIR"}
    assert shown["s3_secret_access_key"]["source"] == "AWS_SECRET_ACCESS_KEY"
    assert shown["host"]["source"] == "default"
    assert "hunter2" not in printed


def test_config_can_show_only_what_was_changed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "--changed", "--no-auto-create-topics"]) == 0

    printed = capsys.readouterr().out
    assert "auto_create_topics" in printed
    assert "false" in printed
    assert "segment_age" not in printed
