"""Gathering and scattering: which places are read and written, whose gradient goes where."""

import math

import array_api_strict
import numpy as np
import pytest
from tests.tensors import leaf

import pullback as pb
from pullback.arrays import NUMPY
from pullback.errors import InplaceError

TABLE = np.arange(12.0).reshape(3, 4)
LIBRARIES = {"numpy": np.asarray, "strict": array_api_strict.asarray}


def every_library(test):
    return pytest.mark.parametrize("wrap", LIBRARIES.values(), ids=LIBRARIES)(test)


def table(wrap=np.asarray):
    return pb.asarray(wrap(TABLE.copy())).requires_grad_()


def ints(values, wrap=np.asarray, dtype="int64"):
    return pb.asarray(wrap(np.asarray(values, dtype)))


def gradient(result, x, weights=None):
    seed = None if weights is None else pb.asarray(weights)
    (g,) = pb.autograd.grad(result.sum() if seed is None else result, x, seed)
    return g.tolist()


# -- indices in brackets --------------------------------------------------------------------------
MASK = TABLE > 5
BRACKETS = {
    "True": True,
    "False": False,
    "NumPy's True": np.True_,
    "a mask of no dimensions": np.array(True),
    "True and an integer": (True, 0),
    "an ellipsis and True": (..., True),
    "None and True": (None, True),
    "a list and True": ([0, 2], True),
    "a mask": MASK,
    "a mask of rows": MASK[:, 3],
    "a mask of columns": (slice(None), MASK[1]),
    "a mask beside numbers": (MASK[:, 3], [1]),
    "nothing": np.zeros((3, 4), bool),
    "negative numbers": ([-1, 0], slice(None)),
    "negative numbers last": (..., [-1, 0]),
    "arrays that broadcast": (np.array([-1, -3]), np.array([[-1], [0]])),
}


@every_library
@pytest.mark.parametrize("name", BRACKETS)
def test_masks_and_index_arrays_read_and_write_as_numpy_does(name, wrap):
    index = BRACKETS[name]
    x = table(wrap)
    assert x[index].shape == TABLE[index].shape
    assert x[index].tolist() == TABLE[index].tolist()
    counts = np.zeros_like(TABLE)
    np.add.at(counts, index, 1.0)
    assert gradient(x[index], x) == counts.tolist()
    y = x * 1
    y[index] = 50.0
    expected = TABLE.copy()
    expected[index] = 50.0
    assert y.tolist() == expected.tolist()
    assert gradient(y, x) == np.where(counts > 0, 0.0, 1.0).tolist()


@pytest.mark.parametrize("make", [np.asarray, pb.asarray], ids=["array", "tensor"])
def test_an_index_that_changes_later_does_not_change_the_gradient(make):
    numbers, mask = np.array([0, 0]), MASK.copy()
    x = table()
    rows, chosen = x[make(numbers)], x[make(mask)]
    y = x * 1
    y[make(numbers)] = 7.0
    numbers[:] = 2
    mask[:] = False
    assert gradient(rows, x) == [[2.0] * 4, [0.0] * 4, [0.0] * 4]
    assert gradient(chosen, x) == MASK.astype(float).tolist()
    assert gradient(y, x) == [[0.0] * 4, [1.0] * 4, [1.0] * 4]


def test_many_repeated_places_add_up_by_rows_and_by_elements():
    rng = np.random.default_rng(0)
    x = pb.asarray(rng.standard_normal((5, 40, 3))).requires_grad_()
    numbers = rng.integers(-40, 40, (20, 30))
    depths = (np.arange(5)[:, None], rng.integers(0, 40, (5, 300)), np.array([[2]]))
    for index in ((slice(None), numbers), depths, (numbers[0] % 5, slice(1, None))):
        weights = rng.standard_normal(x.detach().numpy()[index].shape)
        expected = np.zeros(x.shape)
        np.add.at(expected, index, weights)
        assert gradient(x[index], x, weights) == expected.tolist()


@pytest.mark.parametrize("odd", [1.0, np.inf, np.nan])
def test_many_gradients_of_few_rows_add_up_and_keep_to_their_rows(odd):
    rng = np.random.default_rng(0)
    x = pb.asarray(rng.standard_normal((5, 2, 6))).requires_grad_()
    index = rng.integers(-5, 4, (20, 30))
    weights = rng.standard_normal((20, 30, 2, 6))
    weights[3, 4, 1, 2] = odd
    expected = np.zeros(x.shape)
    np.add.at(expected, index, weights)
    np.testing.assert_allclose(gradient(x[pb.asarray(index)], x, weights), expected, rtol=1e-9)
    assert np.isfinite(expected).sum() >= expected.size - 1


