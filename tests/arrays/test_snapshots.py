"""Snapshots of NumPy arrays: one for an array that is used again unchanged, and none of changes."""

import gc
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given, strategies as st

import pullback as pb
from pullback.arrays import NUMPY
from pullback.arrays.snapshots import _latest

DTYPES = "bool int8 int16 int32 int64 float16 float32 float64 complex64 complex128 longdouble"
LAYOUTS = {
    "rows": lambda a: a,
    "columns": lambda a: a.T,
    "slice": lambda a: a[3:-2, 1:-1],
    "strided": lambda a: a[::2, ::-3],
    "permuted": lambda a: a.reshape(10, 8, 100).transpose(1, 2, 0),
    "one row": lambda a: a[40],
}


def large(dtype="float64"):
    return np.arange(8000).reshape(80, 100).astype(dtype)


@given(
    dtype=st.sampled_from(DTYPES.split()),
    layout=st.sampled_from(sorted(LAYOUTS)),
    place=st.integers(0, 10**6),
    through_base=st.booleans(),
)
def test_snapshot_sees_a_change_of_any_one_byte_of_any_array(dtype, layout, place, through_base):
    whole = large(dtype)
    array = LAYOUTS[layout](whole)
    before = array.copy()
    kept = NUMPY.snapshot(array)
    index = np.unravel_index(place % array.size, array.shape)
    if through_base:  # one byte, of another view of the memory
        element = array[tuple(slice(i, i + 1) for i in index)]
        bits = np.ndarray(element.itemsize, np.uint8, element)
        used = {"longdouble": 10, "bool": 1}.get(dtype, bits.size)
        bits[place % used] ^= 1
    else:
        array[index] = array[index] == 0
    assert np.array_equal(kept, before)
    again = NUMPY.snapshot(array)
    assert again.tobytes() == array.tobytes()
    assert again is not kept


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
@pytest.mark.parametrize("dtype", [d for d in DTYPES.split() if d != "longdouble"])
def test_snapshot_of_an_unchanged_array_is_the_same_one(dtype, layout):
    whole = large(dtype)
    first = NUMPY.snapshot(LAYOUTS[layout](whole))
    second = NUMPY.snapshot(LAYOUTS[layout](whole))
    assert second is first or first.nbytes < 8192
    assert np.array_equal(first, LAYOUTS[layout](whole))
    assert first.dtype == dtype


def test_snapshot_tells_zeros_by_their_signs_and_knows_nan_again():
    array = np.full(2000, np.nan)
    array[7] = 0.0
    first = NUMPY.snapshot(array)
    assert NUMPY.snapshot(array) is first
    array[7] = -0.0
    assert NUMPY.snapshot(array) is not first


def test_snapshot_of_an_array_in_another_dtype_is_shared_too():
    array = np.arange(3000)
    first = NUMPY.snapshot(array, array.astype(np.float64))
    assert first.dtype == np.float64
    assert NUMPY.snapshot(array, array.astype(np.float64)) is first
    array[2999] = 0
    assert NUMPY.snapshot(array, array.astype(np.float64))[2999] == 0.0
    assert first[2999] == 2999.0


def test_snapshot_is_never_the_array_and_cannot_be_written_to():
    for size in (3, 3000):
        array = np.ones(size)
        array.flags.writeable = False
        kept = NUMPY.snapshot(array)
        assert not np.shares_memory(kept, array)
        with pytest.raises(ValueError, match="read-only"):
            kept[0] = 2.0


def test_snapshots_of_arrays_without_a_quick_comparison_are_copies():
    for array in (np.array(["a" * 60] * 200), np.array([1.0] * 2000, dtype=object)):
        first, second = NUMPY.snapshot(array), NUMPY.snapshot(array)
        assert first is not second
        assert np.array_equal(first, array)


def test_mul_keeps_one_snapshot_of_a_constant_while_a_graph_holds_it():
    constant = np.linspace(1.0, 2.0, 5000)
    x = pb.tensor(np.ones(5000), requires_grad=True)
    y = x
    for _ in range(4):
        y = constant * (y * constant)
    kept = {id(a): a for a in _latest.values() if a.shape == (5000,)}
    assert len(kept) == 1
    alive = weakref.ref(*kept.values())
    kept.clear()
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), constant**8)
    del y
    gc.collect()
    assert alive() is None
    assert not [a for a in _latest.values() if a.shape == (5000,)]


def test_mul_by_an_array_that_is_changed_between_calls_has_the_values_of_each_call():
    buffer, x = np.zeros(2000), pb.tensor(np.ones(2000), requires_grad=True)
    y = 0.0
    for k in range(3):
        buffer[:] = k + 1.0
        y = y + x * buffer
    buffer[:] = 100.0
    y.sum().backward()
    assert set(x.grad.tolist()) == {6.0}


@pytest.mark.parametrize(
    "product",
    [
        pytest.param(lambda x, c: x * c, id="mul"),
        pytest.param(lambda x, c: np.matmul(c, x.reshape(-1, 1)).reshape(-1), id="matmul"),
        pytest.param(lambda x, c: np.dot(x, c), id="dot"),
        pytest.param(lambda x, c: pb.where(c > 0, x, 0.0), id="where"),
        pytest.param(lambda x, c: x[c.astype(int)], id="getitem"),
        pytest.param(lambda x, c: np.multiply(x, c.astype(np.float32)), id="float32"),
    ],
)
def test_operations_keep_the_values_that_a_large_array_had(product):
    x = pb.tensor(np.linspace(0.0, 1.0, 96), requires_grad=True)
    constant = np.tile(np.arange(96.0), (96, 1))
    ((product(x, constant.copy())) ** 2).sum().backward()
    expected, x.grad = x.grad, None
    y = (product(x, constant) ** 2).sum()
    constant[:] = 3.0
    y.backward()
    assert np.array_equal(x.grad.numpy(), expected.numpy())


class Frame:
    """What NumPy reads as an array that shares memory, as a DataFrame of pandas does."""

    __pandas_priority__ = 4000

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array.copy() if copy else self.array


def test_mul_and_dot_with_a_frame_keep_the_values_that_it_had():
    array, x = np.array([2.0, 3.0]), pb.tensor(np.ones(2), requires_grad=True)
    y = x * Frame(array) + np.dot(x, Frame(array))
    array[:] = 100.0
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 9.0]


def test_snapshot_is_shared_by_threads_that_use_and_change_arrays_of_their_own():
    wrong = []

    def work(k):
        array = np.zeros(3000)
        for i in range(200):
            array[i] = k
            kept = [NUMPY.snapshot(array) for _ in range(2)]
            if not all(np.array_equal(a, array) for a in kept):
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
