"""Forward mode: structures, what a tangent may be, nested calls, and what cannot be done."""

import itertools
import threading

import numpy as np
import pytest
from tests.transforms import _numerical as numerical

import pullback as pb

X, V = np.array([0.3, -0.7, 1.1]), np.array([1.0, 0.5, -2.0])


def bend(x):
    return np.sin(x) * np.sum(x**2) + x[::-1]


def by_jvp(fun, x, v):
    return pb.jvp(fun, (x,), (v,))


def by_linearize(fun, x, v):
    out, jvp_fn = pb.linearize(fun, x)
    return out, jvp_fn(v)


both = pytest.mark.parametrize("along", [by_jvp, by_linearize])


# -- values ----------------------------------------------------------------------------------------
@both
def test_it_is_the_value_and_the_derivative_along_the_tangent(along):
    out, found = along(bend, X, V)
    assert type(out) is type(found) is np.ndarray
    np.testing.assert_allclose(out, bend(X), rtol=1e-14)
    np.testing.assert_allclose(found, numerical.along(bend, X, V), rtol=1e-8)


@both
@pytest.mark.parametrize(
    ("x", "kind"),
    [
        (2.0, float),
        (np.float64(2), np.float64),
        (np.float32(2), np.float32),
        (pb.ones(2), pb.Tensor),
    ],
)
def test_it_has_the_type_of_the_argument(along, x, kind):
    out, found = along(lambda x: x**2, x, 1.0 if np.shape(x) == () else np.ones(2))
    assert type(out) is type(found) is kind
    assert np.asarray(found).dtype == np.asarray(x).dtype
    np.testing.assert_array_equal(np.asarray(found), 2 * np.asarray(x))


@both
def test_each_element_may_be_repeated_as_often_as_it_says(along):
    found = along(lambda x: pb.repeat(x, (2, 0, 1)), X, V)[1]
    np.testing.assert_array_equal(found, [1.0, 1.0, -2.0])


def test_every_argument_has_a_tangent_and_none_is_zero():
    def f(p, y, n):
        return {"out": p["w"] * y * n, "rest": [p["b"], 3, "note"]}

    given = ({"w": np.array([1.0, 2.0]), "b": 5.0, "k": 7}, 3.0, 2)
    out, found = pb.jvp(f, given, ({"w": V[:2], "b": None, "k": None}, 0.5, None))
    np.testing.assert_array_equal(out["out"], [6.0, 12.0])
    assert out["rest"] == [5.0, 3, "note"]
    np.testing.assert_array_equal(found["out"], 2 * (V[:2] * 3.0 + given[0]["w"] * 0.5))
    assert found["rest"] == [0.0, None, None]
    out, jvp_fn = pb.linearize(f, *given)
    np.testing.assert_array_equal(jvp_fn(None, 1.0, None)["out"], [2.0, 4.0])
    assert jvp_fn({"w": None, "b": 1.0, "k": None}, None, None)["rest"] == [1.0, None, None]


def test_a_linearized_function_runs_once_and_is_called_again():
    runs = []

    def f(x):
        runs.append(1)
        return np.exp(x) * 2.0

    out, jvp_fn = pb.linearize(f, X)
    np.testing.assert_array_equal(out, 2 * np.exp(X))
    for v in np.eye(3):
        np.testing.assert_allclose(jvp_fn(v), 2 * np.exp(X) * v)
    assert runs == [1]
    assert repr(pb.linearize(bend, X)[1]) == "jvp_fn(bend)"


def test_the_other_object_is_handed_through_without_its_tangent():
    out, found, aux = pb.jvp(lambda x: (x**2, {"y": x * 3}), (2.0,), (1.0,), has_aux=True)
    assert (out, found) == (4.0, 4.0)
    assert (aux["y"].item(), (aux["y"] * 2).numpy()) == (6.0, 12.0)


@both
def test_what_depends_on_nothing_has_zeros(along):
    _, found = along(lambda x: (x * 2, 1.5, np.ones(2), pb.ones(1)), X, V)
    np.testing.assert_array_equal(found[0], 2 * V)
    assert [np.asarray(f).tolist() for f in found[1:]] == [0.0, [0.0, 0.0], [0.0]]


