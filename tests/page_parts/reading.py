"""Reads a page as somebody would who types all of it: block for block, each command, each program."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
import time
import tomllib
from collections.abc import Sequence
from contextlib import closing

import yaml

from node.wait import HUNG_SECONDS, eventually
from page_parts.blocks import Block
from page_parts.outputs import Bindings, printed_by, prints_in_order
from page_parts.shell import SECONDS, Ended, Shell
from page_parts.transcripts import Command, commands_of
from page_parts.world import PageFailed, World

TERMINAL = ("console", "bash")
FILES = ("toml", "yaml")
LANGUAGES = (*TERMINAL, *FILES, "python", "json", "sql", "text", "mermaid")
"""What a block may be. `text` and `mermaid` are pictures, layouts and formats: nothing that could be run."""

_ON_SPARK = re.compile(r"streamhouse\.spark|pyspark|\bspark\.|streamhouse (?:pipeline|maintain)")
_ON_SERVICES = re.compile(r"postgresql://|s3://")
_NAME_OF_FILE = re.compile(r"# (?P<name>[\w.-]+\.(?:toml|yaml|py))\b")
_LOOKS = re.compile(r"streamhouse (?:agent|group|partition|segment|topic) (?:list|describe)\b")
_PAUSE_SECONDS = 0.2
_INTERRUPTED = (0, 130)
_LINES_OF_OUTPUT = 60
_METADATA = "streamhouse-data/metadata.db"


def read_page(world: World, blocks: list[Block]) -> None:
    """PageFailed says what is wrong with it."""
    run = [block for block in blocks if block.not_run is None]
    text = "\n".join(f"{block.run_first or ''}\n{block.text}" for block in run)
    if _ON_SERVICES.search(text):
        world.need_services()
    if _ON_SPARK.search(text):
        world.need_spark()
    world.back_to_the_node()
    with world.shell() as shell:
        try:
            reader = _Reader(world, shell)
            for block in run:
                reader.read(block)
        except PageFailed as problem:
            problem.add_note(world.said_by_spark())
            raise
        finally:
            world.back_to_the_node()


class _Reader:
    def __init__(self, world: World, shell: Shell) -> None:
        self._world = world
        self._shell = shell
        self._bindings = Bindings()
        self._programs = 0
        self._on_spark = False

    def read(self, block: Block) -> None:
        for line in (block.run_first or "").splitlines():
            self._run(Command(place=f"above {block.place}", text=line.strip()), numbers_vary=False)
        if block.language in TERMINAL:
            for command in commands_of(block):
                self._run(command, numbers_vary=block.numbers_vary)
        elif block.language == "python":
            self._run_program(block)
        elif block.language in FILES:
            self._write_file(block)
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "sql":
            self._query(block)
        if not block.keeps_running:
            self._world.back_to_the_node()

    # -- the terminal ---------------------------------------------------------------------------------------------

    def _run(self, command: Command, *, numbers_vary: bool) -> None:
        text = self._bindings.in_command(command.text)
        if command.is_server:
            if not command.is_to_fail:
                self._serve(command, numbers_vary)
                return
            self._world.make_room(command)
        ended = self._interrupt(command, text, numbers_vary) if command.interrupted else self._shell.run(text)
        if _LOOKS.search(text):
            ended = self._look_again(command, text, ended, numbers_vary)
        if (ended.code != 0) != command.is_to_fail:
            raise PageFailed(command.place, command.text, f"ended with {ended.code}\n{ended.output}")
        if not self._is_shown(command, ended, numbers_vary):
            raise _prints_something_else(command.place, command.text, command.shown, ended.output)

    def _is_shown(self, command: Command, ended: Ended, numbers_vary: bool) -> bool:
        return not command.shown or self._bindings.matches(command.shown, ended.output, numbers_vary=numbers_vary)

    def _look_again(self, command: Command, text: str, ended: Ended, numbers_vary: bool) -> Ended:
        """What is looked at may take a moment to become what the page shows, as for its reader."""
        deadline = time.monotonic() + HUNG_SECONDS
        while not self._is_shown(command, ended, numbers_vary) and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
            ended = self._shell.run(text)
        return ended

    def _serve(self, command: Command, numbers_vary: bool) -> None:
        started = self._world.serve(command, self._shell)
        if command.shown and not self._bindings.matches(command.shown, started.output, numbers_vary=numbers_vary):
            raise _prints_something_else(command.place, command.text, command.shown, started.output)
        if command.interrupted:
            self._world.stop(started)

    def _interrupt(self, command: Command, text: str, numbers_vary: bool) -> Ended:
        """When it has printed what is shown."""
        started = self._shell.start(text, separate=False)
        try:
            eventually(
                lambda: self._bindings.matches(command.shown, started.output, numbers_vary=numbers_vary),
                "what is shown",
                timeout=SECONDS,
            )
        except AssertionError:
            started.interrupt()
            raise _prints_something_else(command.place, command.text, command.shown, started.output) from None
        output = started.output
        code = started.interrupt()
        return Ended(0 if code in _INTERRUPTED else code, output)

    # -- programs -------------------------------------------------------------------------------------------------

    def _run_program(self, block: Block) -> None:
        self._programs += 1
        stem = block.page.removesuffix(".md").replace("/", "-").replace(".", "-")
        named = _NAME_OF_FILE.match(block.text)
        file = self._world.directory / (named["name"] if named else f"test_{stem}_{self._programs}.py")
        file.write_text(block.text, "utf-8")
        if named:
            return
        is_test = re.search(r"^(?:async )?def test_", block.text, re.MULTILINE) is not None
        self._on_spark = "streamhouse.spark" in block.text or (block.goes_on and self._on_spark)
        if is_test:
            command = ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", file.name]
        elif self._on_spark:
            going_on = ["--goes-on"] if block.goes_on else []
            command = ["streamhouse", "pipeline", "--program", str(file), block.page, *going_on]
        else:
            assert not block.goes_on, f"{block.place}: only on Spark do programs go on from one another"
            command = ["python", file.name]
        ended = self._shell.run(shlex.join(command))
        file.unlink()
        if ended.code != 0:
            raise PageFailed(block.place, block.text, f"ended with {ended.code}\n{ended.output}")
        shown = printed_by(block.text)
        if not prints_in_order(shown, ended.output):
            raise _prints_something_else(block.place, block.text, shown, ended.output)

    # -- files and queries ----------------------------------------------------------------------------------------

    def _write_file(self, block: Block) -> None:
        """Where the page says what it is called; the page's own commands then use it."""
        _ = tomllib.loads(block.text) if block.language == "toml" else yaml.safe_load(block.text)
        name = _NAME_OF_FILE.match(block.text)
        if name is not None:
            (self._world.directory / name["name"]).write_text(block.text, "utf-8")

    def _query(self, block: Block) -> None:
        """Of the metadata that the node has which runs: in PostgreSQL, if it was told so."""
        for statement in filter(str.strip, block.text.split(";")):
            rows = self._rows_of(block, statement)
            if bool(rows) != block.finds_rows:
                shown = "\n".join(f"  | {row}" for row in rows[:_LINES_OF_OUTPUT])
                raise PageFailed(block.place, statement.strip(), f"finds {len(rows)} rows\n{shown}")

    def _rows_of(self, block: Block, statement: str) -> Sequence[object]:
        url = self._world.metadata_url
        if url is not None:
            asked = ["psql", url, "-v", "ON_ERROR_STOP=1", "--quiet", "--tuples-only", "--no-align", "-c", statement]
            ended = self._shell.run(shlex.join(asked))
            if ended.code != 0:
                raise PageFailed(block.place, statement, f"ended with {ended.code}\n{ended.output}")
            return ended.output.splitlines()
        with closing(sqlite3.connect(self._world.directory / _METADATA, timeout=SECONDS)) as database:
            return database.execute(statement).fetchall()


def _prints_something_else(place: str, command: str, shown: list[str] | tuple[str, ...], output: str) -> PageFailed:
    lines = "\n".join(f"  | {line}" for line in shown)
    printed = "\n".join(f"  | {line}" for line in output.splitlines()[:_LINES_OF_OUTPUT])
    return PageFailed(place, command, f"the page shows\n{lines}\nand what is printed is\n{printed}")
