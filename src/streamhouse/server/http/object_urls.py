"""URLs at which a caller without keys to the object store reads or writes single objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from starlette.requests import Request

from streamhouse.objects.checks import check_key
from streamhouse.objects.store import ObjectStore, Presigner
from streamhouse.wire.http.planning import PREFIX

LIFETIME_S = 12 * 3600
"""For a job that plans once and reads for long; keys that expire sooner end it sooner."""


class ObjectUrls:
    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    async def sign(self, method: Literal["GET", "PUT"], keys: Sequence[str], request: Request) -> list[str]:
        """In the order asked. Where the store has no URLs of its own, they lead to this node, under the name by which
        the caller has just reached it."""
        if isinstance(self._objects, Presigner):
            return list(await self._objects.sign(method, keys, LIFETIME_S))
        base = f"{request.url.scheme}://{request.url.netloc}{PREFIX}/objects"
        return [f"{base}/{check_key(key)}" for key in keys]