@both
def test_complex_derivatives_are_those_along_the_direction(along):
    out, found = along(lambda z: z**2, 1.0 + 2.0j, 1j)
    assert (out, found) == ((1 + 2j) ** 2, 2j * (1 + 2j))
    assert along(np.abs, 3.0 + 4.0j, 1.0) == (5.0, pytest.approx(0.6))
    np.testing.assert_allclose(along(lambda z: np.abs(z) ** 2 * z, 1j, 0.5 + 1j)[1], 0.5 + 3j)
    np.testing.assert_allclose(along(lambda x: np.exp(1j * x), X, V)[1], 1j * V * np.exp(1j * X))


@both
def test_detached_values_do_not_change(along):
    assert along(lambda x: x.detach() * x, 3.0, 1.0) == (9.0, 3.0)
    assert along(lambda x: x + (pb.round(x) - x).detach(), 3.2, 1.0) == (3.0, 1.0)


@both
def test_python_sees_the_values(along):
    def f(x):
        assert float(x.detach()) == 2.0
        return x**2 if x > 1 and int(x) == 2 and f"{x:.1f}" == "2.0" else x**3

    assert along(f, 2.0, 1.0) == (4.0, 4.0)
    assert repr(pb.jvp(lambda x: (x, repr(x)), (2.0,), (1.0,), has_aux=True)[2]) == repr(
        "numpy_tensor(2., dtype=float64)"
    )


def test_tensors_are_changed_in_place_and_indexed():
    def f(x):
        y = x * 1.0
        y[1:] = x[:-1] ** 2
        y[0] += 3.0
        y *= x
        return y[[2, 0, 1]] + y.reshape(3, 1).broadcast_to((3, 3))[0]

    _, found = pb.jvp(f, (pb.asarray(X),), (V,))
    wanted = numerical.along(lambda x: f(pb.asarray(x)).numpy(), X, V)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-8)


def test_results_are_collected_in_a_tensor_of_the_function():
    def f(x):
        out = pb.zeros(3, dtype=pb.float64)
        for i in pb.arange(2):
            out[i] = x[i] ** 2
        out[2:] += np.sum(x)
        return out * pb.tensor([1.0, 2.0, 3.0], dtype=pb.float64)

    _, found = pb.jvp(f, (X,), (V,))
    np.testing.assert_allclose(found, [2 * X[0] * V[0], 4 * X[1] * V[1], 3 * np.sum(V)])
    np.testing.assert_allclose(
        pb.hvp(lambda x: np.sum(f(x) ** 2))(X, V), pb.vhp(lambda x: np.sum(f(x) ** 2))(X, V)
    )
    assert pb.zeros(1).numpy().tolist() == [0.0]