def test_many_places_out_of_range_are_refused_too():
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 3"):
        NUMPY.add_at(np.zeros((3, 9)), np.full(200, 5), np.ones((200, 9)))
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        NUMPY.add_at(np.zeros(3), np.full(1000, 3), np.ones(1000))
    with pytest.raises(ValueError, match="a value that broadcasts to the place required"):
        NUMPY.add_at(np.zeros((2, 3)), (slice(None), np.zeros(600, int)), np.ones((600, 2)))
    with pytest.raises(ValueError, match="a value that broadcasts to the place required"):
        NUMPY.add_at(np.zeros(3), np.zeros(1000, int), np.ones((500, 2)))


# -- reading --------------------------------------------------------------------------------------
@every_library
def test_take_counts_negative_indices_from_the_end(wrap):
    x = table(wrap)
    rows = pb.take(x, ints([-1, 0, -1], wrap, "int8"), axis=0)
    assert rows.tolist() == TABLE[[-1, 0, -1]].tolist()
    assert gradient(rows, x) == [[1.0] * 4, [0.0] * 4, [2.0] * 4]
    assert pb.take(x, ints([[5, -1]], wrap)).tolist() == [[5.0, 11.0]]
    assert pb.take(x, ints([[3, -4]], wrap), axis=-1).shape == (3, 1, 2)
    along = pb.take_along_axis(x, ints([[-1], [0], [-2]], wrap))
    assert along.tolist() == [[3.0], [4.0], [10.0]]


@every_library
def test_the_other_axes_of_take_along_axis_broadcast_both_ways(wrap):
    x = pb.asarray(wrap(TABLE[:, :1].copy())).requires_grad_()
    result = pb.take_along_axis(x, ints([[2, 0, 2, 2]], wrap), axis=0)
    assert result.tolist() == [[8.0, 0.0, 8.0, 8.0]]
    assert gradient(result, x) == [[1.0], [0.0], [3.0]]


def test_an_index_of_any_integer_dtype_is_taken():
    x = table()
    for dtype in ("uint8", "int8", "int32", "uint64"):
        index = ints([[1], [0], [3]], dtype=dtype)
        assert pb.gather(x, 1, index).tolist() == [[1.0], [4.0], [11.0]]
        assert gradient(pb.gather(x, 1, index), x)[2] == [0.0, 0.0, 0.0, 1.0]


def test_an_index_of_no_dimensions_names_one_slice():
    x = table()
    assert pb.index_select(x, 0, ints(1)).tolist() == [TABLE[1].tolist()]
    assert pb.index_add(x, 0, ints(1), pb.ones((1, 4))).tolist()[1] == [5.0, 6.0, 7.0, 8.0]


def test_an_index_changed_in_place_since_is_an_error():
    x, index = table(), ints([0, 0])
    result = pb.index_select(x, 0, index)
    index.fill_(2)
    with pytest.raises(InplaceError, match="modified by an inplace operation"):
        result.sum().backward()


def test_an_index_array_of_the_caller_may_change():
    x, index = table(), np.zeros((1, 4), int)
    result = pb.gather(x, 0, index)
    index[:] = 2
    assert gradient(result, x) == [[1.0] * 4, [0.0] * 4, [0.0] * 4]


@every_library
def test_masked_select_broadcasts(wrap):
    x = table(wrap)
    column = pb.asarray(wrap(np.array([[True], [False], [True]])))
    result = pb.masked_select(x, column)
    assert result.tolist() == TABLE[[0, 2]].ravel().tolist()
    assert gradient(result, x) == [[1.0] * 4, [0.0] * 4, [1.0] * 4]
    three = pb.masked_select(pb.asarray(wrap(np.array(3.0))), column)
    assert three.tolist() == [3.0, 3.0]
    rows = pb.asarray(wrap(np.ones((2, 1, 4), bool)))
    assert x.masked_select(rows).shape == (24,)


def test_take_along_dim_is_flat_without_a_dim():
    x = table()
    assert x.take_along_dim(ints([[5, -1]])).tolist() == [5.0, 11.0]
    assert x.take_along_dim(ints([[1], [0], [3]]), 1).tolist() == [[1.0], [4.0], [11.0]]
    assert x.take(ints([[5, -1]])).tolist() == [[5.0, 11.0]]


