"""The page that `Graph.save` writes, as people see it: boxes, lenses, faults, keys and themes."""

import numpy as np
import pytest

import pullback as pb

pytestmark = pytest.mark.browser


def leaf(*shape, seed=0):
    values = np.random.default_rng(seed).normal(size=shape)
    return pb.tensor(values, requires_grad=True)


def two_layers():
    w1, w2 = leaf(3, 4), leaf(4, 2)
    return ((pb.tensor(np.ones((5, 3))) @ w1).relu() @ w2).square().mean()


def recurrent(count):
    w, h = leaf(3, 3), pb.ones((1, 3), dtype=pb.float64)
    for _ in range(count):
        h = (h @ w).tanh()
    return h.sum()


def second_order():
    w = leaf(3, 3)
    (g,) = pb.autograd.grad((w.tanh() @ w).sum(), w, create_graph=True)
    return (g * g).sum()


def mixed(count):
    """Return the result of operations in no order that repeats."""
    rng, x = np.random.default_rng(0), leaf(4)
    ops = [pb.sin, pb.cos, pb.tanh, lambda t: t * 0.5, lambda t: t + 1.0, pb.sigmoid, pb.atan]
    for k in rng.integers(0, len(ops), count):
        x = ops[k](x)
    return x.sum()


def texts(page, selector=".box > text:first-of-type"):
    return page.locator(selector).all_text_contents()


