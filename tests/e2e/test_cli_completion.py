"""What a shell completes: in a real bash, and what zsh's and fish's scripts ask for."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from node.process import clean_environment
from node.wait import HUNG_SECONDS, eventually
from streamhouse.testing import Broker

STREAMHOUSE = Path(sys.executable).with_name("streamhouse")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        for name in ("orders", "orders-eu", "parcels"):
            broker.create_topic(name)
        yield broker


def completed_by_bash(words: list[str], bootstrap: str = "127.0.0.1:1") -> list[str]:
    """As bash does it at a TAB behind the last word: with the script that the command prints."""
    script = f"""
        eval "$({STREAMHOUSE} completion bash)"
        complete -p streamhouse > /dev/null || exit 3
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _streamhouse_completion {STREAMHOUSE}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    bash = shutil.which("bash")
    assert bash is not None
    result = subprocess.run(
        [bash, "--noprofile", "--norc", "-c", script, "bash", "streamhouse", *words],
        env={**clean_environment(), "STREAMHOUSE_BOOTSTRAP": bootstrap},
        capture_output=True,
        text=True,
        timeout=HUNG_SECONDS,
    )
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout.split()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["to"], ["topic"]),
        (["con"], ["config", "consume"]),
        (["topic", ""], ["alter", "create", "delete", "describe", "list"]),
        (["topic", "de"], ["delete", "describe"]),
        (["agent", "dr"], ["drain"]),
        (["produce", "orders", "--comp"], ["--compression"]),
        (["produce", "orders", "--compression", "z"], ["zstd"]),
        (["serve", "--segment-"], ["--segment-age", "--segment-bytes"]),
        (["completion", ""], ["bash", "fish", "zsh"]),
        (["topic", "describe", "'"], []),
    ],
    ids=lambda value: " ".join(value),
)
def test_bash_completes_commands_options_and_choices(words: list[str], found: list[str]) -> None:
    assert sorted(completed_by_bash(words)) == found


@pytest.mark.parametrize("words", [["topic", "describe"], ["consume"], ["produce"], ["segment", "list"]], ids=" ".join)
def test_bash_completes_the_topics_of_a_running_node(broker: Broker, words: list[str]) -> None:
    # Who waits no longer than a second may have to press TAB again, as on a machine that is busy with other tests.
    eventually(
        lambda: sorted(completed_by_bash([*words, "ord"], broker.bootstrap)) == ["orders", "orders-eu"], "topics"
    )


def test_the_node_of_the_command_itself_is_asked(broker: Broker) -> None:
    words = ["consume", "--bootstrap", broker.bootstrap, "par"]
    eventually(lambda: completed_by_bash(words) == ["parcels"], "the topic")


def test_a_node_that_is_silent_or_not_there_completes_nothing_and_holds_nobody_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        assert completed_by_bash(["consume", "o"], address) == []
        assert completed_by_bash(["consume", "--bootstrap", "http://%", "o"]) == []
    assert completed_by_bash(["consume", "o"], "127.0.0.1:1") == []


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


def test_nonsense_in_the_variables_ends_quietly() -> None:
    for variables in ({"_STREAMHOUSE_COMPLETE": "bash_complete"}, {"_STREAMHOUSE_COMPLETE": "nonsense"}):
        result = subprocess.run(
            [STREAMHOUSE], env={**os.environ, **variables}, capture_output=True, text=True, timeout=HUNG_SECONDS
        )
        assert (result.stdout, result.stderr) == ("", "")