# -- writing and adding ---------------------------------------------------------------------------
def test_scatter_and_index_copy_give_the_gradient_to_the_source():
    weights = np.arange(12.0).reshape(3, 4)
    x, src = table(), pb.asarray(-TABLE).requires_grad_()
    index = np.array([[2, 0, 1, 0], [0, 1, 2, 2]])
    result = pb.scatter(x, 0, ints(index), src)  # the last row of src is not used
    expected, kept = TABLE.copy(), np.ones((3, 4))
    np.put_along_axis(expected, index, -TABLE[:2], 0)
    np.put_along_axis(kept, index, 0.0, 0)
    assert result.tolist() == expected.tolist()
    dx, ds = pb.autograd.grad(result, [x, src], pb.asarray(weights))
    assert dx.tolist() == (weights * kept).tolist()
    assert ds.tolist() == [*np.take_along_axis(weights, index, 0).tolist(), [0.0] * 4]

    source = pb.asarray(-TABLE[:, :2]).requires_grad_()
    result = pb.index_copy(x, -1, ints([3, 1]), source)
    assert result.tolist()[1] == [4.0, -5.0, 6.0, -4.0]
    dx, ds = pb.autograd.grad(result, [x, source], pb.asarray(weights))
    assert dx.tolist() == (weights * [1, 0, 1, 0]).tolist()
    assert ds.tolist() == weights[:, [3, 1]].tolist()


def test_scatter_writes_numbers_and_tensors_of_no_dimensions():
    x, index = table(), ints([[0], [1], [1]])
    expected = TABLE.copy()
    expected[[0, 1, 2], [0, 1, 1]] = 9.0
    value = pb.tensor(9.0, dtype="float64", requires_grad=True)
    for result in (
        pb.scatter(x, 1, index, 9),
        x.scatter(1, index, value=9.0),
        x.clone().scatter_(1, index, value=9),
        pb.scatter(x, 1, index, value),
    ):
        assert result.tolist() == expected.tolist()
    assert gradient(result, value) == 3.0


def test_index_fill_and_scatter_of_one_number_count_a_place_once():
    x = table()
    value = pb.tensor(9.0, dtype="float64", requires_grad=True)
    assert gradient(x.index_fill(1, ints([3, 3]), value), value) == 3.0
    assert gradient(x.scatter(1, ints([[0, 0]]), value), value) == 1.0
    first = x.index_fill(0, ints([1, 1]), value) ** 2
    (g,) = pb.autograd.grad(first.sum(), value, create_graph=True)
    assert g.item() == 72.0
    assert gradient(g, value) == 8.0


def test_index_add_adds_as_often_as_a_slice_is_named():
    x = table()
    source = pb.asarray(np.ones((3, 2))).requires_grad_()
    result = x.index_add(1, ints([2, 2]), source, alpha=-3)
    assert result.tolist()[0] == [0.0, 1.0, -4.0, 3.0]
    assert gradient(result, source) == [[-3.0] * 2] * 3
    assert gradient(x.scatter_add(0, ints([[0], [0]]), source), source) == [[1.0, 0.0]] * 2 + [
        [0.0, 0.0]
    ]


# -- in place -------------------------------------------------------------------------------------
IN_PLACE = {
    "scatter_": lambda x: x.scatter_(0, ints([[0, 0]]), -1.0),
    "scatter_add_": lambda x: x.scatter_add_(0, ints([[0, 0]]), pb.ones((1, 2))),
    "index_add_": lambda x: x.index_add_(0, ints([0]), pb.ones((1, 4)), alpha=2),
    "index_copy_": lambda x: x.index_copy_(0, ints([0]), pb.ones((1, 4))),
    "index_fill_": lambda x: x.index_fill_(0, ints([0]), 7),
}


@every_library
def test_writing_into_a_view_changes_its_base_and_the_history(wrap):
    x = table(wrap)
    y = x * 1
    part = y[1:]
    source = pb.asarray(wrap(np.ones((1, 4)))).requires_grad_()
    assert part.index_add_(0, ints([1], wrap), source) is part
    part.index_fill_(1, ints([0, 1], wrap), 0.0)
    assert y.tolist() == [[0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 6.0, 7.0], [0.0, 0.0, 11.0, 12.0]]
    dx, ds = pb.autograd.grad(y.sum(), [x, source])
    assert dx.tolist() == [[1.0] * 4, [0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0]]
    assert ds.tolist() == [[0.0, 0.0, 1.0, 1.0]]


