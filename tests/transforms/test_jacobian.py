"""Jacobians: shapes, containers, types, complex numbers, nested transforms."""

import copy
import pickle
import sys
import tracemalloc

import numpy as np
import pytest
from tests.transforms import _numerical as numerical

import pullback as pb

every_mode = pytest.mark.parametrize("jacobian", [pb.jacobian, pb.jacrev, pb.jacfwd])
X = np.array([[0.3, -0.7, 1.1], [0.8, 0.2, -0.4]])


def mixed(x):
    return np.sin(x) @ np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.0]]) * np.sum(x**2)


# -- values, shapes and types ----------------------------------------------------------------------
@every_mode
def test_it_has_the_axes_of_the_result_and_then_those_of_the_argument(jacobian):
    found = jacobian(mixed)(X)
    assert (type(found), found.shape) == (np.ndarray, (2, 2, 2, 3))
    np.testing.assert_allclose(found, numerical.jacobian(mixed, X), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("x", "shape", "kind"),
    [
        (2.0, (), float),
        (2.0, (3,), np.ndarray),
        (np.float64(2), (), np.float64),
        (np.float32(2), (3,), np.ndarray),
        (np.array(2.0), (), np.ndarray),
        (np.array(2.0), (3,), np.ndarray),
        (np.ones((2, 1), np.float32), (0,), np.ndarray),
        (np.ones(0), (2,), np.ndarray),
        (pb.ones(2), (3, 1), pb.Tensor),
    ],
)
@every_mode
def test_it_has_the_type_of_the_argument(jacobian, x, shape, kind):
    found = jacobian(lambda x: np.sum(x) * 3.0 * pb.ones(shape, dtype=x.dtype))(x)
    assert type(found) is kind
    assert np.shape(found) == shape + np.shape(x)
    np.testing.assert_array_equal(np.asarray(found), np.full(shape + np.shape(x), 3.0))
    assert np.asarray(found).dtype == np.asarray(x).dtype


@every_mode
def test_an_array_of_another_library_gives_one(jacobian):
    strict = pytest.importorskip("array_api_strict")
    found = jacobian(lambda x: x**2)(strict.asarray([1.0, 2.0]))
    assert type(found) is type(strict.ones(1))
    assert bool(strict.all(found == strict.asarray([[2.0, 0.0], [0.0, 4.0]])))


@every_mode
def test_containers_of_arguments_stand_in_containers_of_results(jacobian):
    def f(p, k):
        return {"y": p["w"] * k, "rest": (np.sum(p["w"]) * p["b"], 3, "note")}

    given = {"w": np.array([1.0, 2.0]), "b": 5.0, "n": 4}
    found = jacobian(f, (0, "k"))(given, k=3.0)
    by_p, by_k = found["y"]
    np.testing.assert_array_equal(by_p["w"], 3 * np.eye(2))
    np.testing.assert_array_equal(by_p["b"], np.zeros(2))
    np.testing.assert_array_equal(by_k, [1.0, 2.0])
    assert by_p["n"] is None
    by_p, by_k = found["rest"][0]
    np.testing.assert_array_equal(by_p["w"], [5.0, 5.0])
    assert (by_p["b"], by_k) == (3.0, 0.0)
    assert found["rest"][1:] == (None, None)


@every_mode
def test_argnum_chooses_by_position_and_name(jacobian):
    def f(x, y):
        return x * y

    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    for argnum in (1, -1, "y"):
        np.testing.assert_array_equal(jacobian(f, argnum)(x, y), np.diag(x))
        np.testing.assert_array_equal(jacobian(f, argnums=argnum)(x, y), np.diag(x))
    by_y, by_x = jacobian(f, ("y", 0))(x, y)
    np.testing.assert_array_equal([by_y, by_x], [np.diag(x), np.diag(y)])


@every_mode
def test_the_other_object_is_handed_through(jacobian):
    found, aux = jacobian(lambda x: (x**2, {"y": x + 1}), has_aux=True)(np.ones(2))
    np.testing.assert_array_equal(found, 2 * np.eye(2))
    assert aux["y"].tolist() == [2.0, 2.0]
    assert not aux["y"].requires_grad


@every_mode
def test_a_part_that_depends_on_nothing_has_zeros(jacobian):
    found = jacobian(lambda x: (x, 1.5, np.ones((1, 2)), pb.ones(2)))(np.ones(3))
    np.testing.assert_array_equal(found[0], np.eye(3))
    np.testing.assert_array_equal(found[1], np.zeros(3))
    np.testing.assert_array_equal(found[2], np.zeros((1, 2, 3)))
    np.testing.assert_array_equal(found[3], np.zeros((2, 3)))


