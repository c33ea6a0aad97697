"""Python numbers made of tensors: where the graph ends, a warning says so."""

import math
import warnings

import numpy as np
import pytest

import pullback as pb


@pytest.mark.parametrize(
    ("convert", "name"), [(float, "float"), (math.sin, "float"), (complex, "complex")]
)
def test_a_number_made_of_a_tensor_that_requires_grad_warns(convert, name):
    x = pb.tensor(2.0, requires_grad=True)
    expected = f"^{name}: a tensor that requires grad becomes a plain number, which no gradient "
    with pytest.warns(pb.UntrackedTensorWarning, match=expected) as caught:
        assert convert(x) == convert(2.0)
    assert caught[0].filename == __file__


def test_a_number_of_an_untracked_tensor_or_from_item_does_not_warn():
    x = pb.tensor(2.0, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(x.detach()) == x.item() == 2.0
        assert (int(x), bool(x)) == (2, True)
        with pb.no_grad():
            assert float(x) == 2.0


# -- indices of Python -----------------------------------------------------------------------------
def test_a_0d_tensor_of_integers_is_an_index():
    assert [5, 6, 7][pb.tensor(1)] == 6
    assert list(range(pb.tensor(2))) == [0, 1]


def test_an_index_of_one_element_keeps_its_axis_in_numpy():
    array = np.arange(10).reshape(5, 2)
    assert array[pb.tensor([2])].tolist() == [[4, 5]]
    with pytest.raises(TypeError, match="a 0-d tensor required as an index of Python"):
        range(pb.tensor([3]))
