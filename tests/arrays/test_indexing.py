"""Every index that NumPy has works on every library, and writes where it reads."""

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from pullback.arrays import NUMPY, indexing, library_of
from pullback.errors import ShapeError, TensorIndexError

STRICT = library_of(array_api_strict.ones(1))
MASK = np.array([True, False, True, True])

INDICES = [
    0,
    -1,
    np.int64(1),
    (1, 2),
    (),
    ...,
    None,
    (..., 0),
    (None, 1),
    (0, ..., None),
    slice(None),
    slice(None, None, -1),
    slice(-100, 100),
    slice(5, 1),
    (slice(2, None, -2), slice(100, -100, -1)),
    (slice(None), slice(1, None, 2)),
    slice(-50, -40, -1),
    [0, 2],
    ([0, 1], [1, 2]),
    ([[0], [1]], [1, -1]),
    (slice(None), np.array([1, 1])),
    (np.array([0, 2]), slice(1, 3)),
    (np.array([0, 2]), None, slice(1, 3)),
    (slice(0, 2), MASK),
    (1, MASK),
    np.array([[True] * 4, [False] * 4, MASK]),
    np.zeros((3, 4), bool),
    np.zeros(0, np.int64),
    np.array(1),
    True,
    False,
]


def ids(index):
    return str(index).replace("\n", "")


def own(library, index):
    """Return an index with the library's own arrays for NumPy's."""
    if isinstance(index, tuple):
        return tuple(own(library, part) for part in index)
    return library.from_numpy(index) if isinstance(index, np.ndarray) else index


@pytest.fixture
def grid():
    return np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize("index", INDICES, ids=ids)
@pytest.mark.parametrize("own_arrays", [False, True])
def test_reading(library, grid, index, own_arrays):
    expected = np.asarray(grid[index])
    got = library.getitem(library.from_numpy(grid), own(library, index) if own_arrays else index)
    assert library.has(got)
    assert library.to_numpy(got).tolist() == expected.tolist()
    assert tuple(got.shape) == expected.shape


@pytest.mark.parametrize("index", INDICES, ids=ids)
def test_writing(library, grid, index):
    expected = grid.copy()
    value = np.arange(expected[index].size).reshape(expected[index].shape) + 100.0
    expected[index] = value
    a = library.from_numpy(grid.copy())
    assert library.assign(a, own(library, index), library.from_numpy(value)) is a
    assert library.to_numpy(a).tolist() == expected.tolist()


@pytest.mark.parametrize(
    "index", [*INDICES, [1, 1], (0, [2, 2, 2]), ([0, 1, 0], slice(1))], ids=ids
)
def test_adding(library, grid, index):
    expected = grid.copy()
    value = np.arange(expected[index].size).reshape(expected[index].shape) + 100.0
    np.add.at(expected, index, value)
    a = library.from_numpy(grid.copy())
    assert library.add_at(a, own(library, index), library.from_numpy(value)) is a
    assert library.to_numpy(a).tolist() == expected.tolist()


def test_adding_to_one_place_many_times(library):
    a = library.from_numpy(np.zeros(2))
    library.add_at(a, ([0, 0, 1, 0],), 1.5)
    assert library.to_numpy(a).tolist() == [4.5, 1.5]


def test_a_number_and_a_broadcast_value_can_be_written(library, grid):
    a = library.from_numpy(grid.copy())
    library.assign(a, (slice(None), [0, 3]), 7.0)
    library.assign(a, slice(1), library.from_numpy(np.array([8.0])))
    assert library.to_numpy(a).tolist() == [[8.0] * 4, [7.0, 5.0, 6.0, 7.0], [7.0, 9.0, 10.0, 7.0]]


@pytest.mark.parametrize(
    "index",
    [0, (1, 2), ..., None, (..., 0), slice(None, None, -1), (slice(-9, 9), None, 1)],
    ids=ids,
)
def test_basic_indices_give_views(library, index, grid):
    a = library.from_numpy(grid.copy())
    view = library.getitem(a, index)
    library.assign(view, ..., -1.0)
    assert (library.to_numpy(a) == -1).sum() == np.asarray(grid[index]).size


