"""Vector-Jacobian products: structures, what a cotangent may be, repeated and nested calls."""

import gc
import weakref
from collections import namedtuple

import numpy as np
import pytest
from tests.transforms import _numerical as numerical

import pullback as pb

X = np.array([0.3, -0.7, 1.1])


def bend(x):
    return np.sin(x) * np.sum(x**2) + x[::-1]


# -- values ----------------------------------------------------------------------------------------
def test_the_product_is_that_with_the_jacobian():
    weights = np.array([1.0, -2.0, 0.5])
    out, vjp_fn = pb.vjp(bend, X)
    np.testing.assert_array_equal(out, bend(X))
    (g,) = vjp_fn(weights)
    np.testing.assert_allclose(g, weights @ numerical.jacobian(bend, X), rtol=1e-8)


def test_it_may_be_called_again_and_sums_nothing_up():
    _, vjp_fn = pb.vjp(bend, X)
    first = vjp_fn(np.ones(3))[0]
    twice = vjp_fn(2 * np.ones(3))[0]
    np.testing.assert_array_equal(twice, 2 * first)
    np.testing.assert_array_equal(vjp_fn(np.ones(3))[0], first)


def test_every_argument_gets_a_gradient_of_its_type():
    def f(a, b, c, n):
        return a["w"] * b + c[0] * n

    given = ({"w": np.array([1.0, 2.0])}, 3.0, (pb.tensor([4.0]),), 2)
    out, vjp_fn = pb.vjp(f, *given)
    assert isinstance(out, pb.Tensor)
    by_a, by_b, (by_c,), by_n = vjp_fn(np.array([1.0, 10.0]))
    np.testing.assert_array_equal(by_a["w"], [3.0, 30.0])
    assert (type(by_b), by_b) == (float, 21.0)
    assert by_c.tolist() == [22.0]
    assert by_n is None


Pair = namedtuple("Pair", "first second")


def test_a_cotangent_has_the_structure_of_the_result():
    def f(x):
        return Pair({"a": 2.0 * x, "n": 3}, [np.sum(x), np.argmax(x), "note"])

    out, vjp_fn = pb.vjp(f, X)
    assert type(out) is Pair
    assert (out.first["n"], out.second[1], out.second[2]) == (3, 2, "note")
    np.testing.assert_array_equal(out.first["a"], 2 * X)
    assert out.second[0] == np.sum(X)
    cotangent = Pair({"a": np.array([1.0, 0.0, 0.0]), "n": None}, [10.0, None, None])
    np.testing.assert_array_equal(vjp_fn(cotangent)[0], [12.0, 10.0, 10.0])
    np.testing.assert_array_equal(vjp_fn(Pair(None, [1.0, None, None]))[0], np.ones(3))
    np.testing.assert_array_equal(vjp_fn(None)[0], np.zeros(3))


def test_a_part_of_the_result_that_depends_on_nothing_contributes_nothing():
    constant = np.ones(3)
    _, vjp_fn = pb.vjp(lambda x: (x * 2.0, constant, pb.ones(2), 1.5), X)
    cotangent = (np.ones(3), np.ones(3), np.ones(2), 7.0)
    np.testing.assert_array_equal(vjp_fn(cotangent)[0], 2 * np.ones(3))


def test_numbers_give_numbers():
    out, vjp_fn = pb.vjp(lambda x, y: x * y, 2.0, 3.0)
    assert (type(out), out) == (float, 6.0)
    assert vjp_fn(1) == (3.0, 2.0)
    out, _ = pb.vjp(lambda x: x * pb.ones(1), 2.0)
    assert (type(out), out.shape) == (np.ndarray, (1,))


def test_the_other_object_is_handed_through_without_history():
    out, vjp_fn, aux = pb.vjp(lambda x: (x**2, {"twice": x * 2}), 3.0, has_aux=True)
    assert (out, vjp_fn(1.0)) == (9.0, (6.0,))
    assert (aux["twice"].item(), aux["twice"].requires_grad) == (6.0, False)


def test_complex_gradients_are_those_of_backward():
    z, cotangent = np.array([1.0 + 2.0j, -0.5 + 0.3j]), np.array([1.0 - 1.0j, 2.0 + 0.5j])
    x = pb.tensor(z, requires_grad=True)
    (x**3).backward(pb.tensor(cotangent))
    _, vjp_fn = pb.vjp(lambda z: z**3, z)
    np.testing.assert_array_equal(vjp_fn(cotangent)[0], x.grad.numpy())
    np.testing.assert_allclose(vjp_fn(cotangent)[0], cotangent * np.conj(3 * z**2))


