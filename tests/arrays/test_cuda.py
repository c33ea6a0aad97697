"""The seam on CuPy arrays; skipped where there is no GPU."""

import numpy as np
import pytest

from pullback.arrays import CUPY, DTYPES, library_for, library_of
from pullback.errors import ShapeError, TensorIndexError

FLOAT32, INT64 = DTYPES["float32"], DTYPES["int64"]

pytestmark = pytest.mark.usefixtures("cuda")


@pytest.fixture
def grid():
    return CUPY.from_numpy(np.arange(12.0).reshape(3, 4))


def values(array):
    return CUPY.to_numpy(array).tolist()


def test_arrays_and_devices_are_found(grid):
    library, device = library_for("cuda:0")
    assert library is library_of(grid) is CUPY
    assert CUPY.device(CUPY.zeros((2,), FLOAT32, device)) == "cuda:0"
    assert CUPY.device(CUPY.full((2,), 1.0, FLOAT32, device)) == "cuda:0"
    assert CUPY.same_device(grid, CUPY.zeros((2,), FLOAT32, grid.device))
    with CUPY.activate(device):
        assert CUPY.device(CUPY.zeros((), FLOAT32)) == "cuda:0"


def test_making_and_copying(grid):
    assert values(CUPY.asarray([[1, 2]], FLOAT32)) == [[1.0, 2.0]]
    assert CUPY.asarray(grid) is grid
    twin = CUPY.asarray(grid, copy=True)
    CUPY.assign(twin, 0, -1.0)
    CUPY.assign(CUPY.copy(grid), 0, -1.0)
    CUPY.assign(CUPY.readonly(grid), 0, -1.0)
    assert values(grid)[0] == [0.0, 1.0, 2.0, 3.0]
    assert CUPY.dtype(CUPY.astype(grid, FLOAT32)) is FLOAT32
    assert CUPY.astype(grid, DTYPES["float64"]) is grid


def test_ownership_and_views(grid):
    own = CUPY.copy(grid)
    assert CUPY.owns(own)
    assert not CUPY.owns(own[0])
    assert CUPY.shares(own[0], own)
    assert not CUPY.shares(CUPY.copy(own), own)
    assert CUPY.is_writeable(own[:, 1])
    assert not CUPY.is_writeable(CUPY.broadcast_to(own[0], (3, 4)))
    assert CUPY.reshape(own, (12,))[1]
    turned, shares = CUPY.reshape(own.T, (12,))
    assert not shares
    assert values(turned)[:4] == [0.0, 4.0, 8.0, 1.0]
    with pytest.raises(ShapeError, match="a shape of 12 elements required"):
        CUPY.reshape(own, (5,))


@pytest.mark.parametrize(
    "index",
    [0, (..., 1), slice(None, None, -1), [0, 2], (slice(None), [1, 1]), ([0, 1], [1, 2])],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int8", "float16"])
def test_reading_writing_and_adding_as_numpy_does(index, dtype):
    host = np.arange(12).reshape(3, 4).astype(dtype)
    value = np.ones(host[index].shape, dtype)
    written, added = host.copy(), host.copy()
    written[index] = value
    np.add.at(added, index, value)
    assert values(CUPY.getitem(CUPY.from_numpy(host), index)) == host[index].tolist()
    array = CUPY.from_numpy(host)
    assert CUPY.assign(array, index, CUPY.from_numpy(value)) is array
    assert values(array) == written.tolist()
    array = CUPY.from_numpy(host)
    assert CUPY.add_at(array, index, CUPY.from_numpy(value)) is array
    assert values(array) == added.tolist()


def test_wrong_indices_and_values(grid):
    with pytest.raises(TensorIndexError, match="an index within the shape required"):
        CUPY.getitem(grid, 5)
    with pytest.raises(TensorIndexError, match="an index within the shape required"):
        CUPY.assign(grid, (0, 0, 0), 1.0)
    with pytest.raises(ShapeError, match=r"place required, got \(3,\)"):
        CUPY.assign(grid, 0, CUPY.from_numpy(np.ones(3)))


def test_random_numbers():
    for draw in (
        lambda source: source.normal((3,), FLOAT32),
        lambda source: source.uniform((2, 2), DTYPES["complex128"]),
        lambda source: source.integers(-5, 5, (9,), INT64),
        lambda source: source.permutation(9, INT64),
    ):
        first, again, other = (draw(CUPY.generator(seed)) for seed in (3, 3, 4))
        assert library_of(first) is CUPY
        assert values(first) == values(again)
        assert values(first) != values(other)
    source = CUPY.generator(5)
    state = source.get_state()
    first = values(source.normal((4,), FLOAT32))
    source.set_state(state)
    assert values(source.normal((4,), FLOAT32)) == first
    assert sorted(values(source.permutation(50, INT64))) == list(range(50))
