"""Changes of backward that are found, one kind of slip each."""

import functools

import numpy as np
from tests.check._repair import change, changes

import pullback as pb

X = np.array([0.3, 1.2, -0.7, 0.5])
Y = np.array([1.5, -0.4, 0.9, 2.0])
A = np.array([[0.3, 1.2, -0.7], [0.5, -0.9, 0.8]])
SQUARE = np.array([[0.3, 1.2, -0.7], [0.5, -0.9, 0.8], [1.4, 0.1, 0.6]])


def save_x(ctx, x):
    ctx.save_for_backward(x=x)


def sine(ctx, x):
    save_x(ctx, x)
    return pb.sin(x)


def product(ctx, x, y):
    ctx.save_for_backward(x=x, y=y)
    return x * y


def quotient(ctx, x, y):
    ctx.save_for_backward(x=x, y=y)
    return x / y


def matmul(ctx, a, b):
    ctx.save_for_backward(a=a, b=b)
    return a @ b


# ---- signs, operators, names ---------------------------------------------------------------------
def test_a_sign_that_is_too_many():
    text = change(sine, lambda ctx, g: -g * pb.cos(ctx.saved_variables.x), X)
    assert text.endswith(
        "of backward: with `g * pb.cos(ctx.saved_variables.x)` instead of "
        "`-g * pb.cos(ctx.saved_variables.x)` the gradient of `x` is right"
    )


def test_a_sign_that_is_missing():
    def cosine(ctx, x):
        save_x(ctx, x)
        return pb.cos(x)

    text = change(cosine, lambda ctx, g: g * pb.sin(ctx.saved_variables.x), X)
    assert "with `-(g * pb.sin(ctx.saved_variables.x))` instead of" in text


def test_a_wrong_operator():
    def backward(ctx, g):
        y = ctx.saved_variables.y
        return {"x": g * y, "y": -g * ctx.saved_variables.x / y**2}

    text = change(quotient, backward, X, Y)
    assert "g / y" in text
    assert text.endswith("the gradient of `x` is right")


def test_exchanged_operands():
    def backward(ctx, g):
        a, b = ctx.saved_variables.a, ctx.saved_variables.b
        return {"a": g @ b.T, "b": g @ a.T}

    text = change(matmul, backward, SQUARE, SQUARE[::-1] + 0.1)
    assert "'b': a.T @ g" in text


def test_a_function_that_is_its_sibling():
    text = change(sine, lambda ctx, g: g * pb.sin(ctx.saved_variables.x), X)
    assert "`g * pb.cos(ctx.saved_variables.x)`" in text


def test_a_wrong_name():
    def backward(ctx, g):
        x, y = ctx.saved_variables.x, ctx.saved_variables.y
        return {"x": g * x, "y": g * x + 0 * y}

    text = change(product, backward, X, Y)
    assert "'x': g * y" in text
    assert text.endswith("the gradient of `x` is right")


def test_exchanged_gradients_under_two_names():
    def backward(ctx, g):
        x, y = ctx.saved_variables.x, ctx.saved_variables.y
        for_x, for_y = 2 * g * x, 2 * g * y
        return {"x": for_x / 2, "y": for_y / 2}

    text = change(product, backward, X, Y)
    assert (
        "for_x, for_y = (2 * g * y, 2 * g * x)" in text or "x, y = (ctx.saved_variables.y" in text
    )
    assert text.endswith("the gradients of `x`, `y` are right")


def test_exchanged_names_in_a_statement():
    def backward(ctx, g):
        y, x = ctx.saved_variables.x, ctx.saved_variables.y
        return {"x": g / y, "y": -g * x / y**2}

    text = change(quotient, backward, X, Y)
    assert "y, x = (ctx.saved_variables.y, ctx.saved_variables.x)" in text


def test_exchanged_weights_across_two_statements():
    def blend(ctx, x, y):
        ctx.low, ctx.high = 0.3, 0.9
        return ctx.low * x + ctx.high * y

    def backward(ctx, g):
        first = g * ctx.high
        second = g * ctx.low
        return {"x": first, "y": second}

    text = change(blend, backward, X, Y)
    assert "with `{'x': second, 'y': first}` instead of `{'x': first, 'y': second}`" in text
    assert text.endswith("the gradients of `x`, `y` are right")


