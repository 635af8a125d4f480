"""The commands in the sentences of a page, which nobody runs: whether the command line has them and their options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import click

from streamhouse.cli.main import cli

_BLOCK = re.compile(r"^ *```.*?^ *```\s*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_PROGRAM = re.compile(r"(?:\w+=\S* )*(?:\S*/)?streamhouse(?: |$)")
_ANYTHING = "…"


def commands_in(source: str) -> list[str]:
    """Those that name the program, and those that begin with one of its nouns, as they are written."""
    nouns = set(cli.list_commands(click.Context(cli)))
    found = []
    for code in _CODE.finditer(_BLOCK.sub("", source)):
        words = code[1].split()
        command = " ".join(words)
        if _PROGRAM.match(command) or (len(words) > 1 and words[0] in nouns):
            found.append(command)
    return found


def problem_with(command: str) -> str | None:
    """None, if all that it names is there. `[--option]` may be left out, `…` is anything, and of `list|move` and of
    `list, move` each is named."""
    words = re.sub(r"[\[\]]", " ", _PROGRAM.sub("", command)).replace(_ANYTHING, f" {_ANYTHING} ").split()
    try:
        for each in _alternatives(words):
            _look_up(cli, each)
    except click.UsageError as problem:
        return problem.format_message()
    return None


def _alternatives(words: Sequence[str]) -> Iterator[list[str]]:
    """`partition list, move` and `partition list|move` are two commands."""
    text = re.sub(r", (?=\w)", "|", " ".join(words))
    head, *rest = text.split() or [""]
    which, *options = rest or [""]
    for name in which.split("|"):
        yield [word for word in (head, name, *options) if word]


def _look_up(command: click.Command, words: list[str]) -> None:
    context = click.Context(command, info_name=command.name)
    values, rest, _ = _parsed(command, context, words)
    rest = [word for word in rest if word != _ANYTHING]
    if isinstance(command, click.Group):
        if rest:
            _, found, left = command.resolve_command(context, rest)
            assert found is not None
            _look_up(found, left)
        return
    taken = [param for param in command.params if isinstance(param, click.Argument)]
    given = [word for param in taken for word in _several(values[param.name or ""]) if word != _ANYTHING]
    if rest:
        raise click.UsageError(f"{' '.join(rest)!r} is too much after {' '.join(given)!r}")
    for param in command.params:
        if isinstance(param.type, click.Choice):
            for value in _several(values.get(param.name or "")):
                for choice in value.split("|"):
                    if not choice.isupper() and choice != _ANYTHING:
                        param.type.convert(choice, param, context)


def _parsed(
    command: click.Command, context: click.Context, words: list[str]
) -> tuple[dict[str, object], list[str], object]:
    try:
        return command.make_parser(context).parse_args(list(words))
    except click.BadOptionUsage:
        # Only its name is said, at the end.
        return command.make_parser(context).parse_args([*words, _ANYTHING])


def _several(value: object) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    return [each for each in values if isinstance(each, str)]
