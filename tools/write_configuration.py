"""Writes the tables of docs/configuration.md from the settings and the topic configs; the text around them stays."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path

from streamhouse.app.options import node_defaults
from streamhouse.cli.settings import flag_name, show_setting, variable_name
from streamhouse.model.settings import Kind, Settings
from streamhouse.model.topic import CONFIG_KEYS

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"
_KINDS = {
    Kind.TEXT: "text",
    Kind.SECRET: "secret",
    Kind.INTEGER: "number",
    Kind.FLAG: "true or false",
    Kind.DURATION: "duration",
    Kind.SIZE: "size",
}


def settings_table() -> str:
    """Every setting, in the order in which they are declared."""
    rows = []
    for item in fields(Settings):
        kind: Kind = item.metadata["kind"]
        flag = flag_name(item.name)
        shown = show_setting(item.name, item.default)
        rows.append(
            (
                f"`{item.name}`",
                f"`{shown}`" if shown else "-",
                f"{item.metadata['help']} ({_KINDS[kind]})",
                f"`{flag}`" + (f", `--no-{flag[2:]}`" if kind is Kind.FLAG else ""),
                f"`{variable_name(item.name)}`",
            )
        )
    return _table(("setting", "default", "meaning", "flag", "variable"), rows)


def topic_configs_table() -> str:
    """Every topic config; some have their default from a setting of the node."""
    from_node = node_defaults(Settings())
    settings = {
        "max.message.bytes": "max_message_bytes",
        "retention.ms": "retention_ms",
        "segment.bytes": "segment_bytes",
        "segment.ms": "segment_age",
        "streamhouse.durability": "durability",
    }
    assert settings.keys() == from_node.keys(), "every config that the node decides is named here"
    rows = [
        (
            f"`{key.name}`",
            f"the node's `{settings[key.name]}`" if key.name in settings else f"`{key.default}`",
            key.help,
        )
        for key in CONFIG_KEYS.values()
    ]
    return _table(("config", "default", "meaning"), rows)


TABLES = {"settings": settings_table, "topic configs": topic_configs_table}


def render(page: str) -> str:
    """The page with what lies between each table's two markers written anew."""
    for name, table in TABLES.items():
        begin, end = f"<!-- {name}: written by tools/write_configuration.py -->\n", f"<!-- end of {name} -->\n"
        before, found_begin, rest = page.partition(begin)
        _, found_end, after = rest.partition(end)
        if not found_begin or not found_end:
            raise ValueError(f"docs/configuration.md lacks the markers of the table {name!r}")
        page = before + begin + table() + end + after
    return page


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the tables of docs/configuration.md.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is not up to date")
    check_only = parser.parse_args().check
    page = PAGE.read_text("utf-8")
    try:
        written = render(page)
    except ValueError as problem:
        print(problem, file=sys.stderr)
        return 1
    if not check_only:
        PAGE.write_text(written, encoding="utf-8")
    elif page != written:
        print("docs/configuration.md is not up to date: run tools/write_configuration.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
