"""Python numbers made of tensors; in transforms they warn, see tests/transforms."""

import math
import warnings

import numpy as np
import pytest

import pullback as pb


@pytest.mark.parametrize("convert", [float, math.sin, complex, pb.Tensor.item, pb.Tensor.tolist])
def test_item_and_tolist_and_float_of_a_tensor_that_requires_grad_are_silent(convert):
    leaf = pb.tensor(2.0, requires_grad=True)
    for x in (leaf, leaf * 1.0):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            expected = 2.0 if convert in (pb.Tensor.item, pb.Tensor.tolist) else convert(2.0)
            assert convert(x) == expected
            assert (int(x), bool(x), f"{x:.1f}") == (2, True, "2.0")


# -- indices of Python -----------------------------------------------------------------------------
def test_a_0d_tensor_of_integers_is_an_index():
    assert [5, 6, 7][pb.tensor(1)] == 6
    assert list(range(pb.tensor(2))) == [0, 1]


def test_an_index_of_one_element_keeps_its_axis_in_numpy():
    array = np.arange(10).reshape(5, 2)
    assert array[pb.tensor([2])].tolist() == [[4, 5]]
    with pytest.raises(TypeError, match="a 0-d tensor required as an index of Python"):
        range(pb.tensor([3]))
