"""`pb.interop.scipy.stats`: SciPy's values, and derivatives of densities in every parameter."""

import importlib
from importlib import util

import numpy as np
import pytest
import scipy.stats
from tests.interop._derivatives import check_derivatives

import pullback as pb
from pullback.errors import ArgumentError, ShapeError

stats = pb.interop.scipy.stats

# Shapes, several of each; a place inside the support of the standard variable.
CONTINUOUS = {
    "norm": ([()], 0.3),
    "logistic": ([()], 0.3),
    "laplace": ([()], 0.3),
    "cauchy": ([()], 0.3),
    "t": ([(1.5,), (4.0,)], 0.3),
    "expon": ([()], 0.7),
    "halfnorm": ([()], 0.7),
    "gamma": ([(0.5,), (1.0,), (3.5,)], 0.7),
    "chi2": ([(1.0,), (2.0,), (5.0,)], 0.7),
    "invgamma": ([(0.7,), (3.0,)], 0.7),
    "lognorm": ([(0.5,), (1.5,)], 0.7),
    "pareto": ([(0.8,), (3.0,)], 1.7),
    "weibull_min": ([(0.7,), (2.0,)], 0.7),
    "uniform": ([()], 0.4),
    "beta": ([(0.5, 0.7), (1.0, 1.0), (2.0, 3.5)], 0.4),
}
DISCRETE = {
    "poisson": [(0.0,), (0.5,), (4.0,)],
    "bernoulli": [(0.0,), (0.3,), (1.0,)],
    "binom": [(1, 0.3), (5, 0.0), (5, 0.6), (4, 1.0)],
    "nbinom": [(1, 0.3), (3.5, 0.6), (2, 1.0)],
    "geom": [(0.3,), (1.0,)],
}
METHODS = ("cdf", "sf", "logcdf", "logsf")
PLACES = np.array(
    [-np.inf, -40.0, -1.5, -1.0, -0.3, 0.0, 0.2, 0.5, 1.0, 1.3, 2.5, 9.0, 45.0, np.inf]
)
MOVES = [(0.0, 1.0), (0.5, 2.0), (-1.0, 0.25)]


def cases(table):
    return [(name, shapes) for name, found in table.items() for shapes in found]


