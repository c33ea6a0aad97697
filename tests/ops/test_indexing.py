"""Reading and writing by index: what is read, what is a view, whose gradient goes where."""

import array_api_strict
import numpy as np
import pytest

import pullback as pb

CUBE = np.arange(24.0).reshape(2, 3, 4)
LIBRARIES = {"numpy": np.asarray, "strict": array_api_strict.asarray}


def every_library(test):
    return pytest.mark.parametrize("wrap", LIBRARIES.values(), ids=LIBRARIES)(test)


def cube(wrap=np.asarray):
    return pb.asarray(wrap(CUBE.copy())).requires_grad_()


# Integers apart from index arrays select first, as in PyTorch: [index, steps that NumPy takes].
APART = {
    "integer, slice, list": ((0, slice(None), [3, 0]), (0, (slice(None), [3, 0]))),
    "list, slice, integer": (([1, 0], slice(None), 2), ((..., 2), [1, 0])),
    "integer, slice, mask": (
        (1, slice(1, None), [True, False, True, False]),
        (1, (slice(1, None), [0, 2])),
    ),
    "new axis": ((None, 1, [0, 2]), (1, None, (slice(None), [0, 2]))),
    "ellipsis": ((..., [0, 1, 1], 3), ((..., 3), (slice(None), [0, 1, 1]))),
    "integer, ellipsis, list": ((-1, ..., [1, 1]), (-1, (slice(None), [1, 1]))),
    "mask of two axes": ((CUBE[0] > 5, None, slice(0)), None),
}
TOGETHER = {
    "integer": 1,
    "integer and slice": (0, slice(1, None)),
    "stepped slices": (slice(None), slice(0, 3, 2), slice(3, None)),
    "ellipsis then integer": (..., -1),
    "new axis": (None, 1),
    "mask of rows and integer": (np.array([True, False]), 2),
    "integer beside a list": (0, [0, 2]),
    "lists": ([0, 1, 1], [2, 0, 2]),
    "lists apart": ([0, 1], slice(None), [3, 1]),
    "list of slices": (slice(None), [0, 2], slice(1, 3)),
    "matrix": ([[0, 1], [1, 1]],),
    "mask": CUBE > 7,
    "mask of rows": np.array([[True, False, True], [False, True, False]]),
    "mask and slice": (np.array([True, False]), slice(None), slice(None, None, 2)),
    "negative steps": (slice(None, None, -1), 1, slice(3, 0, -2)),
    "nothing": np.zeros(0, int),
}


@every_library
@pytest.mark.parametrize("name", [n for n in APART if APART[n][1] is not None])
def test_an_integer_apart_from_an_index_array_selects_first(name, wrap):
    index, steps = APART[name]
    expected = CUBE
    for step in steps:
        expected = expected[step]
    x = cube(wrap)
    result = x[index]
    assert result.tolist() == expected.tolist()
    (g,) = pb.autograd.grad(result.sum(), x, create_graph=True)
    counts = np.bincount(expected.astype(int).ravel(), minlength=24).reshape(CUBE.shape)
    assert g.tolist() == counts.tolist()


@pytest.mark.case("IX1")
@every_library
@pytest.mark.parametrize("name", TOGETHER)
def test_other_indices_read_as_numpy_does(name, wrap):
    index = TOGETHER[name]
    x = cube(wrap)
    result = x[index]
    expected = CUBE[index]
    assert result.shape == expected.shape
    assert result.tolist() == expected.tolist()
    (g,) = pb.autograd.grad(result.sum(), x)
    counts = np.bincount(expected.astype(int).ravel(), minlength=24).reshape(CUBE.shape)
    assert g.tolist() == counts.tolist()


@every_library
@pytest.mark.parametrize("name", ["integer, slice, list", "list, slice, integer", "new axis"])
def test_writing_by_such_an_index_goes_to_the_same_places(name, wrap):
    index, _ = APART[name]
    x = cube(wrap)
    y = x * 1
    value = pb.asarray(wrap(np.full(y[index].shape, 7.0))).requires_grad_()
    y[index] = value
    assert set(y[index].reshape(-1).tolist()) == {7.0}
    y.sum().backward()
    assert value.grad.tolist() == np.ones(value.shape).tolist()
    kept = x.grad.sum().item()
    assert kept == 24 - value.numel()


@every_library
def test_integers_of_every_kind_index_alike(wrap):
    x = cube(wrap)
    for one in (1, np.int64(1), np.uint8(1), np.array(1), pb.tensor(1)):
        assert x[one, 1:, [0, 2]].tolist() == CUBE[1, 1:][:, [0, 2]].tolist()
        assert x[one]._base is x
        assert x[:, one, -1].tolist() == CUBE[:, 1, -1].tolist()
        y = x * 1
        y[one, 1:, [0, 2]] = pb.asarray(wrap(np.array([-1.0, -2.0])))
        assert y[1, 1:, [0, 2]].tolist() == [[-1.0, -2.0], [-1.0, -2.0]]


