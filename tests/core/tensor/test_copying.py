"""numpy(), pickle and copies of leaves."""

import copy
import pickle

import numpy as np
import pytest
from tests.tensors import constant, leaf

import pullback as pb


@pytest.mark.case("L03")
def test_numpy_works_under_no_grad_after_detach_and_for_plain_tensors():
    x = leaf([1.0, 2.0])
    with pb.no_grad():
        assert x.numpy().tolist() == [1.0, 2.0]
    for tensor in (x.detach(), constant([1.0, 2.0]), constant([1.0, 2.0]).clone()):
        assert type(tensor.numpy()) is np.ndarray
        assert tensor.numpy().tolist() == [1.0, 2.0]
        assert np.asarray(tensor).tolist() == [1.0, 2.0]
        with pb.no_grad():
            assert tensor.numpy().tolist() == [1.0, 2.0]


@pytest.mark.case("L04")
@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_pickle_keeps_value_and_flag(protocol, requires_grad):
    x = pb.tensor([[1.0, 2.0], [3.0, 4.5]], dtype=pb.float64, requires_grad=requires_grad)
    y = pickle.loads(pickle.dumps(x, protocol=protocol))
    assert type(y) is pb.Tensor
    assert y is not x
    assert y.tolist() == [[1.0, 2.0], [3.0, 4.5]]
    assert y.dtype == pb.float64
    assert y.requires_grad is requires_grad
    assert y.is_leaf


@pytest.mark.case("L04")
def test_deepcopy_of_a_leaf_is_independent():
    x = leaf([1.0, 2.0])
    y = copy.deepcopy(x)
    assert y.requires_grad
    assert y.is_leaf
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3.0, 3.0]
    assert x.grad is None
    with pb.no_grad():
        y.add_(1)
    assert x.tolist() == [1.0, 2.0]
    assert x._version == 0


@pytest.mark.case("L04")
def test_copy_of_a_leaf_shares_its_memory_and_nothing_else():
    x = leaf([1.0, 2.0])
    x.register_hook(lambda g: g * 10)
    (x * 3).sum().backward()
    y = copy.copy(x)
    assert y.requires_grad
    assert y.is_leaf
    assert y.grad is None
    (y * 5).sum().backward()
    assert y.grad.tolist() == [5.0, 5.0]
    assert x.grad.tolist() == [30.0, 30.0]
    saved = y * y
    with pb.no_grad():
        x.add_(1)
    assert y.tolist() == [2.0, 3.0]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.sum().backward()
    assert not copy.copy(leaf([1.0]).detach()).requires_grad
