"""Element-wise functions: what the registry cannot see of them."""

import cmath
import math

import array_api_strict
import numpy as np
import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.errors import DTypeError

NAN, INF = float("nan"), float("inf")


def gradients(result, *tensors):
    return [g.tolist() for g in pb.autograd.grad(result.sum(), tensors)]


# -- dtypes ---------------------------------------------------------------------------------------
REAL = (
    *("ceil", "floor", "signbit", "trunc", "atan2", "copysign", "fmod", "heaviside", "hypot"),
    *("logaddexp", "maximum", "minimum", "nextafter", "remainder", "floor_divide", "xlogy"),
    *("xlog1py", "less"),
)


@pytest.mark.parametrize("name", REAL)
def test_real_functions_refuse_complex_numbers_by_name(name):
    z = pb.tensor([1j])
    arguments = (z,) if name in ("ceil", "floor", "signbit", "trunc") else (z, z)
    with pytest.raises(DTypeError, match=rf"^{name}: real numbers required, got complex64\n  x: "):
        getattr(pb, name)(*arguments)


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_left_shift", "bitwise_xor"])
def test_bits_are_those_of_integers(name):
    message = rf"^{name}: integers or bools required, got float32\n  x: "
    with pytest.raises(DTypeError, match=message):
        getattr(pb, name)(pb.tensor([1.0]), pb.tensor([1.0]))


def test_bits_of_one_operand_are_those_of_integers():
    with pytest.raises(DTypeError, match=r"^bitwise_invert: integers or bools required, got float"):
        pb.bitwise_invert(pb.tensor([1.0]))
    assert pb.bitwise_invert(pb.tensor([True, False])).tolist() == [False, True]


@pytest.mark.parametrize("name", ["acos", "asinh", "exp2", "log10", "rsqrt", "deg2rad", "frac"])
def test_integers_become_the_default_dtype(name):
    assert getattr(pb, name)(pb.tensor([1])).dtype.name == "float32"


def test_integers_stay_integers_where_no_fraction_comes_of_them():
    x, y = pb.tensor([7, -7, 0]), pb.tensor([3, 3, 3])
    assert pb.fmod(x, y).tolist() == [1, -1, 0]
    assert pb.heaviside(x, y).tolist() == [1, 0, 3]
    assert pb.nan_to_num(x).tolist() == [7, -7, 0]
    assert pb.nan_to_num(pb.tensor([True])).tolist() == [True]
    assert pb.clip(x, -1, 1).tolist() == [1, -1, 0]
    for result in (pb.fmod(x, y), pb.heaviside(x, y), pb.nan_to_num(x), pb.clip(x, -1, 1)):
        assert result.dtype.name == "int64"


def test_a_number_of_python_takes_the_dtype_of_the_tensor_beside_it():
    x = pb.tensor([0.0, 2.0], requires_grad=True)
    for function in (pb.xlogy, pb.xlog1py, pb.atan2, pb.hypot, pb.logaddexp, pb.copysign, pb.fmod):
        result = function(x, 3.0)
        (g,) = pb.autograd.grad(result.sum(), x, create_graph=True)
        assert (result.dtype.name, g.dtype.name) == ("float32", "float32")
        same = function(x, pb.tensor(3.0))
        assert result.tolist() == same.tolist()
        assert g.tolist() == pb.autograd.grad(same.sum(), x)[0].tolist()


# -- clip -----------------------------------------------------------------------------------------
def test_clip_without_bounds_is_a_copy_with_a_gradient():
    x = leaf([1.0, 2.0])
    result = pb.clip(x)
    assert not np.may_share_memory(result.detach().numpy(), x.detach().numpy())
    assert gradients(result, x) == [[1.0, 1.0]]


def test_clip_by_nan_is_nan():
    x, bounds = leaf([1.0, 2.0]), leaf([NAN, 0.0])
    np.testing.assert_array_equal(pb.clip(x, bounds).tolist(), [NAN, 2.0])
    np.testing.assert_array_equal(pb.clip(x, max=bounds).tolist(), [NAN, 0.0])


def test_clip_with_bounds_in_the_wrong_order_gives_the_upper_one():
    for x in (leaf([0.5, 9.0]), pb.asarray(array_api_strict.asarray([0.5, 9.0]))):
        assert pb.clip(x, 2.0, 1.0).tolist() == [1.0, 1.0]


