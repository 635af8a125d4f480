"""Every command and program of README and docs is run, in the order of its page, on one node; see `docs/testing.md`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from page_parts.blocks import blocks_of, read_blocks
from page_parts.listing import PAGES
from page_parts.reading import LANGUAGES, read_page
from page_parts.world import PageFailed, World, world

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def machine() -> Iterator[World]:
    with world() as made:
        yield made


@pytest.mark.parametrize("page", [page for page in PAGES if read_blocks(page)])
def test_what_a_page_shows_is_what_happens(page: str, machine: World) -> None:
    read_page(machine, read_blocks(page))


def test_what_the_http_port_refuses_is_seen_though_nothing_is_shown_of_it(machine: World) -> None:
    asked = "curl -s http://127.0.0.1:8080/api/v1/topics/not-there"
    for command in (asked, f"{asked} | cat", f"{asked} -o refused.json"):
        with pytest.raises(PageFailed, match=r"page\.md:2: ended with 22"):
            read_page(machine, blocks_of("page.md", f"```console\n$ {command}\n```\n"))
    shown = '{…"status":404,…"code":"not-found"…}'
    read_page(machine, blocks_of("page.md", f"```console\n$ {asked}\n{shown}\n```\n"))


def test_a_program_on_spark_has_the_names_of_another_only_where_it_goes_on(machine: World) -> None:
    made = "from streamhouse.spark.session import open_session\nspark = open_session('names')\n"
    used = "print(spark.range(3).count())  # -> 3\n# streamhouse.spark\n"
    page = f"```python\n{made}```\n{{}}```python\n{used}```\n"
    read_page(machine, blocks_of("page.md", page.format("<!-- goes on -->\n")))
    with pytest.raises(PageFailed, match="name 'spark' is not defined"):
        read_page(machine, blocks_of("page.md", page.format("")))


@pytest.mark.parametrize(
    ("mark", "query", "problem"),
    [
        ("", "SELECT 1;", "finds 1 rows"),
        ("", "SELECT 1 WHERE false; SELECT 2, 3;", r"finds 1 rows\n  \| \(2, 3\)"),
        ("<!-- finds rows -->\n", "SELECT 1; SELECT 2 WHERE false;", "finds 0 rows"),
    ],
)
def test_a_query_that_finds_what_it_should_not_is_seen(mark: str, query: str, problem: str, machine: World) -> None:
    with pytest.raises(PageFailed, match=problem):
        read_page(machine, blocks_of("page.md", f"{mark}```sql\n{query}\n```\n"))


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_what_it_is(page: str) -> None:
    unknown = [f"{block.place}: {block.language or 'no language'}" for block in read_blocks(page)]
    assert [place for place in unknown if place.split(": ")[1] not in LANGUAGES] == []