def test_tensors_serve_as_indices():
    x = cube()
    one, rows = pb.tensor(1), pb.tensor([1, 0])
    assert x[one].tolist() == CUBE[1].tolist()
    assert x[one, :, rows].tolist() == CUBE[1][:, [1, 0]].tolist()
    assert x[rows, one].tolist() == CUBE[[1, 0], 1].tolist()
    assert x[0, one : pb.tensor(3)].tolist() == CUBE[0, 1:3].tolist()
    assert x[x > 20].tolist() == [21.0, 22.0, 23.0]
    assert x[[one, pb.tensor(0)]].tolist() == CUBE[[1, 0]].tolist()
    assert [row.tolist() for row in x] == CUBE.tolist()


def test_a_basic_index_gives_a_view_and_an_index_array_a_copy():
    x = pb.tensor(CUBE)
    for index in (0, (slice(None), 1), (..., None), slice(None, None, -1), pb.tensor(1)):
        view = x[index]
        assert np.may_share_memory(view.numpy(), x.numpy())
        assert view._version == x._version
        view += 1
        assert view._version == x._version
    copy = x[[0, 1]]
    copy.zero_()
    assert x.numpy().min() > 0


@every_library
def test_writing_takes_numbers_lists_arrays_and_tensors(wrap):
    x = pb.asarray(wrap(np.zeros((2, 3))))
    x[0, 0] = 1
    x[0, 1:] = [2.0, 3.0]
    x[1] = pb.asarray(wrap(np.array([4.0, 5.0, 6.0])))
    assert x.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    x[1, [0, 2]] = wrap(np.array([7.0, 8.0]))
    x[x > 6] = -1.0
    assert x.tolist() == [[1.0, 2.0, 3.0], [-1.0, 5.0, -1.0]]
    x[:] = 0
    x[...] += 2
    x[:, 0] *= 5
    assert x.tolist() == [[10.0, 2.0, 2.0], [10.0, 2.0, 2.0]]
    assert x._version == 10  # an augmented assignment writes, then assigns what it wrote


