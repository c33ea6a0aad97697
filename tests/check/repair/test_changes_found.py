"""Changes of backward, and of what forward saves, that are found: one kind of slip each."""

import functools

import numpy as np
import pytest
from tests.check._repair import change, changes, defined, operation, texts

import pullback as pb
from pullback.check import check_op

X = np.array([0.3, 1.2, -0.7, 0.5])
Y = np.array([1.5, -0.4, 0.9, 2.0])
A = np.array([[0.3, 1.2, -0.7], [0.5, -0.9, 0.8], [1.4, 0.1, 0.6]])
B = A[::-1] + 0.1
Z = np.array([0.3 + 0.5j, -1.0 + 0.2j])
W = np.array([1.0 - 2.0j, 0.4 + 0.7j])
INPUTS = {"x": X, "y": Y, "a": A, "b": B, "z": Z, "w": W, "scale": 2.5}


def inputs(args):
    return [INPUTS[name] for name in args.split(", ")]


# What is wrong; the arguments, what forward returns, what backward does; and what it should do.
EXPRESSIONS = [
    ("a sign that is too many", "x", "pb.sin(x)", "-g * pb.cos(x)", "g * pb.cos(x)"),
    ("a sign that is missing", "x", "pb.cos(x)", "g * pb.sin(x)", "-ctx.saved_variables.x"),
    ("a sign of one of two", "x, y", "x - y", "{'x': g, 'y': g}", "{'x': g, 'y': -g}"),
    ("an operator", "x, y", "x / y", "{'x': g * y, 'y': -g * x / y**2}", "{'x': g / y,"),
    ("operands", "a, b", "a @ b", "{'a': g @ b.T, 'b': g @ a.T}", "'b': a.T @ g"),
    ("a function", "x", "pb.sin(x)", "g * pb.sin(x)", "g * pb.cos(x)"),
    ("a name", "x, y", "x * y", "{'x': g * x, 'y': g * x}", "{'x': g * y,"),
    ("a number", "x", "x**3", "2 * g * x**2", "3 * g * x ** 2"),
    (
        "exchanged gradients",
        "x, y",
        "x * y",
        "{'x': g * x, 'y': g * y}",
        "{'x': g * y, 'y': g * x}",
    ),
    ("a factor that is a setting", "x, scale", "scale * pb.sin(x)", "g * pb.cos(x), None", "scale"),
    ("a factor that is saved", "x, y", "x * y", "{'x': g, 'y': g * x}", "{'x': g * y,"),
    ("a length", "x", "x.sum() / x.shape[0]", "g * pb.ones_like(x)", "/ x.shape[0]"),
    ("a comparison", "x", "pb.where(x > 0, x, 0.0)", "g * (x < 0)", "x"),
    ("a term", "x, y", "x * x * y + x * y", "{'x': 2 * g * x * y, 'y': g * (x * x + x)}", "+ g"),
    ("a sum over an axis", "a, x", "a + x[:3]", "{'a': g, 'x': pb.cat([g[0], 0 * x[3:]])}", "sum"),
    (
        "a conjugate",
        "z, w",
        "z * w",
        "{'z': g * w, 'w': g * pb.conj(z)}",
        "np.conj(ctx.saved_variables.w)",
    ),
    ("a transposition", "a, b", "a @ b", "{'a': g @ b, 'b': a.T @ g}", "ctx.saved_variables.b.T"),
    ("a power of a value", "x", "1 / x", "-g / x", "** 2"),
    ("half of it", "x", "pb.sqrt(x * x)", "2 * g * pb.sign(x)", "g * pb.sign(x)"),
]


@pytest.mark.parametrize("row", EXPRESSIONS, ids=lambda row: row[0])
def test_a_change_of_an_expression_is_found(row):
    _, args, value, wrong, right = row
    op = operation(*texts(args, value, wrong))
    text = changes(op, *inputs(args))
    assert "of backward: with `" in text
    assert right in text, text


