"""Which pages there are, in the order in which they are read."""

from __future__ import annotations

from page_parts.blocks import REPOSITORY

FIRST = ("README.md", "docs/getting-started.md")
"""As they are read. All others follow by name, on the same node."""

_FOUND = [
    *REPOSITORY.glob("*.md"),
    *(REPOSITORY / "docs").rglob("*.md"),
    *(REPOSITORY / "examples").rglob("*.md"),
]
PAGES = sorted(
    (page.relative_to(REPOSITORY).as_posix() for page in _FOUND),
    key=lambda page: (FIRST.index(page) if page in FIRST else len(FIRST), page),
)
