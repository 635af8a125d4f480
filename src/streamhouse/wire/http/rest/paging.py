"""Long lists come in pages: so many after the last one that the caller has seen."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

MAX_PAGE = 10_000


class PageQuery(Struct, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE, description="How many at most")] = 1000
    after: Annotated[str, Meta(max_length=300, description="The last name already seen: a page's `next`")] = ""
