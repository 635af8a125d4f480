"""How the API describes itself: /openapi.json for programs, /docs for people."""

from __future__ import annotations

import hashlib
from base64 import b64encode

import msgspec
from starlette.responses import Response

from streamhouse.server.http.rest.docs_page import STYLE, docs_page
from streamhouse.server.http.rest.openapi import openapi_document
from streamhouse.server.http.rest.registry import Call, Rest, respond

_TAG = "description"


def add_description(rest: Rest) -> None:
    """Also of what is registered later."""
    description = _Description(rest)
    rest.route(
        "GET",
        "/openapi.json",
        description.openapi,
        summary="This API as an OpenAPI document",
        tag=_TAG,
        answer=dict[str, msgspec.Raw],
    )
    rest.route(
        "GET", "/docs", description.docs, summary="This API for people", tag=_TAG, media_type="text/html; charset=utf-8"
    )


class _Description:
    """Made when first asked for: most nodes are never asked."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest
        self._openapi = b""
        self._docs = ""

    async def openapi(self, _: Call) -> Response:
        if not self._openapi:
            self._openapi = msgspec.json.encode(openapi_document(self._rest.operations))
        return respond(self._openapi)

    async def docs(self, _: Call) -> Response:
        if not self._docs:
            self._docs = docs_page(openapi_document(self._rest.operations))
        return Response(self._docs, headers=_PAGE_HEADERS, media_type="text/html")


def _sha256(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


_PAGE_HEADERS = {
    # The page is made of what this node says, but so are names in examples: nothing may run, nothing is loaded.
    "Content-Security-Policy": (
        f"default-src 'none'; style-src {_sha256(STYLE)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
}
