"""`pb.interop.scipy.interpolate`: SciPy's curves, with derivatives in knots, samples and places."""

import numpy as np
import pytest
import scipy.interpolate
from tests.interop._derivatives import check_derivatives

import pullback as pb
from pullback.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    ShapeError,
    TensorIndexError,
)

interpolate = pb.interop.scipy.interpolate
X = np.array([0.0, 0.7, 1.5, 2.0, 3.2, 4.0])
Y = np.array([0.3, 1.5, -0.4, 2.0, 1.0, 0.3])
TABLE = np.stack([Y, Y[::-1] ** 2, np.cos(Y)], axis=1)
AT = np.array([-0.5, 0.1, 0.9, 1.5, 2.6, 3.9, 4.4])
CONDITIONS = ["not-a-knot", "natural", "clamped", ((1, 0.5), (2, -1.0)), ("not-a-knot", "natural")]


@pytest.mark.parametrize("n", [2, 3, 4, 6])
@pytest.mark.parametrize("bc_type", CONDITIONS)
def test_a_cubic_spline_is_scipys_and_has_two_derivatives(n, bc_type):
    ours = interpolate.CubicSpline(X[:n], Y[:n], bc_type=bc_type)
    theirs = scipy.interpolate.CubicSpline(X[:n], Y[:n], bc_type=bc_type)
    for nu in (0, 1, 2, 3):
        np.testing.assert_allclose(ours(AT, nu), theirs(AT, nu), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.integrate(0.3, 2.9), theirs.integrate(0.3, 2.9), rtol=1e-9)
    inside = AT[np.abs(AT - 1.5) > 0.1]  # the third derivative jumps at a knot

    def value(x, y, at):
        return interpolate.CubicSpline(x, y, bc_type=bc_type)(at)

    check_derivatives(value, X[:n], Y[:n], inside)


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_a_periodic_spline_is_scipys_and_has_two_derivatives(n):
    y = np.append(Y[: n - 1], Y[0])
    ours = interpolate.CubicSpline(X[:n], y, bc_type="periodic")
    theirs = scipy.interpolate.CubicSpline(X[:n], y, bc_type="periodic")
    np.testing.assert_allclose(ours(AT), theirs(AT), rtol=1e-9, atol=1e-12)

    def value(x, y, at):
        samples = pb.concat([y, y[:1]])
        return interpolate.CubicSpline(x, samples, bc_type="periodic")(at)

    check_derivatives(value, X[:n], Y[: n - 1], AT[[1, 2, 4, 5]])


def test_samples_may_have_several_axes():
    for axis, table in ((0, TABLE), (1, TABLE.T), (-1, TABLE.T)):
        ours = interpolate.CubicSpline(X, table, axis=axis)
        theirs = scipy.interpolate.CubicSpline(X, table, axis=axis)
        for at in (AT, AT[:6].reshape(2, 3), 0.3):
            np.testing.assert_allclose(ours(at), theirs(at), rtol=1e-9)
    check_derivatives(lambda x, y: interpolate.CubicSpline(x, y)(AT), X, TABLE)


def test_places_outside_are_nan_without_extrapolation():
    ours = interpolate.CubicSpline(X, Y, extrapolate=False)
    np.testing.assert_array_equal(np.isnan(ours(AT)), [True, *[False] * 5, True])
    assert not np.isnan(ours(AT, extrapolate=True)).any()


