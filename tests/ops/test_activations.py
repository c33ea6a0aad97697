"""Activations: what the registry cannot see of them."""

import numpy as np
import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.errors import ArgumentError, ArgumentTypeError, DTypeError

NAMES = (
    *("sigmoid", "logsigmoid", "silu", "softplus", "gelu", "relu", "relu6", "elu", "leaky_relu"),
    "hardtanh",
)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_overflows_far_out(name):
    x = leaf([-1000.0, 1000.0])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        result = getattr(pb.nn.functional, name)(x)
        (first,) = pb.autograd.grad(result.sum(), x, create_graph=True)
        again = pb.autograd.grad(first.sum(), x)[0] if first.requires_grad else pb.zeros(2)
    for values in (result, first, again):
        assert np.isfinite(values.detach().numpy()).all()


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("sigmoid", "silu")])
def test_what_compares_numbers_refuses_complex_ones_by_name(name):
    with pytest.raises(DTypeError, match=f"^{name}: real numbers required, got complex64"):
        getattr(pb.nn.functional, name)(pb.tensor([1j]))


@pytest.mark.parametrize("name", NAMES)
def test_half_precision_stays_half_precision(name):
    x = pb.tensor([-30.0, -0.5, 0.5, 30.0], dtype="float16", requires_grad=True)
    with np.errstate(over="raise", invalid="raise"):
        result = getattr(pb.nn.functional, name)(x)
        result.sum().backward()
    assert (result.dtype.name, x.grad.dtype.name) == ("float16", "float16")
    wide = leaf([-30.0, -0.5, 0.5, 30.0])
    exact = getattr(pb.nn.functional, name)(wide)
    exact.sum().backward()
    np.testing.assert_allclose(result.detach().numpy(), exact.detach().numpy(), 1e-2, 1e-3)
    np.testing.assert_allclose(x.grad.numpy(), wide.grad.numpy(), 1e-2, 1e-3)


def test_sigmoid_is_exact_to_the_last_figures_on_both_sides():
    x = pb.tensor([-700.0, -40.0, 39.0, 41.0], dtype="float64")
    expected = [np.exp(-700.0), np.exp(-40.0), 1 - np.exp(-39.0), 1.0]
    np.testing.assert_allclose(pb.sigmoid(x).numpy(), expected, rtol=1e-14)


def test_softplus_is_the_line_itself_above_the_threshold():
    assert pb.nn.functional.softplus(leaf([21.0])).tolist() == [21.0]
    assert pb.nn.functional.softplus(leaf([21.0]), threshold=50.0).item() > 21.0
    assert pb.nn.functional.softplus(leaf([6.0]), 3.0, 15.0).tolist() == [6.0]


@pytest.mark.parametrize("slope", [2.0, 1.0, 0.5, 0.0, -1.0])
def test_leaky_relu_has_any_slope(slope):
    x = leaf([-3.0, np.inf])
    result = pb.nn.functional.leaky_relu(x, slope)
    assert result.tolist() == [-3.0 * slope, np.inf]
    (g,) = pb.autograd.grad(result[0], x)
    assert g[0].item() == slope


def test_gelu_is_exact_or_one_approximation():
    x = leaf([-1.0, 0.0, 2.0])
    exact, near = pb.nn.functional.gelu(x), pb.nn.functional.gelu(x, approximate="tanh")
    np.testing.assert_allclose(exact.tolist(), near.tolist(), atol=1e-3)
    assert exact.tolist() != near.tolist()
    with pytest.raises(ArgumentError, match=r"^gelu: approximate 'none' or 'tanh' required, got 5"):
        pb.nn.functional.gelu(x, approximate=5)
    with pytest.raises(ArgumentTypeError, match=r"^gelu: a Tensor or an array required as 'x'"):
        pb.nn.functional.gelu(1.0)


def test_gelu_curves_at_0():
    x = leaf([0.0])
    for approximate in ("none", "tanh"):
        result = pb.nn.functional.gelu(x, approximate)
        (first,) = pb.autograd.grad(result, x, create_graph=True)
        (second,) = pb.autograd.grad(first, x)
        assert second.item() == pytest.approx(2 / np.sqrt(2 * np.pi))


def test_gelu_of_many_float32_is_that_of_float64():
    ends = [np.inf, -np.inf, np.nan, 1e38, -1e38, 0.0]
    x = pb.tensor([*np.linspace(-9, 9, 70_000), *ends], dtype="float32").reshape(2, -1)
    result = pb.nn.functional.gelu(x.T).T.numpy()
    with np.errstate(invalid="ignore"):  # -inf times 0
        exact = pb.nn.functional.gelu(x.to("float64")).numpy()
    np.testing.assert_allclose(result, exact, rtol=3e-6)


def test_gelu_has_its_slope_at_and_around_0():
    x = leaf([-1.0, -1e-200, 0.0, 1e-200, 1.0])
    pb.nn.functional.gelu(x).sum().backward()
    np.testing.assert_allclose(x.grad[1:4], 0.5)
    slopes = [1 - 1.0833154705876864, 1.0833154705876864]
    np.testing.assert_allclose(x.grad[[0, 4]], slopes, rtol=1e-14)
    y = leaf([-1.0, 1.0])  # no number too small to have a square
    pb.nn.functional.gelu(y).sum().backward()
    np.testing.assert_allclose(y.grad, slopes, rtol=1e-14)
