"""The forward derivative that a user gives an operation: called, checked, transposed."""

import itertools
import pickle
from typing import NamedTuple

import numpy as np
import pytest

import pullback as pb

called = []


@pb.autograd_function
def cube(ctx, x, *, scale=1.0):
    ctx.save_for_backward(x=x)
    ctx.scale = scale
    return scale * x**3


@cube.jvp
def _(ctx, x):
    called.append("jvp")
    return 3 * ctx.scale * ctx.saved_variables.x**2 * x


def forward(f):
    return lambda x: pb.jvp(f, (x,), (1.0,))[1]


def operation(jvp, forward=lambda ctx, a, b: a * b):
    op = pb.autograd_function(forward, lambda ctx, g: {"a": g, "b": g}, name="product")
    op.jvp(jvp)
    return op


class Product(pb.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a=a, b=b)
        return a * b

    @staticmethod
    def backward(ctx, grad_output):
        saved = ctx.saved_variables
        return {"a": grad_output * saved.b, "b": grad_output * saved.a}

    @staticmethod
    def jvp(ctx, a_dot, b_dot):
        saved = ctx.saved_variables
        terms = [d * s for d, s in ((a_dot, saved.b), (b_dot, saved.a)) if d is not None]
        return 1000 * sum(terms)  # wrong, so that it shows who is called


class Results(NamedTuple):
    product: pb.Tensor
    count: int
    total: pb.Tensor


@pb.autograd_function(traverse=True)
def combine(ctx, pair, n):
    ctx.save_for_backward(a=pair["a"], b=pair["b"][0])
    return Results(pair["a"] * pair["b"][0], n, pair["a"] + pair["b"][0])


@combine.jvp
def _(ctx, pair):
    a, b = ctx.saved_variables.a, ctx.saved_variables.b
    da = pb.zeros_like(a) if pair["a"] is None else pair["a"]
    db = pb.zeros_like(b) if pair["b"][0] is None else pair["b"][0]
    return da * b + db * a, None, da + db


def test_forward_mode_calls_the_jvp_that_is_given():
    called.clear()
    assert pb.jvp(cube, (2.0,), (1.0,)) == (8.0, 12.0)
    assert called == ["jvp"]
    assert pb.jvp(lambda x: cube(x, scale=2.0), (2.0,), (1.0,)) == (16.0, 24.0)


def test_a_class_gives_it_as_a_static_method():
    assert pb.jvp(Product.apply, (2.0, 3.0), (1.0, None)) == (6.0, 3000.0)
    assert pb.jvp(Product.apply, (2.0, 3.0), (1.0, 1.0)) == (6.0, 5000.0)
    assert pb.jacfwd(Product.apply, argnum=(0, 1))(2.0, 3.0) == (3000.0, 2000.0)
    assert pb.grad(Product.apply)(2.0, 3.0) == 3.0


@pytest.mark.parametrize("ways", list(itertools.product([forward, pb.grad], repeat=3)))
def test_an_operation_with_a_jvp_alone_has_every_derivative(ways):
    f = cube
    for way, expected in zip(ways, [12.0, 12.0, 6.0], strict=True):
        f = way(f)
        assert f(2.0) == pytest.approx(expected)


def test_the_transposed_jvp_handles_containers_and_several_results():
    def function(a, b):
        found = combine({"a": a, "b": [b]}, 3)
        return found.product + 2 * found.total

    assert pb.grad(function, argnum=(0, 1))(2.0, 3.0) == (5.0, 4.0)
    assert pb.jvp(function, (2.0, 3.0), (1.0, None)) == (16.0, 5.0)
    result, tangent = pb.jvp(lambda a: combine({"a": a, "b": [a]}, 3), (2.0,), (1.0,))
    assert (result.product, result.count, result.total) == (4.0, 3, 4.0)
    assert (tangent.product, tangent.count, tangent.total) == (4.0, None, 2.0)


def test_the_gradient_of_a_tangent_goes_through_the_jvp():
    found = pb.grad(lambda x, v: pb.jvp(cube, (x,), (v,))[1], argnum=(0, 1))(2.0, 5.0)
    assert found == (60.0, 12.0)


