"""Order: ties and NaN, indices and values, quantiles between elements, searching, sets, counts."""

import array_api_strict
import numpy as np
import pytest

import pullback as pb

NAN, INF = float("nan"), float("inf")
TIES = np.array([[2.0, 1.0, 2.0, 1.0], [3.0, 3.0, 0.0, 3.0], [NAN, 5.0, NAN, 4.0]])
LIBRARIES = {"numpy": np.asarray, "strict": array_api_strict.asarray}


def every_library(test):
    return pytest.mark.parametrize("wrap", LIBRARIES.values(), ids=LIBRARIES)(test)


def leaf(values, wrap=np.asarray):
    return pb.asarray(wrap(np.array(values, dtype="float64"))).requires_grad_()


def gradient(result, x):
    (g,) = pb.autograd.grad(result.sum(), x)
    return g.tolist()


def same(ours, expected):
    np.testing.assert_array_equal(ours.detach().numpy(), expected)  # NaN equals NaN


# -- sorting --------------------------------------------------------------------------------------
@every_library
def test_sort_and_argsort_keep_equals_in_order_and_nan_last(wrap):
    x = leaf(TIES, wrap)
    up, down = pb.argsort(x), pb.argsort(x, descending=True)
    assert up.tolist() == [[1, 3, 0, 2], [2, 0, 1, 3], [3, 1, 0, 2]]
    assert down.tolist() == [[0, 2, 1, 3], [0, 1, 3, 2], [0, 2, 1, 3]]
    assert pb.argsort(x, axis=0, descending=True).tolist()[0] == [2, 2, 2, 2]
    same(pb.sort(x, descending=True)[2], [NAN, NAN, 5.0, 4.0])
    weights = pb.asarray(wrap(np.arange(12.0).reshape(3, 4)))
    (g,) = pb.autograd.grad(pb.sort(x), x, weights)
    assert g.tolist() == [[2.0, 0.0, 3.0, 1.0], [5.0, 6.0, 4.0, 7.0], [10.0, 9.0, 11.0, 8.0]]


def test_sort_that_is_not_stable_gives_the_same_values():
    x = pb.asarray(TIES[:2])
    for descending in (False, True):
        order = pb.argsort(x, stable=False, descending=descending)
        same(pb.take_along_axis(x, order), pb.sort(x, descending=descending).numpy())


def test_sort_of_integers_and_bools():
    assert pb.sort(pb.tensor([3, -1, 2])).tolist() == [-1, 2, 3]
    least = pb.tensor([3, -128], dtype="int8")
    assert pb.sort(least, descending=True).tolist() == [3, -128]
    assert pb.sort(pb.tensor([True, False])).tolist() == [False, True]


def test_the_methods_take_dim_or_axis_and_sort_gives_a_pair():
    x = leaf(TIES[:2])
    pair = x.sort(0, True, True)
    assert type(pair)._fields == ("values", "indices")
    assert pair.values.tolist() == [[3.0, 3.0, 2.0, 3.0], [2.0, 1.0, 0.0, 1.0]]
    assert pair.indices.tolist() == [[1, 1, 0, 1], [0, 0, 1, 0]]
    assert not pair.indices.requires_grad
    assert x.sort(dim=0).indices.tolist() == x.sort(axis=0)[1].tolist() == x.argsort(0).tolist()
    assert x.sort(stable=True).indices.tolist() == x.argsort(axis=-1, stable=True).tolist()
    for name in ("sort", "argsort", "median", "nanmedian"):
        with pytest.raises(ValueError, match=f"{name}: give dim or axis, not both"):
            getattr(x, name)(dim=0, axis=0)
    with pytest.raises(ValueError, match="quantile: give dim or axis, not both"):
        x.quantile(0.5, dim=0, axis=0)


CHOSEN = {
    "sort": lambda x: x.sort(1, stable=True),
    "topk": lambda x: pb.topk(x, 2, 1),
    "topk smallest": lambda x: x.topk(3, largest=False),
    "kthvalue": lambda x: pb.kthvalue(x, 2, 1, keepdim=True),
    "median": lambda x: pb.median(x, 1, True),
    "nanmedian": lambda x: x.nanmedian(axis=1, keepdims=True),
    "cummax": lambda x: pb.cummax(x, 1),
    "cummin": lambda x: x.cummin(1),
    "max": lambda x: x.max(1, keepdim=True),
}