# The same with more lines: forward's, and backward's.
STATEMENTS = {
    "exchanged names": (
        "x, y",
        "ctx.low, ctx.high = 0.3, 0.9; return ctx.low * x + ctx.high * y",
        "first = g * ctx.high; second = g * ctx.low; return {'x': first, 'y': second}",
        "with `{'x': second, 'y': first}` instead of `{'x': first, 'y': second}` the gradients of "
        "`x`, `y` are right",
    ),
    "a slice that is off by one": (
        "x",
        "return x[1:] - x[:-1]",
        "out = np.zeros(4); out[1:] += g.numpy(); out[1:] -= g.numpy(); return pb.asarray(out)",
        "`out[:-1] -= g.numpy()`",
    ),
    "an index that is off by one": (
        "x",
        "ctx.n = len(x); return x[-1] * 3.0",
        "out = np.zeros(ctx.n); out[ctx.n - 2] = 3 * g.numpy(); return pb.asarray(out)",
        "with `out[ctx.n - 2 + 1] = 3 * g.numpy()` instead of",
    ),
    "an axis": (
        "a",
        "return a.cumsum(0)",
        "return pb.asarray(np.flip(np.cumsum(np.flip(g.numpy(), 0), 1), 0))",
        "0), 0)",
    ),
    "a scan that is not reversed": (
        "x",
        "return x.cumsum(0)",
        "return pb.asarray(np.cumsum(g.numpy()))",
        "np.flip(np.cumsum(np.flip(g.numpy(), 0)), 0)",
    ),
    "an order that is not inverted": (
        "x",
        "ctx.order = np.array([2, 0, 3, 1]); return x[ctx.order]",
        "return pb.asarray(g.numpy()[ctx.order])",
        "np.argsort(ctx.order)",
    ),
    "letters of an Einstein sum": (
        "a, b",
        "ctx.a, ctx.b = a.numpy(), b.numpy(); return a @ b",
        "g = g.numpy(); a = np.einsum('ik,jk->ij', g, ctx.b); "
        "b = np.einsum('ij,ik->kj', ctx.a, g); return pb.asarray(a), pb.asarray(b)",
        "b = np.einsum('ij,ik->",
    ),
    "indices that occur twice": (
        "x",
        "ctx.i = np.array([0, 2, 0, 1]); return x[ctx.i]",
        "out = np.zeros(4); out[ctx.i] += g.numpy(); return pb.asarray(out)",
        "with `np.add.at(out, ctx.i, g.numpy())` instead of `out[ctx.i] += g.numpy()`",
    ),
    "a statement that is too many": (
        "x",
        "return 2 * x",
        "out = 2 * g.numpy(); out += 0.3 * out**2; return pb.asarray(out)",
        "with `pass` instead of `out += 0.3 * out ** 2`",
    ),
    "an axis that is added at the wrong place": (
        "a",
        "ctx.rows = a.numpy().sum(axis=1); return pb.asarray((ctx.rows**2).sum())",
        "return pb.asarray(2.0 * g.item() * (ctx.rows[None] + np.zeros((3, 3))))",
        "with `pb.asarray(2.0 * g.item() * (ctx.rows[None] + np.zeros((3, 3)))).T` instead of",
    ),
    "a list that is reversed": (
        "x",
        "ctx.parts = [2.0, x]; return pb.stack([3.0 * x, 5.0 * x])",
        "return sum(k * each for k, each in zip([5.0, 3.0], g))",
        "[::-1]",
    ),
    "a mask": (
        "x",
        "ctx.x = x.numpy(); return pb.where(x > 0, x, 0.0)",
        "return pb.asarray(g.numpy())",
        "* (x > 0)`",
    ),
    "the signs of values": (
        "x",
        "ctx.x = x.numpy(); return pb.abs(x)",
        "return pb.asarray(g.numpy())",
        "* x.sign()`",
    ),
    "a variable of forward": (
        "x",
        "rate = 0.37; ctx.x = x; return rate * pb.sin(x)",
        "return g * pb.cos(ctx.x)",
        "(`rate` as in forward)",
    ),
    "an array that forward goes on to change": (
        "x",
        "value = np.exp(x.numpy()); ctx.value = value; out = value.copy(); value /= 2.0; "
        "return pb.asarray(out)",
        "return pb.asarray(g.numpy() * ctx.value)",
        "of forward: with `ctx.value = value.copy()` instead of `ctx.value = value`",
    ),
    "a value that forward should not have saved": (
        "x",
        "s = pb.sin(x); ctx.save_for_backward(x=x, s=x); return s * s",
        "x, s = ctx.saved_tensors; return 2 * g * s * pb.cos(x)",
        "of forward: with `ctx.save_for_backward(x=x, s=s)` instead of",
    ),
}


def lines_of(head, text):
    return f"def {head}:\n" + "".join(f"    {line}\n" for line in text.split("; "))


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_change_of_a_statement_is_found(name):
    args, forward, backward, right = STATEMENTS[name]
    op = operation(
        lines_of(f"forward(ctx, {args})", forward), lines_of("backward(ctx, g)", backward)
    )
    text = changes(op, *inputs(args))
    assert right in text, text


# ---- ways to write a rule ------------------------------------------------------------------------
def sine(ctx, x):
    ctx.save_for_backward(x=x)
    return pb.sin(x)


