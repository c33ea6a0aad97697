"""Making tensors as the standard has it; what is pullback's own is in tests/ops/test_creation."""

import array
import inspect
import sys

import array_api_strict
import numpy as np
import pytest

import pullback as pb
from pullback.arrays import CUPY

STRICT = "array_api_strict:CPU_DEVICE"
WRITES = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.2.0", reason="np.from_dlpack is read-only there"
)


@pytest.fixture
def strict_device():
    """Return a device of another array library, which is known once an array of it was met."""
    return pb.asarray(array_api_strict.asarray([1.0])).device


# -- sizes ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
def test_the_shape_is_the_first_parameter_by_position_or_name(name):
    make = getattr(pb, name)
    assert next(iter(inspect.signature(make).parameters)) == "shape"
    for x in (make((2, 3)), make(shape=(2, 3)), make(2, 3), make(shape=[2, 3])):
        assert x.shape == (2, 3)
    assert make(shape=4).shape == make(4).shape == (4,)
    with pytest.raises(TypeError, match="shape"):
        make()


@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "full"])
def test_sizes_that_are_none_are_refused(name):
    make = (lambda shape: pb.full(shape, 1)) if name == "full" else getattr(pb, name)
    with pytest.raises(TypeError, match=f"{name}: sizes must be integers"):
        make((2, 1.5))
    with pytest.raises(ValueError, match=f"{name}: sizes must not be negative"):
        make((2, -1))


# -- filled ---------------------------------------------------------------------------------------
FILLED = [
    (True, "bool"),
    (3, "int64"),
    (1.5, "float32"),
    (2j, "complex64"),
    (np.int8(3), "int64"),
    (np.float64(1.5), "float32"),
    (np.True_, "bool"),
    (pb.tensor(1.5, dtype="float64"), "float32"),
]


@pytest.mark.parametrize(("value", "dtype"), FILLED, ids=lambda v: repr(v)[:30])
def test_full_takes_the_default_dtype_of_the_kind_of_its_number(value, dtype):
    x = pb.full((2,), value)
    assert (x.dtype.name, x.tolist()) == (dtype, [value] * 2)
    y = pb.full_like(pb.zeros(2, dtype="complex128"), value)
    assert (y.dtype, y.tolist()) == (pb.complex128, [value] * 2)


UNFIT = [
    (lambda: pb.full((2,), 300, dtype="int8"), "full: a number that dtype int8 can hold"),
    (lambda: pb.full((2,), 1j, dtype="float32"), "full: a number that dtype float32 can hold"),
    (lambda: pb.full((2,), pb.nan, dtype="int64"), "full: a number that dtype int64 can hold"),
    (lambda: pb.full_like(pb.ones(2, dtype="uint8"), -1), "full_like: a number that dtype uint8"),
    (lambda: pb.full((2,), "a"), "full: a number required as 'fill_value', got str"),
    (lambda: pb.full((2,), None), "full: a number required as 'fill_value', got NoneType"),
    (lambda: pb.zeros_like([1.0]), "zeros_like: a Tensor or an array required as 'x', got list"),
    (lambda: pb.tensor(300, dtype="int8"), "tensor: integers that dtype int8 can hold"),
    (lambda: pb.asarray([1, -1], dtype="uint8"), "asarray: integers that dtype uint8 can hold"),
    (lambda: pb.asarray(2**63), "asarray: integers that dtype int64 can hold required, got 92"),
    (lambda: pb.asarray([1j], dtype="float32"), "asarray: numbers that dtype float32 can hold"),
    (lambda: pb.linspace("a", 1, 3), "linspace: a number required as 'start', got str"),
    (lambda: pb.linspace(0, 1, 2.5), "linspace: sizes must be integers"),
    (lambda: pb.arange(None), "arange: a number required as 'stop', got NoneType"),
    (lambda: pb.eye(2.0), "eye: sizes must be integers"),
]


@pytest.mark.parametrize(("make", "words"), UNFIT, ids=[words for _, words in UNFIT])
def test_a_number_that_does_not_fit_is_refused(make, words):
    with pytest.raises(TypeError, match=words):
        make()


def test_wrong_values_are_refused():
    for make, words in (
        (lambda: pb.arange(0, 1, 0), "arange: step must not be 0"),
        (lambda: pb.linspace(0, 1, -1), "linspace: sizes must not be negative"),
        (lambda: pb.eye(-1), "eye: sizes must not be negative"),
        (lambda: pb.eye(2, -1), "eye: sizes must not be negative"),
        (lambda: pb.full((2,), pb.ones(2)), "one element"),
    ):
        with pytest.raises(ValueError, match=words):
            make()