@every_library
@pytest.mark.parametrize("name", CHOSEN)
def test_the_indices_name_the_values_and_what_gets_their_gradient(name, wrap):
    x = leaf(TIES, wrap)
    values, indices = CHOSEN[name](x)
    assert indices.dtype is pb.int64
    same(values, np.take_along_axis(TIES, indices.numpy(), 1))
    counts = [np.bincount(row, minlength=4).tolist() for row in indices.numpy()]
    assert gradient(values, x) == counts


@pytest.mark.parametrize("name", CHOSEN)
def test_a_number_is_chosen_from_itself(name):
    x = leaf(2.0)
    calls = {
        "topk": lambda x: pb.topk(x, 1),
        "topk smallest": lambda x: pb.topk(x, 1, largest=False),
        "kthvalue": lambda x: pb.kthvalue(x, 1, keepdim=True),
        "cummax": lambda x: pb.cummax(x, 0),
        "cummin": lambda x: pb.cummin(x, -1),
    }
    along = {"sort": {}, "median": {"keepdim": True}, "nanmedian": {}, "max": {}}
    call = calls.get(name, lambda x: getattr(x, name)(dim=0, **along[name]))
    values, indices = call(x)
    assert (values.tolist(), indices.tolist()) == (2.0, 0)
    assert gradient(values, x) == 1.0
    assert pb.topk(x, 0).values.shape == (0,)


def test_cummax_and_cummin_name_the_last_of_equals_and_keep_nan():
    x = leaf([1.0, 3.0, 2.0, 3.0, NAN, 5.0, NAN])
    values, indices = pb.cummax(x, 0)
    same(values, [1.0, 3.0, 3.0, 3.0, NAN, NAN, NAN])
    assert indices.tolist() == [0, 1, 1, 3, 4, 4, 6]
    assert pb.cummin(-x, 0).indices.tolist() == [0, 1, 1, 3, 4, 4, 6]


# -- medians and quantiles ------------------------------------------------------------------------
@every_library
def test_median_is_nan_where_there_is_one_and_nanmedian_leaves_it_out(wrap):
    x = leaf([*TIES.tolist(), [NAN] * 4], wrap)
    assert pb.median(x, 1).indices.tolist() == [3, 0, 0, 0]
    same(pb.median(x, 1).values, [1.0, 3.0, NAN, NAN])
    same(pb.nanmedian(x, 1).values, [1.0, 3.0, 4.0, NAN])
    same(pb.median(x), NAN)
    assert pb.nanmedian(x).item() == 2.0
    half = [0.5, 0.0, 0.5, 0.0]
    assert gradient(pb.nanmedian(x), x) == [half, [0.0] * 4, [0.0] * 4, [0.0] * 4]


def test_median_of_integers_is_one_of_them():
    assert pb.median(pb.tensor([4, 1, 3, 2])).item() == 2
    assert pb.tensor([[4, 1, 3]]).median(1).values.tolist() == [3]


METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


@every_library
@pytest.mark.parametrize("interpolation", METHODS)
def test_quantile_is_that_of_numpy_whatever_the_interpolation(interpolation, wrap):
    values = np.random.default_rng(3).standard_normal((3, 6, 2))
    q = [0.0, 0.31, 0.5, 0.77, 1.0]
    x = leaf(values, wrap)
    for dim, keep in ((None, False), (None, True), (1, False), (-3, True)):
        found = pb.quantile(x, q, dim, keep, interpolation=interpolation)
        expected = np.quantile(values, q, dim, keepdims=keep, method=interpolation)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)
        one = x.quantile(0.31, dim=dim, keepdim=keep, interpolation=interpolation)
        np.testing.assert_allclose(one.detach().numpy(), expected[1], rtol=1e-12)


@every_library
def test_nanquantile_is_that_of_the_numbers(wrap):
    values = np.array([[4.0, NAN, 1.0, 3.0], [NAN, NAN, 7.0, NAN], [NAN] * 4])
    x = leaf(values, wrap)
    same(pb.quantile(x, 0.25, 1), [NAN, NAN, NAN])
    same(pb.nanquantile(x, 0.25, 1), [2.0, 7.0, NAN])
    same(x.nanquantile([0.5], axis=1, keepdims=True)[0], [[3.0], [7.0], [NAN]])
    assert gradient(pb.nanquantile(x, 0.25, 1)[:2], x) == [
        [0.0, 0.0, 0.5, 0.5],
        [0.0, 0.0, 1.0, 0.0],
        [0.0] * 4,
    ]