# -- what a cotangent may be -----------------------------------------------------------------------
@pytest.mark.parametrize(
    "cotangent",
    [
        np.ones(2, np.float64),
        np.ones(2, np.float32),
        pb.ones(2),
        pb.ones(2, dtype=pb.float64),
    ],
)
def test_another_floating_dtype_is_cast(cotangent):
    _, vjp_fn = pb.vjp(lambda x: x * 2, np.ones(2, np.float32))
    (g,) = vjp_fn(cotangent)
    assert (type(g), g.dtype, g.tolist()) == (np.ndarray, np.float32, [2.0, 2.0])


def test_a_real_cotangent_of_a_complex_result_is_cast():
    _, vjp_fn = pb.vjp(lambda z: z * 2j, 1.0 + 1.0j)
    assert vjp_fn(3.0) == (-6j,)


def two(x):
    return {"a": x * 2.0, "b": x}


WRONG = [
    (np.square, X, np.ones(2), ValueError, r"vjp_fn: the shape \(3,\) required in cotangent, got"),
    (np.square, X, 1.0, ValueError, r"the shape \(3,\) required in cotangent, got \(\)"),
    (np.square, X, np.ones(3, int), TypeError, "real floating-point numbers required in cotangent"),
    (np.square, X, np.ones(3, bool), TypeError, "required in cotangent, got bool"),
    (np.square, X, np.ones(3, complex), TypeError, "required in cotangent, got complex128"),
    (np.square, 2.0, 1j, TypeError, "required in cotangent, got the complex number 1j"),
    (np.square, 2.0, True, TypeError, "number required in cotangent, got bool"),
    (np.square, 2.0, "x", TypeError, "a Tensor, an array or a number required in cotangent, got s"),
    (np.square, X, (X,), ValueError, "the structure Tensor required in cotangent, got tuple of 0"),
    (two, X, X, ValueError, "the structure dict of a, b required in cotangent, got ndarray"),
    (two, X, {"a": X}, ValueError, "the structure dict of a, b required in cotangent, got dict of"),
    (two, X, {"a": X, "b": X[1:]}, ValueError, r"required in cotangent\['b'\], got \(2,\)"),
    (lambda x: (x, np.argmax(x)), X, (X, 1), TypeError, r"None required in cotangent\[1\], which"),
]


@pytest.mark.parametrize(("fun", "x", "cotangent", "kind", "message"), WRONG)
def test_a_cotangent_that_does_not_fit_is_refused(fun, x, cotangent, kind, message):
    _, vjp_fn = pb.vjp(fun, x)
    with pytest.raises(kind, match=message) as caught:
        vjp_fn(cotangent)
    assert isinstance(caught.value, pb.AutogradError)


def test_a_cotangent_of_another_array_library_is_refused():
    strict = pytest.importorskip("array_api_strict")
    _, vjp_fn = pb.vjp(np.square, X)
    with pytest.raises(RuntimeError, match=r"vjp_fn: an array on cpu \(numpy\) required in cotan"):
        vjp_fn(strict.ones(3))


WRONG_CALLS = [
    (lambda: pb.vjp(3.0, X), TypeError, "vjp: a function required, got float"),
    (lambda: pb.vjp(np.square), ValueError, "vjp: the arguments of square required, got none"),
    (lambda: pb.vjp(np.square, 2), TypeError, "floating-point numbers required in argument 0, got"),
    (lambda: pb.vjp(lambda x: None, X), TypeError, "vjp: a result of .* required, got None"),
    (lambda: pb.vjp(lambda x: {}, X), TypeError, "does not depend on argument 0: .* got dict"),
    (lambda: pb.vjp(np.argmax, X), TypeError, "floating-point or complex result .* got int64"),
    (lambda: pb.vjp(np.sin, X, has_aux=True), TypeError, r"a pair \(result, rest\) from sin requ"),
]