@pytest.mark.parametrize("n", [2, 3, 6])
def test_a_monotone_curve_is_scipys_and_has_two_derivatives(n):
    for y in (Y[:n], np.sort(Y)[:n], TABLE[:n]):
        ours = interpolate.PchipInterpolator(X[:n], y)
        theirs = scipy.interpolate.PchipInterpolator(X[:n], y)
        np.testing.assert_allclose(ours(AT), theirs(AT), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(ours(AT, 1), theirs(AT, 1), rtol=1e-9, atol=1e-12)
    inside = AT[[0, 1, 2, 4, 5, 6]]
    rising = (
        np.sort(Y)[[0, 2, 3, 4, 5]] + np.arange(5) if n == 6 else Y[:n].cumsum() + 4 * np.arange(n)
    )
    knots = X[: len(rising)]
    check_derivatives(
        lambda x, y, at: interpolate.PchipInterpolator(x, y)(at), knots, rising, inside
    )


def test_a_piecewise_polynomial_is_scipys():
    c = np.random.default_rng(0).normal(size=(3, 5, 2))
    ours, theirs = interpolate.PPoly(c, X), scipy.interpolate.PPoly(c, X)
    np.testing.assert_allclose(ours(AT), theirs(AT))
    np.testing.assert_allclose(ours.derivative(2)(AT), theirs.derivative(2)(AT))
    np.testing.assert_allclose(ours.derivative(4)(AT[:2]), np.zeros((2, 2)))
    np.testing.assert_allclose(ours.antiderivative(2)(AT), theirs.antiderivative(2)(AT))


# -- interp1d --------------------------------------------------------------------------------------
INSIDE = np.array([0.1, 0.9, 2.7, 3.9])  # no knot of any kind


STEPS = ["nearest", "nearest-up", "previous", "next", "zero"]
SMOOTH = ["linear", "slinear", "quadratic", "cubic", 4, 5]
ORDER = np.array([3, 0, 5, 1, 2, 4])


@pytest.mark.parametrize("kind", SMOOTH)
def test_interp1d_is_scipys_and_has_two_derivatives(kind):
    for x, y in ((X, Y), (X[ORDER], Y[ORDER])):
        ours, theirs = (m.interp1d(x, y, kind) for m in (interpolate, scipy.interpolate))
        for at in (INSIDE, INSIDE.reshape(2, 2), 0.3, X):
            np.testing.assert_allclose(ours(at), theirs(at), rtol=1e-9, atol=1e-12)
        check_derivatives(lambda x, y, at: interpolate.interp1d(x, y, kind)(at), x, y, INSIDE)


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("outside", [{"fill_value": "extrapolate"}, {"bounds_error": False}])
def test_steps_are_scipys_at_and_between_samples_and_outside(kind, outside):
    at = np.concatenate([AT, X, (X[1:] + X[:-1]) / 2, [np.nan]])
    for y in (Y, TABLE.T, Y + 1j * Y**2):
        functions = [m.interp1d(X, y, kind, **outside) for m in (interpolate, scipy.interpolate)]
        ours, theirs = (function(at) for function in functions)
        np.testing.assert_array_equal(ours, theirs)
        assert isinstance(ours, np.ndarray)


@pytest.mark.parametrize("kind", STEPS)
def test_steps_have_the_derivative_1_in_one_sample_and_0_in_places(kind):
    x, y, at = (pb.tensor(v, requires_grad=True) for v in (X, Y, INSIDE[1:2]))
    grads = pb.autograd.grad(interpolate.interp1d(x, y, kind)(at).sum(), (x, y, at))
    index = {"nearest": 1, "nearest-up": 1, "previous": 1, "zero": 1, "next": 2}[kind]
    np.testing.assert_array_equal(grads[0].numpy(), np.zeros(6))
    np.testing.assert_array_equal(grads[1].numpy(), np.eye(6)[index])
    np.testing.assert_array_equal(grads[2].numpy(), [0.0])


@pytest.mark.parametrize("kind", ["previous", "next"])
def test_steps_go_on_to_one_side_and_have_a_gradient_there(kind):
    y = pb.tensor(Y, requires_grad=True)
    function = interpolate.interp1d(X, y, kind, fill_value="extrapolate")
    found, place = function(np.array([-1.0, 9.0])), 1 if kind == "previous" else 0
    assert np.isnan(found.detach().numpy()[1 - place])
    (g,) = pb.autograd.grad(found[place], y)
    np.testing.assert_array_equal(g.numpy(), np.eye(6)[5 * place])


def test_interp1d_shows_places_and_samples_in_order():
    table = pb.tensor(TABLE.T[:, ORDER], requires_grad=True)
    function = interpolate.interp1d(X[ORDER], table, fill_value=2.0)
    np.testing.assert_array_equal(function.x.detach(), X)
    np.testing.assert_array_equal(function.y.detach(), TABLE.T)
    (g,) = pb.autograd.grad(function.y[1, 0], table)
    np.testing.assert_array_equal(g.numpy(), np.outer([0, 1, 0], ORDER == 0))
    assert (function.axis, function.bounds_error, function.fill_value) == (1, True, 2.0)
    shown = interpolate.interp1d(X, Y, "cubic").x
    assert isinstance(shown, np.ndarray)


def test_what_is_outside_may_be_set_later():
    function = interpolate.interp1d(X, Y, bounds_error=False)
    assert np.isnan(function(9.0))
    function.fill_value = (1.0, [7.0])
    assert (function(-9.0), function(9.0)) == (1.0, 7.0)
    function.fill_value = "extrapolate"
    assert function(5.0) == pytest.approx(0.3 - 0.7 / 0.8)


def test_one_sample_is_a_function_of_its_place():
    for kind in ("linear", *STEPS):
        assert interpolate.interp1d([1.0], [2.0], kind)(1.0) == 2.0


@pytest.mark.parametrize("kind", ["quadratic", "cubic"])
def test_a_spline_through_nan_is_nan_everywhere_as_in_scipy(kind):
    y = np.where(np.arange(6) == 2, np.nan, Y)
    assert np.isnan(interpolate.interp1d(X, y, kind)(INSIDE)).all()


def test_an_infinite_place_outside_leaves_no_nan_in_a_gradient():
    y = pb.tensor(Y, requires_grad=True)
    for kind in ("linear", "cubic", "nearest"):
        function = interpolate.interp1d(X, y, kind, bounds_error=False, fill_value=0.0)
        (g,) = pb.autograd.grad(function(np.array([np.inf, 0.0])).sum(), y)
        np.testing.assert_allclose(g.numpy(), np.eye(6)[0], atol=1e-12)


@pytest.mark.parametrize("kind", ["linear", "quadratic", "cubic", "nearest"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("fill", [np.nan, 2.0, (1.0, -1.0), "extrapolate", np.arange(3.0)])
def test_interp1d_outside_is_scipys(kind, axis, fill):
    y = TABLE if axis == 0 else TABLE.T
    settings = {"kind": kind, "axis": axis, "bounds_error": False, "fill_value": fill}
    ours, theirs = (m.interp1d(X, y, **settings) for m in (interpolate, scipy.interpolate))
    for at in (AT, AT[:6].reshape(2, 3), -1.0, 9.0):
        np.testing.assert_allclose(ours(at), theirs(at), rtol=1e-9)


def test_what_is_outside_has_a_gradient_too():
    def value(y, low, high):
        function = interpolate.interp1d(X, y, bounds_error=False, fill_value=(low, high))
        return function(np.array([-1.0, 0.3, 2.2, 5.0]))

    check_derivatives(value, Y, 0.5, 0.7)
    settings = {"bounds_error": False, "fill_value": 0.0}
    check_derivatives(lambda x: interpolate.interp1d(X, Y, **settings)(x), AT[[0, 1, 6]])


@pytest.mark.parametrize("kind", ["linear", "cubic"])
def test_interp1d_takes_complex_samples(kind):
    samples, inside = Y + 1j * Y**2, AT[[1, 2, 4, 5]]
    expected = scipy.interpolate.interp1d(X, samples, kind)(inside)
    for order in (slice(None), slice(None, None, -1)):
        found = interpolate.interp1d(X[order], samples[order], kind)
        np.testing.assert_allclose(found(inside), expected, rtol=1e-12)
    settings = {"bounds_error": False, "fill_value": 2j}
    assert interpolate.interp1d(X, samples, kind, **settings)(9.0) == 2j
    check_derivatives(lambda x: interpolate.interp1d(X, samples, kind)(x).imag, inside)


@pytest.mark.parametrize("kind", ["linear", "cubic", "next"])
def test_vmap_reads_interp1d_at_places_and_through_samples_of_a_batch(kind):
    function = interpolate.interp1d(X, Y, kind)
    np.testing.assert_allclose(pb.vmap(function)(INSIDE), function(INSIDE), rtol=1e-12)
    slopes = [pb.grad(function)(x) for x in INSIDE]
    np.testing.assert_allclose(pb.vmap(pb.grad(function))(INSIDE), slopes, rtol=1e-9)
    rows = pb.vmap(lambda y: interpolate.interp1d(X, y, kind)(INSIDE))(TABLE.T)
    np.testing.assert_allclose(rows, interpolate.interp1d(X, TABLE.T, kind)(INSIDE), rtol=1e-12)


def test_interp1d_refuses_places_outside_unless_told_otherwise_as_scipy_does():
    for settings in ({}, {"fill_value": 0.0}, {"fill_value": (0.0, 1.0), "bounds_error": True}):
        required = r"(?s)places from 0 to 4 required, got -0.5.*bounds_error=False and a number"
        with pytest.raises(ArgumentError, match=required):
            interpolate.interp1d(X, Y, **settings)(AT)
    with pytest.raises(DTypeError, match="real places required, got complex128"):
        interpolate.interp1d(X, Y)(1j)


def test_interp1d_refuses_what_it_cannot_do():
    for kind in ("quintic", [1], -1):
        with pytest.raises(ArgumentError, match=r"(?s)a kind of linear, .* order of.* got .*Pchip"):
            interpolate.interp1d(X, Y, kind)
    with pytest.raises(ArgumentError, match="required as fill_value, got 'nearest'"):
        interpolate.interp1d(X, Y, fill_value="nearest")
    with pytest.raises(ShapeError, match=r"(?s)the shape of a sample, \(3,\), .*got \(2,\).*tuple"):
        interpolate.interp1d(X, TABLE.T, fill_value=[1.0, 2.0])
    with pytest.raises(DTypeError, match="a real fill_value required for real y"):
        interpolate.interp1d(X, Y, fill_value=1j)
    for kind, n in (("slinear", 2), ("quadratic", 3), ("cubic", 4), (5, 6)):
        required = f"{n} samples or more required for {kind!r}, got {n - 1}"
        with pytest.raises(ShapeError, match=required):
            interpolate.interp1d(X[: n - 1], Y[: n - 1], kind)
    for kind in ("linear", "previous"):
        with pytest.raises(ArgumentError, match="bounds_error=False required"):
            interpolate.interp1d(X, Y, kind, bounds_error=True, fill_value="extrapolate")
    with pytest.raises(ArgumentError, match="x without NaN or repeats required, got 0"):
        interpolate.interp1d([0.0, 0.0, 1.0], Y[:3])
    with pytest.raises(ArgumentError, match="increasing x required, got 0"):
        interpolate.interp1d(X[ORDER], Y, assume_sorted=True)
    with pytest.raises(TensorIndexError, match="an axis of y required, got 2"):
        interpolate.interp1d(X, Y, axis=2)
    for x, y, fill, name in ((["a"], Y, 0, "x"), (X, None, 0, "y"), (X, Y, None, "fill_value")):
        with pytest.raises(ArgumentTypeError, match=f"interp1d: numbers required as {name}, got"):
            interpolate.interp1d(x, y, fill_value=fill)
    with pytest.raises(ShapeError, match=r"as many samples, one or more, required, got .* 3 along"):
        interpolate.interp1d(X, TABLE)


def test_a_curve_through_nan_is_an_error_of_ours():
    with pytest.raises(ArgumentError, match="solve_banded: finite elements required"):
        interpolate.CubicSpline(X, np.where(np.arange(6) == 2, np.nan, Y))


def test_wrong_arguments_are_named():
    with pytest.raises(ShapeError, match="CubicSpline: x of one axis and as many samples"):
        interpolate.CubicSpline(X, Y[:3])
    with pytest.raises(ArgumentError, match="CubicSpline: increasing x required"):
        interpolate.CubicSpline(X[::-1].copy(), Y)
    with pytest.raises(ArgumentError, match="a bc_type of not-a-knot"):
        interpolate.CubicSpline(X, Y, bc_type="free")
    with pytest.raises(ArgumentError, match="y that ends as it begins"):
        interpolate.CubicSpline(X, X, bc_type="periodic")
    with pytest.raises(AttributeError, match="got 'BSpline'"):
        _ = interpolate.BSpline
