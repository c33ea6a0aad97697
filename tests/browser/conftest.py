"""A browser for the tests of pages: Debian's Chromium, driven by Playwright, without a network."""

import os
import shutil

import pytest

pytestmark = pytest.mark.browser


@pytest.fixture(scope="session")
def chromium():
    """Return the browser; say what to install where it is not there."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="pip install 'pullback[docs-test]'"
    )
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if path is None:
        pytest.skip("apt-get install chromium, or set CHROMIUM to the path of a browser")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium):
    """Return what opens a file in a window of its own; fail on messages and outside requests."""
    contexts, said = [], []

    def open_file(path, width=1280, scheme="light"):
        context = chromium.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True
        )
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
