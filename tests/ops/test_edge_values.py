"""Values and gradients where a function has a kink, a pole, a tie, or no number at all."""

import re

import numpy as np
import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.errors import InplaceError

NAN, INF = float("nan"), float("inf")


def gradients(result, *tensors):
    return [g.tolist() for g in pb.autograd.grad(result.sum(), tensors)]


def second(function, x):
    """Return the second derivative of the sum of an elementwise function."""
    (first,) = pb.autograd.grad(function(x).sum(), x, create_graph=True)
    if not first.requires_grad:
        return [0.0] * x.numel()
    return pb.autograd.grad(first.sum(), x)[0].tolist()


def same(ours, expected):
    np.testing.assert_array_equal(ours, expected)  # NaN equals NaN


# -- kinks ----------------------------------------------------------------------------------------
KINKS = {
    "abs": (pb.abs, [-2.0, 0.0, 3.0], [2.0, 0.0, 3.0], [-1.0, 0.0, 1.0]),
    "sign": (pb.sign, [-2.0, 0.0, 3.0], [-1.0, 0.0, 1.0], [0.0, 0.0, 0.0]),
    "relu": (pb.relu, [-2.0, 0.0, 3.0], [0.0, 0.0, 3.0], [0.0, 0.0, 1.0]),
    "floor": (pb.floor, [-1.5, 0.0, 2.5], [-2.0, 0.0, 2.0], [0.0, 0.0, 0.0]),
    "ceil": (pb.ceil, [-1.5, 0.0, 2.5], [-1.0, 0.0, 3.0], [0.0, 0.0, 0.0]),
    "trunc": (pb.trunc, [-1.5, 0.0, 2.5], [-1.0, 0.0, 2.0], [0.0, 0.0, 0.0]),
    "round half to even": (pb.round, [0.5, 1.5, 2.5], [0.0, 2.0, 2.0], [0.0, 0.0, 0.0]),
    "clamp": (
        lambda x: pb.clamp(x, -1, 1),
        [-2.0, -1.0, 0.5, 1.0, 2.0],
        [-1.0, -1.0, 0.5, 1.0, 1.0],
        [0.0, 1.0, 1.0, 1.0, 0.0],
    ),
    "max of x and 0": (
        lambda x: pb.maximum(x, 0.0),
        [-1.0, 0.0, 1.0],
        [0.0, 0.0, 1.0],
        [0.0, 0.5, 1.0],
    ),
    "clamp of crossed bounds": (lambda x: pb.clamp(x, 1, 0), [0.5, 2.0], [0.0, 0.0], [0.0, 0.0]),
}


@pytest.mark.parametrize("name", KINKS)
def test_a_kink_has_one_value_and_one_gradient(name):
    function, values, results, slopes = KINKS[name]
    x = leaf(values)
    result = function(x)
    assert result.tolist() == results
    assert gradients(result, x) == [slopes]
    assert second(function, x) == [0.0] * len(values)


@pytest.mark.case("NU3")
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_maximum_and_minimum_split_the_gradient_of_equals(name):
    x, y = leaf([1.0, 2.0, 3.0]), leaf([1.0, 3.0, 2.0])
    dx, dy = gradients(getattr(pb, name)(x, y), x, y)
    assert dx == ([0.5, 0.0, 1.0] if name == "maximum" else [0.5, 1.0, 0.0])
    assert dy == ([0.5, 1.0, 0.0] if name == "maximum" else [0.5, 0.0, 1.0])


@pytest.mark.case("NU2")
@pytest.mark.parametrize("name", ["max", "min"])
def test_max_and_min_share_the_gradient_of_equals_evenly(name):
    x = pb.tensor([[1.0, 1.0, 0.0], [2.0, 2.0, 2.0]], requires_grad=True)
    result = getattr(pb, name)(x, axis=1)
    result.backward(pb.tensor([6.0, 6.0]))
    first = [3.0, 3.0, 0.0] if name == "max" else [0.0, 0.0, 6.0]
    assert x.grad.tolist() == [first, [2.0, 2.0, 2.0]]