def tall(x):
    """Return many numbers of few, so that forward mode is the shorter way."""
    return {"a": np.outer(np.sin(x), np.arange(12.0)) * x[0], "n": 3, "b": np.exp(x), "c": 1.5}


@pytest.mark.parametrize("mode", [None, "forward", "reverse"])
def test_every_mode_gives_the_same_for_a_large_result(mode):
    x = np.array([0.3, -0.7])
    found = pb.jacobian(tall, mode=mode)(x)
    assert (found["a"].shape, found["n"]) == ((2, 12, 2), None)
    numpys = numerical.jacobian(lambda x: tall(x)["a"], x)
    np.testing.assert_allclose(found["a"], numpys, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(found["b"], np.diag(np.exp(x)))
    np.testing.assert_array_equal(found["c"], np.zeros(2))
    second = pb.jacobian(pb.jacobian(lambda x: tall(x)["a"], mode=mode), mode=mode)(x)
    wanted = numerical.jacobian(pb.jacobian(lambda x: tall(x)["a"]), x)
    np.testing.assert_allclose(second, wanted, rtol=1e-7, atol=1e-7)


def test_a_rule_that_cannot_be_recorded_is_enough_for_a_large_result():
    @pb.autograd_function
    def cubes(ctx, x):
        ctx.save_for_backward(x=x)
        return pb.outer(x**3, pb.ones(9, dtype=x.dtype))

    @cubes.backward
    @pb.once_differentiable
    def _(ctx, grad_output):
        return {"x": 3 * ctx.saved_variables.x**2 * grad_output.sum(dim=1)}

    x = np.array([1.0, 2.0])
    wanted = np.multiply.outer(np.diag(3 * x**2), np.ones(9)).swapaxes(1, 2)
    for mode in (None, "forward", "reverse"):
        np.testing.assert_array_equal(pb.jacobian(cubes, mode=mode)(x), wanted)


# -- complex numbers -------------------------------------------------------------------------------
@every_mode
def test_a_real_result_of_complex_arguments_has_its_gradient(jacobian):
    z = np.array([1.0 + 2.0j, -0.5 + 0.3j])
    found = jacobian(lambda z: np.abs(z) ** 2)(z)
    np.testing.assert_allclose(found, np.diag(2 * z))
    assert jacobian(lambda z: np.abs(z) ** 2)(1 + 2j) == pb.grad(lambda z: np.abs(z) ** 2)(1 + 2j)


@every_mode
def test_a_complex_result_of_real_arguments_has_its_derivative(jacobian):
    x = np.array([0.3, -0.7])

    def f(x):
        return np.exp(1j * x) * np.sum(x)

    found = jacobian(f)(x)
    assert found.dtype == complex
    np.testing.assert_allclose(found, numerical.jacobian(f, x), rtol=1e-8)


@every_mode
def test_a_complex_result_of_complex_arguments_has_the_gradient_of_its_real_part(jacobian):
    z = np.array([1.0 + 2.0j, -0.5 + 0.3j])
    found = jacobian(lambda z: z**3)(z)
    np.testing.assert_allclose(found, np.diag(np.conj(3 * z**2)))
    by_z, by_x = jacobian(lambda z, x: z * x, (0, 1))(2.0 + 1.0j, 3.0)
    assert (by_z, by_x) == (3.0 + 0.0j, 2.0 + 1.0j)


# -- higher orders ---------------------------------------------------------------------------------
def falling(power, order):
    """Return the coefficient and the exponent of a derivative of a power."""
    factor = 1.0
    for k in range(order):
        factor *= power - k
    return factor, power - order


@pytest.mark.parametrize("transform", [pb.jacobian, pb.grad, pb.elementwise_grad])
@pytest.mark.parametrize(("power", "order"), [(5, 6), (-1, 3)])
def test_derivatives_of_powers_of_every_order(transform, power, order):
    f = (lambda x: x**5) if power == 5 else (lambda x: 1 / x)
    for k in range(1, order + 1):
        f = transform(f)
        factor, exponent = falling(power, k)
        assert f(1.5) == pytest.approx(factor * 1.5**exponent, rel=1e-12)


def cubic(x):
    return np.sum(x**3) * x[0]


WAYS = {
    "jacobian of grad": pb.jacobian(pb.grad(cubic)),
    "jacobian of jacobian": pb.jacobian(pb.jacobian(cubic)),
    "hessian": pb.hessian(cubic),
}


@pytest.mark.parametrize("second", WAYS.values(), ids=WAYS.keys())
def test_third_derivatives_agree_with_differences_of_the_second(second):
    x = np.array([0.5, -1.0, 2.0])
    np.testing.assert_allclose(
        pb.jacobian(second)(x), numerical.jacobian(second, x), rtol=1e-7, atol=1e-7
    )


@every_mode
def test_the_gradient_of_a_norm_of_a_jacobian(jacobian):
    def penalty(x):
        return np.sum(jacobian(np.square)(x) ** 2)

    np.testing.assert_array_equal(pb.grad(penalty)(np.array([1.0, 2.0])), [8.0, 16.0])


@every_mode
def test_a_tensor_in_the_closure_keeps_its_history(jacobian):
    w = pb.tensor(2.0, requires_grad=True)
    found = jacobian(lambda x: w * x**2)(np.array([1.0, 3.0]))
    assert found.tolist() == [[4.0, 0.0], [0.0, 12.0]]
    found.sum().backward()
    assert w.grad.item() == 8.0
    with pb.no_grad():
        found = jacobian(lambda x: w * x**2)(np.array([1.0, 3.0]))
    assert type(found) is np.ndarray


# -- the function that is returned -----------------------------------------------------------------
MADE = {
    "jacobian(sin)": pb.jacobian(np.sin),
    "jacobian(grad(sin), argnum='x')": pb.jacobian(pb.grad(np.sin), "x"),
    "jacobian(sin, argnum=(0,), has_aux=True)": pb.jacobian(np.sin, (0,), has_aux=True),
    "jacobian(sin, mode='forward')": pb.jacobian(np.sin, mode="forward"),
    "jacfwd(sin)": pb.jacfwd(np.sin),
    "jacrev(sin, argnum=-1)": pb.jacrev(np.sin, -1),
    "hessian(sin)": pb.hessian(np.sin),
    "hvp(sin, argnum=1)": pb.hvp(np.sin, 1),
    "vhp(sin)": pb.vhp(np.sin),
}


@pytest.mark.parametrize(("shown", "made"), MADE.items(), ids=MADE.keys())
def test_the_function_is_named_pickled_and_copied(shown, made):
    for again in (made, copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert repr(again) == shown
        assert again.__name__ == "sin"
        assert "sine" in again.__doc__


WRONG = [
    (lambda: pb.jacobian(3.0), TypeError, "jacobian: a function required, got float"),
    (lambda: pb.jacobian(np.sin, 0, "back"), ValueError, "mode 'reverse', 'forward' or None requ"),
    (lambda: pb.jacfwd(np.sin)(3), TypeError, "jacfwd: floating-point numbers required in argum"),
    (lambda: pb.jacfwd(lambda x: None)(3.0), TypeError, "jacfwd: a result of .* got None"),
    (lambda: pb.jacfwd(np.argmax)(X), TypeError, "jacfwd: a floating-point or complex result of"),
    (lambda: pb.jacobian(np.sin)(3), TypeError, "jacobian: floating-point numbers required in arg"),
    (lambda: pb.jacobian(np.sin, "y")(3.0), ValueError, "jacobian: an argument named 'y' required"),
    (
        lambda: pb.jacobian(lambda x: None)(3.0),
        TypeError,
        "jacobian: a result of .* got None",
    ),
    (
        lambda: pb.jacobian(lambda x: x.detach().item())(3.0),
        TypeError,
        "jacobian: the result of .*lambda.* does not dep",
    ),
    (
        lambda: pb.jacobian(np.argmax)(X),
        TypeError,
        "floating-point or complex result of argmax requ",
    ),
    (lambda: pb.jacobian(np.sin, 2, argnums=1), ValueError, "jacobian: argnum or argnums required"),
    (lambda: pb.hessian(np.sin, 2, argnums=1), ValueError, "hessian: argnum or argnums required"),
    (lambda: pb.hessian("f"), TypeError, "hessian: a function required, got str"),
    (lambda: pb.hessian(np.sin)(1), TypeError, "hessian: floating-point numbers required in argum"),
    (lambda: pb.hessian(lambda x: None)(1.0), TypeError, "hessian: a result of .* got None"),
]


@pytest.mark.parametrize(("call", "kind", "message"), WRONG)
def test_wrong_use_is_said(call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call()
    assert isinstance(caught.value, pb.AutogradError)


# ---- many directions at once ---------------------------------------------------------------------
def branching(x):
    return pb.stack([x[k] ** 2 if x[k] > 0 else x[k] * x.sum() for k in range(6)])


@pytest.mark.parametrize("transform", [pb.jacrev, pb.jacfwd])
def test_a_function_that_looks_at_its_values_has_a_jacobian(transform):
    x = np.array([0.5, -1.0, 2.0, -0.3, 1.5, 0.7])
    expected = np.diag(np.where(x > 0, 2 * x, x.sum()))
    expected[x <= 0] += x[x <= 0, None]
    np.testing.assert_allclose(transform(branching)(x), expected)


@pytest.mark.parametrize("transform", [pb.jacrev, pb.jacfwd])
def test_an_operation_of_ones_own_sees_one_direction_at_a_time(transform):
    shapes = []

    @pb.autograd_function
    def watched(ctx, x):
        ctx.save_for_backward(x=x)
        return x * x

    @watched.backward
    def _(ctx, grad_output):
        shapes.append(grad_output.numpy().shape if not grad_output.requires_grad else None)
        return 2.0 * grad_output * ctx.saved_variables.x

    x = np.arange(1.0, 7.0)
    np.testing.assert_allclose(transform(watched)(x), np.diag(2 * x))
    assert set(shapes) <= {(6,), None}


def test_hooks_see_one_row_at_a_time():
    seen = []

    def hooked(x):
        y = x * 2.0
        y.register_hook(lambda g: seen.append(g.tolist()))
        return y

    assert pb.jacrev(hooked)(np.ones(5)).tolist() == (2.0 * np.eye(5)).tolist()
    assert seen == np.eye(5).tolist()


@pytest.mark.parametrize("transform", [pb.jacrev, pb.jacfwd])
def test_a_large_jacobian_is_computed_in_parts(transform, monkeypatch):
    monkeypatch.setattr(sys.modules["pullback.transforms.api.jacobian"], "_MOST_AT_ONCE", 100)
    x = np.linspace(0.1, 1.0, 40)
    np.testing.assert_allclose(transform(lambda x: x.cumsum() ** 2)(x)[:, 0], 2 * x.cumsum())


@pytest.mark.parametrize("transform", [pb.jacobian, pb.jacrev, pb.jacfwd])
def test_blocks_share_no_memory(transform):
    first, second = transform(lambda x: (x, x + 1))(np.arange(5.0))
    first[0] = 7.0
    np.testing.assert_array_equal(second, np.eye(5))


# -- memory ----------------------------------------------------------------------------------------
def peak_in_results(function, x):
    """Return how many times the memory of its result a function needs at most."""
    tracemalloc.start()
    try:
        result = function(x)
        return tracemalloc.get_traced_memory()[1] / result.nbytes
    finally:
        tracemalloc.stop()


N = 1100
A = np.random.default_rng(0).normal(size=(N, N)) / N
STACK = A.reshape(4, N // 4, N)
ONE_OPERAND_IS_CONSTANT = {
    "matmul": lambda x: np.tanh(A @ x),
    "matmul of rows": lambda x: np.tanh(x @ A),
    "matmul of a stack": lambda x: np.tanh(STACK @ x),
    "matmul of a stack and a column": lambda x: np.tanh(A.reshape(N, 1, N) @ x.reshape(N, 1)),
    "matmul of a row and a stack": lambda x: np.tanh(x.reshape(1, N) @ A.reshape(N, N, 1)),
    "einsum": lambda x: np.tanh(np.einsum("ij,j->i", A, x)),
    "tensordot": lambda x: np.tanh(np.tensordot(A, x, 1)),
    "solve": lambda x: np.linalg.solve(np.eye(N) + A, x),
}


@pytest.mark.parametrize("transform", [pb.jacobian, pb.jacfwd])
@pytest.mark.parametrize("name", ONE_OPERAND_IS_CONSTANT)
def test_a_jacobian_of_a_product_copies_a_constant_for_no_row(transform, name):
    fun, x = ONE_OPERAND_IS_CONSTANT[name], np.linspace(-1.0, 1.0, N)
    assert peak_in_results(transform(fun), x) < 8
    found, row = transform(fun)(x).reshape(N, N)[700], np.zeros(N)
    row[700] = 1.0
    out, vjp = pb.vjp(fun, x)
    np.testing.assert_allclose(found, vjp(row.reshape(out.shape))[0], rtol=1e-9, atol=1e-12)


def test_a_jacobian_through_a_large_array_is_computed_in_parts():
    rows = np.linspace(0.1, 1.0, 1000)
    table = np.outer(rows, rows)  # a batch of 20 of them would be 160 MB
    fun = lambda x: np.sum(np.tanh(table * x[0]), axis=0)[:50] * x[1]  # noqa: E731
    for transform in (pb.jacobian, pb.jacrev):
        assert peak_in_results(transform(fun), np.ones(20)) < 100e6 / (50 * 20 * 8)