def test_a_value_is_brought_to_the_dtype_and_its_gradient_back():
    x = pb.zeros(3)
    value = pb.tensor([1.5, 2.5], dtype="float64", requires_grad=True)
    x[1:] = value
    assert x.dtype is pb.float32
    (x * pb.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert (value.grad.dtype, value.grad.tolist()) == (pb.float64, [2.0, 3.0])
    counts = pb.tensor([1, 2, 3])
    counts[0] = 2.75
    assert counts.tolist() == [2, 2, 3]


BROADCAST_VALUES = [
    (0, (1, 3)),
    (0, (3,)),
    (0, ()),
    (0, (1,)),
    (slice(None), (1, 3)),
    (slice(None), (2, 1)),
    (slice(None), (1, 1, 3)),
    ((slice(None), 1), (1,)),
    ((0, 1), (1,)),
    ((0, 1), (1, 1)),
    ([0, 0], (2, 3)),
    ([1, 0], (1, 1)),
]


@pytest.mark.case("IX2")
@pytest.mark.parametrize(("index", "shape"), BROADCAST_VALUES, ids=str)
def test_a_written_value_gets_its_gradient_in_its_own_shape(index, shape):
    weights = np.arange(1.0, 7.0).reshape(2, 3)
    x = pb.tensor(np.zeros((2, 3)), requires_grad=True)
    value = pb.tensor(np.full(shape, 5.0), requires_grad=True)
    y = x * 1
    y[index] = value
    (y * pb.tensor(weights)).sum().backward()
    expected = np.zeros((2, 3))
    expected[index] = 5.0
    assert y.tolist() == expected.tolist()
    assert value.grad.shape == shape
    assert x.grad.tolist() == np.where(expected == 5.0, 0.0, weights).tolist()
    if index != [0, 0]:  # where a place is written twice, which write lasts is NumPy's choice
        assert value.grad.sum().item() == weights[expected == 5.0].sum()


def test_writing_in_a_view_reaches_the_base_and_its_history():
    x = pb.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x * 10
    y[0][1] = 7.0
    y.t()[0] *= 2
    assert y.tolist() == [[20.0, 7.0], [60.0, 40.0]]
    y.sum().backward()
    assert x.grad.tolist() == [[20.0, 0.0], [20.0, 10.0]]


# -- a mask that holds nowhere --------------------------------------------------------------------


def test_writing_where_a_mask_holds_nowhere_is_no_change():
    x = pb.tensor([4.0, 9.0], requires_grad=True)
    root = x.sqrt()  # its gradient needs the root itself
    root[root < 0] = 7.0
    assert root._version == 0
    root.sum().backward()
    assert x.grad.tolist() == pytest.approx([1 / 4, 1 / 6])


# -- initial gradients and writes ------------------------------------------------------------------
@pytest.mark.case("NU4")
@pytest.mark.parametrize("index", [0, slice(3, 5), ...], ids=str)
def test_a_broadcast_initial_gradient_of_an_index_works_and_is_not_changed(index):
    a = pb.tensor(np.zeros((10, 10, 10)), requires_grad=True)
    v = pb.arange(10, dtype="float64").expand(*a[index].shape)
    expected = np.zeros((10, 10, 10))
    expected[index] = np.arange(10.0)
    for times in (1, 2):
        a[index].backward(v)
        assert a.grad.tolist() == (times * expected).tolist()
    assert v.reshape(-1, 10)[-1].tolist() == list(range(10))


@pytest.mark.case("IX1")
def test_a_selection_with_repetitions_is_differentiable_twice():
    y = pb.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (first,) = pb.autograd.grad((y[[0, 0, 2]] ** 3).sum(), y, create_graph=True)
    assert first.tolist() == [6.0, 0.0, 27.0]
    assert pb.autograd.grad(first.sum(), y)[0].tolist() == [12.0, 0.0, 18.0]


@pytest.mark.case("IX2")
@pytest.mark.parametrize("name", TOGETHER)
def test_writing_a_constant_cuts_the_gradient_there(name):
    index = TOGETHER[name]
    x = cube()
    y = x + 2
    y[index] = 2
    assert y._version == 1
    values, kept = CUBE + 2, np.ones(CUBE.shape)
    values[index], kept[index] = 2.0, 0.0
    assert y.tolist() == values.tolist()
    y.sum().backward()
    assert x.grad.tolist() == kept.tolist()


@pytest.mark.case("IX2")
def test_written_values_get_the_gradients_of_their_places():
    x = pb.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    value = pb.tensor([10.0, 20.0], requires_grad=True)
    y = x + 2
    y[pb.tensor([3, 0])] = value
    assert y.tolist() == [20.0, 4.0, 5.0, 10.0]
    (y * pb.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert value.grad.tolist() == [4.0, 1.0]
    assert x.grad.tolist() == [0.0, 2.0, 3.0, 0.0]


def _assigned(index):
    def fun(x):
        out = np.zeros(3) * x[0]
        out[index] = x
        return out

    return fun


REPEATS = {
    "a list": _assigned([0, 0, 2]),
    "an array": _assigned(np.array([2, 2, 2])),
    "index_put": lambda x: (x * 2).index_put((pb.tensor([1, 1, 0]),), x * x[1]),
    "a number": lambda x: (x * 2).index_put((pb.tensor([1, 1]),), x[0]),
    "index_copy": lambda x: pb.index_copy(x * 2, 0, pb.tensor([1, 1]), x[:2] * x[1]),
    "scatter": lambda x: pb.scatter(x * 2, 0, pb.tensor([1, 1]), x * x[1]),
    "pb.put": lambda x: pb.put(x * 2, pb.tensor([1, 1]), x[:2] * x[1]),
    "columns": lambda x: (x[:, None] * x).index_put(
        (slice(None), pb.tensor([1, 1])), x[:, None] * np.array([1.0, 2.0])
    )[1],
}


@pytest.mark.parametrize("name", REPEATS)
def test_a_value_written_over_by_setitem_index_put_copy_or_scatter_has_no_gradient(name):
    fun, x = REPEATS[name], np.array([3.0, 4.0, 5.0])
    expected = pb.jacfwd(fun)(x)
    np.testing.assert_allclose(pb.jacrev(fun)(x), expected)

    def cubes(x):
        return (fun(x) ** 3).sum()

    second = pb.jacfwd(pb.jacfwd(cubes))(x)
    np.testing.assert_allclose(pb.jacrev(pb.jacrev(cubes))(x), second)
    np.testing.assert_allclose(pb.jacfwd(pb.jacrev(cubes))(x), second)
    xs = np.stack([x, x + 1])
    rows = np.stack([pb.grad(cubes)(row) for row in xs])
    np.testing.assert_allclose(pb.vmap(pb.grad(cubes))(xs), rows)
    np.testing.assert_allclose(pb.grad(lambda xs: pb.vmap(cubes)(xs).sum())(xs), rows)


def test_setitem_at_an_index_of_its_own_for_each_sample_of_vmap_finds_what_is_written_over():
    xs, indices = np.array([[3.0, 4.0, 5.0], [1.0, 2.0, 3.0]]), np.array([[0, 0, 1], [0, 1, 1]])

    def fun(x, index):
        return (_assigned(index)(x) ** 2).sum()

    rows = np.stack([pb.grad(fun)(x, index) for x, index in zip(xs, indices, strict=True)])
    np.testing.assert_allclose(rows, [[0, 8, 10], [2, 0, 6]])
    np.testing.assert_allclose(pb.vmap(pb.grad(fun))(xs, indices), rows)
