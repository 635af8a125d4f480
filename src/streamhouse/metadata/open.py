"""From a URL to a metadata store that is ready: reached, and its schema up to date."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from streamhouse.metadata.sqlite.store import SqliteMetadataStore
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.errors import InvalidConfig
from streamhouse.runtime.clock import Clock

_HINT = "use sqlite:///absolute/file, sqlite:relative/file, sqlite::memory: or postgresql://user@host/database"


async def open_metadata(url: str, clock: Clock) -> MetadataStore:
    check_metadata_url(url)
    scheme, _, rest = url.partition(":")
    if scheme == "sqlite":
        return await SqliteMetadataStore.open(_sqlite_path(rest), clock)
    # Its driver takes longer to load than an embedded node needs to start.
    from streamhouse.metadata.postgres.store import PostgresMetadataStore

    return await PostgresMetadataStore.open(url)


def check_metadata_url(url: str) -> None:
    """InvalidConfig unless `open_metadata` could take it."""
    scheme, separator, rest = url.partition(":")
    match scheme if separator else "":
        case "sqlite":
            _sqlite_path(rest)
        case "postgresql" | "postgres":
            pass
        case _:
            # Not the whole URL: it may hold a password.
            raise InvalidConfig(f"{scheme[:20]!r} is not a kind of metadata store", hint=_HINT)


def metadata_file(url: str) -> Path | None:
    """Where an embedded store keeps everything."""
    scheme, _, rest = url.partition(":")
    return Path(_sqlite_path(rest)) if scheme == "sqlite" and rest != ":memory:" else None


def _sqlite_path(rest: str) -> str:
    path = unquote(rest.removeprefix("//"))
    if not path or "\0" in path or (rest.startswith("//") and not path.startswith("/")):
        raise InvalidConfig(f"{'sqlite:' + rest!r} does not name a file", hint=_HINT)
    return path