@pytest.mark.parametrize(
    ("name", "shapes"), cases({name: found for name, (found, _) in CONTINUOUS.items()})
)
@pytest.mark.parametrize("method", ["logpdf", "pdf", *METHODS])
def test_a_continuous_distribution_has_scipys_values_everywhere(name, shapes, method):
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    for loc, scale in MOVES:
        x = loc + scale * PLACES
        with np.errstate(all="ignore"):
            expected = getattr(theirs, method)(x, *shapes, loc=loc, scale=scale)
            found = getattr(ours, method)(pb.tensor(x), *shapes, loc=loc, scale=scale).numpy()
        # SciPy's logarithm of a probability that underflows is -inf.
        finite = np.isfinite(x) & ~(np.isneginf(expected) & (found < -700))
        np.testing.assert_allclose(found[finite], expected[finite], rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(("name", "shapes"), cases(DISCRETE))
@pytest.mark.parametrize("method", ["logpmf", "pmf", *METHODS])
def test_a_discrete_distribution_has_scipys_values_everywhere(name, shapes, method):
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    k = np.array([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 4.0, 5.0, 6.5, 30.0])
    for loc in (0, 2):
        with np.errstate(all="ignore"):
            expected = getattr(theirs, method)(k, *shapes, loc=loc)
            found = getattr(ours, method)(pb.tensor(k), *shapes, loc=loc).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("name", list(CONTINUOUS))
def test_a_density_has_two_derivatives_in_x_and_in_every_parameter(name):
    shapes, place = CONTINUOUS[name]
    logpdf = getattr(stats, name).logpdf
    x = 0.25 + 1.5 * (place + np.array([0.0, 0.11, 0.23]))
    check_derivatives(logpdf, x, *shapes[-1], 0.25, 1.5)
    check_derivatives(getattr(stats, name).pdf, x, *shapes[-1], 0.25, 1.5)


QUANTILES = np.array([-0.1, 0.0, 1e-9, 0.2, 0.5, 0.7, 1 - 1e-9, 1.0, 1.1, np.nan])


@pytest.mark.parametrize(
    ("name", "shapes"), cases({name: found for name, (found, _) in CONTINUOUS.items()})
)
@pytest.mark.parametrize("method", ["ppf", "isf"])
def test_an_inverse_distribution_function_has_scipys_values(name, shapes, method):
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    for loc, scale in MOVES:
        expected = getattr(theirs, method)(QUANTILES, *shapes, loc=loc, scale=scale)
        found = getattr(ours, method)(pb.tensor(QUANTILES), *shapes, loc=loc, scale=scale).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("method", ["ppf", "isf"])
@pytest.mark.parametrize("name", list(CONTINUOUS))
def test_an_inverse_distribution_function_has_two_derivatives_in_everything(name, method):
    function, shapes = getattr(getattr(stats, name), method), CONTINUOUS[name][0][-1]
    check_derivatives(function, np.array([0.2, 0.45, 0.7]), *shapes, 0.25, 1.5)


def test_quantiles_of_the_normal_distribution_have_their_gradient():
    q = pb.tensor(np.array([0.5, 0.975]), requires_grad=True)
    frozen = stats.norm(loc=1.0, scale=2.0)
    frozen.ppf(q).sum().backward()
    np.testing.assert_allclose(q.grad.numpy(), 1 / scipy.stats.norm(1, 2).pdf([1.0, 4.919928]))
    assert stats.norm.ppf(q=0.5) == 0.0
    with pytest.raises(AttributeError, match=r"one of logpmf, pmf, .* required, got 'ppf'"):
        stats.poisson.ppf(0.5, 2.0)


MASSES = {"poisson": (0.4,), "bernoulli": (0.4,), "nbinom": (3.5, 0.6), "geom": (0.4,)}


@pytest.mark.parametrize("name", list(MASSES))
def test_a_mass_has_two_derivatives_in_its_parameters(name):
    logpmf = getattr(stats, name).logpmf
    check_derivatives(lambda *shapes: logpmf(np.array([1.0, 1.0]), *shapes), *MASSES[name])


def test_a_binomial_mass_has_two_derivatives_in_its_probability():
    check_derivatives(lambda p: stats.binom.logpmf(np.array([0.0, 2.0, 5.0]), 5, p), 0.4)
    check_derivatives(lambda p: stats.binom.cdf(np.array([0.0, 2.0, 5.0]), 5, p), 0.4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", list(CONTINUOUS))
def test_a_distribution_function_has_two_derivatives_in_x_loc_and_scale(name, method):
    shapes, place = CONTINUOUS[name]
    function = getattr(getattr(stats, name), method)
    x = 0.25 + 1.5 * (place + np.array([0.0, 0.11, 0.23]))
    check_derivatives(lambda x, loc, s: function(x, *shapes[-1], loc=loc, scale=s), x, 0.25, 1.5)


@pytest.mark.parametrize("method", METHODS)
def test_a_distribution_function_has_two_derivatives_in_shapes_that_have_a_rule(method):
    for name in ("lognorm", "pareto", "weibull_min"):
        shapes, place = CONTINUOUS[name]
        check_derivatives(getattr(getattr(stats, name), method), place, *shapes[-1])
    for name, found in {"poisson": (), "bernoulli": (), "nbinom": (3,), "geom": ()}.items():
        function = getattr(getattr(stats, name), method)
        at = 0.0 if name == "bernoulli" else 2.0
        check_derivatives(lambda p, f=function, at=at, n=found: f(at, *n, p), 0.4)


def test_a_binomial_mass_has_two_derivatives_in_its_number_of_draws():
    check_derivatives(lambda n, p: stats.binom.logpmf(2.0, n, p), 5.0, 0.4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["gamma", "chi2", "invgamma", "beta", "t"])
def test_a_distribution_function_has_two_derivatives_in_its_shapes(name, method):
    found, place = CONTINUOUS[name]
    for shapes in found:
        check_derivatives(getattr(getattr(stats, name), method), place, *shapes)


def test_discrete_distribution_functions_have_derivatives_in_a_number_of_draws():
    k = np.array([0.0, 1.0, 3.0])
    check_derivatives(lambda n, p: stats.nbinom.cdf(k, n, p), 3.5, 0.6)
    check_derivatives(lambda n, p: stats.binom.cdf(k, n, p), 5.5, 0.6)


mpmath = importlib.import_module("mpmath") if util.find_spec("mpmath") else None
WITH_MPMATH = pytest.mark.skipif(mpmath is None, reason="needs mpmath")
# Shapes and places from the tails to the middle, and far beyond the usual.
PRECISE = {
    "gammainc": [(a, a * r) for a in (0.01, 0.5, 3.5, 1e3) for r in (0.8, 0.99, 1.0, 1.2)]
    + [(0.1, 1e-9), (2.0, 1e-3), (2.0, 40.0)],
    "betainc": [
        (a, b, x)
        for a, b in ((0.05, 0.06), (0.02, 0.3), (1.0, 1.0), (2.0, 3.5), (30.0, 0.2), (50.0, 80.0))
        for x in (1e-6, 0.1, 0.4, 0.7, 0.9)
    ],
    "stdtr": [
        (df, t) for df in (0.05, 1.0, 4.0, 39.0, 41.0, 1e4) for t in (1e-3, -0.5, 1.6, 2.0, -5.0)
    ]
    + [(0.05, 1e200), (2.0, 1e-9)],
}


def _upper_and_lower(name, shapes):
    """Return the smaller of the two probabilities, with its sign in the distribution function."""
    mp = mpmath
    if name == "gammainc":
        a, x = shapes
        return lambda lower: mp.gammainc(a, *((0, x) if lower else (x, mp.inf)), regularized=True)
    if name == "betainc":
        a, b, x = shapes
        ends = {True: (0, x), False: (x, 1)}
        return lambda lower: mp.betainc(a, b, *ends[bool(lower)], regularized=True)
    df, t = shapes
    x = df / (df + mp.mpf(t) ** 2)
    return lambda lower: (mp.sign(-t) if lower else -1) * mp.betainc(df / 2, 0.5, 0, x, 1) / 2


@WITH_MPMATH
@pytest.mark.parametrize(("name", "index"), [("gammainc", 0), ("betainc", 0), ("betainc", 1)])
def test_derivatives_in_shapes_agree_with_differences_of_40_digits(name, index):
    with mpmath.workdps(60):
        for values in PRECISE[name]:
            check_precisely(name, index, values)


@WITH_MPMATH
def test_derivatives_in_the_degrees_of_freedom_agree_with_differences_of_40_digits():
    with mpmath.workdps(60):
        for values in PRECISE["stdtr"]:
            check_precisely("stdtr", 0, values)


def check_precisely(name, index, values):
    given = [mpmath.mpf(v) for v in values]
    lower = name == "stdtr" or _upper_and_lower(name, given)(True) < 0.5
    step = given[index] * mpmath.mpf(10) ** -20

    def moved(h):
        changed = list(given)
        changed[index] += h
        return _upper_and_lower(name, changed)(lower)

    expected = (moved(step) - moved(-step)) / (2 * step) * (1 if lower else -1)
    leaves = [pb.tensor(v, dtype=pb.float64, requires_grad=True) for v in values]
    (g,) = pb.autograd.grad(getattr(pb.special, name)(*leaves), leaves[index])
    assert g.item() == pytest.approx(float(expected), rel=1e-8), values


def test_derivatives_in_shapes_are_zero_where_the_probability_is_0_or_1():
    a, b, df = (pb.tensor(v, dtype=pb.float64, requires_grad=True) for v in (2.0, 3.0, 4.0))
    for found, leaf in (
        (stats.gamma.cdf(np.array([-1.0, 0.0, np.inf]), a), a),
        (stats.beta.cdf(np.array([-1.0, 0.0, 1.0, 2.0]), a, b), b),
        (stats.t.cdf(np.array([-np.inf, 0.0, np.inf]), df), df),
    ):
        assert pb.autograd.grad(found.sum(), leaf)[0].item() == 0.0


def test_derivatives_in_shapes_are_nan_where_the_function_is():
    a, df = (pb.tensor(v, dtype=pb.float64, requires_grad=True) for v in (2.0, [4.0, np.inf]))
    for found in (pb.special.gammainc(a, -1.0), pb.special.betainc(a, 3.0, 1.5)):
        assert np.isnan(found.item())
        assert np.isnan(pb.autograd.grad(found, a)[0].item())
    found = pb.special.stdtr(df, np.array([np.nan, 1.5]))
    np.testing.assert_array_equal(pb.autograd.grad(found.sum(), df)[0].numpy(), [np.nan, 0.0])


@pytest.mark.parametrize("method", ["logpdf", "pdf", *METHODS])
def test_students_distribution_with_infinite_df_is_the_normal_one_in_all_derivatives(method):
    x = np.array([-2.0, 0.0, 0.5, 1.7])

    def of_t(x, df):
        return getattr(stats.t, method)(x, df).sum()

    def of_normal(x):
        return getattr(stats.norm, method)(x).sum()

    at, df = (pb.tensor(v, requires_grad=True) for v in (x, np.inf * np.ones(4)))
    np.testing.assert_allclose(of_t(at, df).item(), of_normal(at).item(), rtol=1e-14)
    by_x, by_df = pb.autograd.grad(of_t(at, df), (at, df), create_graph=True)
    (expected,) = pb.autograd.grad(of_normal(at), at, create_graph=True)
    np.testing.assert_allclose(by_x.detach(), expected.detach(), rtol=1e-12, atol=1e-14)
    second, mixed = pb.autograd.grad(by_x.sum(), (at, df), retain_graph=True)
    (curvature,) = pb.autograd.grad(expected.sum(), at)
    np.testing.assert_allclose(second, curvature, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal([by_df.detach(), mixed], np.zeros((2, 4)))


def test_stdtr_and_its_inverse_with_infinite_df_have_the_normal_ones_derivatives():
    stdtr, stdtrit = pb.special.stdtr, pb.special.stdtrit
    density = np.exp(-(1.5**2) / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(pb.grad(stdtr, argnum=(0, 1))(np.inf, 1.5), (0.0, density))
    p = pb.special.ndtr(pb.tensor(1.5, dtype=pb.float64)).item()
    np.testing.assert_allclose(pb.grad(stdtrit, argnum=(0, 1))(np.inf, p), (0.0, 1 / density))
    second = pb.grad(pb.grad(stdtr, argnum=1), argnum=1)(np.inf, 1.5)
    assert second == pytest.approx(-1.5 * density, rel=1e-12)


@pytest.mark.parametrize("df", [39.9, 40.1, 1e3, 1e10, 1e17, 1e300])
def test_the_density_of_student_is_precise_for_many_degrees_of_freedom(df):
    mp = pytest.importorskip("mpmath")
    with mp.workdps(350 if df > 1e20 else 60):
        v, x = mp.mpf(df), mp.mpf(1.5)

        def exact(v):
            power = mp.log1p(x * x / v) * (v + 1) / 2
            ratio = mp.loggamma((v + 1) / 2) - mp.loggamma(v / 2)
            return ratio - mp.log(v * mp.pi) / 2 - power

        value, slope = exact(v), mp.diff(exact, v, h=v * mp.mpf(10) ** -20)
    leaf = pb.tensor(df, dtype=pb.float64, requires_grad=True)
    found = stats.t.logpdf(1.5, leaf)
    assert found.item() == pytest.approx(float(value), rel=1e-14)
    (g,) = pb.autograd.grad(found, leaf)
    assert g.item() == pytest.approx(float(slope), rel=1e-6, abs=1e-15 / df)


@pytest.mark.parametrize(("name", "shapes"), [("gammainc", (2.0,)), ("betainc", (2.0, 3.0))])
def test_quantiles_have_derivatives_in_shapes(name, shapes):
    check_derivatives(getattr(pb.special, f"{name}inv"), *shapes, 0.3)
    check_derivatives(pb.special.stdtrit, 4.0, 0.3)
    check_derivatives(pb.special.gammainccinv, 2.0, 0.3)


def test_vmap_takes_shapes():
    shapes = np.array([0.7, 2.0, 5.0])
    found = pb.vmap(pb.grad(lambda a: stats.gamma.cdf(0.9, a)))(shapes)
    np.testing.assert_allclose(
        found, [pb.grad(lambda a: stats.gamma.cdf(0.9, a))(s) for s in shapes]
    )


def test_outside_of_the_support_gradients_are_zero_and_not_nan():
    x = pb.tensor([-1.0, 0.5, 2.0], requires_grad=True)
    a = pb.tensor(2.0, requires_grad=True)
    density = stats.beta.pdf(x, a, 3.0)
    slopes = pb.autograd.grad(density.sum(), (x, a))
    assert density[0].item() == density[2].item() == 0.0
    assert [slopes[0][0].item(), slopes[0][2].item()] == [0.0, 0.0]
    assert np.isfinite(slopes[1].item())


def test_invalid_parameters_give_nan_as_in_scipy():
    for shapes in ((-1.0,), (0.0,)):
        assert np.isnan(stats.gamma.logpdf(1.0, *shapes))
    assert np.isnan(stats.norm.logpdf(1.0, 0.0, -1.0))
    assert np.isnan(stats.poisson.logpmf(1.0, -1.0))


def test_results_are_numbers_and_arrays_where_no_tensor_came_in():
    assert stats.norm.logpdf(0.0) == scipy.stats.norm.logpdf(0.0)
    assert isinstance(stats.norm.cdf(np.zeros(2)), np.ndarray)
    assert pb.grad(lambda x: stats.norm(1.0, scale=2.0).logpdf(x))(2.0) == pytest.approx(-0.25)


def test_single_precision_stays_and_has_the_same_ends():
    x = pb.tensor([-1.0, 0.0, 0.5, 1.0])
    for name in ("invgamma", "lognorm", "gamma", "beta"):
        shapes = CONTINUOUS[name][0][-1]
        with np.errstate(all="ignore"):
            expected = getattr(scipy.stats, name).logpdf(x.numpy(), *shapes)
        found = getattr(stats, name).logpdf(x, *shapes)
        assert found.dtype.name == "float32"
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)


def test_the_variable_may_be_given_by_its_name():
    assert stats.norm.cdf(x=0.0, loc=1.0) == scipy.stats.norm.cdf(x=0.0, loc=1.0)
    assert stats.poisson.pmf(k=2, mu=1.5) == pytest.approx(scipy.stats.poisson.pmf(k=2, mu=1.5))


def test_wrong_arguments_raise_as_pythons_own():
    with pytest.raises(TypeError, match=r"norm\.cdf requires 'x'"):
        stats.norm.cdf()
    with pytest.raises(TypeError, match="gamma requires the shape 'a'"):
        stats.gamma.logpdf(1.0)
    with pytest.raises(TypeError, match="norm takes"):
        stats.norm.logpdf(1.0, 0.0, 1.0, 2.0)
    with pytest.raises(TypeError, match="'mu' is given twice or no one of"):
        stats.norm(mu=2.0)


def test_a_name_that_is_not_there_says_what_is():
    with pytest.raises(AttributeError, match=r"one of bernoulli, beta, .* required, got 'levy'"):
        _ = stats.levy
    with pytest.raises(AttributeError, match=r"logpdf, pdf, cdf, .* required, got 'rvs'"):
        _ = stats.norm.rvs
    with pytest.raises(AttributeError, match="logpdf or pdf required, got 'rvs'"):
        _ = stats.dirichlet.rvs


# -- of vectors ------------------------------------------------------------------------------------
COV = np.array([[2.0, 0.5, 0.1], [0.5, 1.5, -0.3], [0.1, -0.3, 1.0]])


@pytest.mark.parametrize("x", [np.zeros(3), np.arange(6.0).reshape(2, 3)])
@pytest.mark.parametrize("cov", [2.0, np.array([1.0, 2.0, 3.0]), COV])
def test_the_multivariate_normal_density_is_scipys(x, cov):
    mean = np.array([0.5, -1.0, 2.0])
    found = stats.multivariate_normal.logpdf(x, mean, cov)
    np.testing.assert_allclose(found, scipy.stats.multivariate_normal.logpdf(x, mean, cov), 1e-12)
    frozen = stats.multivariate_normal(mean, cov).pdf(x)
    np.testing.assert_allclose(frozen, scipy.stats.multivariate_normal(mean, cov).pdf(x), 1e-12)


def test_the_multivariate_normal_density_of_numbers_is_scipys():
    x = np.array([0.5, 1.0])
    expected = scipy.stats.multivariate_normal.logpdf(x, 0.3, 2.0)
    np.testing.assert_allclose(stats.multivariate_normal.logpdf(x, 0.3, 2.0), expected, 1e-12)


def test_the_multivariate_normal_density_has_two_derivatives():
    def density(x, mean, cov):
        return stats.multivariate_normal.logpdf(x, mean, (cov + cov.mT) / 2)

    check_derivatives(density, np.arange(6.0).reshape(2, 3) / 4, np.array([0.5, -1.0, 2.0]), COV)


def test_the_multivariate_normal_density_refuses_what_it_cannot_do():
    with pytest.raises(ArgumentError, match="allow_singular=False required"):
        stats.multivariate_normal.logpdf([0.0, 0.0], None, np.eye(2), allow_singular=True)
    with pytest.raises(ArgumentError, match="positive definite"):
        stats.multivariate_normal.logpdf([0.0, 0.0], None, -np.eye(2))
    with pytest.raises(ShapeError, match=r"x of shape \(..., 2\)"):
        stats.multivariate_normal.logpdf(np.zeros(3), None, np.eye(2))


def test_the_dirichlet_density_is_scipys_and_has_two_derivatives():
    alpha, x = np.array([0.7, 2.0, 3.5]), np.array([[0.2, 0.5], [0.3, 0.1], [0.5, 0.4]])
    expected = scipy.stats.dirichlet.logpdf(x, alpha)
    np.testing.assert_allclose(stats.dirichlet.logpdf(x, alpha), expected, 1e-12)
    np.testing.assert_allclose(stats.dirichlet.pdf(x[:2], alpha), np.exp(expected), 1e-12)
    check_derivatives(lambda x, alpha: stats.dirichlet.logpdf(x[:2], alpha), x, alpha)
    with pytest.raises(ArgumentError, match="on the simplex"):
        stats.dirichlet.logpdf(np.array([0.2, 0.2, 0.2]), alpha)
    with pytest.raises(ShapeError, match=r"alpha of shape \(n,\)"):
        stats.dirichlet.logpdf(np.array([1.0]), alpha)


@pytest.mark.parametrize("name", stats.__all__)
def test_a_distribution_is_imported_as_a_module_as_well(name):
    assert importlib.import_module(f"pullback.interop.scipy.stats.{name}") is getattr(stats, name)
