"""What the sentences of README and docs name of the command line is there; nothing of it is run."""

from __future__ import annotations

import pytest

from page_parts.blocks import REPOSITORY
from page_parts.listing import PAGES
from page_parts.prose import commands_in, problem_with

OF_THE_PAST = "CHANGELOG.md"
WRONG_ON_PURPOSE = {"docs/cli.md": ["streamhouse topics"]}


@pytest.mark.parametrize("page", [page for page in PAGES if page != OF_THE_PAST])
def test_the_commands_that_a_page_names_are_there_with_their_options(page: str) -> None:
    commands = commands_in((REPOSITORY / page).read_text("utf-8"))
    problems = {command: problem for command in commands if (problem := problem_with(command)) is not None}
    assert list(problems) == WRONG_ON_PURPOSE.get(page, []), problems


def test_commands_are_found_in_sentences_and_not_in_blocks() -> None:
    sentences = "Say `streamhouse topic\nlist`, `agent drain ID`, `topic` or `topic.ms 3`.\n"
    page = f"{sentences}```console\n$ `agent list`\n```\n`A=1 bin/streamhouse`\n"
    assert commands_in(page) == ["streamhouse topic list", "agent drain ID", "A=1 bin/streamhouse"]


@pytest.mark.parametrize(
    "command",
    [
        "streamhouse",
        "streamhouse --debug …",
        ".venv/bin/streamhouse serve --agents 3 --segment-bytes=8MiB",
        "A=1 streamhouse config --help",
        "agent drain ID",
        "agent list|drain|forget",
        "topic create, list, describe",
        "topic create NAME [--partitions N] [--config NAME=VALUE]… [--if-not-exists]",
        "topic alter --partitions",
        "group list [--type classic|consumer]…",
        "maintain compact [TOPIC…]",
        "partition elect TOPIC P --unclean --metadata …",
    ],
)
def test_what_the_command_line_has_is_fine(command: str) -> None:
    assert problem_with(command) is None


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("streamhouse topics", "No such command 'topics'"),
        ("streamhouse --debgu …", "No such option '--debgu'"),
        ("agent drian ID", "No such command 'drian'"),
        ("agent list, drian", "No such command 'drian'"),
        ("maintain compact|mrege", "No such command 'mrege'"),
        ("topic alter orders --confg a=1", "No such option '--confg'"),
        ("topic alter orders payments", "'payments' is too much after 'orders'"),
        ("group list --type classic|consumr", "'consumr' is not one of"),
    ],
)
def test_what_it_does_not_have_is_said(command: str, problem: str) -> None:
    assert problem in (problem_with(command) or "")