def test_quantile_has_a_gradient_in_its_level_and_the_dtype_of_its_input():
    x = pb.tensor([1.0, 2.0, 4.0, 8.0], requires_grad=True)
    q = pb.tensor([0.5, 0.75], dtype="float64", requires_grad=True)
    found = pb.quantile(x, q)
    assert found.dtype is pb.float32
    assert found.tolist() == [3.0, 5.0]
    dx, dq = pb.autograd.grad(found.sum(), [x, q])
    assert dx.tolist() == [0.0, 0.5, 1.25, 0.25]
    assert dq.tolist() == [6.0, 12.0]


# -- searching ------------------------------------------------------------------------------------
@every_library
def test_searchsorted_puts_equals_left_or_right_and_takes_a_sorter(wrap):
    x1 = pb.asarray(wrap(np.array([3.0, 1.0, 2.0, 2.0])))
    x2 = pb.asarray(wrap(np.array([[2.0, 0.0], [9.0, 2.5]])))
    order, ordered = pb.argsort(x1), pb.sort(x1)
    for side in ("left", "right"):
        expected = np.searchsorted([1.0, 2.0, 2.0, 3.0], [[2.0, 0.0], [9.0, 2.5]], side)
        same(pb.searchsorted(ordered, x2, side=side), expected)
        same(pb.searchsorted(x1, x2, side=side, sorter=order), expected)
    assert pb.searchsorted(ordered, 2).item() == 1
    assert pb.bucketize(x2, ordered, right=True).tolist() == [[3, 0], [4, 3]]
    assert pb.bucketize(x2, ordered, out_int32=True).dtype is pb.int32


def test_nonzero_as_a_method_gives_rows_or_a_tuple():
    x = pb.tensor([[0.0, 2.0], [NAN, 0.0]])
    assert x.nonzero().tolist() == [[0, 1], [1, 0]]
    assert [i.tolist() for i in x.nonzero(as_tuple=True)] == [[0, 1], [1, 0]]
    assert [i.tolist() for i in pb.nonzero(pb.tensor([0j, 1j]))] == [[1]]
    assert x[pb.nonzero(x > 1)].tolist() == [2.0]


# -- sets and counts ------------------------------------------------------------------------------
@every_library
def test_unique_all_takes_each_nan_for_a_value_of_its_own(wrap):
    x = pb.asarray(wrap(np.array([NAN, 2.0, NAN, 2.0, 1.0])))
    found = pb.unique_all(x)
    assert type(found)._fields == ("values", "indices", "inverse_indices", "counts")
    same(found.values, [1.0, 2.0, NAN, NAN])
    assert found.counts.tolist() == [1, 2, 1, 1]
    assert found.indices.tolist()[:2] == [4, 1]
    same(found.values[found.inverse_indices], x.numpy())
    same(pb.unique_values(x), [1.0, 2.0, NAN, NAN])
    z = pb.asarray(wrap(np.array([1 + 2j, 1 + 1j, 0j, 1 + 2j])))
    assert pb.unique_values(z).tolist() == [0j, 1 + 1j, 1 + 2j]


@every_library
def test_indices_inverses_and_counts_are_those_of_each_value(wrap):
    array = np.array([[2.0, 1.0, 2.0], [5.0, 1.0, 2.0]])
    x = pb.asarray(wrap(array)).requires_grad_()
    found = pb.unique_all(x)
    assert found.indices.tolist() == [1, 0, 3]
    assert found.inverse_indices.tolist() == [[1, 0, 1], [2, 0, 1]]
    assert found.counts.tolist() == pb.unique_counts(x).counts.tolist() == [2, 3, 1]
    assert pb.unique_inverse(x).inverse_indices.tolist() == [[1, 0, 1], [2, 0, 1]]
    for part in (found.indices, found.inverse_indices, found.counts):
        assert not part.requires_grad
    (pb.unique_values(x) * pb.asarray(wrap(np.array([10.0, 20.0, 30.0])))).sum().backward()
    same(x.grad, [[20.0, 10.0, 0.0], [30.0, 0.0, 0.0]])