PROGRAMS = {
    "two layers": (two_layers, 1_000_000),
    "a long loop": (lambda: recurrent(20_000), 3_000_000),
    "second order": (second_order, 1_000_000),
    "3,000 operations in no order": (lambda: mixed(3_000), 1_000_000),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("after_backward", [False, True])
def test_saved_pages_open_with_at_most_200_boxes(name, after_backward, opened, tmp_path):
    program, most = PROGRAMS[name]
    loss = program()
    if after_backward:
        loss.backward()
    g = pb.inspect.graph(loss)
    g.save(tmp_path / "g.html")
    assert (tmp_path / "g.html").stat().st_size < most
    page = opened(tmp_path / "g.html")
    shown = page.locator(".box").count()
    assert 1 <= shown <= 200 + len(g.leaves)
    assert page.evaluate("count") == len(g.nodes)
    assert page.evaluate("boxes.reduce((sum, box) => sum + box.nodes.length, 0)") == len(g.nodes)


def test_a_block_opens_and_folds_by_click_and_by_key(opened, tmp_path):
    pb.inspect.graph(recurrent(50)).save(tmp_path / "g.html")
    page = opened(tmp_path / "g.html")
    folded = page.locator(".box").count()
    page.locator(".box", has_text="▸").first.click()
    assert page.locator(".box").count() > folded
    assert page.locator(".edge.carried").count() == 1
    assert page.locator(".edge.carried text").text_content() == "↻ next turn"
    page.get_by_role("button", name="Fold all").click()
    assert page.locator(".box").count() == folded
    page.locator(".box", has_text="▸").first.focus()
    page.keyboard.press("Enter")
    assert page.locator(".box").count() > folded


def test_search_opens_the_blocks_around_what_it_finds(opened, tmp_path):
    pb.inspect.graph(recurrent(50)).save(tmp_path / "g.html")
    page = opened(tmp_path / "g.html")
    page.keyboard.press("/")
    page.keyboard.type("tanh")
    assert page.locator("#matches").text_content() == "50 found"
    page.keyboard.press("Enter")
    assert page.locator("#matches").text_content() == "1 of 50"
    assert "TanhBackward" in page.locator("#details").text_content()


def test_lenses_show_bytes_times_and_gradients_as_text(opened, tmp_path):
    with pb.inspect.record() as r:
        loss = two_layers()
        loss.backward(retain_graph=True)
    r.graph(loss).save(tmp_path / "g.html")
    page = opened(tmp_path / "g.html")
    for lens, sign in (("Memory", " B"), ("Time", "µs"), ("Gradient", "gradient up to")):
        page.get_by_role("radio", name=lens).click()
        assert any(sign in text or "ms" in text for text in texts(page, ".box .note"))
    page.keyboard.press("l")
    assert page.locator("#lenses [aria-checked=true]").text_content() == "Faults"


SICK = {
    "sqrt": lambda x: (x - 10).sqrt(),
    "log": lambda x: (x - 10).log(),
    "acos": lambda x: (x + 10).acos(),
    "pow": lambda x: (x - 10) ** 0.5,
    "division": lambda x: (x - x) / (x - x),
    "multiplication": lambda x: (x - x) * (1 / (x - x)),
    "subtraction": lambda x: 1 / (x - x) - 1 / (x - x),
    "asin": lambda x: (x + 10).asin(),
    "atanh": lambda x: (x + 10).atanh(),
    "acosh": lambda x: (x - 10).acosh(),
    "log1p": lambda x: (x - 10).log1p(),
    "sum": lambda x: pb.stack([(1 / (x - x)).sum(), -(1 / (x - x)).abs().sum()]).sum() * x,
}


def beginnings(page, kind):
    """Return the ids of the nodes where the page says that a NaN or an infinity begins."""
    return page.evaluate(
        "(kind) => data.id.filter((_, k) => k < count && text(kind, k) === 'begins here')", kind
    )


@pytest.mark.parametrize("name", SICK)
def test_the_faults_lens_marks_where_a_nan_begins(name, opened, tmp_path):
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    with pb.inspect.record(), np.errstate(all="ignore"):
        y = SICK[name](x.sin().exp())
        loss = (y * 2).tanh().sum()
    g = pb.inspect.graph(loss)
    bad = {node.id for node in g.nodes if node.nan_count}
    first = [node for node in g.nodes if node.id in bad and not bad.intersection(node.inputs)]
    g.save(tmp_path / "g.html")
    page = opened(tmp_path / "g.html")
    page.get_by_role("radio", name="Faults").click()
    begins = beginnings(page, "NaN")
    assert begins == [node.id for node in first]
    assert len(begins) == 1
    assert page.locator(".box.bad", has_text="✗ NaN begins here").count() == 1
    assert page.locator(".box.bad", has_text="✗ NaN passes").count() >= 2
    page.locator(".box.bad", has_text="✗ NaN begins here").click()
    assert first[0].line in page.locator("#details").text_content()


def own(rule, name):
    """Return the operation (x + k sin x) m with a rule for its gradient."""

    def forward(ctx, x, k, m):
        x, k, m = x.numpy(), k.numpy(), m.numpy()
        ctx.x, ctx.k, ctx.m = x, k, m
        return pb.asarray((x + k * np.sin(x)) @ m)

    def backward(ctx, g):
        return dict(zip("xkm", map(pb.asarray, rule(g.numpy(), ctx.x, ctx.k, ctx.m)), strict=True))

    return pb.autograd_function(forward, pb.once_differentiable(backward), name=name)


def right(g, x, k, m):
    back = g @ m.T
    return back * (1 + k * np.cos(x)), (back * np.sin(x)).sum(0), (x + k * np.sin(x)).T @ g


def changed(index, change):
    def rule(g, x, k, m):
        grads = list(right(g, x, k, m))
        grads[index] = change(g, x, k, m, grads[index])
        return grads

    return rule


WRONG = {
    "sign": changed(0, lambda g, x, k, m, r: -r),
    "factor": changed(2, lambda g, x, k, m, r: 0.5 * r),
    "transpose": changed(0, lambda g, x, k, m, r: g @ m * (1 + k * np.cos(x))),
    "term": changed(0, lambda g, x, k, m, r: g @ m.T),
    "cosine": changed(1, lambda g, x, k, m, r: (g @ m.T * np.cos(x)).sum(0)),
    "mean": changed(1, lambda g, x, k, m, r: r / len(x)),
    "argument": changed(2, lambda g, x, k, m, r: x.T @ g),
    "zero": changed(1, lambda g, x, k, m, r: 0.0 * r),
    "constant": changed(0, lambda g, x, k, m, r: r + 1.0),
    "seed": changed(2, lambda g, x, k, m, r: (x + k * np.sin(x)).T @ np.ones_like(g)),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_faults_lens_marks_an_operation_that_the_checker_found_wrong(name, opened, tmp_path):
    ops = [own(right, "first"), own(WRONG[name], "planted"), own(right, "last")]
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=(3, 3))
    reports = [pb.check.check_op(op, *inputs, raise_exception=False, fast=True) for op in ops]
    x, k, m = leaf(3, 3), leaf(3), leaf(3, 3)
    for op in ops:
        x = op(x.tanh(), k, m)
    pb.inspect.graph(x.sum(), reports=reports).save(tmp_path / "g.html")
    page = opened(tmp_path / "g.html")
    page.get_by_role("radio", name="Faults").click()
    (bad,) = page.locator(".box.bad").all()
    assert "planted" in bad.text_content()
    assert "✗ wrong: " in bad.text_content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone_and_follows_the_theme(scheme, opened, tmp_path):
    pb.inspect.graph(two_layers()).save(tmp_path / "g.html")
    page = opened(tmp_path / "g.html", 400, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (before == "rgb(255, 255, 255)") == (scheme == "light")
    page.get_by_role("button", name="Theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_the_page_saves_an_svg_with_every_box_and_colours_of_its_own(opened, tmp_path):
    pb.inspect.graph(two_layers()).save(tmp_path / "g.html")
    page = opened(tmp_path / "g.html")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save SVG").click()
    text = download.value.path().read_text("utf-8")
    assert download.value.suggested_filename == "graph.svg"
    assert text.startswith("<svg")
    assert text.count('class="box') == page.locator(".box").count()
    assert "var(--" not in text


def test_a_notebooks_frame_shows_the_same_page(opened, tmp_path):
    path = tmp_path / "notebook.html"
    shown = pb.inspect.graph(two_layers())._repr_mimebundle_()["text/html"]
    path.write_text(f"<!doctype html><html data-ready=true><body>{shown}</body></html>", "utf-8")
    page = opened(path)
    frame = page.frame_locator("iframe")
    frame.locator("html[data-ready=true]").wait_for()
    assert frame.locator(".box").count() == 7


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_has_no_serious_fault_of_accessibility(scheme, opened, tmp_path):
    from axe_playwright_python.sync_playwright import Axe

    pb.inspect.graph(recurrent(50)).save(tmp_path / "g.html")
    page = opened(tmp_path / "g.html", scheme=scheme)
    for lens in ("Structure", "Memory", "Faults"):
        page.get_by_role("radio", name=lens).click()
        found = Axe().run(page).response["violations"]
        assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []


def test_the_faults_lens_marks_the_rule_in_which_a_nan_of_backward_begins(opened, tmp_path):
    x = pb.tensor([0.0, 1.0], dtype=pb.float64, requires_grad=True)
    with pb.inspect.record(), np.errstate(all="ignore"):
        loss = ((x * 1.0).sqrt() * pb.tensor([0.0, 1.0], dtype=pb.float64)).sum()
        loss.backward()
    g = pb.inspect.graph(loss)
    g.save(tmp_path / "g.html")
    page = opened(tmp_path / "g.html")
    page.get_by_role("radio", name="Faults").click()
    (sqrt,) = [node.id for node in g.nodes if node.name == "SqrtBackward"]
    assert beginnings(page, "NaN") == [sqrt]


def test_the_faults_lens_marks_where_a_value_becomes_infinite_and_where_that_becomes_nan(
    opened, tmp_path
):
    x = pb.tensor([1.0, 800.0], dtype=pb.float64, requires_grad=True)
    with pb.inspect.record(), np.errstate(all="ignore"):
        high = (x * 1.0).exp() + 1.0
        loss = (high - high * 2.0).tanh().sum()
    g = pb.inspect.graph(loss)
    g.save(tmp_path / "g.html")
    page = opened(tmp_path / "g.html")
    page.get_by_role("radio", name="Faults").click()
    for kind, name in (("infinity", "ExpBackward"), ("NaN", "SubBackward")):
        (first,) = [node for node in g.nodes if node.name == name]
        assert beginnings(page, kind) == [first.id]
        assert page.locator(".box.bad", has_text=f"✗ {kind} begins here").count() == 1
        page.locator(".box.bad", has_text=f"✗ {kind} begins here").click()
        assert first.line in page.locator("#details").text_content()
    assert page.locator(".box.bad", has_text="✗ infinity passes").count() == 2


def test_the_gradient_lens_says_that_a_norm_is_infinite(opened, tmp_path):
    x = pb.tensor([0.0, 1.0], dtype=pb.float64, requires_grad=True)
    with pb.inspect.record(), np.errstate(all="ignore"):
        loss = (x * 1.0).sqrt().sum()
        loss.backward()
    pb.inspect.graph(loss).save(tmp_path / "g.html")
    page = opened(tmp_path / "g.html")
    page.get_by_role("radio", name="Gradient").click()
    assert "gradient up to infinite" in texts(page, ".box .note")


def test_the_page_of_a_leaf_alone_opens(opened, tmp_path):
    pb.inspect.graph(pb.ones(2)).save(tmp_path / "g.html")
    page = opened(tmp_path / "g.html")
    assert page.locator(".box").count() == 0
