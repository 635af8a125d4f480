"""Chromium, the one that the system has, without a window."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, expect, sync_playwright

from node.wait import HUNG_SECONDS

HUNG_MS = HUNG_SECONDS * 1000


@contextmanager
def chromium() -> Iterator[Browser]:
    """Driven from this thread, on which no other event loop can run until it is closed."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise RuntimeError("no Chromium: run tools/install_debian_packages.sh")
    # Its sandbox refuses to work for root; what it shows here comes from our own node.
    arguments = ["--no-sandbox"] if os.getuid() == 0 else []
    expect.set_options(timeout=HUNG_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        try:
            yield browser
        finally:
            browser.close()
