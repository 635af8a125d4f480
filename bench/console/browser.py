"""Chromium under measurement: the system's own, without a window, and a fresh profile for every page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

from bench.servers import Server, ServerFailed

PATIENCE_MS = 120_000.0
WINDOW = {"width": 1280, "height": 800}


@contextmanager
def chromium() -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise ServerFailed("there is no Chromium: run tools/install_debian_packages.sh")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"] if os.getuid() == 0 else [])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def visited(browser: Browser, server: Server, script: str) -> Iterator[Page]:
    """A page of somebody who was never there, with a script that runs before the console's own."""
    host, port = server.doors["http"]
    context = browser.new_context(base_url=f"http://{host}:{port}", viewport=WINDOW)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    context.add_init_script(script)
    try:
        yield context.new_page()
    finally:
        context.close()
