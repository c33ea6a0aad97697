"""The built site in a browser: links, requests, search, phones, accessibility."""

import functools
import html.parser
import urllib.parse
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

SITE = Path(__file__).parents[2] / "build" / "site"
PHONE = {"width": 400, "height": 800}
SAMPLE = (
    *("index", "guides", "custom-functions", "gradient-checker", "from-r-torch"),
    *("reference/index", "reference/custom", "reference/tensor", "operations/exponential"),
    *("figures/own_relu_network", "search", "examples/index"),
)


def pages():
    found = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
    return [page for page in found if not page.startswith("_static/")]


# Links -------------------------------------------------------------------------------------------


class _Reader(html.parser.HTMLParser):
    """Reads what a page links to, loads, and can be linked to by."""

    def __init__(self):
        super().__init__()
        self.links, self.anchors = set(), set()

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.anchors.add(value)
            elif name in {"href", "src"} and value is not None:
                self.links.add(value)


@functools.cache
def read(page):
    reader = _Reader()
    reader.feed((SITE / page).read_text())
    return reader


def broken(page):
    """Return the links of a page that lead nowhere in the site, or out of it to load something."""
    for link in sorted(read(page).links):
        parts = urllib.parse.urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = SITE / page
        if parts.path:
            target = (SITE / page).parent / urllib.parse.unquote(parts.path)
        if target.is_dir():
            target /= "index.html"
        name = target.resolve().relative_to(SITE.resolve()).as_posix()
        anchor = urllib.parse.unquote(parts.fragment)
        missing = target.suffix == ".html" and anchor and anchor not in read(name).anchors
        if not target.exists() or missing:
            yield link


def test_every_link_and_anchor_of_the_site_leads_somewhere():
    assert len(pages()) > 100
    assert {page: links for page in pages() if (links := list(broken(page)))} == {}


# Pages -------------------------------------------------------------------------------------------


def test_the_root_answers_with_the_front_page(visit):
    tab = visit()
    assert tab.open("").status == 200
    assert "pullback" in tab.page.title()
    assert tab.faults == []


def test_every_page_loads_from_the_site_alone_without_an_error_and_fits_a_phone(visit):
    tab, wide = visit(viewport=PHONE), {}
    for page in pages():
        tab.open(page)
        width = tab.page.evaluate("document.documentElement.scrollWidth")
        if width > PHONE["width"]:
            wide[page] = width
    assert tab.faults == []
    assert wide == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_of_a_sample_has_a_serious_fault_of_accessibility(visit, scheme):
    from axe_playwright_python.sync_playwright import Axe

    tab, faults = visit(color_scheme=scheme), []
    backgrounds = set()
    for name in SAMPLE:
        tab.open(f"{name}.html")
        backgrounds.add(tab.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        for violation in Axe().run(tab.page).response["violations"]:
            if violation["impact"] in {"serious", "critical"}:
                nodes = [node["html"][:160] for node in violation["nodes"][:3]]
                faults.append((name, violation["id"], nodes))
    assert faults == []
    (background,) = backgrounds
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")


def test_the_reader_finds_the_search_and_the_home_page_without_scrolling(visit):
    tab = visit(viewport={"width": 1280, "height": 800})
    tab.open("operations/trigonometric.html")
    assert tab.page.locator(".navbar-brand").first.is_visible()
    assert tab.page.locator(".search-button__button:visible").first.is_visible()
    assert tab.page.evaluate("scrollY") == 0


# Search ------------------------------------------------------------------------------------------

CTX = "reference/custom.html#pullback.Context"
# What readers type, and where the answer is: a page, or the entry of an object.
QUERIES = {
    "save_for_backward": f"{CTX}.save_for_backward",
    "autograd_function": "reference/custom.html#pullback.autograd_function",
    "mark_dirty": f"{CTX}.mark_dirty",
    "needs_input_grad": f"{CTX}.needs_input_grad",
    "gradcheck": "reference/check.html#pullback.check.gradcheck",
    "check_op": "reference/check.html#pullback.check.check_op",
    "gradient wrong shape": "errors.html",
    "from autograd import grad": "compat.html",
    "optim_sgd": "from-r-torch.html",
    "AdamW": "reference/optim.html#pullback.optim.AdamW",
    "LSTM": "reference/nn.html#pullback.nn.LSTM",
    "checkpoint": "reference/transforms.html#pullback.checkpoint",
    "vmap": "reference/transforms.html#pullback.vmap",
    "jacobian": "reference/transforms.html#pullback.jacobian",
    "detach": "reference/tensor.html#pullback.Tensor.detach",
    "no_grad": "reference/engine.html#pullback.no_grad",
    "register_hook": "reference/tensor.html#pullback.Tensor.register_hook",
    "NaN": "anomaly.html",
    "cupy": "array-libraries.html",
    "scipy minimize": "optimize.html",
    "memory leak": "memory.html",
    "resume training": "training.html",
    "draw the graph": "inspect.html",
}


def search(tab, query):
    """Return where the results of a search lead, best first."""
    tab.open(f"search.html?q={urllib.parse.quote_plus(query)}")
    tab.page.wait_for_selector("#search-results .search-summary:not(:empty)")
    tab.page.wait_for_function("!document.querySelector('#search-results h2 span')?.innerText")
    links = tab.page.locator("#search-results ul.search > li > a").all()
    return [link.evaluate("a => a.href").removeprefix(tab.server) for link in links]


@pytest.mark.parametrize("query", QUERIES)
def test_a_search_finds_the_page_among_the_first_three(visit, query):
    tab = visit(offline=False)
    first = [link.split("?")[0] for link in search(tab, query)[:3]]
    wanted = QUERIES[query]
    assert any(link == wanted or link.split("#")[0] == wanted for link in first), first
    assert tab.faults == []