@pytest.mark.parametrize(
    ("index", "says"),
    [
        (5, "index 5 is out of bounds for axis 0 with size 3"),
        ((0, 0, 0), "too many indices"),
        ([7], "index 7 is out of bounds"),
        (1.5, "only integers, slices"),
        ("x", "only integers, slices"),
        ((..., ...), "single ellipsis"),
        (np.ones(5, bool), "boolean index did not match"),
    ],
    ids=ids,
)
def test_a_wrong_index_is_an_error_when_read_and_when_written(library, grid, index, says):
    a = library.from_numpy(grid)
    text = (
        rf"^indexing: an index within the shape required, got .*{says}.*\n  input: shape \(3, 4\)"
    )
    with pytest.raises(TensorIndexError, match=text):
        library.getitem(a, index)
    with pytest.raises(TensorIndexError, match=text):
        library.assign(a, index, 1.0)
    with pytest.raises(TensorIndexError, match=text):
        library.add_at(a, index, 1.0)


def test_a_value_that_does_not_fit_the_place(library, grid):
    a, value = library.from_numpy(grid), library.from_numpy(np.ones(3))
    text = (
        r"value that broadcasts to the place required, got \(3,\)\n  input: .*\n  value: shape \(3,"
    )
    with pytest.raises(ShapeError, match=text):
        library.assign(a, 0, value)
    with pytest.raises(ShapeError, match=text):
        library.add_at(a, [0], value)


def test_element_numbers():
    assert indexing.element_numbers((2, 3), ([1, 0], 2)).tolist() == [5, 2]
    assert indexing.element_numbers((), ()).tolist() == 0
    assert indexing.element_numbers((0, 3), slice(None)).shape == (0, 3)


@given(st.data())
def test_any_basic_index_spelled_out_means_the_same(data):
    shape = data.draw(arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    index = data.draw(arrays.basic_indices(shape, allow_newaxis=True))
    grid = np.arange(float(np.prod(shape))).reshape(shape)
    expected = np.asarray(grid[index])
    for library in (NUMPY, STRICT):
        got = library.to_numpy(library.getitem(library.from_numpy(grid), index))
        assert got.shape == expected.shape
        assert got.tolist() == expected.tolist()


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(300))
def test_random_mixed_indices_read_write_and_add_as_numpy_does(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 5, size=rng.integers(1, 5)))
    index = tuple(_random_part(rng, size) for size in shape[: rng.integers(0, len(shape)) + 1])
    arrays_in_index = [part for part in index if isinstance(part, np.ndarray)]
    if len({part.size if part.dtype != bool else part.sum() for part in arrays_in_index} - {1}) > 1:
        index = tuple(slice(None) if isinstance(part, np.ndarray) else part for part in index)
    grid = rng.normal(size=shape)
    value = rng.normal(size=np.asarray(grid[index]).shape)
    written, added = grid.copy(), grid.copy()
    written[index] = value
    np.add.at(added, index, value)
    a, v, i = (STRICT.from_numpy(grid.copy()), STRICT.from_numpy(value), own(STRICT, index))
    assert np.array_equal(STRICT.to_numpy(STRICT.getitem(a, i)), grid[index])
    assert np.array_equal(STRICT.to_numpy(STRICT.add_at(STRICT.copy(a), i, v)), added)
    assert np.array_equal(STRICT.to_numpy(STRICT.assign(a, i, v)), written)


def _random_part(rng, size):
    kind = rng.integers(4)
    if kind == 0:
        return int(rng.integers(-size, size))
    if kind == 1:
        return slice(*(int(n) for n in rng.integers(-6, 6, 2)), int(rng.choice([-2, -1, 1, 2])))
    if kind == 2:
        return rng.integers(-size, size, size=3)
    return rng.random(size) < 0.5
