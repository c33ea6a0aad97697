"""Leaves, detaching, conversion, copies and printing (cases L01 to L07)."""

import copy
import pickle

import numpy as np
import pytest

import pullback as pb
from pullback import Tensor


def leaf(data: object) -> Tensor:
    return pb.tensor(data, dtype=pb.float64, requires_grad=True)


def const(data: object) -> Tensor:
    return pb.tensor(data, dtype=pb.float64)


def test_L01_result_requires_grad_iff_some_input_does() -> None:
    x, y = leaf([1.0, 2.0]), const([3.0, 4.0])
    assert not (y + y).requires_grad
    assert not (y * 2).requires_grad
    assert (x + y).requires_grad
    assert (y * x).requires_grad
    assert (y + 1 + x * 2).requires_grad


def test_L01_switching_returns_the_same_object() -> None:
    x = const([1.0])
    assert x.requires_grad_() is x
    assert x.requires_grad
    assert x.requires_grad_(False) is x
    assert not x.requires_grad
    x.requires_grad = True
    assert x.requires_grad


def test_L01_switching_off_a_result_raises() -> None:
    y = leaf([1.0]) * 2
    phrase = "you can only change requires_grad flags of leaf variables"
    with pytest.raises(RuntimeError, match=phrase):
        y.requires_grad_(False)
    with pytest.raises(RuntimeError, match=phrase):
        y.requires_grad = False
    assert y.requires_grad


def test_L01_switching_on_what_is_on_changes_nothing() -> None:
    x = leaf([1.0])
    y = x * 2
    node = y.grad_fn
    assert y.requires_grad_() is y
    assert y.grad_fn is node
    assert x.requires_grad_().requires_grad
    assert x.is_leaf


def test_L02_detach_cuts_the_gradient() -> None:
    x = leaf([1.0, 2.0])
    y = (2 * x).detach()
    assert not y.requires_grad
    assert y.grad_fn is None
    assert not (y * 4 + 2).requires_grad
    z = x + y
    assert z.tolist() == [3.0, 6.0]
    z.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_L02_detach_in_place_cuts_later_uses_only() -> None:
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    a = x * 2
    (y + a).sum().backward(retain_graph=True)
    assert x.grad.tolist() == [2.0, 2.0]
    assert a.detach_() is a
    assert not a.requires_grad
    (y + a).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert y.grad.tolist() == [2.0, 2.0]


def test_L02_use_recorded_before_detach_in_place_keeps_its_graph() -> None:
    x = leaf([1.0, 2.0])
    a = x * 2
    before = a + 1
    a.detach_()
    before.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_L03_numpy_of_a_tensor_that_requires_grad_raises() -> None:
    x = leaf([1.0, 2.0])
    for tensor in (x, x * 2):
        for convert in (lambda t: t.numpy(), np.asarray, np.array):
            with pytest.raises(RuntimeError, match="detach"):
                convert(tensor)


def test_L03_numpy_works_under_no_grad_after_detach_and_for_plain_tensors() -> None:
    x = leaf([1.0, 2.0])
    with pb.no_grad():
        assert x.numpy().tolist() == [1.0, 2.0]
    for tensor in (x.detach(), const([1.0, 2.0]), const([1.0, 2.0]).clone()):
        assert type(tensor.numpy()) is np.ndarray
        assert tensor.numpy().tolist() == [1.0, 2.0]
        assert np.asarray(tensor).tolist() == [1.0, 2.0]
        with pb.no_grad():
            assert tensor.numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_L04_pickle_keeps_value_and_flag(protocol: int, requires_grad: bool) -> None:
    x = pb.tensor([[1.0, 2.0], [3.0, 4.5]], dtype=pb.float64, requires_grad=requires_grad)
    y = pickle.loads(pickle.dumps(x, protocol=protocol))
    assert type(y) is Tensor
    assert y is not x
    assert y.tolist() == [[1.0, 2.0], [3.0, 4.5]]
    assert y.dtype == pb.float64
    assert y.requires_grad is requires_grad
    assert y.is_leaf


def test_L04_deepcopy_of_a_leaf_is_independent() -> None:
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


def test_L04_copy_of_a_leaf_shares_its_memory_and_nothing_else() -> None:
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


def test_L04_copies_of_a_result_are_refused() -> None:
    y = leaf([1.0]) * 2
    with pytest.raises(RuntimeError, match="detach"):
        copy.copy(y)
    with pytest.raises(RuntimeError, match="detach"):
        copy.deepcopy(y)
    with pytest.raises(RuntimeError, match="detach"):
        pickle.dumps(y)
    assert copy.deepcopy(y.detach()).tolist() == [2.0]


def test_L05_gradient_comes_back_in_the_dtype_of_the_input() -> None:
    x = pb.tensor([1.0, 2.0], dtype=pb.float32, requires_grad=True)
    total = x.to(pb.float64).sum()
    assert total.dtype == pb.float64
    total.backward()
    assert x.grad.dtype == pb.float32
    assert x.grad.tolist() == [1.0, 1.0]


def test_L05_mixed_dtypes_each_get_their_own_back() -> None:
    x = pb.tensor([1.0, 2.0], dtype=pb.float32, requires_grad=True)
    y = leaf([3.0, 4.0])
    product = x * y
    assert product.dtype == pb.float64
    product.sum().backward()
    assert (x.grad.dtype, y.grad.dtype) == (pb.float32, pb.float64)
    assert x.grad.tolist() == [3.0, 4.0]
    assert y.grad.tolist() == [1.0, 2.0]


def test_L06_printing_shows_what_is_tracked() -> None:
    class Func(pb.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output

    a = pb.tensor([1.0, 2.0])
    assert repr(a) == "tensor([1., 2.])"
    b = pb.tensor([1.0, 2.0], requires_grad=True)
    assert repr(b) == "tensor([1., 2.], requires_grad=True)"
    assert repr(b.clone()) == "tensor([1., 2.], grad_fn=<CloneBackward>)"
    assert repr(Func.apply(b)) == "tensor([1., 2.], grad_fn=<FuncBackward>)"
    assert str(Func.apply(b)) == repr(Func.apply(b))


def test_L07_out_raises_while_anything_requires_grad() -> None:
    x, y = leaf([1.0]), const([2.0])
    for arguments, target in (((x, y), const([0.0])), ((y, y), leaf([0.0]))):
        with pytest.raises(RuntimeError, match="out="):
            pb.add(*arguments, out=target)
        assert target.tolist() == [0.0]
        assert target._version == 0


def test_L07_out_is_fine_under_no_grad() -> None:
    x, y, z = leaf([1.0]), const([2.0]), leaf([0.0])
    with pb.no_grad():
        result = pb.add(x, y, out=z)
    assert result is z
    assert z.tolist() == [3.0]
    assert z._version == 1
    assert z.requires_grad
    plain = const([0.0])
    assert pb.add(y, y, out=plain) is plain
    assert plain.tolist() == [4.0]
