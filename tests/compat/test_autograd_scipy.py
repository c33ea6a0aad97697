"""SciPy's modules and the helpers under HIPS autograd's names."""

import numpy as onp
import pullback.compat.autograd.scipy.linalg as linalg
import pullback.compat.autograd.scipy.stats.multivariate_normal as mvn
import pullback.compat.autograd.scipy.stats.norm as norm
import pytest
import scipy.signal
import scipy.special
from pullback.compat.autograd.scipy.stats import t

from pullback.compat.autograd import grad
from pullback.compat.autograd.core import vspace
from pullback.compat.autograd.misc import const_graph, flatten
from pullback.compat.autograd.misc.fixed_points import fixed_point
from pullback.compat.autograd.misc.flatten import flatten_func
from pullback.compat.autograd.misc.optimizers import adam, rmsprop, sgd
from pullback.compat.autograd.scipy import special, stats
from pullback.compat.autograd.scipy.signal import convolve
from pullback.compat.autograd.tracer import getval, isbox
from pullback.compat.autograd.util import func, quick_grad_check, subval

COV = onp.array([[2.0, 0.5], [0.5, 1.0]])


def test_special_has_derivatives_and_scipys_other_names():
    assert grad(special.gammaln)(3.0) == pytest.approx(0.9227843350984671)
    assert special.gammasgn(-0.5) == -1.0
    assert special.comb is scipy.special.comb
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        special.no_such_name  # noqa: B018


def test_erf_is_of_complex_numbers_too():
    gradient = grad(lambda z: special.erf(z).real)(0.5 + 0.5j)
    assert gradient == pytest.approx(0.9902458802434049 - 0.540973789934528j)


def test_distributions_are_modules():
    assert stats.norm is norm
    assert grad(norm.logpdf, (0, 1, 2))(1.0, 0.0, 2.0) == (-0.25, 0.25, -0.375)
    assert grad(t.logpdf, 1)(0.5, 3.0) == pytest.approx(0.03774121133856176)
    assert norm.rvs(size=3).shape == (3,)


def test_multivariate_normal_has_entropy_and_singular_covariances():
    assert grad(mvn.logpdf)(onp.zeros(2), onp.ones(2), COV) == pytest.approx([0.2857143, 0.8571429])
    expected = onp.linalg.inv(COV) / 2
    onp.testing.assert_allclose(grad(mvn.entropy, 1)(onp.zeros(2), COV), expected)
    singular = onp.diag([1.0, 0.0])
    value = mvn.pdf(onp.array([0.5, 0.0]), onp.zeros(2), singular, allow_singular=True)
    assert value == pytest.approx(0.3520653267642995)


def test_linalg_solves_triangles():
    x = linalg.solve_triangular(onp.tril(COV), onp.ones(2), lower=True)
    assert x.tolist() == [0.5, 0.75]


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("n", "m"), [(5, 3), (3, 5), (4, 4)])
def test_convolve_is_scipys(mode, n, m):
    a, b = onp.arange(1.0, n + 1), onp.arange(2.0, m + 2)
    expected = scipy.signal.convolve(a, b, mode)
    if mode == "same":  # of the first argument's length; SciPy's is too
        assert len(expected) == n
    onp.testing.assert_allclose(convolve(a, b, mode=mode), expected)
    rate = grad(lambda a: convolve(a, b, mode=mode).sum())(a)
    for i, one in enumerate(onp.eye(n)):
        assert rate[i] == pytest.approx(scipy.signal.convolve(one, b, mode).sum())


def test_convolve_refuses_a_mode():
    with pytest.raises(ValueError, match="mode 'full', 'same' or 'valid' required, got 'no'"):
        convolve(onp.ones(2), onp.ones(2), mode="no")