def test_clamp_by_tensors_gives_them_the_gradient_where_they_are_the_result():
    x, low, high = leaf([-1.0, 0.5, 2.0]), leaf([0.0, 0.0, 0.0]), leaf([1.0, 1.0, 1.0])
    assert gradients(pb.clamp(x, low, high), x, low, high) == [
        [0.0, 1.0, 0.0],
        [1.0, 0.0, 0.0],
        [0.0, 0.0, 1.0],
    ]


# -- powers ---------------------------------------------------------------------------------------
POWERS = [
    # x, y, x ** y, d/dx, d/dy
    (0.0, 0.0, 1.0, 0.0, 0.0),
    (0.0, 1.0, 0.0, 1.0, 0.0),
    (0.0, 2.0, 0.0, 0.0, 0.0),
    (0.0, 3.0, 0.0, 0.0, 0.0),
    (2.0, 0.0, 1.0, 0.0, np.log(2.0)),
    (1.0, 5.0, 1.0, 5.0, 0.0),
    (2.0, -1.0, 0.5, -0.25, 0.5 * np.log(2.0)),
]


@pytest.mark.case("NU1")
@pytest.mark.parametrize(("x", "y", "value", "dx", "dy"), POWERS)
def test_pow_is_smooth_at_zero(x, y, value, dx, dy):
    base, exponent = leaf([x]), leaf([y])
    result = base**exponent
    assert result.tolist() == [value]
    assert gradients(result, base, exponent) == [[dx], [pytest.approx(dy)]]
    by_number = base**y
    assert by_number.tolist() == [value]
    assert gradients(by_number, base) == [[dx]]
    assert gradients(x**exponent, exponent) == [[pytest.approx(dy)]]


BASES = [0.0, -0.0, 1.0, -1.5, 0.3, -7.25, 1e-30, -1e19, INF, -INF, NAN]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("n", range(-5, 10))
def test_whole_powers_are_those_of_numpy_also_at_zero_and_infinity(n, dtype):
    numbers = np.array(BASES).astype(dtype)
    x = pb.tensor(numbers, requires_grad=True)
    close = {"rtol": 2e-2 if dtype == "float16" else 1e-6 if dtype == "float32" else 1e-14}
    for exponent in (n, float(n)):
        result = x**exponent
        assert result.dtype is x.dtype
        np.testing.assert_allclose(result.detach().numpy(), numbers**exponent, **close)
        signs = np.signbit(result.detach().numpy()) == np.signbit(numbers**exponent)
        assert signs[numbers == numbers].all()
        (g,) = pb.autograd.grad(result.sum(), x)
        if n:
            np.testing.assert_allclose(g.numpy(), n * numbers ** (n - 1), **close)
    assert (pb.tensor([-3, 2]) ** 3).tolist() == [-27, 8]
    assert (pb.tensor(2.0) ** 4).item() == 16.0


def test_powers_of_negative_numbers():
    x = leaf([-2.0])
    assert gradients(x**3, x) == [[12.0]]
    assert second(lambda t: t**3, x) == [-12.0]
    assert second(lambda t: t**2, leaf([0.0])) == [2.0]
    assert second(lambda t: t**1, leaf([0.0])) == [0.0]


def test_the_base_alone_needs_no_logarithm():
    x = leaf([-2.0, 0.0])
    with np.errstate(all="raise"):
        assert gradients(x ** pb.tensor([2.0, 2.0], dtype="float64"), x) == [[-4.0, 0.0]]


