"""What every page has: the way to all others by mouse and by keyboard, the theme, help, and a policy that holds."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Locator, expect

from console_parts import hostile
from console_parts.shop import ORDERS, Shop
from console_parts.viewer import Viewer, viewing

PAGES = {"o": "Overview", "t": "Topics", "g": "Groups", "c": "Cluster", "s": "Storage", "p": "Pipelines"}
HEADINGS = {"Groups": "Consumer groups"}
"""Where it says more than the link to it."""


def assert_on(viewer: Viewer, title: str) -> None:
    heading = HEADINGS.get(title, title)
    expect(viewer.page.get_by_role("heading", level=1, name=heading)).to_be_visible()
    expect(link_to(viewer, title)).to_have_attribute("aria-current", "page")
    expect(viewer.page).to_have_title(f"{heading} · StreamHouse")


def link_to(viewer: Viewer, title: str) -> Locator:
    return viewer.page.get_by_role("navigation", name="Pages").get_by_role("link", name=title, exact=True)


def test_every_page_is_reached_by_its_link(viewer: Viewer) -> None:
    viewer.go("")
    for title in PAGES.values():
        link_to(viewer, title).click()
        assert_on(viewer, title)


def test_every_page_is_reached_by_two_keys(viewer: Viewer) -> None:
    viewer.go("")
    assert_on(viewer, "Overview")
    for key, title in reversed(PAGES.items()):
        viewer.chord(key, str(link_to(viewer, title).get_attribute("href")))
        assert_on(viewer, title)


def test_going_back_leads_to_the_page_before(viewer: Viewer) -> None:
    viewer.go("#/topics")
    assert_on(viewer, "Topics")
    viewer.chord("g", "#/groups")
    assert_on(viewer, "Groups")
    viewer.page.go_back()
    assert_on(viewer, "Topics")


def test_the_question_mark_tells_of_the_keys_and_escape_closes_it(viewer: Viewer) -> None:
    viewer.go("#/topics")
    assert_on(viewer, "Topics")
    viewer.press("?")
    expect(viewer.dialog).to_contain_text("Open a row")
    viewer.press("g", "c", "?")
    expect(viewer.dialog).to_have_count(1)
    viewer.press("Escape")
    expect(viewer.dialog).to_have_count(0)
    assert_on(viewer, "Topics")


def test_a_dialog_does_not_outlive_its_page(viewer: Viewer) -> None:
    viewer.go("#/groups")
    assert_on(viewer, "Groups")
    viewer.chord("t", "#/topics")
    viewer.button("Create topic").click()
    expect(viewer.dialog).to_be_visible()
    viewer.page.go_back()
    assert_on(viewer, "Groups")
    expect(viewer.dialog).to_have_count(0)


def test_the_first_link_leads_past_the_navigation(viewer: Viewer) -> None:
    viewer.go("#/topics")
    assert_on(viewer, "Topics")
    viewer.page.get_by_role("link", name="Skip to the content").focus()
    viewer.press("Enter")
    expect(viewer.page.get_by_role("main")).to_be_focused()
    assert_on(viewer, "Topics")


def test_the_slash_leads_to_the_search_from_anywhere(viewer: Viewer) -> None:
    viewer.go("#/")
    assert_on(viewer, "Overview")
    viewer.press("/")
    assert_on(viewer, "Topics")
    expect(viewer.page.get_by_role("searchbox")).to_be_focused()
    viewer.page.keyboard.type("order")
    viewer.press("ArrowDown", "Enter")
    expect(viewer.page.get_by_role("heading", level=1, name=ORDERS)).to_be_visible()


def test_a_search_that_never_came_does_not_take_the_keyboard_later(viewer: Viewer) -> None:
    viewer.expects_refusal(503)
    viewer.page.route("**/api/v1/topics*", lambda route: route.fulfill(status=503, json={"detail": "not now"}))
    viewer.go("#/")
    assert_on(viewer, "Overview")
    viewer.press("/")
    expect(viewer.alert).to_contain_text("not now")
    viewer.chord("g", "#/groups")
    assert_on(viewer, "Groups")
    expect(viewer.page.get_by_role("searchbox")).not_to_be_focused()
    expect(viewer.page.get_by_role("main")).to_be_focused()


def test_the_slash_stays_on_a_page_that_has_a_search_of_its_own(viewer: Viewer) -> None:
    viewer.go("#/groups")
    assert_on(viewer, "Groups")
    viewer.press("/")
    expect(viewer.page.get_by_role("searchbox", name="Search consumer groups")).to_be_focused()
    assert_on(viewer, "Groups")


def test_keys_typed_into_a_field_lead_nowhere(viewer: Viewer) -> None:
    viewer.go("#/topics")
    search = viewer.page.get_by_role("searchbox")
    search.fill("")
    search.press_sequentially("gc?")
    assert_on(viewer, "Topics")
    expect(search).to_have_value("gc?")
    expect(viewer.dialog).to_have_count(0)


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_the_theme_follows_the_system_until_it_is_switched_and_then_stays(
    browser: Browser, store: Shop, colours: str
) -> None:
    def is_dark() -> bool:
        red, green, blue = viewer.script(
            "getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).slice(0, 3).map(Number)"
        )
        return bool(red + green + blue < 3 * 128)

    with viewing(browser, store.http, colours="dark" if colours == "dark" else "light") as viewer:
        viewer.go("")
        theme = viewer.button("Theme:")
        expect(theme).to_have_accessible_name("Theme: auto")
        assert is_dark() == (colours == "dark")
        theme.click()
        expect(theme).to_have_accessible_name("Theme: light")
        assert not is_dark()
        theme.click()
        assert is_dark()
        viewer.page.reload()
        expect(theme).to_have_accessible_name("Theme: dark")
        assert is_dark()


def test_a_page_that_does_not_exist_says_so(viewer: Viewer) -> None:
    viewer.go("#/nowhere/at/all")
    expect(viewer.heading("No such page")).to_be_visible()
    viewer.page.get_by_role("link", name="To the overview").click()
    assert_on(viewer, "Overview")


def test_a_topic_that_does_not_exist_is_a_problem_and_not_an_empty_page(viewer: Viewer) -> None:
    viewer.expects_refusal(404)
    viewer.go("#/topics/missing")
    expect(viewer.alert).to_contain_text("there is no topic 'missing'")
    expect(viewer.button("Try again")).to_be_visible()


def test_a_notice_goes_by_itself(viewer: Viewer) -> None:
    viewer.go("#/nowhere")
    viewer.page.evaluate(
        "async () => (await import('/console/static/lib/dialog.js')).notify('it was <b>done</b>', 'bad')"
    )
    notice = viewer.page.get_by_text("it was <b>done</b>")
    expect(notice).to_be_visible()
    expect(notice).to_have_count(0)


def test_the_policy_lets_no_smuggled_script_run(viewer: Viewer) -> None:
    """What escaping should have stopped is stopped once more."""
    viewer.go("")
    assert_on(viewer, "Overview")
    viewer.script(
        f"""() => {{
            const script = document.createElement('script');
            try {{ script.textContent = `{hostile.ACTS}`; }} catch {{ return; }}
            document.body.append(script);
        }}"""
    )
    viewer.script(
        f"""() => {{ try {{ document.body.insertAdjacentHTML('beforeend', `{hostile.MARKUP}`); }} catch {{ }} }}"""
    )
    assert viewer.script("window.attacked") is None
    assert any("Content Security Policy" in trouble or "TrustedHTML" in trouble for trouble in viewer.troubles)
    viewer.troubles.clear()
