"""A page that is wrong is found, and where: what the other tests of this folder rely on."""

from __future__ import annotations

import pytest

from page_parts.blocks import Block, blocks_of
from page_parts.outputs import Bindings, printed_by, prints_in_order
from page_parts.transcripts import Command, commands_of

PAGE = """\
# A page

```console
$ streamhouse topic create notes \\
    --partitions 2
created notes with 2 partitions
$ streamhouse topic delete other --yes
error: there is no topic 'other' (…)
$ streamhouse consume notes --follow
hello

^C
```

<!-- not run: needs another
machine -->
<!-- numbers vary -->
```bash
# a comment
curl -d '{
  "a": 1
}' localhost
echo two
```
"""
ID = "65e15355-897a-4d70-b396-2da70c335fea"
OTHER_ID = "af43846a-a6a9-4873-b643-752dab4cbd8c"


def blocks() -> tuple[Block, Block]:
    first, second = blocks_of("page.md", PAGE)
    return first, second


def test_blocks_are_found_with_their_lines_and_the_marks_above_them() -> None:
    first, second = blocks()
    assert (first.place, first.language, first.not_run, first.numbers_vary) == ("page.md:4", "console", None, False)
    assert (second.place, second.language, second.numbers_vary) == ("page.md:19", "bash", True)
    assert second.not_run == "needs another\nmachine"


def test_a_block_without_an_end_and_a_mark_without_a_reason_are_refused() -> None:
    with pytest.raises(AssertionError, match=r"page\.md:1: this block has no end"):
        blocks_of("page.md", "```console\n$ true\n")
    with pytest.raises(AssertionError, match="says nothing"):
        blocks_of("page.md", "<!-- not run -->\n```console\n$ true\n```\n")


def test_a_terminal_is_commands_and_what_they_print() -> None:
    assert commands_of(blocks()[0]) == [
        Command(
            place="page.md:4",
            text="streamhouse topic create notes \\\n    --partitions 2",
            shown=("created notes with 2 partitions",),
        ),
        Command(
            place="page.md:7",
            text="streamhouse topic delete other --yes",
            shown=("error: there is no topic 'other' (…)",),
        ),
        Command(place="page.md:9", text="streamhouse consume notes --follow", shown=("hello",), interrupted=True),
    ]
    assert [command.is_to_fail for command in commands_of(blocks()[0])] == [False, True, False]


def test_a_refusal_of_the_http_port_that_a_page_shows_is_to_come() -> None:
    refused = 'console\n$ curl -s localhost:8080/a | jq\n{\n  "status": 404,\n  "code": "not-found"\n}\n'
    shown = 'console\n$ curl -s localhost:8080/b\n{"status":"ok"}\n$ echo \'"status":404\'\n"status":404\n'
    first, second = blocks_of("page.md", f"```{refused}```\n```{shown}```\n")
    assert [command.is_to_fail for command in (*commands_of(first), *commands_of(second))] == [True, False, False]


def test_a_script_is_commands_each_as_long_as_the_shell_takes_it() -> None:
    first, second = commands_of(blocks()[1])
    assert (first.place, first.text) == ("page.md:20", "curl -d '{\n  \"a\": 1\n}' localhost")
    assert second.text == "echo two"


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("streamhouse serve", 9092),
        (".venv/bin/streamhouse serve --agents 3", 9092),
        ("A=1 B=2 streamhouse serve --kafka-port 9192", 9192),
        ("streamhouse flume broker --port 9093 --data ./data &", 9093),
        ("streamhouse agent --agent-id a2 \\\n    --kafka-port 9192", 9192),
    ],
)
def test_what_serves_is_known_with_its_port(text: str, port: int) -> None:
    command = Command(place="", text=text)
    assert (command.is_server, command.kafka_port) == (True, port)


@pytest.mark.parametrize("text", ["streamhouse agent list", "streamhouse agent drain a1", "streamhouse serve --help"])
def test_what_looks_like_it_and_ends_is_not(text: str) -> None:
    assert not Command(place="", text=text).is_server


@pytest.mark.parametrize(
    ("shown", "printed", "agree"),
    [
        (["created notes"], "created notes\n", True),
        (["created notes"], "created orders\n", False),
        (["created notes"], "created notes\nand more\n", False),
        (["a   b", "─────", "1   2"], "a      b  \n────────\n1      2\n", True),
        (["topic   …   2"], "topic   65e1   2\n", True),
        (["topic   …   2"], "topic   65e1   3\n", False),
        (["…", "last"], "one\ntwo\nlast\n", True),
        (["…", "last"], "last\n", True),
        (["…", "last"], "one\nlast\nmore\n", False),
        (["at 2026-11-15T21:14:46.820Z"], "at 2027-01-01T00:00:00.001Z\n", True),
        (["at 2026-11-15T21:14:46.820Z"], "at noon\n", False),
        ([f"id {ID}", f"again {ID}"], f"id {OTHER_ID}\nagain {OTHER_ID}\n", True),
        ([f"id {ID}", f"again {ID}"], f"id {OTHER_ID}\nagain {ID}\n", False),
        (["3 of 12,345"], "4 of 9\n", False),
    ],
)
def test_output_is_compared_but_for_what_cannot_be_the_same(shown: list[str], printed: str, agree: bool) -> None:
    assert Bindings().matches(shown, printed) == agree


def test_numbers_that_vary_are_numbers_all_the_same() -> None:
    assert Bindings().matches(["3 of 12,345.5"], "4 of 9\n", numbers_vary=True)
    assert not Bindings().matches(["3 of 12,345.5"], "4 of many\n", numbers_vary=True)


def test_an_id_that_was_printed_is_that_of_the_commands_below() -> None:
    bindings = Bindings()
    assert bindings.matches([f"key segments/{ID}/0"], f"key segments/{OTHER_ID}/0\n")
    assert bindings.in_command(f"streamhouse segment show segments/{ID}/0") == (
        f"streamhouse segment show segments/{OTHER_ID}/0"
    )
    assert not bindings.matches([ID], ID)


def test_a_program_says_what_it_prints() -> None:
    program = "print(1)  # -> 1\nfor n in []:\n    print(n)  # not a word about it\nprint('a', 2)  # -> a 2\n"
    assert printed_by(program) == ["1", "a 2"]
    assert prints_in_order(["1", "a 2"], "1\nbetween\na 2\n")
    assert not prints_in_order(["1", "a 2"], "a 2\n1\n")
