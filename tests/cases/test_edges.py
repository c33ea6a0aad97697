"""Gradients where the function has a corner, a pole or a tie (cases NU1 to NU5)."""

import math
import re

import numpy as np
import pytest

import pullback as pb
from pullback import Tensor, autograd


def leaf(data: object) -> Tensor:
    return pb.tensor(data, dtype=pb.float64, requires_grad=True)


def const(data: object) -> Tensor:
    return pb.tensor(data, dtype=pb.float64)


@pytest.mark.parametrize("exponent", [0, 0.0, const(0.0), const([0.0, 0.0])], ids=repr)
def test_NU1_zero_to_the_zeroth_has_no_slope_in_the_base(exponent: object) -> None:
    x = leaf([0.0, 0.0])
    y = x**exponent
    assert y.tolist() == [1.0, 1.0]
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("base", [0.0, const([0.0, 0.0, 0.0])], ids=["scalar", "tensor"])
def test_NU1_slope_of_a_power_of_zero_in_the_exponent(base: object) -> None:
    b = leaf([-1.0, 0.0, 1.0])
    with np.errstate(all="ignore"):
        (base**b).sum().backward()
    assert b.grad.tolist() == [-math.inf, 0.0, 0.0]


def test_NU1_module_function_agrees_with_the_operator() -> None:
    x, b = leaf(0.0), leaf([-1.0, 0.0, 1.0])
    with np.errstate(all="ignore"):
        pb.pow(const([0.0, 0.0, 0.0]), b).sum().backward()
    pb.pow(x, const(0.0)).backward()
    assert b.grad.tolist() == [-math.inf, 0.0, 0.0]
    assert x.grad.item() == 0.0


THIRD = 1 / 3


@pytest.mark.parametrize(
    ("name", "expected"),
    [("max", [THIRD, 0.0, THIRD, 0.0, THIRD, 0.0]), ("min", [0.0, THIRD, 0.0, THIRD, 0.0, THIRD])],
)
def test_NU2_tied_extremes_share_the_gradient(name: str, expected: list[float]) -> None:
    for reduce in (lambda t: getattr(t, name)(), getattr(pb, name)):
        x = leaf([1.0, 0.0, 1.0, 0.0, 1.0, 0.0])
        reduce(x).backward()
        assert x.grad.tolist() == pytest.approx(expected, abs=1e-15)
        assert x.grad.sum().item() == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("name", ["max", "min"])
def test_NU2_every_nan_counts_as_tied(name: str) -> None:
    x = leaf([math.nan] * 6)
    getattr(x, name)().backward()
    assert x.grad.tolist() == pytest.approx([1 / 6] * 6, abs=1e-15)


@pytest.mark.parametrize(
    ("name", "dx", "dy"),
    [("maximum", [0.5, 0.0, 1.0], [0.5, 1.0, 0.0]), ("minimum", [0.5, 1.0, 0.0], [0.5, 0.0, 1.0])],
)
def test_NU3_two_argument_extremes_split_a_tie(name: str, dx: list, dy: list) -> None:
    x, y = leaf([1.0, 2.0, 4.0]), leaf([1.0, 3.0, 3.0])
    getattr(pb, name)(x, y).sum().backward()
    assert x.grad.tolist() == dx
    assert y.grad.tolist() == dy


def test_NU3_absolute_value_is_flat_at_zero() -> None:
    x = leaf([-2.0, 0.0, 2.0])
    x.abs().sum().backward()
    assert x.grad.tolist() == [-1.0, 0.0, 1.0]


def test_NU3_square_root_is_vertical_at_zero() -> None:
    x = leaf([0.0, 4.0])
    with np.errstate(all="ignore"):
        x.sqrt().sum().backward()
    assert x.grad.tolist() == [math.inf, 0.25]


def test_NU3_x_over_its_absolute_value() -> None:
    x = leaf([-2.0, 0.0, 2.0])
    with np.errstate(all="ignore"):
        (x / x.abs()).sum().backward()
    assert [x.grad.tolist()[i] for i in (0, 2)] == [0.0, 0.0]
    assert math.isnan(x.grad.tolist()[1])


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
def test_NU3_the_convention_is_written_down(name: str, words: str) -> None:
    assert re.search(words, getattr(pb, name).__doc__)


def test_NU4_broadcast_gradient_of_a_selected_part() -> None:
    v = pb.arange(10, dtype=pb.float64).expand(10, 10)
    a = leaf(np.zeros((10, 10, 10)))
    (g,) = autograd.grad(a[0], a, v)
    assert tuple(g.shape) == (10, 10, 10)
    assert g[0].tolist() == [[float(i) for i in range(10)]] * 10
    assert g[1:].tolist() == np.zeros((9, 10, 10)).tolist()
    assert v.tolist() == [[float(i) for i in range(10)]] * 10


def test_NU4_broadcast_gradient_of_a_slice() -> None:
    v = const([3.0]).expand(2, 10)
    a = leaf(np.zeros((10, 10)))
    (g,) = autograd.grad(a[3:5], a, v)
    expected = np.zeros((10, 10))
    expected[3:5] = 3.0
    assert g.tolist() == expected.tolist()


def test_NU4_broadcast_gradient_may_be_accumulated() -> None:
    v = const([3.0]).expand(2, 2)
    a = leaf([[1.0, 2.0], [3.0, 4.0]])
    for _ in range(2):
        a.backward(v)
    assert a.grad.tolist() == [[6.0, 6.0], [6.0, 6.0]]
    assert v.tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_NU5_unselected_branch_gets_exactly_zero() -> None:
    condition = pb.tensor([True, False])
    x, y = leaf([1.0, math.nan]), leaf([math.inf, 2.0])
    out = pb.where(condition, x, y)
    assert out.tolist() == [1.0, 2.0]
    out.sum().backward()
    assert x.grad.tolist() == [1.0, 0.0]
    assert y.grad.tolist() == [0.0, 1.0]


def test_NU5_nan_inside_the_unselected_branch_spreads() -> None:
    x = leaf([0.0, 1.0, 2.0])
    with np.errstate(all="ignore"):
        out = pb.where(x > 0, x.log(), 0.0)
        assert out.tolist()[:2] == [0.0, 0.0]
        out.sum().backward()
    assert math.isnan(x.grad.tolist()[0])
    assert x.grad.tolist()[1:] == [1.0, 0.5]


def test_NU5_scalar_branches() -> None:
    condition = pb.tensor([True, False])
    x = leaf([1.0, 2.0])
    pb.where(condition, x, 0.0).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0]
    pb.where(condition, 5.0, x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    assert not pb.where(condition, 1.0, 0.0).requires_grad
