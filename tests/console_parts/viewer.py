"""The console in front of somebody: a page of the browser, and everything that goes wrong while it is looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request, expect

from console_parts.browser import HUNG_MS
from node.wait import eventually
from services.addresses import addresses_stay

WIDE = 1280
NARROW = 390
_HEIGHTS = {WIDE: 800, NARROW: 844}
_TROUBLE = ("error", "warning")
_NO_ANSWER = "net::ERR_"
_NOT_LOOPBACK = "The Cross-Origin-Opener-Policy header has been ignored"
"""What a browser says of any page that comes over a network without TLS."""
# What an assistive program would read out but nobody sees in full, or what can be scrolled to inside of something else.
_OUTSIDE = """() => {
    const width = document.documentElement.clientWidth;
    const scrolls = (element) => {
        for (let at = element.parentElement; at && at !== document.body; at = at.parentElement) {
            const fits = at.getBoundingClientRect().right <= width + 1;
            if (fits && getComputedStyle(at).overflowX !== 'visible') return true;
        }
        return false;
    };
    const outside = [];
    for (const element of document.querySelectorAll('a, button, input, select, textarea, h1, h2, h3, p')) {
        const box = element.getBoundingClientRect();
        const isSeen = box.width > 1 && box.height > 1 && getComputedStyle(element).visibility === 'visible';
        if (isSeen && (box.right > width + 1 || box.right < 0) && !scrolls(element)) {
            outside.push(element.outerHTML.slice(0, 120));
        }
    }
    return outside;
}"""


class Viewer:
    """`page` is what the tests act on. An error of a script or of the content security policy fails the test, as does
    an answer of the node that is an error, or none, unless the test said that one would come."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.troubles: list[str] = []
        self._refusals: set[int] = set()
        self._is_answered = True
        page.on("console", self._note_message)
        page.on("pageerror", lambda error: self.troubles.append(f"not caught: {error}"))
        page.on("requestfailed", self._note_failure)

    def expects_refusal(self, status: int) -> None:
        """That the node answers with this status is part of the test; the browser tells of it as an error."""
        self._refusals.add(status)

    def expects_no_answer(self) -> None:
        """That the node is away for a while is part of the test."""
        self._is_answered = False

    def _note_message(self, message: ConsoleMessage) -> None:
        if _NOT_LOOPBACK in message.text or (not self._is_answered and _NO_ANSWER in message.text):
            return
        if message.type in _TROUBLE and not any(f"status of {status} " in message.text for status in self._refusals):
            self.troubles.append(f"{message.type}: {message.text} at {message.location}")

    def _note_failure(self, request: Request) -> None:
        """A request that a page gave up because somebody left it is none."""
        if request.failure != "net::ERR_ABORTED" and self._is_answered:
            self.troubles.append(f"{request.failure}: {request.url}")

    # -- going about --------------------------------------------------------------------------------------------

    def go(self, place: str) -> None:
        """To a view by its address, as a bookmark does."""
        self.page.goto(f"/{place}")

    def heading(self, name: str, *, exact: bool = False) -> Locator:
        return self.page.get_by_role("heading", name=name, exact=exact)

    def sees(self, text: str) -> None:
        expect(self.page.get_by_text(text).first).to_be_visible()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def chord(self, key: str, place: str) -> None:
        """`g` and this key, which lead to the place. To the page they are one chord only if the second comes soon after
        the first, so that on a busy machine they are pressed again."""

        def is_there() -> bool:
            self.press("g", key)
            return bool(self.script("location.hash") == place)

        eventually(is_there, f"g {key} to lead to {place}", pause=0)

    def button(self, name: str, *, within: Locator | None = None, exact: bool = False) -> Locator:
        return (within or self.page).get_by_role("button", name=name, exact=exact)

    def table(self, label: str) -> Locator:
        return self.page.get_by_role("grid", name=label, exact=True)

    def row(self, label: str, text: str) -> Locator:
        """Of the table with this label, the row with a cell, or something in a cell, of just this text."""
        return self.table(label).get_by_role("row").filter(has=self.page.get_by_text(text, exact=True))

    def figure(self, name: str) -> Locator:
        return self.page.get_by_role("group", name=name, exact=True)

    @property
    def alert(self) -> Locator:
        """What says why something was refused."""
        return self.page.get_by_role("alert").filter(has_text=re.compile(r"\S")).first

    @property
    def dialog(self) -> Locator:
        return self.page.get_by_role("dialog")

    def script(self, expression: str) -> Any:
        return self.page.evaluate(expression)

    # -- judging ------------------------------------------------------------------------------------------------

    def assert_no_trouble(self) -> None:
        assert self.troubles == [], "\n".join(self.troubles)

    def assert_fits(self) -> None:
        """Nothing makes the page wider than the window, and nothing to read or press is out of reach at its side."""
        size = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        eventually(
            lambda: self._fits(size),
            f"{self.page.url} to fit {self.page.viewport_size}: {self.script(size)} {self.script(_OUTSIDE)}",
            timeout=10,
            pause=0.1,
        )

    def _fits(self, size: str) -> bool:
        content, window = self.script(size)
        return content <= window and self.script(_OUTSIDE) == []


@contextmanager
def viewing(
    browser: Browser,
    http: str,
    *,
    width: int = WIDE,
    colours: Literal["light", "dark"] = "light",
    timezone: str | None = None,
) -> Iterator[Viewer]:
    """A visitor who was never here before. That nothing went wrong is judged at the end."""
    context = browser.new_context(
        base_url=http,
        viewport={"width": width, "height": _HEIGHTS[width]},
        color_scheme=colours,
        timezone_id=timezone,
        permissions=["clipboard-read", "clipboard-write"],
        reduced_motion="reduce",
    )
    context.set_default_timeout(HUNG_MS)
    try:
        with addresses_stay():
            viewer = Viewer(context.new_page())
            yield viewer
            viewer.assert_no_trouble()
    finally:
        context.close()