# -- what a tangent may be -------------------------------------------------------------------------
OUTSIDE = pb.zeros(3, dtype=pb.float64)
WRONG = [
    (lambda: pb.jvp(3.0, (X,), (V,)), TypeError, "jvp: a function required, got float"),
    (
        lambda: pb.jvp(np.sin, X, V),
        TypeError,
        "a tuple of the arguments required as primals, got n",
    ),
    (lambda: pb.jvp(np.sin, (), ()), ValueError, "jvp: the arguments of sin required, got none"),
    (lambda: pb.jvp(np.sin, (X,), V), ValueError, "the structure tuple of 0 required in tangents"),
    (lambda: pb.jvp(np.sin, (X,), (V, V)), ValueError, "required in tangents, got tuple of 0, 1"),
    (lambda: pb.jvp(np.sin, (X,), (V[1:],)), ValueError, r"shape \(3,\) required in tangents\[0\]"),
    (lambda: pb.jvp(np.sin, (X,), (V > 0,)), TypeError, r"required in tangents\[0\], got bool"),
    (lambda: pb.jvp(np.sin, (X,), (V * 1j,)), TypeError, r"required in tangents\[0\], got complex"),
    (
        lambda: pb.jvp(np.sin, (2,), (1.0,)),
        TypeError,
        "floating-point numbers required in argument",
    ),
    (
        lambda: pb.jvp(lambda x, n: x * n, (X, 2), (V, 1)),
        TypeError,
        r"None required in tangents\[1\], which belongs to what has no derivative, got int",
    ),
    (lambda: pb.jvp(lambda x: None, (X,), (V,)), TypeError, "jvp: a result of .* got None"),
    (
        lambda: pb.jvp(np.argmax, (X,), (V,)),
        TypeError,
        "floating-point or complex result of argmax",
    ),
    (
        lambda: pb.jvp(np.sin, (X,), (V,), has_aux=True),
        TypeError,
        r"a pair \(result, rest\) from s",
    ),
    (
        lambda: pb.linearize(np.sin),
        ValueError,
        "linearize: the arguments of sin required, got none",
    ),
    (
        lambda: pb.linearize(lambda x: None, X),
        TypeError,
        "linearize: a result of .* got None",
    ),
    (
        lambda: pb.linearize(np.sin, X)[1](V[1:]),
        ValueError,
        r"jvp_fn: the shape \(3,\) required in",
    ),
    (lambda: pb.linearize(np.sin, X)[1](), ValueError, "jvp_fn: the structure tuple of 0 required"),
    (
        lambda: pb.jvp(lambda x: pb.asarray(x.numpy()), (X,), (V,)),
        RuntimeError,
        "numpy: numbers that do not change required, got a tensor in forward mode",
    ),
    (
        lambda: pb.jvp(OUTSIDE.copy_, (X,), (V,)),
        RuntimeError,
        "written to a tensor from outside: detach.. it, or make the tensor inside of the function",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), WRONG)
def test_wrong_use_is_said(call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call()
    assert isinstance(caught.value, pb.AutogradError)


def test_a_float32_argument_takes_a_tangent_of_another_dtype():
    _, found = pb.jvp(np.sin, (X.astype(np.float32),), (pb.asarray(V),))
    assert found.dtype == np.float32


# -- nested ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: x * pb.jvp(lambda y: x + y, (1.0,), (1.0,))[1], 1.0),
        (lambda x: x * pb.jvp(lambda y: x * y, (3.0,), (1.0,))[1], 4.0),  # of x**2
        (lambda x: pb.jvp(lambda y: y**3, (x,), (x,))[1], 36.0),  # of 3 x**3
        (lambda x: x * pb.grad(lambda y: x * y * y)(x), 24.0),  # of 2 x**3
        (lambda x: pb.grad(lambda y: x * y * y)(3.0), 6.0),
        (lambda x: pb.value_and_grad(lambda y: x * y * y)(3.0)[0], 9.0),
        (lambda x: pb.linearize(lambda y: y**3 * x, x)[1](1.0), 36.0),  # of 3 x**3
        (lambda x: pb.vjp(lambda y: y**3, x)[1](x)[0], 36.0),
        (lambda x: pb.hvp(lambda y: y**3 * x)(x, 1.0), 24.0),  # of 6 x**2
    ],
)
@pytest.mark.parametrize("outer", ["forward", "reverse"])
def test_an_enclosing_derivative_is_not_confused_with_the_inner(f, expected, outer):
    found = pb.jvp(f, (2.0,), (1.0,))[1] if outer == "forward" else pb.grad(f)(2.0)
    assert type(found) is float
    assert found == pytest.approx(expected)


def forward(f):
    return lambda x: pb.jvp(f, (x,), (1.0,))[1]


PROGRAMS = {
    "elementwise": lambda x: np.sin(x) * x**3,
    "softmax": lambda x: pb.softmax(pb.stack([x, x * x, -x]), dim=0)[1],
    "product": lambda x: np.prod(pb.stack([x, np.exp(x), x + 1])) * x,
    "written": lambda x: np.sum(np.diag(pb.stack([x, x**2, np.sin(x)])) ** 3),
    "matrices": lambda x: np.linalg.det(pb.stack([pb.stack([x, x**2]), pb.stack([1 / x, x**3])])),
}


