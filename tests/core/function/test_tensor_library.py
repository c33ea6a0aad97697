"""Tensors as the array library of what wraps them: each method keeps the graph or refuses."""

import numpy as np
import pytest

import pullback as pb
from pullback.arrays import NUMPY
from pullback.core.function.tensor_library import TENSOR_LIBRARY as LIBRARY, library_of_part


def leaf():
    return pb.tensor([[1.0, 2.0], [3.0, 4.0]], dtype="float64", requires_grad=True)


def slopes(function):
    """Return a function's values, and the gradient of their sum."""
    x = leaf()
    result = function(x)
    result.sum().backward()
    return result.tolist(), x.grad.tolist()


def test_it_is_the_library_of_tensors_and_of_nothing_else():
    assert library_of_part(leaf()) is LIBRARY
    assert library_of_part(np.ones(2)) is NUMPY


def test_dtypes_and_devices_are_those_of_tensors():
    x = leaf()
    assert LIBRARY.dtype(x) is LIBRARY.native(pb.float64)
    assert LIBRARY.device(x) == LIBRARY.native_device("cpu")


def test_arrays_come_in_and_values_go_out():
    x = LIBRARY.from_numpy(np.array([1.0, 2.0]))
    assert isinstance(x, pb.Tensor)
    values = LIBRARY.to_numpy(leaf())
    assert type(values) is np.ndarray
    assert values.tolist() == [[1.0, 2.0], [3.0, 4.0]]


ONES = [[1.0, 1.0], [1.0, 1.0]]
METHODS = {
    "copy": (LIBRARY.copy, [[1.0, 2.0], [3.0, 4.0]], ONES),
    "moved": (lambda x: LIBRARY.moved(x, "cpu", LIBRARY), [[1.0, 2.0], [3.0, 4.0]], ONES),
    "reshape": (lambda x: LIBRARY.reshape(x, (4,))[0], [1.0, 2.0, 3.0, 4.0], ONES),
    "diagonal": (LIBRARY.diagonal, [1.0, 4.0], [[1.0, 0.0], [0.0, 1.0]]),
    "getitem": (lambda x: LIBRARY.getitem(x, 0), [1.0, 2.0], [[1.0, 1.0], [0.0, 0.0]]),
    "assign": (
        lambda x: LIBRARY.assign(x, 0, 7.0),
        [[7.0, 7.0], [3.0, 4.0]],
        [[0.0, 0.0], [1.0, 1.0]],
    ),
    "add_at": (
        lambda x: LIBRARY.add_at(x, [0, 0], 2.0 * x[1]),
        [[13.0, 18.0], [3.0, 4.0]],
        [[1.0, 1.0], [5.0, 5.0]],
    ),
    "add_at with leading axes": (
        lambda x: LIBRARY.add_at(x, 1, np.array([[10.0, 20.0]])),
        [[1.0, 2.0], [13.0, 24.0]],
        ONES,
    ),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_keeps_the_graph(name):
    method, values, gradient = METHODS[name]
    assert slopes(method) == (values, gradient)


def test_a_special_function_is_the_operation_of_either_name():
    x = leaf()
    result = LIBRARY.special("gammaln", x)
    assert result.requires_grad
    np.testing.assert_allclose(result.detach().numpy(), [[0.0, 0.0], [np.log(2), np.log(6)]])
    with pytest.raises(pb.errors.ArgumentTypeError, match=r"^special: a special function .* pro_"):
        LIBRARY.special("pro_ang1", x)