@pytest.mark.parametrize("name", IN_PLACE)
def test_an_in_place_method_returns_its_tensor_and_leaves_leaves_alone(name):
    x = pb.asarray(TABLE.copy())
    changed = IN_PLACE[name](x)
    assert changed is x
    assert x._version == 1
    assert x.tolist() != TABLE.tolist()
    with pytest.raises(InplaceError, match=f"{name}: a leaf Variable that requires grad"):
        IN_PLACE[name](table())


def test_a_source_of_a_lesser_dtype_is_converted_in_place():
    x = pb.zeros(3)
    source = pb.asarray(np.array([1.0, 2.0])).requires_grad_()
    assert x.index_add_(0, ints([0, 0]), source).dtype is pb.float32
    assert x.tolist() == [3.0, 0.0, 0.0]
    assert gradient(x, source) == [1.0, 1.0]
    assert pb.zeros(3).scatter_(0, ints([1]), ints([4])).tolist() == [0.0, 4.0, 0.0]
    assert pb.zeros(3).scatter_(0, ints([1]), np.array([4.0])).tolist() == [0.0, 4.0, 0.0]


# -- classes --------------------------------------------------------------------------------------
def test_the_padding_row_of_an_embedding_gets_no_gradient():
    words = ints([[0, 2], [2, 1]])
    for padding, counts in ((None, [1, 1, 2]), (2, [1, 1, 0]), (-3, [0, 1, 2])):
        x = table()
        rows = pb.embedding(words, x, padding)
        assert rows.tolist() == TABLE[[[0, 2], [2, 1]]].tolist()
        assert gradient(rows, x) == [[float(n)] * 4 for n in counts]


def test_one_hot_takes_as_many_classes_as_it_needs():
    assert pb.nn.functional.one_hot(ints([[1], [0]])).tolist() == [[[0, 1]], [[1, 0]]]
    assert pb.nn.functional.one_hot(ints([2], dtype="uint8")).tolist() == [[0, 0, 1]]
    assert pb.nn.functional.one_hot(ints([0]), 2).dtype is pb.int64
    assert pb.nn.functional.one_hot(ints([]), 2).shape == (0, 2)


# -- 0-d tensors have a dimension 0 ----------------------------------------------------------------
def by_index(name, x, index):
    more = {"index_fill": (3.0,), "index_select": (), "gather": ()}
    return getattr(x, name)(0, index, *more.get(name, (pb.tensor(3.0, dtype="float64"),)))


@pytest.mark.parametrize(
    ("name", "value", "slope"),
    [
        ("gather", 2.0, 1.0),
        ("index_select", 2.0, 1.0),
        ("index_fill", 3.0, 0.0),
        ("index_copy", 3.0, 0.0),
        ("index_add", 5.0, 1.0),
        ("scatter", 3.0, 0.0),
        ("scatter_add", 5.0, 1.0),
    ],
)
def test_a_number_is_read_and_written_along_its_dimension_0(name, value, slope):
    x = pb.tensor(2.0, dtype="float64", requires_grad=True)
    result = by_index(name, x, pb.tensor(0))
    assert (result.shape, result.item()) == ((), value)
    assert pb.autograd.grad(result, x)[0].item() == slope
    if "index" in name:
        assert by_index(name, x, pb.tensor([0])).item() == value


# -- extremes at one place -------------------------------------------------------------------------
def test_scatter_reduce_shares_the_gradient_of_ties():
    x, src, index = leaf([2.0, 0.0]), leaf([2.0, 2.0, 1.0]), pb.tensor([0, 0, 1])
    result = pb.scatter_reduce(x, 0, index, src, "amax")
    assert result.tolist() == [2.0, 1.0]
    dx, ds = pb.autograd.grad(result.sum(), (x, src))
    np.testing.assert_allclose(dx.tolist(), [1 / 3, 0.0])
    np.testing.assert_allclose(ds.tolist(), [1 / 3, 1 / 3, 1.0])


def test_scatter_reduce_takes_nan_for_the_extreme():
    src = pb.tensor([math.nan, 1.0])
    result = pb.scatter_reduce(pb.zeros(2), 0, pb.tensor([0, 1]), src, "amax")
    assert result.isnan().tolist() == [True, False]
