"""Hessians and their products with vectors: formulas, containers, errors, cost."""

import numpy as np
import pytest
from scipy import optimize
from tests.transforms import _numerical as numerical

import pullback as pb


def rosen(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0)


@pytest.mark.parametrize("n", range(2, 51))
def test_rosenbrocks_function_has_scipys_derivatives(n):
    generator = np.random.default_rng(n)
    x, v = generator.normal(size=(2, n))
    expected = optimize.rosen_hess(x)
    close = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(pb.grad(rosen)(x), optimize.rosen_der(x), **close)
    np.testing.assert_allclose(pb.jacobian(rosen)(x), optimize.rosen_der(x), **close)
    np.testing.assert_allclose(pb.hessian(rosen)(x), expected, **close)
    np.testing.assert_allclose(pb.hvp(rosen)(x, v), expected @ v, **close)
    np.testing.assert_allclose(pb.vhp(rosen)(x, v), v @ expected, **close)
    np.testing.assert_allclose(pb.hvp(rosen)(x, v), optimize.rosen_hess_prod(x, v), **close)


def test_newtons_method_of_scipy_takes_them():
    found = optimize.minimize(
        rosen, np.zeros(4), jac=pb.grad(rosen), hess=pb.hessian(rosen), method="trust-exact"
    )
    np.testing.assert_allclose(found.x, np.ones(4), rtol=1e-3)
    found = optimize.minimize(
        rosen, np.zeros(4), jac=pb.grad(rosen), hessp=pb.hvp(rosen), method="trust-ncg"
    )
    np.testing.assert_allclose(found.x, np.ones(4), rtol=1e-3)


# -- containers and several arguments --------------------------------------------------------------
def energy(p, k=1.0):
    return k * p["a"] ** 2 * np.sum(p["w"] ** 3)


GIVEN = {"a": 2.0, "w": np.array([1.0, -1.0, 3.0]), "n": 5}


def test_blocks_stand_by_the_first_and_then_the_second_argument():
    h = pb.hessian(energy)(GIVEN, k=2.0)
    a, w = GIVEN["a"], GIVEN["w"]
    assert h["a"]["a"] == 2.0 * 2 * np.sum(w**3)
    np.testing.assert_allclose(h["a"]["w"], 2.0 * 2 * a * 3 * w**2)
    np.testing.assert_allclose(h["w"]["a"], h["a"]["w"])
    np.testing.assert_allclose(h["w"]["w"], np.diag(2.0 * a**2 * 6 * w))
    assert (h["n"], h["a"]["n"]) == (None, None)


def test_several_arguments_give_tuples_of_tuples():
    def f(x, y):
        return np.sum(x**2) * y**3

    x, y = np.array([1.0, 2.0]), 3.0
    (xx, xy), (yx, yy) = pb.hessian(f, ("x", 1))(x, y)
    np.testing.assert_array_equal(xx, 2 * y**3 * np.eye(2))
    np.testing.assert_array_equal(xy, 6 * x * y**2)
    np.testing.assert_array_equal(yx, xy)
    assert yy == 6 * np.sum(x**2) * y


@pytest.mark.parametrize("product", [pb.hvp, pb.vhp, pb.hessian_vector_product])
def test_products_take_a_vector_like_the_argument(product):
    v = {"a": 0.5, "w": np.array([0.0, 1.0, 2.0]), "n": None}
    h = pb.hessian(energy)(GIVEN, 2.0)
    found = product(energy)(GIVEN, 2.0, v)
    assert found["a"] == pytest.approx(h["a"]["a"] * v["a"] + h["a"]["w"] @ v["w"])
    np.testing.assert_allclose(found["w"], h["w"]["a"] * v["a"] + h["w"]["w"] @ v["w"])
    assert found["n"] is None
    by_p, by_k = product(energy, ("p", 1))(GIVEN, 2.0, ({**v, "w": None}, 0.25))
    along_k = pb.grad(lambda p: energy(p))(GIVEN)
    assert by_p["a"] == pytest.approx(h["a"]["a"] * 0.5 + along_k["a"] * 0.25)
    assert by_k == pytest.approx(along_k["a"] * 0.5)


def test_the_axes_of_a_result_that_is_no_scalar_come_first():
    x = np.array([1.0, 2.0])
    h = pb.hessian(lambda x: pb.stack([x[0] * x[1], x[1] ** 3, x[0]]))(x)
    np.testing.assert_array_equal(h, [[[0, 1], [1, 0]], [[0, 0], [0, 12.0]], np.zeros((2, 2))])


def test_the_other_object_is_handed_through():
    h, aux = pb.hessian(lambda x: (x**3, "note"), has_aux=True)(2.0)
    assert (h, aux) == (12.0, "note")