def test_a_tensor_that_requires_grad_is_no_number_to_make_others_of():
    x = pb.tensor(2.0, requires_grad=True)
    for make in (
        lambda: pb.full((2,), x),
        lambda: pb.full_like(pb.ones(2), x),
        lambda: pb.arange(x),
        lambda: pb.linspace(0, x, 3),
    ):
        with pytest.raises(RuntimeError, match="whose graph would be lost"):
            make()
    assert pb.arange(x.detach()).tolist() == [0.0, 1.0]


def test_like_takes_arrays_too():
    assert pb.ones_like(np.zeros(2, np.int8)).dtype is pb.int8
    x = pb.zeros_like(array_api_strict.asarray([1.0]))
    assert (x.device, x.tolist()) == (STRICT, [0.0])


# -- ranges ---------------------------------------------------------------------------------------
def test_ranges_of_numbers_of_other_kinds():
    assert pb.arange(pb.tensor(3)).tolist() == [0, 1, 2]
    assert pb.arange(np.int8(3)).dtype is pb.int64
    assert pb.arange(np.float64(2)).dtype is pb.float32
    assert pb.arange(0, 1.5, dtype="int64").tolist() == [0, 1]
    z = pb.linspace(0, 2j, 3)
    assert (z.dtype, z.tolist()) == (pb.complex64, [0, 1j, 2j])
    assert pb.linspace(1, 5, 2, dtype="complex128").tolist() == [1, 5]
    assert pb.eye(0, 2).shape == (0, 2)
    assert pb.eye(2, k=-1).tolist() == [[0.0, 0.0], [1.0, 0.0]]


def test_everything_is_made_on_the_device_asked_for(strict_device):
    made = [
        pb.arange(3, device=strict_device),
        pb.asarray([1.0], device=strict_device),
        pb.empty(2, device=strict_device),
        pb.empty_like(pb.ones(2), device=strict_device),
        pb.eye(2, device=strict_device),
        pb.from_dlpack(np.ones(2), device=strict_device),
        pb.full(2, 1.5, device=strict_device),
        pb.full_like(pb.ones(2), 1.5, device=strict_device),
        pb.linspace(0, 1, 3, device=strict_device),
        pb.ones(2, device=strict_device),
        pb.ones_like(pb.ones(2), device=strict_device),
        pb.zeros(2, device=strict_device),
        pb.zeros_like(pb.ones(2), device=strict_device),
    ]
    assert {x.device for x in made} == {STRICT}


# -- asarray --------------------------------------------------------------------------------------
def test_nested_tensors_become_one_tensor_with_their_history():
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    y = pb.tensor(3.0, dtype="float64", requires_grad=True)
    z = pb.asarray([[x[0], y], (x[1] * y, 4)])
    assert z.tolist() == [[1.0, 3.0], [6.0, 4.0]]
    assert z.dtype is pb.float64
    z.sum().backward()
    assert x.grad.tolist() == [1.0, 3.0]
    assert (y.grad.dtype, y.grad.item()) == (pb.float64, 3.0)


def test_a_list_of_tensors_without_history_stays_on_their_device():
    row = pb.asarray(array_api_strict.asarray([1.0, 2.0]))
    x = pb.asarray([row, [3, 4.0]])
    assert (x.device, x.tolist()) == (STRICT, [[1.0, 2.0], [3.0, 4.0]])
    assert pb.asarray([pb.tensor(1), 2]).dtype is pb.int64
    assert pb.asarray([pb.ones(2)], dtype="float64").dtype is pb.float64


def test_tensors_of_several_shapes_are_no_array():
    with pytest.raises(ValueError, match="one shape required"):
        pb.asarray([pb.ones(2), pb.ones(3)])


def test_a_buffer_is_wrapped_without_copying():
    numbers = array.array("d", [1.0, 2.0])
    x = pb.asarray(numbers)
    assert pb.asarray(memoryview(numbers), copy=False).tolist() == [1.0, 2.0]
    copied = pb.asarray(numbers, copy=True)
    numbers[0] = 7.0
    assert (x.dtype, x.tolist()) == (pb.float64, [7.0, 2.0])
    assert copied.tolist() == [1.0, 2.0]


class Holder:
    """An object that becomes an array in NumPy's way."""

    def __init__(self, data):
        self.data = data

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("a copy is needed")
        return np.array(self.data, dtype)


