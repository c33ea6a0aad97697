"""What the tests of pages share: a browser without a network, the built site, a server of it."""

import functools
import http.server
import os
import shutil
import threading
from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / "build" / "site"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="session")
def server():
    """Return the address of a server of the site."""
    assert (SITE / "index.html").exists(), "the site is not built: make docs"
    handler = functools.partial(_Quiet, directory=SITE)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()


@pytest.fixture(scope="session")
def browser():
    """Return Chromium: the program that CHROMIUM names, or the one on the path."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.exit("playwright is missing: pip install '.[docs-test]'", returncode=1)
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if program is None:
        pytest.exit(
            "Chromium is missing: install Debian's package chromium, or set CHROMIUM to its path",
            returncode=1,
        )
    with sync_playwright() as playwright:
        # Containers lack what the sandbox needs; the pages are our own.
        running = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield running
        running.close()


class Visit:
    """A tab that may reach the server alone, and what went wrong in it."""

    def __init__(self, browser, server, **settings):
        self.context = browser.new_context(**settings)
        self.page = self.context.new_page()
        self.server, self.faults = server, []
        self.context.route("**/*", self._route)
        self.page.on("console", self._listen)
        self.page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        self.page.on("requestfailed", lambda r: self.faults.append(f"failed: {r.url}"))
        self.page.on("response", self._answered)

    def _route(self, route):
        if route.request.url.startswith((self.server, "data:")):
            route.continue_()
        else:
            self.faults.append(f"outside: {route.request.url}")
            route.abort()

    def _listen(self, message):
        if message.type == "error":
            self.faults.append(f"console: {message.text}")

    def _answered(self, response):
        if response.status >= 400:
            self.faults.append(f"{response.status}: {response.url}")

    def open(self, path):
        """Open a page of the site and return the answer."""
        return self.page.goto(self.server + path, wait_until="load")


@pytest.fixture
def visit(browser, server):
    """Return a function that opens a tab, with the settings of a Playwright context."""
    visits = []

    def open_tab(**settings):
        visits.append(Visit(browser, server, **settings))
        return visits[-1]

    yield open_tab
    for each in visits:
        each.context.close()


@pytest.fixture
def opened(browser):
    """Return what opens a file in a window of its own; fail on messages and outside requests."""
    contexts, said = [], []

    def open_file(path, width=1280, scheme="light"):
        size = {"width": width, "height": 800}
        context = browser.new_context(viewport=size, color_scheme=scheme, offline=True)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda r: said.append(r.url) if r.url.startswith("http") else None)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=true]")
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert said == []
