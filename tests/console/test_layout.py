"""Every page at the width of a desk and of a phone: nothing breaks out or is out of reach."""

from __future__ import annotations

from typing import Literal
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, expect

from console_parts import hostile
from console_parts.shop import AUDIT, BILLING, HOSTILE, ORDERS, PIPELINE, Shop
from console_parts.viewer import NARROW, WIDE, viewing

PLACES = {
    "overview": "#/",
    "topics": "#/topics",
    "topic": f"#/topics/{ORDERS}",
    "messages": f"#/topics/{ORDERS}/messages",
    "messages by field": f"#/topics/{ORDERS}/messages?columns=value.order,headers.source&where=value.paid",
    "hostile messages": f"#/topics/{HOSTILE}/messages",
    "groups": "#/groups",
    "group": f"#/groups/{AUDIT}",
    "group without members": f"#/groups/{BILLING}",
    "hostile group": f"#/groups/{quote(hostile.GROUP, safe='')}",
    "cluster": "#/cluster",
    "storage": "#/storage",
    "segments": f"#/storage/{ORDERS}/0?segment=0",
    "pipelines": f"#/pipelines?name={PIPELINE}",
}


@pytest.mark.parametrize(("width", "colours"), [(WIDE, "light"), (NARROW, "dark")])
def test_every_page_fits(browser: Browser, store: Shop, width: int, colours: Literal["light", "dark"]) -> None:
    with viewing(browser, store.http, width=width, colours=colours) as viewer:
        for place in PLACES.values():
            viewer.go(place)
            expect(viewer.page.get_by_role("heading", level=1)).to_be_visible()
            expect(viewer.page.locator("main")).not_to_have_attribute("aria-busy", "true")
            viewer.assert_fits()


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_every_dialog_fits(browser: Browser, store: Shop, width: int) -> None:
    with viewing(browser, store.http, width=width) as viewer:
        viewer.go("#/topics")
        viewer.button("Create topic").click()
        viewer.assert_fits()
        viewer.press("Escape")
        viewer.go(f"#/topics/{ORDERS}")
        for name in ("Produce", "Delete"):
            viewer.button(name).click()
            expect(viewer.dialog).to_be_visible()
            viewer.assert_fits()
            viewer.press("Escape")
        viewer.go(f"#/topics/{HOSTILE}/messages")
        viewer.table("Messages").locator("tbody tr[data-index]").filter(has_text="note").click()
        viewer.dialog.get_by_text("Copy as a command").click()
        expect(viewer.button("Copy kcat", within=viewer.dialog)).to_be_visible()
        viewer.assert_fits()