def test_a_jvp_by_names_may_leave_out_what_does_not_change():
    op = operation(lambda ctx, a: 7 * a)
    assert pb.jvp(lambda a: op(a, 2.0), (1.0,), (1.0,))[1] == 7.0
    with pytest.raises(
        pb.errors.ArgumentError, match=r"product\.jvp: a parameter for the tangent of `b`"
    ):
        pb.jvp(op, (1.0, 2.0), (1.0, 1.0))


def test_a_jvp_gets_stars_as_tuples_of_tangents():
    op = pb.autograd_function(lambda ctx, x, *more: x + sum(more), name="total")
    op.jvp(lambda ctx, *tangents: sum(t for t in tangents if t is not None))
    assert pb.jvp(op, (1.0, 2.0, 3.0), (1.0, None, 4.0)) == (6.0, 5.0)
    assert pb.grad(op, argnum=2)(1.0, 2.0, 3.0) == 1.0


def test_operations_with_a_jvp_pickle_and_copy():
    restored = pickle.loads(pickle.dumps(cube))
    assert restored is cube or pb.jvp(restored, (2.0,), (1.0,)) == (8.0, 12.0)
    assert pb.jvp(pickle.loads(pickle.dumps(Product)).apply, (2.0, 3.0), (1.0, None))[1] == 3000.0


def test_a_backward_given_after_a_jvp_replaces_its_transpose():
    op = pb.autograd_function(lambda ctx, x: x * 2, name="twice")
    op.jvp(lambda ctx, x: x * 2)
    assert pb.grad(op)(1.0) == 2.0
    op.backward(lambda ctx, g: g * 100)
    assert pb.grad(op)(1.0) == 100.0
    assert pb.jvp(op, (1.0,), (1.0,))[1] == 2.0


@pytest.mark.parametrize(
    ("jvp", "message"),
    [
        (lambda ctx, a, b: np.ones(3), r"product.jvp: the shape \(2,\) required in the result"),
        (lambda ctx, a, b: (a, b), "product.jvp: the structure Tensor required in the result"),
        (lambda ctx, a, b: "one", "product.jvp: a Tensor, an array or a number required"),
        (lambda ctx, a, b: a.to(pb.int64), "product.jvp: real floating-point numbers required"),
    ],
    ids=["shape", "structure", "text", "integers"],
)
def test_what_a_jvp_returns_is_checked(jvp, message):
    x = np.array([1.0, 2.0])
    with pytest.raises(pb.AutogradError, match=message):
        pb.jvp(operation(jvp), (x, x), (x, x))
    assert pb.is_grad_enabled()


def test_none_from_a_jvp_is_zero():
    x = np.array([1.0, 2.0])
    assert pb.jvp(operation(lambda ctx, a, b: None), (x, x), (x, x))[1].tolist() == [0.0, 0.0]


def test_a_jvp_is_not_called_where_nothing_changes():
    @pb.autograd_function
    def scaled(ctx, x):
        return x * 3

    @scaled.jvp
    def _(ctx, x):
        return x * 3  # of a tangent of None this would raise

    x = np.array([1.0, 2.0])
    hessian = pb.jacrev(pb.jacfwd(lambda x: np.sum(scaled(x) * x)))(x)  # once without a direction
    np.testing.assert_array_equal(hessian, 6 * np.eye(2))


def test_an_exception_in_a_jvp_reaches_the_caller():
    def fails(ctx, a, b):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        pb.jvp(operation(fails), (1.0, 1.0), (1.0, 1.0))
    assert pb.jvp(cube, (1.0,), (1.0,)) == (1.0, 3.0)


@pytest.mark.parametrize(
    ("jvp", "error", "message"),
    [
        (3, pb.errors.ArgumentTypeError, "product.jvp: a function required, got int"),
        (lambda: None, pb.errors.ArgumentError, r"tangents of the arguments \(a, b\) required"),
        (lambda ctx, x: x, pb.errors.ArgumentError, r"hint: write def jvp\(ctx, a, b\)"),
    ],
)
def test_a_jvp_that_cannot_be_called_is_refused_when_it_is_given(jvp, error, message):
    with pytest.raises(error, match=message):
        operation(jvp)
