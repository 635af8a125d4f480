"""Reads from an object store, by a node or as its settings name it, for commands that look into it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import uvloop

from streamhouse.app.options import s3_options
from streamhouse.cli.usage import refusing_as_usage
from streamhouse.cli.where import Place
from streamhouse.client.rest import RestClient
from streamhouse.model.errors import NotFound
from streamhouse.model.settings import Settings
from streamhouse.objects.open import open_store
from streamhouse.objects.store import ObjectInfo, ObjectStore
from streamhouse.runtime.clock import SystemClock
from streamhouse.wire.http.rest.stored_segments import StoredSegment

Result = TypeVar("Result")


def read_object(place: Place, key: str) -> bytes:
    try:
        if place.endpoint:
            with RestClient(place.endpoint) as client:
                return client.read_segment(key)
        return _with_store(place.settings, lambda store: store.get(key))
    except NotFound as problem:
        raise NotFound(problem.message, hint="`streamhouse segment list` shows the keys that there are") from None


def list_objects(place: Place, prefix: str) -> Sequence[ObjectInfo | StoredSegment]:
    if place.endpoint:
        with RestClient(place.endpoint) as client:
            return list(client.stored_segments(prefix))

    async def collect(store: ObjectStore) -> list[ObjectInfo]:
        return [info async for info in store.list(prefix)]

    return _with_store(place.settings, collect)


@asynccontextmanager
async def opened_objects(settings: Settings) -> AsyncIterator[ObjectStore]:
    with refusing_as_usage():
        url = _url(settings)
    store = await open_store(url, SystemClock(), s3_options(settings))
    try:
        yield store
    finally:
        await store.close()


def _with_store(settings: Settings, work: Callable[[ObjectStore], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        async with opened_objects(settings) as store:
            return await work(store)

    result: Result = uvloop.run(run())
    return result


def _url(settings: Settings) -> str:
    if settings.objects:
        return settings.objects
    directory = Path(settings.data_dir) / "objects"
    # Opening a store makes its directory, which looking for something should not.
    if not directory.is_dir():
        raise NotFound(f"there is no object store in {settings.data_dir!r}", hint="give --data-dir or --objects")
    return f"file:{quote(str(directory))}"