# -- poles ----------------------------------------------------------------------------------------
def test_poles_give_infinities_and_nan_as_numpy_does():
    x = leaf([0.0, 4.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        assert pb.log(x).tolist() == [-INF, pytest.approx(np.log(4.0))]
        assert gradients(pb.log(x), x) == [[INF, 0.25]]
        assert gradients(pb.sqrt(x), x) == [[INF, 0.25]]
        same((x / 0).tolist(), [NAN, INF])
        assert (1 / x).tolist() == [INF, 0.25]
        same(pb.log(-x[1:]).tolist(), [NAN])


def test_numpy_says_so_as_its_settings_have_it():
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        pb.log(pb.tensor([0.0]))
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        pb.log(pb.tensor([0.0]))


@pytest.mark.case("NU5")
def test_where_gives_exactly_zero_to_the_branch_that_it_did_not_take():
    x, y = leaf([1.0, 2.0, 3.0]), leaf([4.0, 5.0, 6.0])
    result = pb.where(pb.tensor([True, False, True]), x, y)
    seed = pb.tensor([NAN, INF, 2.0], dtype="float64")
    dx, dy = pb.autograd.grad(result, [x, y], seed)
    same(dx.tolist(), [NAN, 0.0, 2.0])
    same(dy.tolist(), [0.0, INF, 0.0])


def test_a_pole_is_kept_out_by_choosing_before_and_after_it():
    x = leaf([-1.0, 0.0, 4.0])
    inside = x > 0
    safe = pb.where(inside, x, 1.0)
    with np.errstate(all="raise"):
        result = pb.where(inside, pb.log(safe), 0.0)
        assert result.tolist() == [0.0, 0.0, pytest.approx(np.log(4.0))]
        assert gradients(result, x) == [[0.0, 0.0, 0.25]]


# -- products -------------------------------------------------------------------------------------
PRODUCTS = [
    ([2.0, 3.0, 4.0], 24.0, [12.0, 8.0, 6.0]),
    ([2.0, 0.0, 4.0], 0.0, [0.0, 8.0, 0.0]),
    ([0.0, 0.0, 4.0], 0.0, [0.0, 0.0, 0.0]),
    ([5.0], 5.0, [1.0]),
]


@pytest.mark.parametrize(("values", "product", "slopes"), PRODUCTS, ids=str)
def test_prod_has_the_right_gradient_with_zeros(values, product, slopes):
    x = leaf(values)
    assert pb.prod(x).item() == product
    assert gradients(pb.prod(x), x) == [slopes]


def test_prod_has_the_right_second_derivative_with_zeros():
    x = leaf([2.0, 0.0, 0.0])
    (first,) = pb.autograd.grad(pb.prod(x), x, create_graph=True)
    assert first.tolist() == [0.0, 0.0, 0.0]
    (row,) = pb.autograd.grad(first[1], x)
    assert row.tolist() == [0.0, 0.0, 2.0]


# -- nothing to reduce ----------------------------------------------------------------------------
def test_reductions_of_nothing():
    x = pb.zeros(0, 3, requires_grad=True)
    assert pb.sum(x).item() == 0.0
    assert pb.sum(x, axis=0).tolist() == [0.0, 0.0, 0.0]
    assert pb.prod(x, axis=0).tolist() == [1.0, 1.0, 1.0]
    assert pb.sum(x, axis=1).shape == (0,)
    assert not pb.any(x).item()
    assert pb.all(x).item()
    pb.sum(x).backward()
    assert x.grad.shape == (0, 3)


# -- no number ------------------------------------------------------------------------------------
def test_nan_is_the_largest_and_the_smallest_and_takes_the_gradient():
    x = leaf([1.0, NAN, 3.0])
    for function in (pb.max, pb.min):
        same(function(x).item(), NAN)
        assert gradients(function(x), x) == [[0.0, 1.0, 0.0]]
    same(pb.maximum(x, 2.0).tolist(), [2.0, NAN, 3.0])
    assert x.argmax().item() == 1


def test_nan_goes_through_choices_untouched():
    x = leaf([NAN, 1.0])
    same(pb.clamp(x, 0.0, 2.0).tolist(), [NAN, 1.0])
    same(pb.sign(x).tolist(), [NAN, 1.0])
    assert (x == x).tolist() == [False, True]
    assert (x != x).tolist() == [True, False]


def test_nan_is_neither_cut_off_nor_left_out():
    shown = pb.nn.functional
    for function in (
        lambda x: shown.softshrink(x, 0.5),
        lambda x: shown.hardshrink(x, 0.5),
        lambda x: shown.threshold(x, 0.5, 0.0),
    ):
        x = leaf([NAN, 2.0, 0.25])
        same(pb.isnan(function(x)).tolist(), [True, False, False])
        assert gradients(function(x), x) == [[1.0, 1.0, 0.0]]
    x = leaf([NAN, 0.75])
    same(gradients(pb.logit(x, 0.25), x), [[NAN, 1 / (0.75 * 0.25)]])


def test_nan_in_a_divergence_stays_where_the_target_is_zero():
    x, target = leaf([NAN, -INF, NAN, 0.0]), leaf([0.0, 0.0, 1.0, NAN])
    divergence = pb.nn.functional.kl_div(x, target, reduction="none")
    same(divergence.tolist(), [NAN, 0.0, NAN, NAN])


RAMPS = [
    *("celu", "elu", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu"),
    *("logsigmoid", "mish", "relu", "relu6", "rrelu", "selu", "sigmoid", "silu", "softplus"),
    *("softshrink", "softsign", "tanh", "tanhshrink"),
]
DISTANCES = [
    *("huber_loss", "kl_div", "l1_loss", "mse_loss", "poisson_nll_loss", "smooth_l1_loss"),
    "soft_margin_loss",
]


@pytest.mark.parametrize("name", RAMPS)
def test_a_ramp_of_nan_is_nan(name):
    same(np.isnan(getattr(pb.nn.functional, name)(leaf([NAN, 0.5])).tolist()), [True, False])


@pytest.mark.parametrize("name", DISTANCES)
def test_a_distance_from_or_to_nan_is_nan(name):
    x, y = leaf([NAN, 0.5, 0.5]), leaf([0.0, NAN, 0.25])
    values = getattr(pb.nn.functional, name)(x, y, reduction="none")
    same(np.isnan(values.tolist()), [True, True, False])


def test_what_is_no_number_is_found():
    x = pb.tensor([1.0, NAN, INF, -INF])
    assert pb.isnan(x).tolist() == [False, True, False, False]
    assert pb.isinf(x).tolist() == [False, False, True, True]
    assert pb.isfinite(x).tolist() == [True, False, False, False]
    assert pb.isnan(pb.tensor([complex(0.0, NAN)])).tolist() == [True]
    assert pb.isfinite(pb.tensor([1, 2])).tolist() == [True, True]


# -- large and small ------------------------------------------------------------------------------
def test_sigmoid_and_tanh_overflow_nowhere():
    x = leaf([-1000.0, 0.0, 1000.0])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert pb.sigmoid(x).tolist() == [0.0, 0.5, 1.0]
        assert gradients(pb.sigmoid(x), x) == [[0.0, 0.25, 0.0]]
        assert gradients(pb.tanh(x), x) == [[0.0, 1.0, 0.0]]


def test_softmax_and_logsumexp_overflow_nowhere():
    x = leaf([1000.0, 0.0, 1000.0])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert pb.softmax(x, axis=0).tolist() == [0.5, 0.0, 0.5]
        assert pb.log_softmax(x, axis=0).tolist() == pytest.approx(
            [-np.log(2), -1000 - np.log(2), -np.log(2)]
        )
        assert pb.logsumexp(x).item() == pytest.approx(1000 + np.log(2))
        assert pb.logsumexp(-x).item() == 0.0
        (g,) = gradients(pb.logsumexp(x), x)
        assert g == pytest.approx([0.5, 0.0, 0.5])
        (g,) = pb.autograd.grad(pb.log_softmax(x, axis=0)[1], x)
    assert g.tolist() == [-0.5, 1.0, -0.5]


def test_logsumexp_of_infinities():
    with np.errstate(divide="ignore"):
        assert pb.logsumexp(leaf([-INF, -INF])).item() == -INF
    assert pb.logsumexp(leaf([-INF, 3.0])).item() == 3.0
    assert pb.logsumexp(leaf([INF, 3.0])).item() == INF
    x = leaf([-INF, 3.0])
    assert gradients(pb.logsumexp(x), x) == [[0.0, 1.0]]


def test_expm1_and_log1p_are_exact_near_zero():
    x = leaf([1e-15])
    assert pb.expm1(x).item() == pytest.approx(1e-15, rel=1e-12)
    assert pb.log1p(x).item() == pytest.approx(1e-15, rel=1e-12)
    assert gradients(pb.expm1(x), x) == [[pytest.approx(1.0)]]


# -- integers -------------------------------------------------------------------------------------
def test_division_rounds_down_and_the_remainder_has_the_sign_of_the_divisor():
    x = pb.tensor([7, -7, 7, -7])
    y = pb.tensor([2, 2, -2, -2])
    assert (x // y).tolist() == [3, -4, -4, 3]
    assert (x % y).tolist() == [1, 1, -1, -1]
    assert (pb.tensor([-7.5]) // 2).tolist() == [-4.0]
    assert (pb.tensor([-7.5]) % 2).tolist() == [0.5]


# -- complex numbers ------------------------------------------------------------------------------
def test_magnitude_and_direction_of_complex_numbers():
    z = pb.tensor([3 + 4j, 0j], dtype="complex128", requires_grad=True)
    assert z.abs().tolist() == [5.0, 0.0]
    assert gradients(z.abs(), z) == [pytest.approx([0.6 + 0.8j, 0j], abs=1e-15)]
    assert z.sign().tolist() == [0.6 + 0.8j, 0j]
    (g,) = pb.autograd.grad(z.sign(), z, pb.tensor([1 + 0j, 1 + 0j], dtype="complex128"))
    assert g.tolist() == [pytest.approx(0.128 - 0.096j), 0j]


def test_parts_of_complex_numbers_are_views_with_gradients():
    z = pb.tensor([3 + 4j], dtype="complex128", requires_grad=True)
    assert gradients(z.real * 2, z) == [[2 + 0j]]
    assert gradients(z.imag * 2, z) == [[2j]]
    assert gradients(z.conj().imag, z) == [[-1j]]
    w = pb.tensor([1 + 2j], dtype="complex128")
    part = w.imag
    w.mul_(10)
    assert part.tolist() == [20.0]
    with pytest.raises(InplaceError, match="imaginary part of a complex tensor cannot be wri"):
        part.mul_(10)
    assert w.tolist() == [10 + 20j]
    x = pb.tensor([1.5])
    assert x.real is x
    assert pb.real(x) is x
    assert x.conj().tolist() == [1.5]


# -- conventions -----------------------------------------------------------------------------------
@pytest.mark.case("NU1")
def test_the_slope_of_a_power_of_zero_in_the_exponent():
    b = leaf([-1.0, 0.0, 1.0])
    with np.errstate(all="ignore"):
        assert gradients(0.0**b, b) == [[-INF, 0.0, 0.0]]


@pytest.mark.case("NU2")
@pytest.mark.parametrize("name", ["max", "min"])
def test_max_and_min_share_the_gradient_among_every_nan(name):
    x = leaf([NAN] * 6)
    assert gradients(getattr(x, name)(), x) == [pytest.approx([1 / 6] * 6, abs=1e-15)]


@pytest.mark.case("NU3")
def test_x_over_its_absolute_value_is_flat_but_at_zero():
    x = leaf([-2.0, 0.0, 2.0])
    with np.errstate(all="ignore"):
        same(gradients(x / x.abs(), x)[0], [0.0, NAN, 0.0])


@pytest.mark.case("NU3")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("abs", r"at (0|zero)"),
        ("sqrt", r"at (0|zero)"),
        ("sign", r"zero|0"),
        ("maximum", r"tie|equal"),
        ("minimum", r"tie|equal"),
        ("max", r"tie|equal"),
        ("min", r"tie|equal"),
        ("pow", r"0|zero"),
    ],
)
def test_the_convention_is_written_down(name, words):
    assert re.search(words, getattr(pb, name).__doc__)


@pytest.mark.case("NU5")
def test_where_spreads_nan_made_inside_the_branch_that_it_did_not_take():
    x = leaf([0.0, 1.0, 2.0])
    with np.errstate(all="ignore"):
        out = pb.where(x > 0, x.log(), 0.0)
        assert out.tolist()[:2] == [0.0, 0.0]
        same(gradients(out, x)[0], [NAN, 1.0, 0.5])


def test_the_angle_of_an_infinity_is_that_of_its_sign():
    x = leaf([np.inf, -np.inf, -0.0, NAN])
    same(pb.angle(x).detach(), [0.0, np.pi, 0.0, NAN])
    same(gradients(pb.angle(x), x)[0], [0.0, 0.0, 0.0, 0.0])