def test_an_object_that_numpy_reads_is_read_by_numpy():
    assert pb.asarray(Holder([1.5])).tolist() == [1.5]
    assert pb.asarray(Holder([1.5]), dtype="int8").tolist() == [1]
    with pytest.raises(ValueError, match="asarray: a copy is needed"):
        pb.asarray(Holder([1.5]), copy=False)
    with pytest.raises(TypeError, match="boolean, integer, floating or complex dtype required"):
        pb.asarray(Holder(["a"]))


def test_a_sequence_that_is_no_list_is_read_as_one():
    assert pb.asarray(range(3)).tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="asarray: data must be numbers, got object"):
        pb.asarray(object())


@pytest.mark.parametrize("data", [[1.0], 2.0, (1, 2), range(3), np.float64(3)], ids=str)
def test_what_must_be_copied_is_not_without(data):
    with pytest.raises(ValueError, match="asarray: copy=False"):
        pb.asarray(data, copy=False)


def test_a_copy_of_a_tensor_keeps_its_history():
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    y = pb.asarray(x, copy=True)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    assert not np.may_share_memory(x.detach().numpy(), y.detach().numpy())


# -- from_dlpack ----------------------------------------------------------------------------------
@WRITES
def test_from_dlpack_shares_memory_and_copies_where_told():
    source = np.array([1.0, 2.0])
    shared, same = pb.from_dlpack(source), pb.from_dlpack(source, copy=False, device="cpu")
    copied = pb.from_dlpack(source, copy=True)
    source[0] = 7.0
    assert shared.tolist() == same.tolist() == [7.0, 2.0]
    assert copied.tolist() == [1.0, 2.0]
    shared[1] = 5.0
    assert source.tolist() == [7.0, 5.0]


def test_from_dlpack_takes_tensors_and_arrays_of_any_library():
    assert pb.from_dlpack(pb.tensor([1, 2])).tolist() == [1, 2]
    x = pb.from_dlpack(array_api_strict.asarray([1.0]))
    assert (x.device, x.dtype) == ("cpu", pb.float64)
    with pytest.raises(RuntimeError, match="can't export a Tensor that requires grad"):
        pb.from_dlpack(pb.ones(2, requires_grad=True))


def test_another_device_needs_a_copy(strict_device):
    assert pb.from_dlpack(np.ones(2), device=strict_device).device == STRICT
    with pytest.raises(ValueError, match="another dtype or device needs a copy"):
        pb.from_dlpack(np.ones(2), device=strict_device, copy=False)


class Elsewhere:
    """An array on a device that is not there."""

    def __init__(self, kind, number):
        self.place = kind, number

    def __dlpack__(self, **options):
        raise AssertionError("is not asked for")

    def __dlpack_device__(self):
        return self.place


@pytest.mark.parametrize("kind", [2, 13])
def test_an_array_on_a_gpu_becomes_one_of_cupy(kind, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.delitem(vars(CUPY), "cupy", raising=False)
    with pytest.raises(pb.errors.MissingExtraError, match='device "cuda": CuPy required'):
        pb.from_dlpack(Elsewhere(kind, 0))


def test_from_dlpack_refuses_what_it_cannot_take():
    with pytest.raises(TypeError, match="from_dlpack: an array that exports DLPack required"):
        pb.from_dlpack([1.0])
    with pytest.raises(pb.errors.DeviceError, match=r"from_dlpack: .* device \(8, 3\) of DLPack"):
        pb.from_dlpack(Elsewhere(8, 3))


# -- astype ---------------------------------------------------------------------------------------
def test_astype_copies_unless_told_not_to(strict_device):
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    same = pb.astype(x, pb.float32, copy=False)
    copied = pb.astype(x, pb.float32)
    moved = pb.astype(x, pb.float64, device=strict_device)
    assert same is x
    assert not np.may_share_memory(copied.detach().numpy(), x.detach().numpy())
    assert (moved.device, moved.dtype) == (STRICT, pb.float64)
    (copied.sum() + moved.to_device("cpu").sum()).backward()
    assert (x.grad.dtype, x.grad.tolist()) == (pb.float32, [2.0, 2.0])


def test_astype_takes_arrays_and_refuses_the_rest():
    source = np.array([1.5, 2.5])
    x = pb.astype(source, "float64", copy=False)
    source[0] = 7.0
    assert x.tolist() == [1.5, 2.5]
    assert pb.astype(source, pb.int8).tolist() == [7, 2]
    with pytest.raises(TypeError, match="astype: a Tensor or an array required as 'x', got list"):
        pb.astype([1.0], pb.int8)
