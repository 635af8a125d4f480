"""The routes of the console: one page at `/`, and the files that it is made of.

They are part of the package and few, so that they are read once, when the node starts to serve them. A browser asks
again every time whether it still has the newest (`no-cache`), and hears 304 if it does: after an upgrade nobody sees
the scripts of two versions together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

STATIC = "/console/static"
_PAGE = "index.html"
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HEADERS = {
    # Names, keys and values are other people's: whatever one of them might smuggle in does not run and loads nothing.
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; object-src "
        "'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def console_routes() -> list[BaseRoute]:
    """One route for each file: a path that is not one of them is nobody's, whatever it says."""
    assets = {path: _Asset(path, content) for path, content in _assets(files(__package__) / "static", "")}
    return [
        Route("/", assets[_PAGE].answer, methods=["GET"]),
        *(Route(f"{STATIC}/{path}", asset.answer, methods=["GET"]) for path, asset in assets.items()),
    ]


class _Asset:
    def __init__(self, path: str, content: bytes) -> None:
        self._content = content
        self._media_type = _MEDIA_TYPES[path[path.rindex(".") :]]
        self._etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'

    async def answer(self, request: Request) -> Response:
        headers = _HEADERS | {"ETag": self._etag}
        if self._is_known(request.headers.get("if-none-match", "")):
            return Response(status_code=304, headers=headers)
        return Response(self._content, headers=headers, media_type=self._media_type)

    def _is_known(self, known: str) -> bool:
        tags = (tag.strip().removeprefix("W/") for tag in known.split(","))
        return any(tag in (self._etag, "*") for tag in tags)


def _assets(directory: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(directory.iterdir(), key=lambda found: found.name):
        if entry.is_dir():
            yield from _assets(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(tuple(_MEDIA_TYPES)):
            yield f"{prefix}{entry.name}", entry.read_bytes()
