"""Habits of code written for arrays: lists beside tensors, round(), what pandas has."""

import operator

import numpy as np
import pytest

import pullback as pb

OPERATORS = ("add", "sub", "mul", "truediv", "pow", "floordiv", "mod", "matmul", "lt", "ge", "eq")
NUMBERS = [2.5, 1.0, 3]


@pytest.fixture
def t():
    return pb.tensor(np.array([1.0, 2.0, 4.0]), requires_grad=True)


def gradient(result, t):
    return pb.autograd.grad(result.sum(), t)[0].tolist()


# -- lists -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_takes_a_list_on_either_side_as_an_array(name, kind, t):
    run, numbers, array = getattr(operator, name), kind(NUMBERS), np.array(NUMBERS)
    for ours, theirs in ((run(t, numbers), run(t, array)), (run(numbers, t), run(array, t))):
        assert ours.tolist() == theirs.tolist()
        if ours.requires_grad:
            assert gradient(ours, t) == gradient(theirs, t)


def test_multiplying_by_a_list_has_the_list_for_its_gradient(t):
    assert (t * [1, 2, 3]).tolist() == [1.0, 4.0, 12.0]
    assert gradient(t * [1, 2, 3], t) == [1.0, 2.0, 3.0]
    assert gradient([1, 2, 3] * t, t) == [1.0, 2.0, 3.0]
    assert pb.grad(lambda x: np.sum(x * [1, 2, 3]))(np.ones(3)).tolist() == [1.0, 2.0, 3.0]


def test_tensors_in_a_list_beside_a_tensor_stay_in_the_graph(t):
    assert gradient(t * [t[0], 3.0, t[1]], t) == [2.0, 7.0, 2.0]
    _, tangent = pb.jvp(lambda x: x * [x[1], 3.0, 0.0], (np.array([1.0, 2.0, 4.0]),), (np.ones(3),))
    assert tangent.tolist() == [3.0, 3.0, 0.0]
    assert pb.vmap(lambda x: x * [1.0, x])(np.array([2.0, 3.0])).tolist() == [[2, 4], [3, 9]]


def test_floats_in_a_list_take_the_dtype_of_the_tensor_as_numbers_do():
    assert (pb.tensor([1.0, 2.0]) * [0.1, 0.2]).dtype is pb.float32
    double = pb.tensor(np.array([1.0, 2.0])) * [0.1, 0.2]
    assert double.tolist() == [0.1, 0.4]
    assert (pb.tensor([1, 2]) * [0.5, 1]).dtype is pb.float32
    assert (pb.tensor([1, 2]) * [3, 4]).dtype is pb.int64
    assert (pb.tensor([1.0]) * [1j]).dtype is pb.complex64


def test_a_tensor_is_changed_in_place_by_a_list():
    x = pb.tensor([1.0, 2.0])
    x += [1, 2]
    x.mul_([3.0, 0.5])
    assert x.tolist() == [6.0, 2.0]


def test_named_tuples_dicts_and_text_are_no_operands(t):
    with pytest.raises(
        pb.errors.ArgumentTypeError, match=r"'y' must be a Tensor, .* got ValuesAndI"
    ):
        t - t.reshape(1, 3).max(dim=0)
    with pytest.raises(pb.errors.ArgumentTypeError, match="got dict"):
        t * {1: 2}
    with pytest.raises(pb.errors.ArgumentTypeError, match="data must be numbers"):
        t * ["a", "b", "c"]
    assert (t == ["a", "b", "c"]) is False


# -- round -----------------------------------------------------------------------------------------
def test_round_rounds_to_digits_with_derivative_0(t):
    x = pb.tensor(np.array([1.234, -5.678]), requires_grad=True)
    assert round(x, 2).tolist() == [1.23, -5.68]
    assert round(x).tolist() == [1.0, -6.0]
    assert round(pb.tensor(np.array(1234.5)), -2).item() == 1200.0
    assert gradient(round(x, 2) + x, x) == [1.0, 1.0]
    assert pb.grad(lambda a: a * round(a, 1))(1.26) == 1.3


# -- pandas ----------------------------------------------------------------------------------------
class Series:
    """A stand-in for pandas' Series: its operators, its priority, its conversion to an array."""

    __pandas_priority__ = 3000
    __array_priority__ = 1000

    def __init__(self, values):
        self.values = np.array(values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype, copy=copy)

    def __array_ufunc__(self, ufunc, method, *inputs, **settings):
        return NotImplemented

    def __mul__(self, other):
        if other.__pandas_priority__ > self.__pandas_priority__:
            return NotImplemented
        return Series(self.values * np.asarray(other))

    __rmul__ = __mul__


def test_a_series_of_pandas_beside_a_tensor_is_an_array(t):
    s = Series([3.0, 5.0, 7.0])
    for result in (s * t, t * s, np.multiply(s, t), np.multiply(t, s), pb.multiply(t, s)):
        assert type(result) is pb.Tensor
        assert result.tolist() == [3.0, 10.0, 28.0]
        assert gradient(result, t) == [3.0, 5.0, 7.0]
    assert gradient(s * t[0], t) == [15.0, 0.0, 0.0]


def test_a_series_changed_after_the_call_does_not_change_the_gradient(t):
    s = Series([3.0, 5.0, 7.0])
    result = t * s
    s.values[:] = 0
    assert gradient(result, t) == [3.0, 5.0, 7.0]