@pytest.mark.parametrize("ways", list(itertools.product([forward, pb.grad], repeat=3)))
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_third_derivatives_agree_in_all_orders_of_modes(program, ways):
    second = pb.grad(pb.grad(program))
    f = program
    for way in ways:
        f = way(f)
    wanted = numerical.along(lambda x: second(x), 1.3, 1.0)
    np.testing.assert_allclose(f(1.3), wanted, rtol=1e-6)


def test_a_pass_of_ones_own_inside_of_a_function():
    def slope(x):
        y = pb.tensor(3.0, requires_grad=True, dtype=pb.float64)
        u = (y * 2.0) ** 2 * x**2
        (g,) = pb.autograd.grad(u, y, create_graph=True)  # 8 y x**2
        (h,) = pb.autograd.grad(g * x, y)  # 8 x**3
        (y * y * x).backward()  # 2 y x
        return g + h + y.grad

    assert pb.jvp(slope, (2.0,), (1.0,)) == (96.0 + 64.0 + 12.0, 96.0 + 96.0 + 6.0)
    assert forward(forward(slope))(2.0) == 48.0 + 96.0
    w = pb.tensor(2.0, requires_grad=True, dtype=pb.float64)
    _, found = pb.jvp(lambda x: w * x * pb.tensor(3.0, requires_grad=True), (2.0,), (1.0,))
    assert pb.autograd.grad(found, w)[0].item() == 3.0


def test_what_requires_grad_keeps_its_history():
    w = pb.tensor(2.0, requires_grad=True, dtype=pb.float64)
    x = pb.tensor(3.0, requires_grad=True, dtype=pb.float64)
    v = pb.tensor(0.5, requires_grad=True, dtype=pb.float64)
    out, found = pb.jvp(lambda x: (w * w) * x**2, (x,), (v,))  # 2 w**2 x v
    assert (out.item(), found.item()) == (36.0, 12.0)
    assert pb.autograd.grad(out, w, retain_graph=True)[0].item() == 36.0
    assert [g.item() for g in pb.autograd.grad(found, (w, x, v))] == [12.0, 4.0, 24.0]
    assert w.grad is None
    with pb.no_grad():
        assert type(pb.jvp(lambda x: w * x, (3.0,), (1.0,))[1]) is float


def test_an_exception_ends_forward_mode():
    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        pb.jvp(fails, (1.0,), (1.0,))
    assert type(pb.grad(np.sin)(0.0)) is float


