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
        ["serve", "--segment-age", "soon"],
        ["serve", "--kafka-port", "70000"],
        ["serve", "--config", "/no/such/file.toml"],
        ["serve", "--objects", "nonsense"],
        ["serve", "--objects", "s3://x"],
        ["serve", "--objects", "s3://bucket/p", "--s3-endpoint", "nowhere"],
        ["serve", "--objects", "s3://bucket/p", "--s3-access-key-id", "id"],
        ["serve", "--metadata", "mysql://host/db"],
        ["serve", "--agents", "2"],
        ["serve", "--agent-id", "a b"],
        ["serve", "--advertise", "bad host"],
        ["serve", "--advertise", "one,two"],
        ["serve", "--advertise-http", "one:two"],
        ["agent", "--agent-id", "a b"],
        ["config", "--advertise", "one:two"],
        ["agent", "--lease-ttl", "soon"],
        ["agent", "list", "--metadata", "nonsense"],
        ["agent", "drain", "a1", "--timeout", "soon"],
        ["agent", "drain"],
        ["agent", "drain", "a b"],
        ["agent", "drain", ""],
        ["config", "--segment-bytes", "big"],
        ["topic", "list", "--bootstrap", "ftp://x"],
        ["topic", "create", "x", "--config", "retention.ms=soon"],
        ["topic", "create", "x", "--config", "retention.ms=-2"],
        ["topic", "create", "x", "--config", "no.such.config=1"],
        ["topic", "create", "../x"],
        ["topic", "alter", "x", "--config", "retention.bytes=much"],
        ["topic", "alter", "x", "--delete-config", "retention.m"],
        ["topic", "describe", "x", "--metadata", "nonsense"],
        ["produce", "../x", "--message", "m"],
        ["consume", "x", "--format", "yaml"],
        ["consume", "x", "--format", "%q"],
        ["consume", "x", "--format", "full", "--json"],
        ["consume", "x", "--group", "g", "--offset", "3"],
        ["consume", "x", "--group", "g", "--partition", "0"],
        ["consume", "x", "--group", ""],
        ["completion", "tcsh"],
        ["completion"],
        ["consume", "x", "--offset", "yesterday"],
        ["consume", "x", "--offset", "@yesterday"],
        ["wal", "show", "/no/such/file.wal"],
        ["wal", "show", "--data-dir", "/no/such/dir"],
        ["segment", "show", "key", "--data-dir", "/no/such/dir"],
        ["segment", "list", "x", "--data-dir", "/no/such/dir"],
        ["agent", "list", "--data-dir", "/no/such/dir"],
        ["agent", "forget", "x"],
        ["agent", "forget", "x", "--data-dir", "/no/such/dir"],
        ["partition", "elect", "x", "0", "--unclean", "--yes"],
        ["partition", "list", "a b"],
        ["cluster", "verify", "--data-dir", "/no/such/dir"],
        ["topic", "alter", "x", "--config", "retention.ms=1d", "--delete-config", "retention.ms"],
        ["topic", "alter", "a b", "--partitions", "3"],
        ["topic", "describe", "a b"],
        ["topic", "delete", "a b"],
        ["group", "describe", ""],
        ["group", "reset", "", "--topic", "t", "--to-earliest"],
        ["group", "delete", ""],
        ["bench", "--size", "0"],
        ["bench", "--topic", "a b"],
        ["segment", "show", "key", "--format", "yaml"],
        ["segment", "show", "a b"],
        ["segment", "list", "a b/"],
        ["segment", "list", "--objects", "nonsense"],
        ["pipeline", "validate", "/no/such/file.yaml"],
        ["pipeline", "run", "/no/such/file.yaml"],
        ["pipeline", "stop", "x", "--timeout", "soon"],
        ["maintain", "compact", "--target-size", "big"],
        ["maintain", "compact", "--s3-region", "x", "--config", "/no/such/file.toml"],
        ["maintain", "verify", "--settling", "soon"],
        ["maintain", "compact", "a b"],
        ["maintain", "merge", "x", "a b"],
        ["maintain", "export", "a b", "--to", "x"],
        ["maintain", "verify", "a b"],
        ["maintain", "rebuild", "--metadata", "nonsense"],
        ["cluster", "verify", "--objects", "nonsense"],
        ["partition", "move", "x", "0"],
        ["partition", "move", "x", "0", "--to", ""],
        ["partition", "move", "x", "0", "--to", "a b"],
        ["partition", "list", "--config", "/no/such/file.toml"],
        ["group", "reset", "g"],
        ["group", "reset", "g", "--topic", "t", "--to-time", "soon"],
        ["group", "reset", "g", "--topic", "a b", "--to-earliest"],
        ["flume", "produce", "--broker", "host:port", "--topic", "t", "--message", "m"],
        ["flume", "consume", "--broker", "http://host", "--topic", "t"],
        ["flume", "produce", "--topic", "a b", "--message", "m"],
        ["flume", "consume", "--topic", "a b"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_line_and_exit_code_two(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert run(arguments) == 2

    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert "--help" in captured.err
    assert captured.err.count("\n") == 1
    assert "\\n" not in captured.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["topics"], "`streamhouse topic`"),
        (["tpoic"], "`streamhouse topic`"),
        (["Topic", "list"], "`streamhouse topic`"),
        (["agents", "list"], "`streamhouse agent`"),
        (["topic", "lst"], "`streamhouse topic list`"),
        (["topic", "creat", "x"], "`streamhouse topic create`"),
        (["agent", "drian"], "`streamhouse agent drain`"),
        (["maintain", "compct"], "`streamhouse maintain compact`"),
        (["topic", "list", "--jsno"], "'--json'"),
        (["--vresion"], "'--version'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_misspelt_command_is_told_the_one_that_is_like_it(
    arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2

    assert f"did you mean {meant}?" in capsys.readouterr().err.replace("Did", "did")


def test_what_is_like_no_command_is_told_where_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["zzz"]) == 2

    assert capsys.readouterr().err == "error: there is no command 'zzz' (see `streamhouse --help`)\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["agent", "list", "--bootstrap", "127.0.0.1:1"], "nothing answers at 127.0.0.1:1"),
        (["topic", "list", "--bootstrap", "127.0.0.1:1"], "no broker at 127.0.0.1:1"),
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


@pytest.mark.parametrize(
    ("setting", "name"), [("agent_id", "a b"), ("advertise", "bad host"), ("advertise_http", "one:two")]
)
def test_what_a_node_cannot_be_called_is_refused_with_who_said_so(
    setting: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "node.toml"
    file.write_text(f'{setting} = "{name}"\n')

    assert run(["config", "--config", str(file)]) == 2
    assert f"error: {file}: {setting}: {name!r} is not" in capsys.readouterr().err
    monkeypatch.setenv(f"STREAMHOUSE_{setting.upper()}", name)
    assert run(["config"]) == 2
    assert f"error: STREAMHOUSE_{setting.upper()}: {name!r} is not" in capsys.readouterr().err


def test_config_can_show_only_what_was_changed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "--changed", "--no-auto-create-topics"]) == 0

    printed = capsys.readouterr().out
    assert "auto_create_topics" in printed
    assert "false" in printed
    assert "segment_age" not in printed