class Sine(pb.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return pb.sin(x)

    @staticmethod
    def backward(ctx, g):
        return {"x": -g * pb.cos(ctx.saved_variables.x)}


class SetUp(pb.Function):
    @staticmethod
    def forward(x, scale):
        return scale * pb.sin(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.x, ctx.scale = inputs[0], -inputs[1]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.scale * pb.cos(ctx.x), None


def test_rules_of_classes_are_changed():
    assert "g * pb.cos(ctx.saved_variables.x)" in changes(Sine, X)
    assert "(-(g * ctx.scale * pb.cos(ctx.x)), None)" in changes(SetUp, X, 2.5)


def logged(function):
    @functools.wraps(function)
    def run(*args):
        return function(*args)

    return run


def test_a_rule_that_is_decorated_and_has_free_variables_and_defaults_is_changed():
    weights = np.array([0.5, 2.0, 1.5, -1.0])

    @logged
    def backward(ctx, g, factor=2.0, *, sign=1.0):
        return sign * factor * g / pb.asarray(weights) * pb.cos(ctx.saved_variables.x) / 2

    def weighted(ctx, x):
        ctx.save_for_backward(x=x)
        return pb.asarray(weights) * pb.sin(x)

    assert "g * pb.asarray(weights)" in change(weighted, backward, X)


@pytest.mark.parametrize(
    "terms", ["[n * x**n for n in range(1, 4)]", "(n + x ** (n - 1) for n in range(1, 4))"]
)
def test_a_comprehension_and_a_generator_are_changed(terms):
    op = operation(*texts("x", "sum(x**n for n in range(1, 4))", f"g * sum({terms})"))
    assert "n * x ** (n - 1)" in changes(op, X)


def slope(x):
    return pb.sin(x)


def wrapped(x):
    return x - np.round(x)


def test_a_helper_that_backward_calls_is_changed():
    text = change(sine, lambda ctx, g: g * slope(ctx.saved_variables.x), X)
    assert "of `slope`: with `pb.cos(x)` instead of `pb.sin(x)`" in text


def test_a_helper_through_which_forward_passes_a_value_is_called():
    def squared_distance(ctx, x, y):
        ctx.save_for_backward(x=x.numpy(), y=y.numpy())
        return pb.asarray(wrapped(x.numpy() - y.numpy()) ** 2)

    @pb.once_differentiable
    def backward(ctx, g):
        x, y = ctx.saved_variables
        gap = x - y
        flow = 2 * g.numpy() * gap
        return {"x": pb.asarray(flow), "y": pb.asarray(-flow)}

    assert "with `gap = wrapped(x - y)` instead of" in change(squared_distance, backward, X, Y)


# ---- other calls ---------------------------------------------------------------------------------
def test_a_change_that_holds_with_another_setting_alone_is_none():
    def scaled(ctx, x, negative: bool = False):
        ctx.save_for_backward(x=x)
        return -pb.sin(x) if negative else pb.sin(x)

    def backward(ctx, g):
        return g * pb.cos(ctx.saved_variables.x)

    text = change(scaled, backward, X, kwargs={})
    assert "-(g * pb.cos" not in text


def test_a_gradient_that_is_wrong_at_another_length_is_repaired_for_it():
    op = operation(*texts("x", "(x * x).mean(dim=1)", "2.0 * g[:, None] * x / 4"))
    (failure,) = check_op(op, np.outer(X[:2], Y), raise_exception=False).failures
    assert failure.part == "shapes"
    assert "/ x.shape[1]" in failure.repair


# ---- what is not proposed ------------------------------------------------------------------------
def test_a_change_that_is_right_for_some_shapes_alone_is_not_proposed():
    op = operation(*texts("x, c", "x * c", "(g * c, (g * x).mean())"))
    assert "(g * x).sum()" in changes(op, X, np.array(1.5))  # not (g @ x).mean()


def test_of_a_gradient_that_is_always_zero_no_factor_that_is_zero_is_proposed():
    op = operation(*texts("x, offset", "pb.round(x) + offset", "(g, None)"))
    assert changes(op, X, 0) == ""


def test_a_change_uses_no_module_that_the_file_does_not_import():
    texts_of = texts("x, c", "pb.abs(x) - c", "(g * x, -g.sum())")
    forward, backward = map(defined, texts_of, ("forward", "backward"))
    del forward.__globals__["np"], backward.__globals__["np"]
    assert "g * x.sign()" in change(forward, backward, X, np.array(1.5))


def test_of_gradients_that_are_swapped_only_an_exchange_is_proposed():
    op = operation(*texts("x, y", "x * y", "(g * x, g * y)"))
    text = changes(op, X, Y)
    assert "with `(g * y, g * x)`" in text or not text, text