def test_threads_do_not_see_each_other():
    found = {}

    def work(n):
        found[n] = forward(forward(lambda x: x**4 * n))(2.0)

    threads = [threading.Thread(target=work, args=(float(n),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {float(n): 48.0 * n for n in range(8)}


def test_anomaly_detection_looks_at_the_values():
    with (
        np.errstate(invalid="ignore"),
        pytest.warns(UserWarning, match="Anomaly Detection"),
        pb.detect_anomaly(),
        pytest.raises(pb.AutogradError, match="log: a finite result was required, got nan in 1 of"),
    ):
        pb.jvp(lambda x: np.log(x) * x, (X,), (V,))


def test_running_statistics_follow_without_tangents():
    means, variances = pb.zeros(2, dtype=pb.float64), pb.ones(2, dtype=pb.float64)
    x = np.arange(6.0).reshape(3, 2) ** 2

    def f(x):
        return pb.batch_norm(x, means, variances, None, None, True, 0.1, 1e-5)

    _, found = pb.jvp(f, (x,), (np.ones((3, 2)),))
    np.testing.assert_allclose(found, np.zeros((3, 2)), atol=1e-12)
    np.testing.assert_allclose(means.numpy(), 0.1 * x.mean(axis=0))


# -- tangents that are smaller than what they belong to --------------------------------------------
ROWS, COLUMN = np.arange(12.0).reshape(4, 3) / 7, np.array([[0.2], [1.5], [-0.4], [0.9]])
REPEATED = {
    "itself": lambda x: ROWS - x,
    "a product": lambda x: (ROWS - x) * COLUMN,
    "a square": lambda x: (ROWS - x) * (ROWS - x),
    "squares of one": lambda x: np.square(x + ROWS) - (x + COLUMN) ** 3,
    "sums": lambda x: (ROWS + x).sum(0) * (COLUMN + x).sum(1)[:3],
    "a matrix product": lambda x: (ROWS - x).T @ (x + COLUMN),
    "parts": lambda x: (ROWS + x)[1:, ::-1] * (ROWS + x)[[0, 2, 0]],
    "a choice": lambda x: np.where(ROWS > 0.8, ROWS + x, x * COLUMN),
    "joined": lambda x: np.concatenate([ROWS + x, ROWS, x[None]]),
    "other shapes": lambda x: (ROWS + x).reshape(2, 6).T + np.ravel(x + COLUMN)[:2],
    "order": lambda x: np.sort(ROWS - x, axis=0) + np.cumsum(ROWS + x, axis=1),
    "an inverse": lambda x: np.linalg.inv(np.eye(3) * 3 + x),
    "written": lambda x: _written(ROWS + x, x),
}


def _written(y, x):
    y[1] = x * x
    return y


@pytest.mark.parametrize("name", REPEATED)
def test_what_is_repeated_has_its_derivative_in_full(name):
    fun, x, v = REPEATED[name], X.copy(), V.copy()
    out, found = pb.jvp(fun, (x,), (v,))
    assert found.shape == out.shape
    np.testing.assert_allclose(found, numerical.along(fun, X, V), rtol=1e-6, atol=1e-8)
    assert (x == X).all()
    assert (v == V).all()


@pytest.mark.parametrize("name", REPEATED)
def test_what_is_repeated_has_a_second_derivative_along_a_direction(name):
    def loss(x):
        return np.sum(np.sin(REPEATED[name](x)))

    x, v = X.copy(), V.copy()
    expected = numerical.along(pb.grad(loss), X, V)
    for _ in range(2):  # nothing is left changed behind
        np.testing.assert_allclose(pb.hvp(loss)(x, v), expected, rtol=1e-5, atol=1e-7)
    assert (x == X).all()
    assert (v == V).all()


def test_what_is_repeated_reaches_operations_of_ones_own_in_full():
    shapes = []

    @pb.autograd_function
    def cube(ctx, x):
        ctx.save_for_backward(x=x)
        return x * x * x

    @cube.jvp
    def _(ctx, x):
        shapes.append(x.shape)
        return 3 * x * ctx.saved_variables.x**2

    found = pb.jvp(lambda x: cube(ROWS + x), (X,), (V,))[1]
    assert shapes == [(4, 3)]
    np.testing.assert_allclose(found, 3 * V * (ROWS + X) ** 2)


def test_adding_up_a_tangent_changes_no_other_one():
    def f(x):
        y = np.exp(x)
        z = y * x  # its tangent is a sum that is made in place
        return y, z, z + y, z * z + z, z

    along = pb.jvp(f, (X,), (V,))[1]
    y, dy = np.exp(X), np.exp(X) * V
    dz = dy * X + y * V
    for found, wanted in zip(along, (dy, dz, dz + dy, 2 * y * X * dz + dz, dz), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize(
    "loss",
    [
        lambda x, y: (x + y).sum(),
        lambda x, y: ((x + y) ** 2).sum(),
        lambda x, y: x @ y,
        lambda x, y: 0.5 * (x * x + y * y).sum(),
    ],
    ids=["ones", "the same", "each other", "themselves"],
)
def test_gradients_and_their_derivatives_share_no_memory(loss):
    x, y, v, w = np.random.default_rng(2).normal(size=(4, 3))
    given = [a.copy() for a in (x, y, v, w)]
    values, along = pb.jvp(pb.grad(loss, (0, 1)), given[:2], given[2:])
    arrays = [*given, *values, *along]
    assert all(a.flags.writeable for a in arrays)
    assert not any(np.shares_memory(a, b) for a, b in itertools.combinations(arrays, 2))