# ---- factors, terms, masks -----------------------------------------------------------------------
def test_a_missing_factor_that_is_a_setting():
    def scaled(ctx, x, scale=2.5):
        ctx.save_for_backward(x=x)
        ctx.scale = scale
        return scale * pb.sin(x)

    text = change(scaled, lambda ctx, g: g * pb.cos(ctx.saved_variables.x), X)
    assert "ctx.scale" in text
    assert "as in forward" not in text


def test_a_missing_factor_that_is_saved():
    def backward(ctx, g):
        return {"x": g, "y": g * ctx.saved_variables.x}

    assert "ctx.saved_variables.y" in change(product, backward, X, Y)


def test_a_missing_factor_that_only_forward_has():
    def scaled(ctx, x):
        rate = 0.37
        ctx.save_for_backward(x=x)
        return rate * pb.sin(x)

    text = change(scaled, lambda ctx, g: g * pb.cos(ctx.saved_variables.x), X)
    assert "rate" in text
    assert "(`rate` as in forward)" in text


def test_a_missing_division_by_a_length():
    def mean(ctx, x):
        save_x(ctx, x)
        return x.sum() / x.shape[0]

    text = change(mean, lambda ctx, g: g * pb.ones_like(ctx.saved_variables.x), X)
    assert "/ ctx.saved_variables.x.shape[0]" in text


def test_a_missing_mask():
    def hinge(ctx, x):
        mask = x > 0
        ctx.save_for_backward(mask=mask)
        return pb.where(mask, x, 0.0)

    assert "ctx.saved_variables.mask" in change(hinge, lambda ctx, g: g * 1.0, X)


def test_a_missing_term_that_is_a_product():
    def gated(ctx, x, y):
        ctx.save_for_backward(x=x, y=y)
        return x * x * y + x * y

    def backward(ctx, g):
        x, y = ctx.saved_variables.x, ctx.saved_variables.y
        return {"x": 2 * g * x * y, "y": g * (x * x + x)}

    text = change(gated, backward, X, Y)
    assert text.endswith("the gradient of `x` is right")
    assert "(2 * g * x + g) * y" in text


def test_a_missing_sum_over_an_axis():
    def add_row(ctx, a, row):
        return a + row

    @pb.once_differentiable
    def backward(ctx, g):
        g = g.numpy()
        return {"a": g.copy(), "row": g[0].copy()}

    text = change(add_row, backward, A, X[:3])
    assert "sum" in text


def test_a_missing_matrix_product():
    def bilinear(ctx, a, b):
        ctx.save_for_backward(a=a, b=b)
        return a @ b @ a

    def backward(ctx, g):
        a, b = ctx.saved_variables.a, ctx.saved_variables.b
        left = g @ (b @ a).T
        return {"a": left, "b": a.T @ g @ a.T}

    text = change(bilinear, backward, SQUARE, SQUARE[::-1] + 0.1)
    assert "@ g" in text


# ---- axes, slices, indices, orders ---------------------------------------------------------------
def test_a_wrong_axis():
    def scan(ctx, a):
        return a.cumsum(0)

    @pb.once_differentiable
    def backward(ctx, g):
        return {"a": np.flip(np.cumsum(np.flip(g.numpy(), 0), 1), 0)}

    assert "0), 0)" in change(scan, backward, SQUARE)


def test_a_slice_that_is_off_by_one():
    def steps(ctx, x):
        return x[1:] - x[:-1]

    @pb.once_differentiable
    def backward(ctx, g):
        g = g.numpy()
        grad = np.zeros(len(g) + 1)
        grad[1:] += g
        grad[1:] -= g
        return {"x": grad}

    assert "grad[:-1]" in change(steps, backward, X)


def test_an_index_that_is_off_by_one():
    def last(ctx, x):
        ctx.n = len(x)
        return x[-1] * 3.0

    @pb.once_differentiable
    def backward(ctx, g):
        grad = np.zeros(ctx.n)
        grad[ctx.n - 2] = 3 * g.numpy()
        return {"x": grad}

    assert "with `grad[ctx.n - 2 + 1] = 3 * g.numpy()` instead of" in change(last, backward, X)


