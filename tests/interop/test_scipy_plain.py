"""`pb.interop.scipy` returns what SciPy returns where no argument is a tensor."""

import operator

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.special
import scipy.stats

import pullback as pb

ours = pb.interop.scipy
VALUES = (0.4, np.float64(0.4), np.float32(0.4), [0.4, 0.6], np.array([0.4, 0.6], np.float32))
# The first arguments of the functions that take several; one whole number where it is an order.
BEFORE = {
    **dict.fromkeys(["beta", "betaln", "gammainc", "gammaincc", "gammaincinv"], (2.0,)),
    **dict.fromkeys(["gammainccinv", "stdtr", "stdtrit", "xlogy", "xlog1py"], (2.0,)),
    **dict.fromkeys(["iv", "ive", "jv", "kv", "kve", "yv", "zeta"], (2.0,)),
    **dict.fromkeys(["jn", "kn", "yn", "polygamma"], (2,)),
    **dict.fromkeys(["betainc", "betaincc", "betaincinv", "fdtrc"], (2.0, 3.0)),
}


def same(found, expected):
    assert type(found) is type(expected)
    assert getattr(found, "dtype", None) == getattr(expected, "dtype", None)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("name", sorted(pb.special.__all__))
def test_a_special_function_of_numbers_and_lists(name):
    for value in VALUES:
        args = (*BEFORE.get(name, ()), value)
        same(getattr(ours.special, name)(*args), getattr(scipy.special, name)(*args))


def test_gammaln_of_a_number():
    assert ours.special.gammaln(3.0) == pytest.approx(0.6931471805599453)
    assert ours.special.gammaln(2) == 0.0


def test_a_special_function_with_a_list_of_tensors_is_recorded():
    x = pb.tensor(0.5, requires_grad=True)
    assert ours.special.xlogy(2.0, x).requires_grad


@pytest.mark.parametrize("name", ["norm", "expon", "laplace", "uniform"])
@pytest.mark.parametrize("method", ["pdf", "logpdf", "cdf", "sf", "logcdf", "logsf"])
def test_a_distribution_of_numbers_and_lists(name, method):
    for value in VALUES:
        theirs = getattr(getattr(scipy.stats, name), method)
        same(getattr(getattr(ours.stats, name), method)(value), theirs(value))
        same(getattr(getattr(ours.stats, name)(0.5, 2.0), method)(value), theirs(value, 0.5, 2.0))


A, B, Y = [[4.0, 1.0], [1.0, 3.0]], [1.0, 2.0], [1.0, 2.0, 4.0]
CALLS = {
    "special.logsumexp": (B,),
    "special.softmax": (2.0,),
    "special.log_softmax": (B,),
    "special.multigammaln": (3.0, 2),
    "linalg.solve": (A, B),
    "linalg.inv": (A,),
    "linalg.det": (A,),
    "linalg.cholesky": (A,),
    "linalg.expm": (A,),
    "linalg.logm": (A,),
    "linalg.sqrtm": (A,),
    "integrate.trapezoid": (Y,),
    "integrate.simpson": (Y,),
    "integrate.cumulative_trapezoid": (Y,),
    "stats.multivariate_normal.logpdf": (B, [0.0, 0.0], A),
    "stats.dirichlet.pdf": ([0.2, 0.8], [2.0, 3.0]),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_function_of_lists(name):
    function = operator.attrgetter(name)
    same(function(ours)(*CALLS[name]), function(scipy)(*CALLS[name]))


SINGLE = np.array([[4.0, 1.0], [1.0, 3.0]], np.float32)
HALVES = np.triu(SINGLE), SINGLE[0]
OF_SINGLES = {
    "solve": (SINGLE, SINGLE[0]),
    "solve_triangular": HALVES,
    "solve_banded": ((0, 1), SINGLE, SINGLE[0]),
    "solve_sylvester": (SINGLE, SINGLE, SINGLE),
    "cho_solve": ((HALVES[0], False), SINGLE[0]),
    **dict.fromkeys(["cholesky", "det", "expm", "inv", "logm", "sqrtm"], (SINGLE,)),
}


@pytest.mark.filterwarnings("ignore:logm result may be inaccurate:RuntimeWarning")  # SciPy's own
@pytest.mark.parametrize("name", OF_SINGLES)
@pytest.mark.parametrize("kind", ["float32", "complex64"])
def test_a_function_of_matrices_in_single_precision(name, kind):
    def cast(x):
        return x.astype(kind) if isinstance(x, np.ndarray) else x

    args = [tuple(map(cast, x)) if isinstance(x, tuple) else cast(x) for x in OF_SINGLES[name]]
    same(getattr(ours.linalg, name)(*args), getattr(scipy.linalg, name)(*args))


@pytest.mark.parametrize("number", [2.0, 2, 2j, np.float64(2.0)])
def test_expm_solve_and_cholesky_of_a_number(number):
    same(ours.linalg.expm(number), scipy.linalg.expm(number))
    same(ours.linalg.solve(number, 3.0), scipy.linalg.solve(number, 3.0))
    if number != 2j:
        same(ours.linalg.cholesky(number), scipy.linalg.cholesky(number))


def test_expm_of_a_number_has_its_derivatives():
    def f(x):
        return ours.linalg.expm(x).sum()

    slope = (np.exp(2.0 + 1e-6) - np.exp(2.0 - 1e-6)) / 2e-6
    assert pb.grad(f)(2.0) == pytest.approx(slope)
    assert pb.jvp(f, (2.0,), (0.5,))[1] == pytest.approx(slope / 2)
    change = (pb.grad(f)(2.0 + 1e-6) - pb.grad(f)(2.0 - 1e-6)) / 2e-6
    assert pb.hessian(f)(2.0) == pytest.approx(change)


def test_det_of_singles_has_its_gradient_and_tensors_keep_their_dtype():
    gradient = pb.grad(ours.linalg.det)(SINGLE)
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, [[3.0, -1.0], [-1.0, 4.0]], rtol=1e-6)
    assert ours.linalg.det(pb.tensor(SINGLE)).dtype is pb.float32


@pytest.mark.parametrize("limits", [(0, 1), (0.0, np.float64(1.0))])
def test_quad_gives_a_number_of_pythons(limits):
    value, _ = ours.integrate.quad(lambda t: t * t, *limits)
    assert type(value) is float
    assert value == pytest.approx(1 / 3)


@pytest.mark.parametrize("name", ["CubicSpline", "PchipInterpolator", "interp1d"])
def test_an_interpolator_of_lists(name):
    places, samples = [0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 4.0, 9.0]
    mine = getattr(ours.interpolate, name)(places, samples)
    theirs = getattr(scipy.interpolate, name)(places, samples)
    for x in (0.5, 1, [0.5, 1.0], np.float64(0.5), np.array([0.5])):
        same(mine(x), theirs(x))
    same(mine.x, theirs.x)
    if name != "interp1d":
        assert type(mine.c) is np.ndarray
        same(mine.integrate(0.0, 1.0), theirs.integrate(0.0, 1.0))