@every_library
def test_isin_takes_numbers_bools_and_complex_and_finds_no_nan(wrap):
    x = pb.asarray(wrap(np.array([[1.0, NAN], [3.0, 4.0]])))
    assert pb.isin(x, pb.asarray(wrap(np.array([NAN, 4.0, 4.0])))).tolist() == [
        [False, False],
        [False, True],
    ]
    assert pb.isin(x, 3, invert=True).tolist() == [[True, True], [False, True]]
    assert pb.isin(x, x * 1j + 1).tolist() == [[False, False], [False, False]]
    truths = pb.asarray(wrap(np.array([True, False])))
    assert pb.isin(truths, truths[:1]).tolist() == [True, False]


def test_bincount_counts_or_adds_weights_that_have_a_gradient():
    numbers = pb.tensor([1, 3, 1])
    assert pb.bincount(numbers).tolist() == [0, 2, 0, 1]
    assert pb.bincount(numbers).dtype is pb.int64
    assert numbers.bincount(minlength=6).tolist() == [0, 2, 0, 1, 0, 0]
    assert pb.bincount(numbers[:0]).shape == (0,)
    weights = pb.tensor([0.5, 1.0, 2.0], requires_grad=True)
    sums = pb.bincount(numbers, weights)
    assert sums.tolist() == [0.0, 2.5, 0.0, 1.0]
    assert gradient(sums * sums, weights) == [5.0, 2.0, 5.0]


def test_histc_counts_the_bounds_and_nothing_beyond_them():
    x = leaf([-1.0, 0.0, 0.5, 1.0, 2.0, NAN, INF])
    assert pb.histc(x, 2, 0, 1).tolist() == [1.0, 2.0]
    assert not x.histc(2, 0, 1).requires_grad
    assert pb.histc(x[:5], 3).tolist() == [1.0, 2.0, 2.0]
    assert pb.histc(pb.tensor([2.0, 2.0]), 4).tolist() == [0.0, 0.0, 2.0, 0.0]
    assert pb.histc(pb.tensor([2.0]), 2, 1, 3).dtype is pb.float32


# -- counting --------------------------------------------------------------------------------------
ROWS = np.array([[1, 0], [0, 1], [1, 0], [1, 0]])


def test_unique_returns_which_and_how_many():
    x = pb.tensor(ROWS)
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True, dim=0)
    assert (values.tolist(), counts.tolist()) == ([[0, 1], [1, 0]], [1, 3])
    assert values[inverse].tolist() == ROWS.tolist()
    flat, which = x.unique(return_inverse=True)
    assert flat[which].tolist() == ROWS.tolist()


def test_unique_consecutive_counts_runs():
    values, inverse, counts = pb.tensor(ROWS).unique_consecutive(True, True, dim=0)
    assert (values.tolist(), counts.tolist()) == ([[1, 0], [0, 1], [1, 0]], [1, 1, 2])
    assert inverse.tolist() == [0, 1, 2, 2]


def test_histogram_takes_edges_and_weights():
    x, edges = pb.tensor([0.0, 1.0, 2.0, 4.0]), pb.tensor([0.0, 1.0, 4.0])
    assert pb.histogram(x, edges).hist.tolist() == [1.0, 3.0]
    weighted = pb.histogram(x, edges, weight=pb.tensor([1.0, 2.0, 3.0, 4.0]))
    assert weighted.hist.tolist() == [1.0, 9.0]


def test_the_edges_of_a_histogram_are_not_the_memory_of_those_given():
    bins = pb.tensor([0.0, 1.0, 4.0])
    pb.histogram(pb.tensor([0.0, 2.0]), bins).bin_edges.zero_()
    assert (bins.tolist(), bins._version) == ([0.0, 1.0, 4.0], 0)


def test_bincount_of_integer_weights_is_float64():
    counts = pb.bincount(pb.tensor([1, 1]), weights=pb.tensor([2, 3]))
    assert (counts.tolist(), counts.dtype) == ([0.0, 5.0], pb.float64)


def test_mode_names_the_last_occurrence_which_has_the_gradient():
    x = pb.tensor([[1.0, 2.0, 2.0, 1.0], [3.0, 3.0, 0.0, 3.0]], requires_grad=True)
    values, indices = x.mode()
    assert (values.tolist(), indices.tolist()) == ([1.0, 3.0], [3, 3])
    values.sum().backward()
    assert x.grad.tolist() == [[0, 0, 0, 1], [0, 0, 0, 1]]