def test_a_cumulative_sum_that_is_not_reversed():
    def scan(ctx, x):
        return x.cumsum(0)

    @pb.once_differentiable
    def backward(ctx, g):
        return {"x": np.cumsum(g.numpy())}

    text = change(scan, backward, X)
    assert "np.flip(np.cumsum(np.flip(g.numpy(), 0)), 0)" in text


def test_an_order_that_is_not_inverted():
    order = np.array([2, 0, 3, 1])

    def permuted(ctx, x):
        return x[order]

    @pb.once_differentiable
    def backward(ctx, g):
        return {"x": g.numpy()[order]}

    assert "np.argsort(order)" in change(permuted, backward, X)


def test_a_missing_conjugate():
    z = np.array([0.3 + 0.5j, -1.0 + 0.2j])
    w = np.array([1.0 - 2.0j, 0.4 + 0.7j])

    @pb.once_differentiable
    def backward(ctx, g):
        x, y, g = ctx.saved_variables.x.numpy(), ctx.saved_variables.y.numpy(), g.numpy()
        return {"x": g * y, "y": g * np.conj(x)}

    assert "np.conj(ctx.saved_variables.y.numpy())" in change(product, backward, z, w)


def test_a_missing_transposition():
    def backward(ctx, g):
        a, b = ctx.saved_variables.a, ctx.saved_variables.b
        return {"a": g @ b, "b": a.T @ g}

    assert "b.T" in change(matmul, backward, SQUARE, SQUARE[::-1] + 0.1)


def test_exchanged_letters_of_an_einstein_sum():
    @pb.once_differentiable
    def backward(ctx, g):
        a, b, g = ctx.saved_variables.a.numpy(), ctx.saved_variables.b.numpy(), g.numpy()
        return {"a": np.einsum("ik,jk->ij", g, b), "b": np.einsum("ij,ik->kj", a, g)}

    text = change(matmul, backward, SQUARE, SQUARE[::-1] + 0.1)
    assert "np.einsum('ij,ik->kj', a, g).T" in text or "'ij,ik->jk'" in text


def test_indices_that_occur_twice():
    index = np.array([0, 2, 0, 1])

    def gather(ctx, x):
        return x[index]

    @pb.once_differentiable
    def backward(ctx, g):
        grad = np.zeros(4)
        grad[index] += g.numpy()
        return {"x": grad}

    text = change(gather, backward, X)
    assert "with `np.add.at(grad, index, g.numpy())` instead of `grad[index] += g.numpy()`" in text


def test_a_comparison_of_the_wrong_direction():
    def hinge(ctx, x):
        save_x(ctx, x)
        return pb.where(x > 0, x, 0.0)

    text = change(hinge, lambda ctx, g: g * (ctx.saved_variables.x < 0), X)
    assert "(-ctx.saved_variables.x < 0)" in text or "(ctx.saved_variables.x > 0)" in text


# ---- what forward saves --------------------------------------------------------------------------
def test_what_forward_changes_after_it_saved_it():
    def softened(ctx, x):
        value = np.exp(x.numpy())
        ctx.value = value
        result = pb.asarray(value.copy())
        value /= 2.0
        return result

    @pb.once_differentiable
    def backward(ctx, g):
        return {"x": g.numpy() * ctx.value}

    text = change(softened, backward, X)
    assert "of forward: with `value = value / 2.0` instead of `value /= 2.0`" in text


def test_a_value_that_forward_should_not_have_saved():
    def squared_sine(ctx, x):
        s = pb.sin(x)
        ctx.save_for_backward(x=x, s=x)
        return s * s

    def backward(ctx, g):
        s, x = ctx.saved_variables.s, ctx.saved_variables.x
        return 2 * g * s * pb.cos(x)

    text = change(squared_sine, backward, X)
    assert "of forward: with `ctx.save_for_backward(x=x, s=s)` instead of" in text
    assert text.endswith("the gradient of `x` is right")


