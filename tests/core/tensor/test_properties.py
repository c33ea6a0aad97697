"""What a tensor tells of itself: shape, kind, memory, values."""

import numpy as np
import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.errors import ArgumentTypeError, DTypeError, GraphError


# -- shape, kind and memory ------------------------------------------------------------------------
def test_size_numel_dim_ndim_is_floating_point_and_is_complex():
    x = pb.zeros((2, 3))
    assert (x.size, x.size(), x.size(0), x.size(-1)) == (6, (2, 3), 2, 3)
    assert (x.dim(), x.ndim, x.numel(), len(x)) == (2, 2, 6, 2)
    assert x.is_floating_point()
    assert not x.is_complex()
    assert not pb.tensor([1]).is_floating_point()


def test_itemsize_nbytes_nelement_ndimension_and_other_names_of_torch():
    x = pb.zeros(2, 3, dtype="float64")
    assert (x.itemsize, x.element_size(), x.nbytes) == (8, 8, 48)
    assert (x.is_cpu, x.is_cuda, x.get_device()) == (True, False, -1)
    assert (x.nelement(), x.ndimension(), x.is_signed()) == (6, 2, True)
    assert x.is_same_size(pb.ones(2, 3))
    assert not x.int().bool().is_signed()
    assert pb.tensor([2.0]).is_nonzero()
    assert x.type_as(pb.tensor([1])).dtype is pb.int64
    assert [x.byte().dtype.name, x.char().dtype.name, x.short().dtype.name] == [
        *("uint8", "int8", "int16"),
    ]
    assert x.cfloat().dtype is pb.complex64
    assert x.cdouble().dtype is pb.complex128
    assert x.resolve_conj() is x.resolve_neg() is x


# -- values and gradients --------------------------------------------------------------------------
def test_grad_can_be_deleted():
    x = leaf([1.0])
    (x * 2.0).sum().backward()
    del x.grad
    assert x.grad is None


def test_data_is_the_values_without_history():
    x = leaf([1.0, 2.0])
    assert not x.data.requires_grad
    x.data[0] = 5.0
    assert x.tolist() == [5.0, 2.0]
    with pytest.raises(ArgumentTypeError, match="data: must be a Tensor, got list"):
        x.data = [1.0, 2.0]


def test_data_array_is_the_array_in_the_box():
    array = np.ones(2)
    assert pb.asarray(array).data_array() is array


def test_dlpack_shares_values_without_history():
    x = leaf([1.0, 2.0])
    assert np.from_dlpack(x.detach()).tolist() == [1.0, 2.0]
    assert x.detach().__dlpack_device__() == (1, 0)  # the CPU
    with pytest.raises(GraphError, match="can't export a Tensor that requires grad"):
        x.__dlpack__()


def test_a_tensor_of_one_element_is_a_number():
    assert complex(pb.tensor(1 + 2j)) == 1 + 2j
    assert [10, 20, 30][pb.tensor(1)] == 20
    with pytest.raises(DTypeError, match="only integer tensors can be an index, got dtype float32"):
        [10, 20, 30][pb.tensor(1.0)]
