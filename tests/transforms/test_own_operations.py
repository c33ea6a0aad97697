"""Operations of one's own in forward mode: the derivative is the transpose of their backward."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from tests.transforms import _numerical as numerical

import pullback as pb

X, V = np.array([0.3, -0.7, 1.1]), np.array([1.0, 0.5, -2.0])


@pb.autograd_function
def cube(ctx, x):
    ctx.save_for_backward(x=x)
    return pb.asarray(x.numpy() ** 3)  # nothing follows the forward itself


@cube.backward
def _(ctx, grad_output):
    x = ctx.saved_variables.x
    return {"x": grad_output * 3.0 * x * x}


def forward(f):
    return lambda x: pb.jvp(f, (x,), (1.0,))[1]


@pytest.mark.parametrize("ways", list(itertools.product([forward, pb.grad], repeat=3)))
def test_derivatives_of_every_order_and_mode(ways):
    f, wanted = cube, [12.0, 12.0, 6.0]
    for way, expected in zip(ways, wanted, strict=True):
        f = way(f)
        assert f(2.0) == pytest.approx(expected)


def test_the_tangent_is_that_of_backward_where_it_is_no_derivative():
    rounded = pb.autograd_function(lambda ctx, x: x.round(), lambda ctx, g: g)
    assert pb.jvp(rounded, (2.3,), (1.5,)) == (2.0, 1.5)
    assert pb.jvp(lambda x: x * rounded(x), (2.3,), (1.0,))[1] == pytest.approx(2.0 + 2.3)


class Parts(NamedTuple):
    product: pb.Tensor
    count: int
    places: pb.Tensor


@pb.autograd_function
def mixed(ctx, a, b, /, *more, power=1.0):
    ctx.save_for_backward(a=a, b=b)
    ctx.power, ctx.count = power, len(more)
    return Parts(a**power * b + sum(more), 3, pb.argmax(a))


@mixed.backward
def _(ctx, product, count, places):
    a, b, p = ctx.saved_variables.a, ctx.saved_variables.b, ctx.power
    grads = {"a": product * b * p * a ** (p - 1), "b": product * a**p}
    return {**grads, "more": [product] * ctx.count}


def test_results_and_arguments_of_every_kind():
    constant = pb.asarray(np.array([1.0, 2.0, 3.0]))

    def f(x):
        found = mixed(x, constant, x * 2.0, power=2.0)
        assert type(found) is Parts
        assert (found.count, found.places.item()) == (3, 2)
        return found.product * x

    out, found = pb.jvp(f, (X,), (V,))
    np.testing.assert_allclose(out, X**3 * constant.numpy() + 2 * X**2)
    np.testing.assert_allclose(found, (3 * X**2 * constant.numpy() + 4 * X) * V)


def test_a_traversed_container_has_tangents():
    def weighted(ctx, p):
        ctx.save_for_backward(*p["xs"])
        return p["xs"][0] * p["xs"][1] * p["k"]

    def rule(ctx, g):
        a, b = ctx.saved_tensors
        return {"p": {"xs": [g * b * 2, g * a * 2], "k": None}}

    op = pb.autograd_function(weighted, rule, traverse=True)
    _, found = pb.jvp(lambda x: op({"xs": [x, x * x], "k": 2}), (X,), (V,))
    np.testing.assert_allclose(found, 6 * X**2 * V)


def test_a_tensor_of_the_closure_keeps_its_history():
    w = pb.tensor(2.0, requires_grad=True, dtype=pb.float64)
    _, found = pb.jvp(lambda x: mixed(x, w).product * x, (3.0,), (1.0,))  # 2 w x
    assert found.item() == 12.0
    assert pb.autograd.grad(found, w)[0].item() == 6.0


def with_rule(rule):
    def save(ctx, x):
        ctx.save_for_backward(x=x)
        return x**2

    return pb.autograd_function(save, rule)


ONCE = {
    "marked": with_rule(pb.once_differentiable(lambda ctx, g: 2 * ctx.saved_variables.x * g)),
    "in NumPy": with_rule(lambda ctx, g: 2 * ctx.saved_variables.x.numpy() * g.numpy()),
}


@pytest.mark.parametrize("op", ONCE.values(), ids=ONCE.keys())
def test_a_rule_that_cannot_be_recorded_is_called_for_each_element(op):
    np.testing.assert_allclose(pb.jvp(op, (X,), (V,))[1], 2 * X * V)
    z = X + 1j * V
    np.testing.assert_allclose(pb.jacfwd(lambda x: op(x) * x)(X), np.diag(3 * X**2))
    message = (
        r"(?s)^save: .*at most 1000 elements in the results required, got 1001\nhint: .*@save.jvp"
    )
    for run in (
        lambda x: pb.jvp(op, (x,), (x,)),
        pb.jacfwd(lambda x: op(x) * 2),
        lambda x: pb.vmap(lambda v: pb.jvp(op, (x,), (v,))[1])(x.reshape(1, -1)),
    ):
        with pytest.raises(RuntimeError, match=message):
            run(np.ones(1001))
    w = pb.tensor(X, requires_grad=True)
    with pytest.raises(RuntimeError):  # the tangent would depend on it
        pb.jvp(op, (w,), (V,))
    assert z.shape == (3,)


def test_a_complex_operation_element_by_element():
    def rule(ctx, g):
        return np.conj(2 * ctx.saved_variables.x.numpy()) * g.numpy()

    z, v = np.array([1.0 + 2.0j, -0.5 + 0.3j]), np.array([0.5 - 1.0j, 1.0 + 0.2j])
    np.testing.assert_allclose(pb.jvp(with_rule(rule), (z,), (v,))[1], 2 * z * v)


def test_an_operation_that_changes_its_argument_is_refused():
    def doubled(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2.0)

    op = pb.autograd_function(doubled, lambda ctx, g: 2 * g)
    with pytest.raises(
        pb.errors.InplaceError, match=r"^doubled: an operation that changes no argum"
    ):
        pb.jvp(lambda x: op(x * 1.0), (X,), (V,))


def test_its_gradient_is_a_derivative_along_a_direction():
    def f(x):
        return np.sum(cube(np.sin(x)) * x)

    np.testing.assert_allclose(pb.hvp(f)(X, V), numerical.along(pb.grad(f), X, V), rtol=1e-7)


@pytest.mark.parametrize("way", ["jvp of grad", "vmap of grad"])
def test_grad_fn_of_a_wrapped_call_is_named_after_the_operation_which_runs_once(way):
    calls, names = [], []

    @pb.autograd_function
    def square(ctx, x):
        calls.append(x.shape)
        ctx.save_for_backward(x=x)
        return x * x

    @square.backward
    def _(ctx, grad_output):
        return {"x": 2 * ctx.saved_variables.x * grad_output}

    def f(x):
        y = square(x)
        names.append(y.grad_fn.name())
        return y.sum()

    if way == "jvp of grad":
        assert pb.jvp(pb.grad(f), (X,), (V,))[1] == pytest.approx(2 * V)
        assert names == ["squareBackward"]
        assert calls == [(3,), (3,)]  # for the gradient's tangent once more
    else:
        assert pb.vmap(pb.grad(f))(X[:, None]) == pytest.approx(2 * X[:, None])
        assert names == ["squareBackward"]
        assert calls == [(1,)] * 3


def test_an_argument_of_a_wrapped_call_that_is_changed_before_backward_is_an_error():
    def f(x):
        y = x * 1.0
        out = cube(y).sum()
        y.mul_(2.0)
        return out

    with pytest.raises(pb.errors.InplaceError, match="cubeBackward: one of the variables needed"):
        pb.jvp(pb.grad(f), (X,), (V,))


def test_saved_tensors_hooks_pack_the_arguments_of_a_wrapped_call():
    packed = []

    def pack(t):
        packed.append(t.shape)
        return t

    def f(x):
        with pb.saved_tensors_hooks(pack, lambda t: t):
            y = cube(x)
        return y.sum()

    assert pb.jvp(pb.grad(f), (X,), (V,))[1] == pytest.approx(6 * X * V)
    assert packed


def test_jvp_calls_forward_once_of_an_operation_whose_backward_cannot_be_recorded():
    calls = []

    @pb.autograd_function
    def squared(ctx, x):
        calls.append(x)
        ctx.save_for_backward(x)
        return x * x

    @squared.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x * grad_output

    x, v = np.array([1.0, 2.0]), np.array([0.5, -1.0])
    _, along = pb.jvp(squared, (x,), (v,))
    step = 1e-6
    np.testing.assert_allclose(along, ((x + step * v) ** 2 - (x - step * v) ** 2) / (2 * step))
    assert len(calls) == 1
