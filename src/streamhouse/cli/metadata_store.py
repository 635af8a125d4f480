"""The metadata store that a node's settings name, for commands that look into it or leave an order there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, unquote

import uvloop

from streamhouse.cli.usage import refusing_as_usage
from streamhouse.metadata.open import open_metadata
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.errors import NotFound
from streamhouse.model.settings import Settings
from streamhouse.runtime.clock import SystemClock

Result = TypeVar("Result")


@asynccontextmanager
async def opened_metadata(settings: Settings) -> AsyncIterator[MetadataStore]:
    with refusing_as_usage():
        url = _url(settings)
    store = await open_metadata(url, SystemClock())
    try:
        yield store
    finally:
        await store.close()


def with_metadata(settings: Settings, work: Callable[[MetadataStore], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        async with opened_metadata(settings) as store:
            return await work(store)

    result: Result = uvloop.run(run())
    return result


def _url(settings: Settings) -> str:
    url = settings.metadata or f"sqlite:{quote(settings.data_dir)}/metadata.db"
    scheme, _, rest = url.partition(":")
    # Opening it would make an empty one, which looking for a cluster should not.
    if scheme == "sqlite" and not Path(path := unquote(rest.removeprefix("//"))).is_file():
        raise NotFound(f"there is no metadata store {path!r}", hint="give --metadata or --data-dir")
    return url