@pytest.mark.parametrize("product", [pb.hvp, pb.vhp])
def test_a_linear_function_has_none_but_zeros(product):
    x = np.ones(3)
    np.testing.assert_array_equal(pb.hessian(lambda x: np.sum(2 * x))(x), np.zeros((3, 3)))
    np.testing.assert_array_equal(product(lambda x: np.sum(2 * x))(x, x), np.zeros(3))
    np.testing.assert_array_equal(product(lambda x: pb.tensor(1.0))(x, x), np.zeros(3))


@pytest.mark.parametrize("kind", [np.asarray, pb.asarray])
@pytest.mark.parametrize("product", [pb.hvp, pb.vhp])
def test_the_product_has_the_type_of_the_argument(product, kind):
    found = product(rosen)(kind(np.ones(3)), np.ones(3, np.float32))
    assert type(found) is type(kind(np.ones(3)))
    np.testing.assert_allclose(found, optimize.rosen_hess(np.ones(3)) @ np.ones(3))


def test_complex_products_are_derivatives_of_the_gradient_along_the_vector():
    def f(z):
        return np.sum(np.abs(z) ** 4 + np.real(z**3))

    z, v = np.array([1.0 + 2.0j, -0.5 + 0.3j]), np.array([0.5 - 1.0j, 1.0 + 0.2j])
    expected = numerical.along(pb.grad(f), z, v)
    np.testing.assert_allclose(pb.hvp(f)(z, v), expected, rtol=1e-8)
    np.testing.assert_allclose(pb.vhp(f)(z, v), expected, rtol=1e-8)


# -- a gradient that is no derivative --------------------------------------------------------------
@pb.autograd_function
def skewed(ctx, x):
    ctx.save_for_backward(x=x)
    return x[0] * x[1]


@skewed.backward
def _(ctx, grad_output):
    x = ctx.saved_variables.x
    return {"x": grad_output * pb.stack([3.0 * x[1], x[0]])}  # a factor of 3 on purpose


def test_the_two_products_differ_where_the_second_derivatives_do():
    x, v = np.array([1.0, 2.0]), np.array([1.0, 10.0])
    h = np.array([[0.0, 3.0], [1.0, 0.0]])
    np.testing.assert_array_equal(pb.hessian(skewed)(x), h)
    np.testing.assert_array_equal(pb.hvp(skewed)(x, v), h @ v)
    np.testing.assert_array_equal(pb.vhp(skewed)(x, v), v @ h)


# -- nested ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("product", [pb.hvp, pb.vhp])
def test_products_are_differentiated_by_the_argument_and_the_vector(product):
    x, v, u = np.array([0.5, -1.0, 2.0]), np.array([1.0, 0.5, -2.0]), np.array([0.2, 1.0, 0.7])

    def contracted(x, v):
        return np.sum(product(rosen)(x, v) * u)

    by_x, by_v = pb.grad(contracted, (0, 1))(x, v)
    wanted = numerical.jacobian(lambda x: optimize.rosen_hess_prod(x, v) @ u, x)
    np.testing.assert_allclose(by_x, wanted, rtol=1e-6)
    np.testing.assert_allclose(by_v, optimize.rosen_hess(x) @ u)
    assert type(by_v) is np.ndarray


@pytest.mark.parametrize("product", [pb.hvp, pb.vhp])
def test_an_enclosing_gradient_does_not_see_the_inner_arguments(product):
    g = pb.grad(lambda x: x * product(lambda y: y**3 * x)(2.0, 1.0))(3.0)  # of 12 x**2
    assert (type(g), g) == (float, 72.0)


@pytest.mark.parametrize("product", [pb.hvp, pb.vhp])
def test_under_no_grad_products_are_computed_without_history(product):
    w = pb.tensor(2.0, requires_grad=True)
    with pb.no_grad():
        assert product(lambda x: w * x**3)(1.0, 1.0) == 12.0
    found = product(lambda x: w * x**3)(1.0, 1.0)
    assert pb.autograd.grad(found, w)[0].item() == 6.0


