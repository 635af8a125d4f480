"""What the page asks the node: made slower, or of smaller pages, than a node with this little data would have it."""

from __future__ import annotations

import re

from playwright.sync_api import Page, Route

from node.wait import eventually


class Held:
    """Requests whose address this pattern finds: they reach the node only when they are let go."""

    def __init__(self, page: Page, pattern: str) -> None:
        self._page = page
        self._routes: list[Route] = []
        page.route(re.compile(pattern), self._hold)

    def _hold(self, route: Route) -> None:
        self._routes.append(route)

    def wait_for(self, count: int) -> None:
        eventually(lambda: self._page.evaluate("true") and len(self._routes) >= count, f"{count} requests")

    def let_go(self) -> None:
        """Those so far, in the order in which they were made."""
        routes, self._routes = self._routes, []
        for route in routes:
            route.fallback()


def ask_for_pages_of(page: Page, pattern: str, size: int) -> None:
    """Of so many rows, whatever limit the console asks for."""
    page.route(
        re.compile(pattern),
        lambda route: route.continue_(url=re.sub(r"\blimit=\d+", f"limit={size}", route.request.url)),
    )