@pytest.mark.parametrize(("call", "kind", "message"), WRONG_CALLS)
def test_wrong_use_is_said(call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call()
    assert isinstance(caught.value, pb.AutogradError)


# -- nested ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: pb.vjp(lambda y: x * y**2, 3.0)[0], 9.0),
        (lambda x: pb.vjp(lambda y: x * y**2, 3.0)[1](1.0)[0], 6.0),
        (lambda x: pb.vjp(lambda y: y**3, x)[1](1.0)[0], 12.0),  # the derivative of 3 x**2
        (lambda x: pb.vjp(lambda y: y**3, 2.0)[1](x)[0], 12.0),
        (lambda x: pb.vjp(lambda y: y**3, x)[1](x)[0], 36.0),  # of 3 x**3
        (lambda x: x * pb.vjp(lambda y: x + y, 1.0)[1](1.0)[0], 1.0),
    ],
)
def test_an_enclosing_gradient_sees_what_depends_on_its_argument_alone(f, expected):
    g = pb.grad(f)(2.0)
    assert type(g) is float
    assert g == pytest.approx(expected)


def test_a_tensor_in_the_closure_keeps_its_history():
    w = pb.tensor(2.0, requires_grad=True)
    out, vjp_fn = pb.vjp(lambda x: w * x**2, 3.0)
    (g,) = vjp_fn(1.0)
    assert (out.item(), g.item()) == (18.0, 12.0)
    (out + g).backward()
    assert w.grad.item() == 9.0 + 6.0


def test_under_no_grad_nothing_keeps_a_history():
    w = pb.tensor(2.0, requires_grad=True)
    with pb.no_grad():
        out, vjp_fn = pb.vjp(lambda x: w * x**2, 3.0)
        assert (out, vjp_fn(1.0)) == (18.0, (12.0,))
    assert type(vjp_fn(1.0)[0]) is float


def test_the_graph_is_freed_with_the_function():
    saved = []

    def f(x):
        y = x.exp()
        saved.append(weakref.ref(y))
        return y * 2

    gc.disable()
    try:
        _, vjp_fn = pb.vjp(f, pb.tensor([1.0]))
        vjp_fn(pb.ones(1))
        del vjp_fn
        assert saved[0]() is None
    finally:
        gc.enable()


def test_it_names_its_function():
    assert repr(pb.vjp(bend, X)[1]) == "vjp_fn(bend)"


def doubled(y):
    y *= 2.0


def read_in(y):
    y[0] = 5.0


def part_scaled(y):
    y[1:].mul_(3.0)


def added(y):
    y.add_(1.0)


@pytest.mark.parametrize("write", [doubled, read_in, part_scaled, added], ids=lambda f: f.__name__)
def test_no_grad_writes_inside_of_vjp_of_vmap_change_values_and_keep_the_graph(write):
    def f(x):
        y = x * x
        with pb.no_grad():
            write(y)
        return y * y

    rows, cotangents = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.ones((2, 3))
    out, vjp_fn = pb.vjp(pb.vmap(f), rows)
    for row, value, gradient in zip(rows, out, vjp_fn(cotangents)[0], strict=True):
        y = row * row
        write(pb.asarray(y))
        np.testing.assert_array_equal(value, y * y)
        np.testing.assert_array_equal(gradient, 2 * y * 2 * row)  # that of row * row
        np.testing.assert_array_equal(pb.grad(lambda x: f(x).sum())(row), gradient)
    along = pb.grad(lambda x: pb.jvp(f, (x,), (np.ones(3),))[0].sum())(rows[0])
    np.testing.assert_array_equal(along, vjp_fn(cotangents)[0][0])


def test_no_grad_doubling_in_vjp_of_vmap_has_the_gradient_of_what_was_doubled():
    def f(x):
        y = x * x
        with pb.no_grad():
            y.mul_(2)
        return y

    out, vjp_fn = pb.vjp(pb.vmap(f), np.array([3.0, 2.0]))
    assert out.tolist() == [18.0, 8.0]
    assert vjp_fn(np.ones(2))[0].tolist() == [6.0, 4.0]


def test_vjp_and_linearize_keep_the_values_of_arrays_that_change_afterwards():
    x, more = np.array([3.0, 4.0]), {"y": np.array([1.0, 2.0]), "n": np.array([2, 2])}
    _, vjp_fn = pb.vjp(lambda x, more: x * x * more["y"] ** more["n"], x, more)
    _, jvp_fn = pb.linearize(lambda x: x * x, x)
    x[:], more["y"][:], more["n"][:] = 0, 0, 0
    by_x, by_more = vjp_fn(np.ones(2))
    np.testing.assert_allclose(by_x, [6.0, 32.0])
    np.testing.assert_allclose(by_more["y"], [18.0, 64.0])
    np.testing.assert_allclose(jvp_fn(np.ones(2)), [6.0, 8.0])
