"""Somebody with a phone, and what has to fit on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, expect

from console_parts.viewer import NARROW, Viewer, viewing

LONGEST_NAME = ("the_longest_name_that_there_can_be_" * 8)[:249]
"""Nowhere in it would a line be broken by itself."""


@contextmanager
def phone(browser: Browser, http: str) -> Iterator[Viewer]:
    with viewing(browser, http, width=NARROW) as viewer:
        yield viewer


def assert_dialog_fits(viewer: Viewer) -> None:
    """The upmost one: all of it within the window, and nothing of it to be scrolled to at its side."""
    dialog = viewer.page.locator("dialog").last
    expect(dialog).to_be_visible()
    viewer.assert_fits()
    inside, outside = dialog.evaluate("(dialog) => [dialog.scrollWidth, dialog.clientWidth]")
    assert inside <= outside, f"{viewer.page.url}: {inside} pixels in {outside}"
