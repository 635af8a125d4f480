"""No line tells anybody to install the package by its name: the package index has another project by that name."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from streamhouse.model.extras import Extra, install_hint

REPOSITORY = Path(__file__).parents[3]
WRITTEN = ("bench", "demo", "deploy", "docs", "examples", "src", "tests", "tools")
"""What people wrote; what else lies in a checkout was put there by tools."""
BINARY = {".png", ".so", ".pyc"}

_INSTALLER = r"\b(?:pip3?|pipx|uv|poetry|conda)\s(?:[\w-]+\s)*?(?:install|add)\b"
_BY_NAME = re.compile(
    rf"""{_INSTALLER}[^\n|`;&]*?[\s'"]streamhouse(?:[\[=<>~!@'"`\s),.]|$)   # pip install streamhouse
    |[\s'"`(]streamhouse\[\w+(?:,\w+)*\]                                   # streamhouse[spark], wherever it stands
    |^streamhouse\s*(?:[=~!<>]=|[<>@])                                     # a line of requirements.txt
    """,
    re.VERBOSE | re.MULTILINE,
)


def written_files() -> Iterator[Path]:
    for path in REPOSITORY.iterdir():
        if path.is_file() and path.name != ".git":
            yield path
    for directory in WRITTEN:
        for path in (REPOSITORY / directory).rglob("*"):
            generated = path.suffix in BINARY or any(part.endswith(".egg-info") for part in path.parts)
            if path.is_file() and not generated and path != Path(__file__):
                yield path


def test_no_line_installs_the_package_by_name() -> None:
    found = []
    for path in written_files():
        # A command may be broken over two lines of prose.
        text = re.sub(r"(install|pip)\n", r"\1 ", path.read_text("utf-8", errors="replace"))
        found += [f"{path.relative_to(REPOSITORY)}: {match.group().strip()}" for match in _BY_NAME.finditer(text)]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "pip install streamhouse",
        "$ .venv/bin/pip install --upgrade streamhouse",
        "`pip install 'streamhouse[spark]'` on the driver",
        'hint="python -m pip install streamhouse==0.1"',
        "uv pip install streamhouse[otel]",
        "uv add streamhouse",
        "and `streamhouse[lake]` for Delta",
        "streamhouse>=0.1",
    ],
)
def test_a_line_that_does_is_found(line: str) -> None:
    assert _BY_NAME.search(line)


@pytest.mark.parametrize(
    "line",
    [
        "python3 -m venv .venv && .venv/bin/pip install .",
        "RUN /opt/streamhouse/bin/pip install --no-cache-dir .",
        "pip install '.[spark]' && streamhouse serve",
        "`pip install './streamhouse-….whl[spark]'` installs it",
        "pip install /src/streamhouse",
    ],
)
def test_an_installation_from_source_is_not(line: str) -> None:
    assert not _BY_NAME.search(line)


@pytest.mark.parametrize("extra", get_args(Extra))
def test_hints_name_extras_that_there_are(extra: Extra) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    assert extra in project["optional-dependencies"]
    assert install_hint(extra).endswith(f"pip install '.[{extra}]'")
