"""Dtypes and devices: tensors moved, cast, and made like another."""

import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.arrays import NUMPY
from pullback.errors import GraphError
from pullback.ops.functions import data_types
from pullback.ops.primitives import conversion


# -- devices ---------------------------------------------------------------------------------------
def test_cuda_asks_for_the_current_or_a_numbered_device(monkeypatch):
    asked = []

    def library_for(device):
        asked.append(device)
        return NUMPY, None

    for module in (conversion, data_types):
        monkeypatch.setattr(module, "library_for", library_for)
    x = leaf([1.0, 2.0])
    y = x.cuda() * 1.0 + x.cuda(1)
    assert y.tolist() == [2.0, 4.0]
    assert set(asked) == {"cuda", "cuda:1"}
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert set(asked) == {"cuda", "cuda:1", "cpu"}


def test_a_tensor_on_a_gpu_is_not_moved_to_the_current_one(monkeypatch):
    for module in (conversion, data_types):
        monkeypatch.setattr(module, "library_for", lambda device: (NUMPY, None))
    x = leaf([1.0, 2.0])
    monkeypatch.setattr(pb.Tensor, "device", property(lambda self: "cuda:1"))
    assert x.cuda() is x
    assert x.cuda(0) is not x


def test_astype_moves_to_the_device_it_is_given():
    x = pb.tensor([1.0, 2.0])
    moved = pb.astype(x, pb.float64, device="cpu")
    assert (moved.dtype, moved.device, moved.tolist()) == (pb.float64, "cpu", [1.0, 2.0])
    with pytest.raises(ValueError, match="device"):
        pb.astype(x, pb.float64, device="nowhere")


def test_to_takes_its_bools_by_position():
    x = pb.ones(2)
    assert x.to("float64", False, True).dtype is pb.float64
    assert x.to("cpu", pb.float64, False).dtype is pb.float64
    assert x.to("float32", True) is x
    assert x.to("float32", False, True) is not x
    assert x.to(None) is x


# -- new tensors like another ----------------------------------------------------------------------
def test_a_new_tensor_like_another_is_on_the_device_that_is_named():
    x = pb.tensor([1.0, 2.0])
    made = pb.ones_like(x, device="cpu", requires_grad=True)
    assert (made.tolist(), made.device, made.requires_grad) == ([1.0, 1.0], "cpu", True)


def test_new_tensor_takes_numbers():
    x = pb.tensor([1.0], dtype=pb.float64)
    assert x.new_tensor([2, 3]).dtype is pb.float64
    with pytest.raises(GraphError, match=r"takes numbers, got a Tensor; use clone\(\) or detach"):
        x.new_tensor(x)


def test_new_tensors_take_dtype_device_and_requires_grad():
    x = pb.ones(2, dtype="float64")
    assert x.new_zeros(2, 3, dtype="int8").dtype is pb.int8
    assert x.new_ones((2,), requires_grad=True).requires_grad
    assert x.new_full((2, 1), 3).tolist() == [[3.0], [3.0]]
    assert x.new_empty(4).shape == (4,)
    assert x.new_tensor([1, 2]).dtype is pb.float64
