"""Special functions: what the registry cannot see of them."""

import operator
import sys

import numpy as np
import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.errors import ArgumentError, DTypeError, MissingExtraError

OF_SCIPY = (
    *("erf", "erfc", "erfcx", "erfinv", "ndtr", "log_ndtr", "ndtri", "lgamma", "digamma"),
    *("i0", "i0e", "i1", "i1e"),
)
OF_TWO = ("betaln", "gammainc", "gammaincc", "zeta")


def second(function, x):
    (first,) = pb.autograd.grad(function(x).sum(), x, create_graph=True)
    return pb.autograd.grad(first.sum(), x)[0].tolist()


# -- without SciPy --------------------------------------------------------------------------------
@pytest.fixture
def no_scipy(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.special", None)


@pytest.mark.usefixtures("no_scipy")
@pytest.mark.parametrize("name", [*OF_SCIPY, "nn.functional.gelu"])
def test_without_scipy_an_error_names_the_extra(name):
    with pytest.raises(MissingExtraError, match=r"SciPy required") as caught:
        operator.attrgetter(name)(pb)(pb.tensor([0.5]))
    assert "pip install 'pullback[scipy]'" in str(caught.value)
    assert isinstance(caught.value, ImportError)


@pytest.mark.usefixtures("no_scipy")
@pytest.mark.parametrize("name", [*OF_TWO, "polygamma"])
def test_without_scipy_an_error_of_two_arguments_names_the_extra(name):
    first = 1 if name == "polygamma" else pb.tensor([2.0])
    with pytest.raises(MissingExtraError, match=r"pullback\[scipy\]"):
        getattr(pb, name)(first, pb.tensor([0.5]))


@pytest.mark.usefixtures("no_scipy")
def test_some_functions_need_no_scipy():
    x = pb.tensor([0.5], requires_grad=True)
    for function in (
        pb.sinc,
        pb.logit,
        pb.expit,
        pb.nn.functional.softplus,
        pb.nn.functional.silu,
        pb.nn.functional.logsigmoid,
    ):
        function(x).sum().backward()
    pb.nn.functional.gelu(x, approximate="tanh").sum().backward()
    assert np.isfinite(x.grad.numpy()).all()


# -- dtypes ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [*OF_SCIPY, "logit"])
def test_complex_numbers_are_refused_by_name(name):
    message = rf"^{name}: real numbers required, got complex64\n  x: shape \(1,\)"
    with pytest.raises(DTypeError, match=message):
        getattr(pb, name)(pb.tensor([0.5 + 1j]))


@pytest.mark.parametrize("name", OF_TWO)
def test_complex_numbers_are_refused_as_either_argument(name):
    z, x = pb.tensor([0.5 + 1j]), pb.tensor([2.0])
    for arguments in ((z, x), (x, z)):
        with pytest.raises(DTypeError, match=f"^{name}: real numbers required, got complex64"):
            getattr(pb, name)(*arguments)


@pytest.mark.parametrize("name", [*OF_SCIPY, "sinc", "logit"])
def test_half_precision_stays_half_precision(name):
    x = pb.tensor([0.5], dtype="float16", requires_grad=True)
    result = getattr(pb, name)(x)
    assert result.dtype.name == "float16"
    result.sum().backward()
    wide = leaf([0.5])
    getattr(pb, name)(wide).sum().backward()
    assert x.grad.dtype.name == "float16"
    np.testing.assert_allclose(x.grad.numpy(), wide.grad.numpy(), rtol=1e-2)


def test_integers_become_the_default_dtype():
    assert pb.erf(pb.tensor([0, 1])).dtype.name == "float32"
    assert pb.polygamma(1, pb.tensor([1, 2])).dtype.name == "float32"
    assert pb.gammainc(pb.tensor([1]), pb.tensor([2])).dtype.name == "float32"


def test_a_number_of_python_takes_the_dtype_of_the_tensor_beside_it():
    x = pb.tensor([2.0], requires_grad=True)
    for result in (pb.gammainc(1, x), pb.betaln(x, 2.0), pb.zeta(2.0, x), pb.gammaincc(3.0, x)):
        (g,) = pb.autograd.grad(result.sum(), x)
        assert (result.dtype.name, g.dtype.name) == ("float32", "float32")
    assert pb.gammainc(x.detach(), 2.0).dtype.name == "float32"


# -- polygamma ------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [-1, 1.0, "1", None])
def test_polygamma_needs_an_order_that_is_no_negative_integer(n):
    x = pb.tensor([1.0])
    message = r"^polygamma_?: an integer n of at least 0 required, got "
    with pytest.raises(ArgumentError, match=message):
        pb.polygamma(n, x)
    with pytest.raises(ArgumentError, match=message):
        x.polygamma(n)
    with pytest.raises(ArgumentError, match=message):
        x.polygamma_(n)


def test_polygamma_of_order_0_is_digamma():
    x = pb.tensor([-0.5, 0.5, 3.0], dtype="float64")
    assert pb.polygamma(0, x).tolist() == pb.digamma(x).tolist()
    assert x.polygamma(2).tolist() == pb.polygamma(2, x).tolist()


# -- where formulas cancel, overflow or divide by 0 -----------------------------------------------
def test_the_slopes_of_the_logarithm_of_a_probability_are_right_in_both_tails():
    x = leaf([-1000.0, -30.0, 0.0, 5.0, 40.0])
    with np.errstate(all="raise", under="ignore"):
        (first,) = pb.autograd.grad(pb.log_ndtr(x).sum(), x)
        curvature = second(pb.log_ndtr, x)
    # Mills' ratio by its continued fraction; density and probability; nothing
    expected = [1000.000999998, 30.033259667, 0.7978845608, 1.48671994e-06, 0.0]
    np.testing.assert_allclose(first.numpy(), expected, rtol=1e-8, atol=1e-300)
    expected = [-0.999999000006, -0.9989, -2 / np.pi, -7.43360191e-06, 0.0]
    np.testing.assert_allclose(curvature, expected, rtol=1e-5, atol=1e-300)


def test_sinc_has_the_right_derivatives_at_and_near_0():
    x = leaf([0.0, 1e-9, -1e-3])
    (first,) = pb.autograd.grad(pb.sinc(x).sum(), x)
    at = np.array([0.0, 1e-9, -1e-3])
    np.testing.assert_allclose(first.numpy(), -(np.pi**2) / 3 * at, rtol=1e-5)
    np.testing.assert_allclose(second(pb.sinc, x), [-(np.pi**2) / 3] * 3, rtol=1e-5)


def test_bessel_functions_have_second_derivatives_at_0():
    assert second(pb.i0, leaf([0.0])) == [0.5]
    assert second(pb.i1, leaf([0.0])) == [0.0]


def test_bessel_functions_of_the_first_kind_have_derivatives_at_0():
    x = leaf([0.0])
    (slope,) = pb.autograd.grad(pb.special.j1(x).sum(), x)
    assert slope.item() == 0.5
    assert second(pb.special.j0, leaf([0.0])) == [-0.5]
    assert second(pb.special.j1, leaf([0.0])) == [0.0]


def test_the_reciprocal_of_gamma_has_derivatives_where_gamma_has_poles():
    x = leaf([0.0, -1.0, -2.0, -3.0, -9.0])
    (first,) = pb.autograd.grad(pb.special.rgamma(x).sum(), x)
    np.testing.assert_allclose(first.numpy(), [1.0, -1.0, 2.0, -6.0, -362880.0], rtol=1e-12)
    # 1 / gamma(x) = x + euler x ** 2 + ...
    assert second(pb.special.rgamma, leaf([0.0])) == pytest.approx([2 * 0.5772156649015329])


@pytest.mark.parametrize("name", ["jv", "yv", "iv", "ive", "kv", "kve"])
def test_the_gradient_of_the_order_of_a_bessel_function_is_refused_by_name(name):
    order, x = leaf([2.0]), leaf([1.5])
    result = getattr(pb.special, name)(order, x).sum()
    with pytest.raises(NotImplementedError, match=rf"{name}.*'?v"):
        result.backward()


@pytest.mark.parametrize("name", ["yn", "kn"])
def test_a_whole_order_is_whole(name):
    function = getattr(pb.special, name)
    with pytest.raises(NotImplementedError, match="v"):
        function(leaf([2.0]), leaf([1.5])).sum().backward()
    for order in (0.5, leaf([1.0, 1.5])):
        with pytest.raises(ArgumentError, match=f"{name}: whole numbers required in n"):
            function(order, leaf([1.5]))


def test_the_slope_of_gammainc_is_differentiable_in_its_first_argument():
    def slope(a):
        x = leaf([1.5])
        (first,) = pb.autograd.grad(pb.gammainc(pb.tensor(a, dtype="float64"), x), x)
        return first.item()

    a, x = leaf([2.0]), leaf([1.5])
    (first,) = pb.autograd.grad(pb.gammainc(a.detach(), x), x, create_graph=True)
    assert first.item() == pytest.approx(1.5 * np.exp(-1.5))
    density = pb.exp(pb.xlogy(a - 1, x) - x - pb.lgamma(a))
    mixed = pb.autograd.grad(density.sum(), a)[0].item()
    assert mixed == pytest.approx((slope(2 + 1e-6) - slope(2 - 1e-6)) / 2e-6, rel=1e-6)


def test_inverse_functions_undo_each_other_and_so_do_their_slopes():
    x = leaf([-0.6, 0.1, 0.7])
    for result in (
        pb.erfinv(pb.erf(x)),
        pb.ndtri(pb.ndtr(x)),
        pb.logit(pb.expit(x)),
        1 - pb.special.erfcinv(pb.erfc(1 - x)),
        pb.special.stdtrit(3.0, pb.stdtr(3.0, x)),
        pb.log(pb.special.gammaincinv(2.0, pb.gammainc(2.0, pb.exp(x)))),
        pb.log(pb.special.gammainccinv(2.0, pb.gammaincc(2.0, pb.exp(x)))),
        pb.logit(pb.special.betaincinv(2.0, 3.0, pb.betainc(2.0, 3.0, pb.expit(x)))),
    ):
        np.testing.assert_allclose(result.tolist(), x.tolist(), rtol=1e-12)
        (g,) = pb.autograd.grad(result.sum(), x)
        np.testing.assert_allclose(g.numpy(), 1.0, rtol=1e-12)


# -- methods --------------------------------------------------------------------------------------
def test_methods_have_the_names_of_pytorch():
    x, y = pb.tensor([0.25, 0.5]), pb.tensor([1.0, 2.0])
    assert x.igamma(y).tolist() == pb.gammainc(x, y).tolist()
    assert x.igammac(y).tolist() == pb.gammaincc(x, y).tolist()
    assert x.logit(0.3).tolist() == pb.logit(x, eps=0.3).tolist()
    for name, arguments in (("igamma", (y,)), ("polygamma", (1,)), ("logit", (0.3,))):
        changed = x.clone()
        assert getattr(changed, f"{name}_")(*arguments) is changed
        assert changed.tolist() == getattr(x, name)(*arguments).tolist()


def test_second_names_name_the_same_function():
    assert pb.gammaln is pb.lgamma
    assert pb.special.jn is pb.special.jv
    assert pb.expit is pb.sigmoid


def test_whole_orders_are_looked_at_in_all_samples_of_a_batch():
    orders, x = np.array([1.0, 2.0]), np.array([1.0, 2.0])
    np.testing.assert_allclose(pb.vmap(pb.special.yn)(orders, x), [-0.781213, -0.617408], rtol=1e-5)
    with pytest.raises(ArgumentError, match="yn: whole numbers required in n"):
        pb.vmap(pb.special.yn)(np.array([1.0, 2.5]), x)
