"""What the pages say of files, links, layers and decisions is true of the repository."""

from __future__ import annotations

import re
import sqlite3
import tomllib
from pathlib import Path

import pytest

from streamhouse import __version__

REPOSITORY = Path(__file__).parents[3]
PACKAGE = REPOSITORY / "src" / "streamhouse"
DECISIONS = sorted((REPOSITORY / "docs" / "adr").glob("[0-9]*.md"))
PAGES = sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")])

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_SOURCE_FILE = re.compile(r"`(?:src/streamhouse/)?((?:[a-z_]+/)+[a-z_0-9]+\.(?:pyx|py|h))`")


def name_of(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


def prose(page: Path) -> str:
    """The page without its code, in which brackets are not links and '#' is not a heading."""
    return re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Headings as GitHub makes anchors of them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in _HEADING.findall(prose(page))
    }


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for link in _LINK.findall(prose(page)):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", [REPOSITORY / "ARCHITECTURE.md", *DECISIONS], ids=name_of)
def test_every_file_that_is_named_exists(page: Path) -> None:
    named = _SOURCE_FILE.findall(page.read_text("utf-8"))
    assert [path for path in named if not (PACKAGE / path).exists() and not (REPOSITORY / path).exists()] == []


def test_the_architecture_names_files_at_all() -> None:
    assert len(_SOURCE_FILE.findall((REPOSITORY / "ARCHITECTURE.md").read_text("utf-8"))) > 20


def test_the_layer_line_is_the_one_that_is_checked() -> None:
    contracts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    _, _, drawing = (REPOSITORY / "ARCHITECTURE.md").read_text("utf-8").partition("```text\n")
    drawn = [re.split(r"\s{2,}", line)[0] for line in drawing.partition("```")[0].splitlines() if line[0] != "─"]
    # `python -m streamhouse` is a door to `cli` and nothing more.
    assert drawn == [layer for layer in layers if layer != "__main__"]


def test_every_decision_has_its_parts_and_its_line_in_the_index() -> None:
    index = (REPOSITORY / "docs" / "adr" / "README.md").read_text("utf-8")
    for number, page in enumerate(DECISIONS, start=1):
        text = page.read_text("utf-8")
        title = text.partition("\n")[0].removeprefix(f"# {number}. ")
        assert page.name.startswith(f"{number:04d}-")
        assert f"| [{number}]({page.name}) | {title} |" in index
        assert _HEADING.findall(text)[1:] == ["Context", "Decision", "Consequences", "Non-goals"]


def test_the_query_for_seams_finds_gaps_overlaps_and_falling_epochs_and_nothing_else() -> None:
    _, _, rest = (REPOSITORY / "ARCHITECTURE.md").read_text("utf-8").partition("```sql\n")
    query = rest.partition("```")[0]
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE segments (topic, topic_id, partition_id, base_offset, end_offset, epoch)")
    sound = [("a", 1, 0, 0, 10, 1), ("a", 1, 0, 10, 30, 1), ("a", 1, 0, 30, 31, 2), ("a", 1, 1, 5, 9, 1)]
    broken = [("b", 2, 0, 0, 10, 5), ("b", 2, 0, 12, 20, 5), ("b", 2, 0, 19, 30, 5), ("b", 2, 0, 30, 40, 4)]
    database.executemany("INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?)", sound)
    assert database.execute(query).fetchall() == []
    database.executemany("INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?)", broken)
    assert [row[2] for row in database.execute(query)] == [12, 19, 30]


def test_the_changelog_knows_this_version() -> None:
    assert __version__ in (REPOSITORY / "CHANGELOG.md").read_text("utf-8")
