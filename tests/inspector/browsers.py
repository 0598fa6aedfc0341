"""A real Chromium for tests of the page: Debian's, headless, one for a module."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
AXE = Path(__file__).parent / "npm" / "node_modules" / "axe-core" / "axe.min.js"
LIMIT = 60_000
"""Milliseconds that a page may take for anything: a busy machine is not a bug."""
WIDE, NARROW = {"width": 1360, "height": 860}, {"width": 390, "height": 800}


def chromium():
    """Where it is, or None."""
    named = os.environ.get("THOUGHTLINE_CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


@contextmanager
def browsing():
    """A browser for the length of a `with` block."""
    sync = pytest.importorskip(
        "playwright.sync_api",
        reason="playwright is not installed; `make setup` installs it",
    )
    path = chromium()
    if path is None:
        pytest.skip(
            "Chromium is not installed; `make clients` installs it, or THOUGHTLINE_CHROMIUM names one"
        )
    sync.expect.set_options(timeout=LIMIT)
    with sync.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """A page of the inspector, and what went wrong in it."""

    def __init__(self, browser, url, *, size=None, scheme="light"):
        self.url = url
        self.context = browser.new_context(
            viewport=size or WIDE, color_scheme=scheme, reduced_motion="reduce", locale="en-GB"
        )
        self.context.set_default_timeout(LIMIT)
        self.page = self.context.new_page()
        self.wrong = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", self._heard)

    def _heard(self, message):
        refused = "Failed to load resource" in message.text  # an answer that a test wants
        if message.type == "error" and not refused:
            self.wrong.append(message.text)

    def open(self, route=""):
        """Go to a place of the page, from outside."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}/inspect/{route}")
        return self.page

    def close(self):
        self.context.close()
        assert self.wrong == []


def violations(page):
    """What axe-core finds fault with, in short."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed; `make clients` installs it")
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate(
        "async () => (await axe.run(document, { resultTypes: ['violations'] })).violations"
    )
    return [
        (one["id"], one["help"], [node["html"][:160] for node in one["nodes"][:3]]) for one in found
    ]
