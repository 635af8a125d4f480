"""What a shell completes: in a real bash, and what zsh's and fish's scripts ask for."""

from __future__ import annotations

import os
import pty
import select
import socket
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from node.process import clean_environment
from node.wait import HUNG_SECONDS, eventually
from streamhouse.testing import Broker

STREAMHOUSE = Path(sys.executable).with_name("streamhouse")
_PROMPT = "ready>"
_INSERT_COMPLETIONS, _SHOW_LINE, _CLEAR_LINE = "\x1b*", "\x14", "\x05\x15"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(http=True) as broker:
        for name in ("orders", "orders-eu", "parcels"):
            broker.create_topic(name)
        commit = ["group", "reset", "billing:eu", "--topic", "orders", "--to-earliest", "--bootstrap", broker.bootstrap]
        subprocess.run([STREAMHOUSE, *commit], check=True, capture_output=True, timeout=HUNG_SECONDS)
        yield broker


@pytest.fixture(scope="module")
def startup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What somebody has in `~/.bashrc`, and a key that says what the line has become."""
    script = subprocess.run([STREAMHOUSE, "completion", "bash"], capture_output=True, text=True, timeout=HUNG_SECONDS)
    assert (script.returncode, script.stderr) == (0, "")
    file = tmp_path_factory.mktemp("home") / "bashrc"
    file.write_text(f"""
        {script.stdout}
        bind 'set bell-style none'
        bind 'set enable-bracketed-paste off'
        bind -x '"\\C-t": printf "<<%s>>" "$READLINE_LINE"'
        PS1="{_PROMPT}"
    """)
    return file


class Bash:
    """One that somebody types into. It answers in the order of what is typed, so nothing has to be waited out."""

    def __init__(self, startup: Path, bootstrap: str = "127.0.0.1:1") -> None:
        path = f"{STREAMHOUSE.parent}:{os.environ['PATH']}"
        variables = {**clean_environment(), "PATH": path, "TERM": "dumb", "STREAMHOUSE_BOOTSTRAP": bootstrap}
        self._terminal, screen = pty.openpty()
        termios.tcsetwinsize(screen, (50, 1000))
        self._process = subprocess.Popen(
            ["setsid", "--ctty", "bash", "--noprofile", "--rcfile", startup, "-i"],
            cwd=startup.parent,
            env=variables,
            stdin=screen,
            stdout=screen,
            stderr=screen,
        )
        os.close(screen)
        self._read_until(_PROMPT)

    def completed(self, typed: str) -> list[str]:
        """What is put into the line for the word at its end: all that there is, which readline has a key for."""
        os.write(self._terminal, f"{typed}{_INSERT_COMPLETIONS}{_SHOW_LINE}".encode())
        line = self._read_until(">>").rpartition("<<")[2].partition(">>")[0]
        kept = typed.rpartition(" ")[0] + " "
        assert line.startswith(kept)
        os.write(self._terminal, _CLEAR_LINE.encode())
        return line.removeprefix(kept).split()

    def close(self) -> None:
        os.close(self._terminal)
        self._process.wait(HUNG_SECONDS)

    def _read_until(self, mark: str) -> str:
        text = ""
        while mark not in text:
            assert select.select([self._terminal], [], [], HUNG_SECONDS)[0], text
            text += os.read(self._terminal, 65536).decode()
        return text


@contextmanager
def a_bash(startup: Path, bootstrap: str) -> Iterator[Bash]:
    bash = Bash(startup, bootstrap)
    try:
        yield bash
    finally:
        bash.close()


@pytest.fixture(scope="module")
def alone(startup: Path) -> Iterator[Bash]:
    """Where no node runs."""
    with a_bash(startup, "127.0.0.1:1") as bash:
        yield bash


@pytest.fixture(scope="module")
def bash(startup: Path, broker: Broker) -> Iterator[Bash]:
    with a_bash(startup, broker.bootstrap) as bash:
        yield bash


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("to", ["topic"]),
        ("con", ["config", "consume"]),
        ("topic ", ["alter", "create", "delete", "describe", "list"]),
        ("topic de", ["delete", "describe"]),
        ("agent dr", ["drain"]),
        ("produce orders --comp", ["--compression"]),
        ("produce orders --compression z", ["zstd"]),
        ("produce --bootstrap localhost:9092 orders --comp", ["--compression"]),
        ("serve --segment-", ["--segment-age", "--segment-bytes"]),
        ("completion ", ["bash", "fish", "zsh"]),
    ],
)
def test_bash_completes_commands_options_and_choices(alone: Bash, typed: str, found: list[str]) -> None:
    assert sorted(alone.completed(f"streamhouse {typed}")) == found


def test_a_value_that_is_joined_to_its_option_is_completed_behind_it(alone: Bash) -> None:
    assert alone.completed("streamhouse produce orders --compression=z") == ["--compression=zstd"]


@pytest.mark.parametrize(
    "words",
    [
        "topic describe",
        "consume",
        "produce",
        "segment list",
        "maintain export",
        "maintain compact parcels",
        "flume consume --topic",
    ],
)
def test_bash_completes_the_topics_of_a_running_node(bash: Bash, words: str) -> None:
    # Who waits no longer than a second may have to press TAB again, as on a machine that is busy with other tests.
    eventually(lambda: sorted(bash.completed(f"streamhouse {words} ord")) == ["orders", "orders-eu"], "topics")


def test_bash_completes_agents_where_one_is_named(bash: Bash, broker: Broker) -> None:
    agent_id = broker.node.broker.identity.agent_id
    for words in ("agent drain", "partition move orders 0 --to"):
        typed = f"streamhouse {words} {agent_id[:3]}"
        eventually(lambda typed=typed: bash.completed(typed) == [agent_id], "the agent")


def test_bash_completes_paths_where_one_is_named(alone: Bash, startup: Path) -> None:
    (startup.parent / "data").mkdir()
    (startup.parent / "data.toml").touch()
    for words in ("serve --config", "config --s3-secret-access-key-file", "segment show"):
        assert alone.completed(f"streamhouse {words} da") == ["data", "data.toml"]
    for words in ("serve --data-dir", "maintain export orders --to"):
        assert alone.completed(f"streamhouse {words} da") == ["data"]


@pytest.mark.parametrize(
    "option",
    [
        "--bootstrap {kafka}",
        "--bootstrap={kafka}",
        "--bootstrap {http}",
        "--bootstrap={http}",
        "--bootstrap '{kafka}'",
        "--bootstrap 127.0.0.1:1,{kafka}",
        "--bootstrap {kafka} --offset @2026-01-31T12:00:00Z",
    ],
)
def test_the_node_of_the_command_itself_is_asked(alone: Bash, broker: Broker, option: str) -> None:
    typed = f"streamhouse consume {option.format(kafka=broker.bootstrap, http=broker.endpoint)} par"
    eventually(lambda: alone.completed(typed) == ["parcels"], "the topic")


def test_a_name_with_a_colon_is_completed_where_bash_thinks_that_a_word_begins(bash: Bash) -> None:
    for typed in ("bil", "billing", "billing:", "billing:e", "'billing:e"):
        line = f"streamhouse group describe {typed}"
        eventually(
            lambda line=line: bash.completed(line)[0].replace("'", "") == "billing:eu", f"what is behind {typed}"
        )


def test_a_node_that_is_silent_or_not_there_completes_nothing_and_holds_nobody_up(alone: Bash) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        assert alone.completed(f"streamhouse consume --bootstrap {address} o") == ["o"]
        assert alone.completed("streamhouse consume --bootstrap http://% o") == ["o"]
    assert alone.completed("streamhouse consume o") == ["o"]
    assert alone.completed("streamhouse topic describe '") == ["'"]


@pytest.mark.parametrize(
    ("shell", "typed", "said"),
    [
        ("zsh", {"COMP_WORDS": "streamhouse topic de", "COMP_CWORD": "2"}, "plain\ndelete\n"),
        ("fish", {"COMP_WORDS": "streamhouse topic de", "COMP_CWORD": "de"}, "plain"),
    ],
)
def test_zsh_and_fish_are_answered_in_their_way(shell: str, typed: dict[str, str], said: str) -> None:
    asked = {**clean_environment(), **typed, "_STREAMHOUSE_COMPLETE": f"{shell}_complete"}
    answer = subprocess.run([STREAMHOUSE], env=asked, capture_output=True, text=True, timeout=HUNG_SECONDS)
    script = subprocess.run([STREAMHOUSE, "completion", shell], capture_output=True, text=True, timeout=HUNG_SECONDS)

    assert (answer.returncode, answer.stderr) == (0, "")
    assert said in answer.stdout
    assert "delete" in answer.stdout
    assert "describe" in answer.stdout
    assert script.returncode == 0
    assert f"_STREAMHOUSE_COMPLETE={shell}_complete" in script.stdout


@pytest.mark.parametrize(
    ("shell", "typed"),
    [
        ("zsh", {"COMP_WORDS": "streamhouse produce x --compression=z", "COMP_CWORD": "3"}),
        ("fish", {"COMP_WORDS": "streamhouse produce x --compression=z", "COMP_CWORD": "--compression=z"}),
    ],
)
def test_zsh_and_fish_put_a_joined_value_in_place_of_the_whole_word(shell: str, typed: dict[str, str]) -> None:
    asked = {**clean_environment(), **typed, "_STREAMHOUSE_COMPLETE": f"{shell}_complete"}
    answer = subprocess.run([STREAMHOUSE], env=asked, capture_output=True, text=True, timeout=HUNG_SECONDS)

    assert "--compression=zstd" in answer.stdout.replace("\n", ",").split(",")


def test_nonsense_in_the_variables_ends_quietly() -> None:
    for variables in ({"_STREAMHOUSE_COMPLETE": "bash_complete"}, {"_STREAMHOUSE_COMPLETE": "nonsense"}):
        result = subprocess.run(
            [STREAMHOUSE], env={**os.environ, **variables}, capture_output=True, text=True, timeout=HUNG_SECONDS
        )
        assert (result.stdout, result.stderr) == ("", "")