# -- NaN, infinities, zeros -----------------------------------------------------------------------
def test_what_compares_passes_the_gradient_to_nan():
    x, y = leaf([NAN, 1.0, NAN]), leaf([1.0, NAN, NAN])
    for function in (pb.maximum, pb.minimum):
        assert gradients(function(x, y), x, y) == [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    assert gradients(pb.relu(x), x) == [[1.0, 1.0, 1.0]]
    assert gradients(pb.maximum(x, 0.0), x) == [[1.0, 1.0, 1.0]]


def test_a_branch_that_lost_gets_exactly_zero():
    x, y = leaf([1.0, 2.0, 1.0]), leaf([2.0, 1.0, 1.0])
    seed = pb.tensor([NAN, INF, INF], dtype="float64")
    dx, dy = pb.autograd.grad(pb.maximum(x, y), [x, y], seed)
    np.testing.assert_array_equal(dx.tolist(), [0.0, INF, INF])
    np.testing.assert_array_equal(dy.tolist(), [NAN, 0.0, INF])
    (dx,) = pb.autograd.grad(pb.relu(x - 1.5), x, seed)
    np.testing.assert_array_equal(dx.tolist(), [0.0, INF, 0.0])


def test_hypot_and_logaddexp_overflow_nowhere():
    x, y = leaf([3e200, 0.0]), leaf([4e200, 0.0])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        assert pb.hypot(x, y).tolist() == pytest.approx([5e200, 0.0])
        assert gradients(pb.hypot(x, y), x, y) == [
            pytest.approx([0.6, 0.0]),
            pytest.approx([0.8, 0.0]),
        ]
        a, b = leaf([1000.0, 0.0]), leaf([-1000.0, -50.0])
        assert pb.logaddexp(a, b).tolist() == [1000.0, pytest.approx(np.exp(-50.0))]
        assert gradients(pb.logaddexp(a, b), a, b) == [
            [1.0, 1.0],
            [0.0, pytest.approx(np.exp(-50.0), rel=1e-12)],
        ]


def test_equals_share_the_slopes_of_logaddexp_to_second_order():
    x, y = leaf([0.5]), leaf([0.5])
    first = pb.autograd.grad(pb.logaddexp(x, y), [x, y], create_graph=True)
    assert [g.item() for g in first] == pytest.approx([0.5, 0.5])
    rows = pb.autograd.grad(first[0], [x, y])
    assert [g.item() for g in rows] == pytest.approx([0.25, -0.25])


def test_nan_to_num_takes_numbers_for_each_kind():
    x = pb.tensor([NAN, INF, -INF, 1.0])
    largest = np.finfo(np.float32).max
    assert pb.nan_to_num(x).tolist() == [0.0, largest, -largest, 1.0]
    assert pb.nan_to_num(x, 1.0, 2.0, 3.0).tolist() == [1.0, 2.0, 3.0, 1.0]
    assert x.nan_to_num_(neginf=-5.0) is x
    assert x.tolist() == [0.0, largest, -5.0, 1.0]


def test_nan_to_num_of_complex_numbers():
    x = pb.tensor([complex(NAN, 1.0), complex(2.0, INF), 1 + 2j], requires_grad=True)
    result = pb.nan_to_num(x, posinf=9.0)
    assert result.tolist() == [1j, 2 + 9j, 1 + 2j]
    assert gradients(result.real, x) == [[0j, 0j, 1 + 0j]]


def test_negative_zero_has_a_sign():
    x = pb.tensor([0.0, -0.0])
    assert pb.signbit(x).tolist() == [False, True]
    assert pb.copysign(pb.tensor([1.0, 1.0]), x).tolist() == [1.0, -1.0]


# -- complex numbers ------------------------------------------------------------------------------
@pytest.mark.parametrize("z", [-2 + 0.5j, -2 - 0.5j, -0.3 + 1j, 0.3 - 1j])
@pytest.mark.parametrize("name", ["acosh", "acos", "asin", "asinh", "atan", "atanh"])
def test_inverse_functions_have_their_slopes_on_every_side_of_their_cuts(name, z):
    function = getattr(cmath, name)
    x = pb.tensor(z, dtype="complex128", requires_grad=True)
    result = getattr(pb, name)(x)
    assert result.item() == pytest.approx(function(z))
    (g,) = pb.autograd.grad(result, x, pb.tensor(1 + 0j, dtype="complex128"))
    slope = (function(z + 1e-6) - function(z - 1e-6)) / 2e-6
    assert g.item() == pytest.approx(slope.conjugate(), rel=1e-7)


def test_the_sign_of_complex_numbers_is_taken_in_place():
    z = pb.tensor([3 + 4j], dtype="complex128", requires_grad=True)
    changed = z.clone()
    assert changed.sign_() is changed
    assert changed.tolist() == [0.6 + 0.8j]
    inside = pb.autograd.grad(changed.real.sum(), z)[0]
    outside = pb.autograd.grad(z.sign().real.sum(), z)[0]
    assert inside.tolist() == outside.tolist()
    assert pb.tensor([-2.0]).sgn_().tolist() == [-1.0]
    assert pb.sign(np.array([3j, 0j])).tolist() == [1j, 0j]
    assert pb.sign(np.array([-3.0])).tolist() == [-1.0]


# -- methods, and changes in place ----------------------------------------------------------------
def test_lerp_takes_numbers_or_tensors_for_the_way():
    x, y = leaf([0.0, 1.0]), leaf([4.0, 3.0])
    assert pb.lerp(x, y, 0.25).tolist() == [1.0, 1.5]
    assert x.lerp(y, pb.tensor([0.0, 1.0])).tolist() == [0.0, 3.0]
    assert x.detach().clone().lerp_(y.detach(), 0.5).tolist() == [2.0, 2.0]
    assert gradients(pb.lerp(x, end=y, weight=0.25), x, y) == [[0.75, 0.75], [0.25, 0.25]]


@pytest.mark.parametrize("name", ["maximum", "minimum", "atan2", "xlogy", "fmod"])
def test_a_result_may_be_changed_in_place_before_backward(name):
    x, y = leaf([2.5]), leaf([0.7])
    function = getattr(pb, name)
    plain = gradients(function(x, y), x, y)
    assert gradients(function(x, y).add_(1.0), x, y) == plain


# -- PyTorch's arguments of arithmetic -------------------------------------------------------------
def test_add_and_sub_take_alpha():
    x, y = pb.tensor([1.0, 2.0]), pb.tensor([10.0, 20.0])
    assert x.add(y, alpha=2).tolist() == pb.add(x, y, alpha=2).tolist() == [21.0, 42.0]
    assert x.sub(y, alpha=2).tolist() == pb.sub(x, y, alpha=2).tolist() == [-19.0, -38.0]
    assert x.add(1, alpha=3).tolist() == [4.0, 5.0]
    assert x.clone().add_(y, alpha=-1).tolist() == x.clone().sub_(y).tolist() == [-9.0, -18.0]
    assert x.clone().sub_(1, alpha=2).tolist() == [-1.0, 0.0]


@pytest.mark.parametrize(("mode", "expected"), [("trunc", [3, -3, -1]), ("floor", [3, -4, -2])])
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_div_takes_a_rounding_mode(mode, expected, dtype):
    x, y = pb.tensor([7, -7, 5], dtype=dtype), pb.tensor([2, 2, -3], dtype=dtype)
    for result in (pb.div(x, y, rounding_mode=mode), x.clone().div_(y, rounding_mode=mode)):
        assert (result.tolist(), result.dtype.name) == (expected, dtype)


def test_round_keeps_so_many_decimals():
    x = pb.tensor([1.2345, -1250.0], dtype="float64")
    assert x.round(decimals=2).tolist() == [1.23, -1250.0]
    assert x.clone().round_(decimals=-2).tolist() == [0.0, -1200.0]
    assert pb.round(x).tolist() == [1.0, -1250.0]


# -- equality --------------------------------------------------------------------------------------
def test_equal_as_a_method_is_one_bool_and_allclose_forgives():
    x = pb.tensor([1.0, 2.0])
    assert x.equal(x.clone()) is True
    assert x.equal(pb.ones(3)) is False
    assert x.allclose(x + 1e-9)
    assert not x.allclose(x + 1)
    nan = pb.tensor([math.nan])
    assert pb.isclose(nan, nan).tolist() == [False]
    assert pb.isclose(nan, nan, equal_nan=True).tolist() == [True]
    assert pb.isclose(pb.tensor([math.inf]), pb.tensor([-math.inf])).tolist() == [False]


def test_the_result_of_abs_may_be_changed_in_place():
    x = pb.tensor([1.0, -2.0], requires_grad=True)
    y = x.abs()
    y.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, -3.0]