# -- wrong use -------------------------------------------------------------------------------------
ONE = np.ones(3)
WRONG = [
    (lambda: pb.hvp(3.0), TypeError, "hvp: a function required, got float"),
    (lambda: pb.hvp(rosen)(ONE), ValueError, "hvp: the arguments of rosen and then a vector requ"),
    (lambda: pb.vhp(rosen)(), ValueError, "vhp: the arguments of rosen .* required, got 0 argume"),
    (lambda: pb.hvp(rosen)(ONE, ONE[1:]), ValueError, r"hvp: the shape \(3,\) required in the vec"),
    (lambda: pb.vhp(rosen)(ONE, [1.0]), ValueError, "vhp: the structure Tensor required in the v"),
    (lambda: pb.hvp(rosen)(ONE, ONE > 0), TypeError, "hvp: real floating-point numbers required"),
    (lambda: pb.hvp(np.square)(ONE, ONE), RuntimeError, "hvp: a scalar result of square required"),
    (lambda: pb.hvp(rosen, 2)(ONE, ONE), ValueError, "hvp: the positional argument that argnum=2"),
    (lambda: pb.hvp(rosen, "y")(ONE, ONE), ValueError, "hvp: an argument named 'y' required"),
    (lambda: pb.hvp(rosen, 1, argnums=1), ValueError, "hvp: argnum or argnums required"),
    (lambda: pb.vhp(rosen, 1, argnums=1), ValueError, "vhp: argnum or argnums required"),
    (lambda: pb.vhp(rosen)(np.arange(3), ONE), TypeError, "vhp: floating-point numbers required"),
]


@pytest.mark.parametrize(("call", "kind", "message"), WRONG)
def test_wrong_use_is_said(call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call()
    assert isinstance(caught.value, pb.AutogradError)


RNG = np.random.default_rng(5)
ROWS, VECTOR = RNG.normal(size=(2, 4, 3))
WEIGHTS, OTHER = RNG.normal(size=(3, 3)), RNG.normal(size=(5, 1, 3))


def mixture(x):
    whitened = (OTHER - x) * np.exp(WEIGHTS[0])
    return np.sum(np.log(np.sum(np.exp(-0.5 * np.sum(whitened * whitened, -1)), -1)))


def layers(x):
    return np.sum(np.tanh(np.tanh(x @ WEIGHTS) @ WEIGHTS) ** 2)


def arranged(x):
    return np.sum(np.reshape(x.T, (2, 6))[:, ::2] ** 3) - np.mean(x * x[0] * 2.0)


@pytest.mark.parametrize("function", [mixture, layers, arranged], ids=lambda f: f.__name__)
def test_hvp_is_the_derivative_of_the_gradient_along_the_vector(function):
    _, along = pb.jvp(pb.grad(function), (ROWS,), (VECTOR,))
    np.testing.assert_allclose(pb.hvp(function)(ROWS, VECTOR), along, rtol=1e-10, atol=1e-12)


def test_hvp_runs_the_function_once():
    calls = []

    def f(x):
        calls.append(1)
        return squared(x).sum()

    squared = pb.autograd_function(lambda ctx, x: x * x, lambda ctx, g: g)
    pb.hvp(lambda x: f(x) * 1.0)(ROWS, VECTOR)
    pb.hvp(layers)(ROWS, VECTOR)
    assert len(calls) == 1


@pytest.mark.parametrize("own", [False, True], ids=["built in", "with an operation of one's own"])
def test_no_grad_inside_makes_a_constant_for_hvp_vhp_hessian_and_grad_of_grad(own):
    plain = pb.autograd_function(lambda ctx, x: x * 1.0, lambda ctx, g: g)

    def f(x):
        with pb.no_grad():
            c = x * x
        return ((plain(x) if own else x) * c).sum()

    x, v = np.array([1.0, 2.0]), np.array([1.0, 1.0])
    assert pb.grad(f)(x).tolist() == [1.0, 4.0]
    assert pb.hvp(f)(x, v).tolist() == pb.vhp(f)(x, v).tolist() == [0.0, 0.0]
    assert pb.hessian(f)(x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert pb.grad(lambda x: pb.grad(f)(x).sum())(x).tolist() == [0.0, 0.0]


def test_a_product_of_hvp_shares_no_memory_with_the_vector():
    vector = VECTOR.copy()
    product = pb.hvp(lambda x: 0.5 * np.sum(x * x))(ROWS, vector)
    product += 1.0
    np.testing.assert_array_equal(vector, VECTOR)


@pytest.mark.parametrize("transform", [pb.grad, pb.vmap], ids=["grad", "vmap"])
def test_hvp_inside_of_other_transforms_is_the_same(transform):
    def along(x):
        return np.sum(pb.hvp(lambda y: np.sum(y * y * y * WEIGHTS[0]))(x, VECTOR[0]))

    found = transform(along)(ROWS[0] if transform is pb.grad else ROWS)
    expected = 6 * WEIGHTS[0] * VECTOR[0]
    np.testing.assert_allclose(found, expected if transform is pb.grad else ROWS @ expected)


def test_hvp_of_a_vector_that_requires_grad_keeps_its_graph():
    tracked = pb.tensor(VECTOR, requires_grad=True)
    product = pb.hvp(lambda x, y: np.sum(x * y * x), (0, 1))(ROWS, ROWS, (VECTOR, tracked))
    product[0].sum().backward()
    np.testing.assert_allclose(tracked.grad.numpy(), 2 * ROWS)
