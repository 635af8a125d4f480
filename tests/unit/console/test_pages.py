"""The console as a browser gets it: every file is there, under a policy that lets nothing else in, and no module turns
text into markup or code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from importlib.resources import files
from pathlib import Path, PurePosixPath
from posixpath import normpath
from urllib.parse import quote

import pytest

from node.wait import HUNG_SECONDS
from streamhouse.console.pages import STATIC
from streamhouse.testing import Broker

ROOT = Path(str(files("streamhouse.console") / "static"))
MODULES = sorted(ROOT.rglob("*.js"))
VIEWS = sorted(ROOT.glob("views/*.js"))

_IMPORT = re.compile(r"""(?:from|import|import\()\s*["'](\.{1,2}/[^"']+)["']""")
_REFERENCE = re.compile(r"""(?:href|src)="(/[^"]*)\"""")
_TEXT_AS_MARKUP_OR_CODE = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|parseFromString|DOMParser|setHTML|srcdoc"
    r"|document\.write|\beval\b|new Function|javascript:|setTimeout\(\s*[\"'`]|setAttribute\(\s*[\"']style"
)
_FOREIGN_ADDRESS = re.compile(r"(?:https?:)?//(?!www\.w3\.org/2000/svg)[a-z0-9.-]+\.[a-z]{2,}", re.IGNORECASE)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with Broker(http=True) as broker:
        assert broker.node.doors.http is not None
        yield broker.node.doors.http.port


@pytest.fixture
def connection(port: int) -> Iterator[HTTPConnection]:
    connection = HTTPConnection("127.0.0.1", port, timeout=HUNG_SECONDS)
    yield connection
    connection.close()


def get(connection: HTTPConnection, path: str, headers: dict[str, str] | None = None) -> tuple[HTTPResponse, bytes]:
    connection.request("GET", path, headers=headers or {})
    response = connection.getresponse()
    return response, response.read()


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(module: Path) -> list[str]:
    here = PurePosixPath(name(module)).parent
    return [normpath(str(here / target)) for target in _IMPORT.findall(module.read_text())]


def page_references() -> list[str]:
    return _REFERENCE.findall((ROOT / "index.html").read_text())


def test_the_page_is_at_the_root(connection: HTTPConnection) -> None:
    response, body = get(connection, "/")
    assert response.status == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert body == (ROOT / "index.html").read_bytes()


def test_the_page_may_load_and_run_only_what_this_node_serves(connection: HTTPConnection) -> None:
    response, _ = get(connection, "/")
    directives = dict(part.split(maxsplit=1) for part in response.headers["content-security-policy"].split("; "))
    assert directives["default-src"] == directives["script-src"] == directives["style-src"] == "'self'"
    assert directives["object-src"] == directives["base-uri"] == directives["frame-ancestors"] == "'none'"
    assert directives.pop("require-trusted-types-for") == "'script'"
    assert set(directives.values()) == {"'self'", "'none'"}
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"


def test_every_file_is_served_as_what_it_is_under_the_same_policy(connection: HTTPConnection) -> None:
    policy = get(connection, "/")[0].headers["content-security-policy"]
    types = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
    served = [path for path in ROOT.rglob("*") if path.is_file()]
    assert len(served) > 10
    for path in served:
        response, body = get(connection, f"{STATIC}/{name(path)}")
        assert (response.status, body) == (200, path.read_bytes()), name(path)
        assert response.headers["content-type"].split(";")[0] == types[path.suffix], name(path)
        assert response.headers["content-security-policy"] == policy
        assert response.headers["x-content-type-options"] == "nosniff"


def test_what_the_page_refers_to_is_served(connection: HTTPConnection) -> None:
    references = page_references()
    assert f"{STATIC}/app.js" in references
    for reference in references:
        assert get(connection, reference)[0].status == 200, reference


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_what_a_module_imports_exists(module: Path) -> None:
    missing = [target for target in imports(module) if not (ROOT / target).is_file()]
    assert missing == []


def test_every_file_is_used() -> None:
    """From the page on, over all imports."""
    used = {"index.html"}
    waiting = [reference.removeprefix(f"{STATIC}/") for reference in page_references() if STATIC in reference]
    while waiting:
        path = waiting.pop()
        if path not in used:
            used.add(path)
            waiting += imports(ROOT / path) if path.endswith(".js") else []
    assert used == {name(path) for path in ROOT.rglob("*") if path.is_file()}


def test_a_browser_that_has_the_newest_is_not_sent_it_again(connection: HTTPConnection) -> None:
    first, _ = get(connection, f"{STATIC}/app.js")
    assert first.headers["cache-control"] == "no-cache"
    again, body = get(connection, f"{STATIC}/app.js", {"If-None-Match": f'"old", W/{first.headers["etag"]}'})
    assert (again.status, body) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    changed, body = get(connection, f"{STATIC}/app.js", {"If-None-Match": '"old"'})
    assert changed.status == 200
    assert body


@pytest.mark.parametrize("path", ["../pages.py", quote("../pages.py", safe=""), "lib", "lib/", "app.js/", "nothing.js"])
def test_nothing_but_the_files_can_be_asked_for(connection: HTTPConnection, path: str) -> None:
    response, _ = get(connection, f"{STATIC}/{path}")
    assert response.status in (307, 404)
    if response.status == 307:  # the router offers the path without the slash at its end
        assert response.headers["location"].endswith(f"{STATIC}/app.js")


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_no_module_makes_markup_or_code_of_text(module: Path) -> None:
    assert _TEXT_AS_MARKUP_OR_CODE.findall(module.read_text()) == []


def test_the_page_has_no_inline_script_or_style() -> None:
    page = (ROOT / "index.html").read_text()
    assert "<style" not in page
    assert re.findall(r"\s(?:style|on[a-z]+)=", page) == []
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", page))


@pytest.mark.parametrize("path", sorted(path for path in ROOT.rglob("*") if path.is_file()), ids=name)
def test_nothing_is_loaded_from_elsewhere(path: Path) -> None:
    assert _FOREIGN_ADDRESS.findall(path.read_text()) == []


@pytest.mark.parametrize("view", VIEWS, ids=name)
def test_every_view_can_be_rendered(view: Path) -> None:
    assert "export async function render(root, " in view.read_text()
