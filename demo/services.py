"""What the agents share: PostgreSQL from the system's binaries, as the tests start it, and a directory of objects.

Without PostgreSQL there is nothing that several agents could share, and one agent keeps its metadata in SQLite."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_TESTS = Path(__file__).parents[1] / "tests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    metadata: str
    objects: str
    is_shared: bool

    @property
    def options(self) -> tuple[str, ...]:
        return ("--metadata", self.metadata, "--objects", self.objects)


@contextmanager
def stores(data_dir: Path) -> Iterator[Stores]:
    objects = f"file://{data_dir / 'objects'}"
    # The tests are not installed: they are found beside the demo.
    if str(_TESTS) not in sys.path:
        sys.path.append(str(_TESTS))
    from services.postgres import postgres_server

    starting = postgres_server()
    try:
        server = starting.__enter__()
    except RuntimeError:
        yield Stores(metadata=f"sqlite:///{data_dir / 'metadata.db'}", objects=objects, is_shared=False)
        return
    try:
        dsn = server.create_database()
        try:
            yield Stores(metadata=dsn, objects=objects, is_shared=True)
        finally:
            server.drop_database(dsn)
    finally:
        starting.__exit__(None, None, None)