# -- misc ------------------------------------------------------------------------------------------
def test_flatten_sorts_keys_and_comes_back():
    value = {"b": onp.ones((1, 2)), "a": [3.0, (2j,)]}
    vector, unflatten = flatten(value)
    assert vector.tolist() == [3, 2j, 1, 1]
    back = unflatten(vector)
    assert back["a"] == [3.0, (2j,)]
    assert back["b"].dtype == float
    assert grad(lambda x: flatten([x, x * x])[0].sum())(3.0) == 7.0
    double, _, start = flatten_func(lambda x: {"b": x["b"] * 2}, {"b": onp.ones(2)})
    assert double(start).tolist() == [2.0, 2.0]
    assert flatten(())[0].shape == (0,)


@pytest.mark.parametrize("optimize", [sgd, rmsprop, adam])
def test_flatten_and_optimizers_keep_the_order_of_a_dicts_keys(optimize):
    params = {"w": onp.ones(2), "b": [{"z": 1.0, "a": onp.ones(1)}]}
    seen = []

    def gradient(p, i):
        seen.append(p)
        return {"b": [{"a": p["b"][0]["a"], "z": 1.0}], "w": p["w"]}  # in another order

    vector, unflatten = flatten(params)
    seen.append(unflatten(vector))
    seen.append(optimize(gradient, params, lambda p, i, g: seen.extend([p, g]), num_iters=1))
    seen.append(vspace(params).zeros())
    assert [(*p, *p["b"][0]) for p in seen] == [("w", "b", "z", "a")] * 6
    assert hash(vspace(params)) == hash(vspace({key: params[key] for key in sorted(params)}))


@pytest.mark.parametrize(
    ("optimize", "expected"),
    [
        (sgd, 0.889712),  # HIPS autograd's after three steps from 1 with step_size=0.1
        (rmsprop, 0.57452301),
        (adam, 0.70158627),
    ],
)
def test_optimizers_take_hips_steps_and_call_back(optimize, expected):
    seen = []
    x = optimize(
        lambda x, i: {"a": 2 * x["a"]},
        {"a": 1.0},
        callback=lambda x, i, g: seen.append((i, g["a"])),
        num_iters=3,
        step_size=0.1,
    )
    assert x["a"] == pytest.approx(expected)
    assert [i for i, _ in seen] == [0, 1, 2]
    assert seen[0] == (0, 2.0)


def test_fixed_point_has_a_second_derivative():
    def root(a):
        return fixed_point(
            lambda a: lambda x: (x + a / x) / 2, a, 1.0, lambda x, y: abs(x - y), 1e-9
        )

    assert root(4.0) == pytest.approx(2.0)
    assert grad(root)(4.0) == pytest.approx(0.25)
    assert grad(grad(root))(4.0) == pytest.approx(-1 / 32)


def test_const_graph_gives_the_first_arguments():
    assert const_graph(lambda x, y: x - y, y=1.0)(3.0) == 2.0
    assert const_graph(func)(3.0) == 3.0


def test_vspace_describes_numbers_arrays_and_containers():
    space = vspace({"b": 1j, "a": onp.ones(2)})
    assert (space.size, space.iscomplex) == (4, True)
    assert space == vspace({"a": onp.zeros(2), "b": 2j})
    assert space != vspace(1.0)
    assert len([*space.standard_basis()]) == 4
    assert space.inner_prod(space.ones(), space.ones()) == 4.0
    assert vspace(onp.ones(2, "float32")).zeros().dtype == "float32"
    assert {vspace(1.0): "one"}[vspace(2.0)] == "one"
    with pytest.raises(TypeError, match="Can't find vector space for value text"):
        vspace("text")


def test_tracer_and_util_helpers():
    seen = []
    grad(lambda x: seen.append((isbox(x), getval(x))) or x)(2.0)
    assert seen == [(True, 2.0)]
    assert subval((1, 2, 3), 1, 0) == (1, 0, 3)
    with pytest.warns(UserWarning, match="deprecated"):
        quick_grad_check(lambda x, y: x**2 + y, 1.0, (2.0,))