# ---- ways to write a rule ------------------------------------------------------------------------
class Sine(pb.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x=x)
        return pb.sin(x)

    @staticmethod
    def backward(ctx, g):
        return {"x": -g * pb.cos(ctx.saved_variables.x)}


def test_a_rule_that_is_a_static_method():
    assert "g * pb.cos(ctx.saved_variables.x)" in changes(Sine, X)


class SetUp(pb.Function):
    @staticmethod
    def forward(x, scale):
        return scale * pb.sin(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, scale = inputs
        ctx.save_for_backward(x=x)
        ctx.scale = -scale

    @staticmethod
    def backward(ctx, g):
        return g * ctx.scale * pb.cos(ctx.saved_variables.x), None


def test_a_slip_in_setup_context():
    text = changes(SetUp, X, 2.5)
    assert "(-(g * ctx.scale * pb.cos(ctx.saved_variables.x)), None)" in text


def logged(function):
    @functools.wraps(function)
    def run(*args):
        return function(*args)

    return run


def test_a_rule_that_is_decorated():
    @logged
    def backward(ctx, g):
        return -g * pb.cos(ctx.saved_variables.x)

    assert "g * pb.cos(ctx.saved_variables.x)" in change(sine, backward, X)


def test_a_rule_with_free_variables():
    weights = np.array([0.5, 2.0, 1.5, -1.0])

    def weighted(ctx, x):
        save_x(ctx, x)
        return pb.asarray(weights) * pb.sin(x)

    def backward(ctx, g):
        return g / pb.asarray(weights) * pb.cos(ctx.saved_variables.x)

    assert "g * pb.asarray(weights)" in change(weighted, backward, X)


def test_a_rule_with_defaults_and_keyword_only_arguments():
    def backward(ctx, g, factor=2.0, *, sign=-1.0):
        return sign * g * pb.cos(ctx.saved_variables.x) * factor / 2

    assert change(sine, backward, X).endswith("the gradient of `x` is right")


def test_a_rule_with_a_comprehension():
    def powers(ctx, x):
        save_x(ctx, x)
        return sum(x**n for n in range(1, 4))

    def backward(ctx, g):
        x = ctx.saved_variables.x
        return g * sum([n * x**n for n in range(1, 4)])

    assert "x ** (n - 1)" in change(powers, backward, X)


def test_a_rule_with_a_generator():
    def powers(ctx, x):
        save_x(ctx, x)
        return sum(x**n for n in range(1, 4))

    def backward(ctx, g):
        x = ctx.saved_variables.x
        return g * sum(n + x ** (n - 1) for n in range(1, 4))

    assert "n * x ** (n - 1)" in change(powers, backward, X)


def test_a_rule_that_returns_a_tuple():
    def backward(ctx, g):
        x, y = ctx.saved_variables.x, ctx.saved_variables.y
        return g * x, g * y

    text = change(product, backward, X, Y)
    assert text.endswith("the gradients of `x`, `y` are right")


def test_an_operation_with_several_outputs():
    def both(ctx, x):
        save_x(ctx, x)
        return pb.sin(x), pb.cos(x)

    def backward(ctx, g_sin, g_cos):
        x = ctx.saved_variables.x
        return g_sin * pb.cos(x) + g_cos * pb.sin(x)

    assert change(both, backward, X).endswith("the gradient of `x` is right")


def slope(x):
    return pb.sin(x)


def test_a_helper_that_backward_calls():
    def backward(ctx, g):
        return g * slope(ctx.saved_variables.x)

    text = change(sine, backward, X)
    assert "of `slope`: with `pb.cos(x)` instead of `pb.sin(x)`" in text
    assert text.endswith("the gradient of `x` is right")


def test_a_change_that_holds_with_another_setting_alone():
    def scaled(ctx, x, negative: bool = False):
        save_x(ctx, x)
        return -pb.sin(x) if negative else pb.sin(x)

    def backward(ctx, g):
        return g * pb.cos(ctx.saved_variables.x)

    text = change(scaled, backward, X, kwargs={})
    assert "here, though not at the inputs given" in text
