"""Tensors with NumPy's methods: every attribute of ndarray means ndarray's, or raises."""

import copy
import pickle

import numpy as np
import pytest
from tests.core.tensor.test_subclass import COMPOSITIONS, OPERATIONS, check
from tests.numpy_protocol._methods import (
    INDICES,
    METHODS,
    MISTAKES,
    OF_THE_ARRAY,
    PYTORCHS,
    RAISES,
)
from tests.numpy_protocol.test_calls import (
    CASES,
    host,
    loss,
    parts,
    samples,
    seeds,
    slopes,
)
from tests.ops._cases import mostly

import pullback as pb
from pullback.core.tensor.tensor import box
from pullback.numpy_protocol.tensor import NumPyTensor

NAMES = {name for name in dir(np.ndarray) if not name.startswith("_")}
COMMON = sorted(name for name in NAMES if hasattr(pb.Tensor, name))
# What Tensor has under the same name with the same meaning.
THE_SAME = {
    "T",
    "conj",
    "device",
    "dtype",
    "itemsize",
    "mT",
    "nbytes",
    "ndim",
    "to_device",
    "tolist",
}
ARRAY = np.arange(12.0).reshape(3, 4) - 5.0


def numpy_tensor(array, requires_grad=False):
    return box(np.array(array), cls=NumPyTensor).requires_grad_(requires_grad)


def all_calls(table):
    return [
        pytest.param(call, id=f"{name}-{i}")
        for name, calls in table.items()
        for i, call in enumerate(calls)
    ]


EVERY = all_calls(METHODS)


# -- the table -------------------------------------------------------------------------------------
def test_the_table_has_every_public_name_of_ndarray():
    tables = [METHODS.keys(), OF_THE_ARRAY.keys(), RAISES.keys()]
    gone = {"itemset", "newbyteorder", "tostring"}  # NumPy 2.1 to 2.3 have some, which raise
    assert NAMES - set().union(*tables) <= gone
    assert sum(map(len, tables)) == len(set().union(*tables))
    assert set().union(*tables) - NAMES <= {"ptp"}  # once a method, and in NumPy 2 a function


@pytest.mark.parametrize("name", COMMON)
def test_no_name_that_both_libraries_have_is_left_to_tensor(name):
    own = getattr(NumPyTensor, name) is not getattr(pb.Tensor, name)
    assert own != (name in THE_SAME)


def same(ours, theirs):
    """Assert that a result is NumPy's: structure, dtype, shape and values."""
    if isinstance(theirs, (tuple, list)):
        assert type(ours) is type(theirs)
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
    elif isinstance(theirs, (np.ndarray, np.generic)) and isinstance(ours, pb.Tensor):
        assert type(ours) is NumPyTensor
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(host(ours), theirs, rtol=1e-12, atol=1e-13)
    else:
        assert type(ours) is type(theirs)
        np.testing.assert_equal(ours, theirs)


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("call", EVERY)
def test_an_attribute_means_what_it_means_on_an_array(call, requires_grad):
    arrays = samples(call)
    tensors = [numpy_tensor(x, requires_grad) for x in arrays]
    same(call.run(*tensors), call.run(*arrays))
    for tensor, array in zip(tensors, arrays, strict=True):
        np.testing.assert_array_equal(host(tensor), array)  # changed alike, or not at all


def weighted(call, *xs):
    """Return a number of the smooth results of a call, real and imaginary parts apart."""
    found = [r for r in parts(call.run(*xs)) if isinstance(r, pb.Tensor)]
    found = [r for r in found if r.dtype.is_inexact]
    total = xs[0].ravel()[0].real * 0.0
    for weight, r in zip(seeds(found), found, strict=True):
        total = total + np.sum(weight * (np.real(r) + 0.5 * np.imag(r)))
    return total


SMOOTH = [
    pytest.param(*p.values, id=p.id)
    for p in EVERY
    if not p.id.startswith(("dtype", "tolist", "item-", "sum-4"))
]


@pytest.mark.parametrize("call", SMOOTH)
def test_the_gradient_of_a_method_is_that_of_differences_of_numpys(call):
    arrays = samples(call)
    every = tuple(range(len(arrays)))
    found = pb.grad(lambda *xs: weighted(call, *xs), every)(*arrays)
    for i, ours in enumerate(found):
        np.testing.assert_allclose(ours, slopes(call, arrays, i), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("call", SMOOTH)
def test_the_tangent_of_a_method_is_that_of_the_gradient(call):
    arrays = samples(call)
    every = tuple(range(len(arrays)))
    along = [np.random.default_rng(3).uniform(-1, 1, x.shape) for x in arrays]
    along = [v.astype(x.dtype) for v, x in zip(along, arrays, strict=True)]
    gradients = pb.grad(lambda *xs: weighted(call, *xs), every)(*arrays)
    _, tangent = pb.jvp(lambda *xs: weighted(call, *xs), tuple(arrays), tuple(along))
    expected = sum(np.sum(np.real(np.conj(g) * v)) for g, v in zip(gradients, along, strict=True))
    np.testing.assert_allclose(tangent, expected, rtol=1e-10, atol=1e-12)


def test_the_differences_are_of_something():
    """The weighted sum that gradients are taken of is that of the differences."""
    for param in SMOOTH:
        (call,) = param.values
        arrays = samples(call)
        ours = weighted(call, *map(numpy_tensor, arrays)).item()
        np.testing.assert_allclose(ours, loss(call, arrays), rtol=1e-12, atol=1e-12)


# -- what cannot be on a tensor, and mistakes ------------------------------------------------------
@pytest.mark.parametrize("name", RAISES)
def test_what_a_tensor_cannot_do_says_what_to_write(name):
    call, message = RAISES[name]
    with pytest.raises(pb.AutogradError, match=message):
        call(numpy_tensor(ARRAY, True))


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_said(name):
    call, message = MISTAKES[name]
    with pytest.raises((pb.AutogradError, TypeError), match=message):
        call(numpy_tensor(ARRAY, True))


@pytest.mark.parametrize("name", [n for n, call in OF_THE_ARRAY.items() if call])
def test_the_memory_is_given_away_where_no_graph_is_lost(name):
    call = OF_THE_ARRAY[name]
    assert call(numpy_tensor(ARRAY)) == call(ARRAY)
    with pytest.raises(RuntimeError, match="requires grad"):
        call(numpy_tensor(ARRAY, True))


@pytest.mark.parametrize(
    "part",
    [lambda x: x, lambda x: x[0], lambda x: x[:, 0, 0], lambda x: x[0, :2, :1], lambda x: x.T],
    ids=["whole", "row", "column", "corner", "transpose"],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_ravel_is_a_view_where_that_of_an_array_is_one(part, order):
    array = np.arange(24.0).reshape(2, 3, 4)
    tensor = numpy_tensor(array.copy())
    for x in (array, tensor):
        part(x).ravel(order=order)[:] = -1.0
    assert tensor.tolist() == array.tolist()


def test_files_are_written_where_no_graph_is_lost(tmp_path):
    x = numpy_tensor(ARRAY)
    x.tofile(tmp_path / "raw")
    x.dump(tmp_path / "pickled")
    assert np.fromfile(tmp_path / "raw").tolist() == ARRAY.ravel().tolist()
    assert np.load(tmp_path / "pickled", allow_pickle=True).tolist() == ARRAY.tolist()
    for write in (numpy_tensor(ARRAY, True).tofile, numpy_tensor(ARRAY, True).dump):
        with pytest.raises(RuntimeError, match="requires grad"):
            write(tmp_path / "other")


@pytest.mark.parametrize("name", PYTORCHS)
def test_what_only_pytorch_has_stays(name):
    ours, theirs = PYTORCHS[name]
    same(ours(numpy_tensor(ARRAY)), theirs(ARRAY))


def test_backward_stays():
    x = numpy_tensor([1.0, 2.0], True)
    (x.std() * 4).backward()
    assert x.grad.tolist() == [-2.0, 2.0]
    assert isinstance(x, pb.Tensor)


# -- indexing --------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", INDICES)
def test_an_index_reads_what_it_reads_of_an_array(name):
    read, array = INDICES[name], np.arange(24.0).reshape(2, 3, 4) / 10
    same(read(numpy_tensor(array)), read(array))
    (found,) = pb.vjp(lambda x: read(x) * 2, array)[1](np.ones_like(read(array)))
    expected = np.zeros_like(array)
    places = np.arange(24).reshape(2, 3, 4) if name != "a mask" else None
    if places is None:
        expected[array > 1.2] = 2.0
    else:
        np.add.at(expected.ravel(), read(places).ravel(), 2.0)
    assert found.tolist() == expected.tolist()


def test_an_index_writes_where_it_writes_in_an_array():
    for index in ((1, slice(1, None), [1, 3]), ([0, 1], slice(None), 2), (1, [0, 2]), ([1],)):
        array = np.zeros((2, 3, 4))
        tensor, value = numpy_tensor(array), np.arange(array[index].size) + 1.0
        value = value.reshape(array[index].shape)
        array[index], tensor[index] = value, value
        assert tensor.tolist() == array.tolist()
        slopes_of = pb.grad(
            lambda v, i=index: np.sum(written(v, i) * np.arange(24.0).reshape(2, 3, 4))
        )
        assert slopes_of(value).tolist() == np.arange(24.0).reshape(2, 3, 4)[index].tolist()


def written(value, index):
    x = np.zeros_like(value, shape=(2, 3, 4))
    x[index] = value
    return x


def test_a_plain_tensor_is_indexed_as_in_pytorch():
    array = np.arange(24.0).reshape(2, 3, 4)
    assert pb.asarray(array)[1, 1:, [1, 3]].shape == (2, 2)
    assert numpy_tensor(array)[1, 1:, [0, 1, 3]].shape == (3, 2)
    assert pb.asarray(array)[1, 1:, [0, 1, 3]].shape == (2, 3)


# -- operations ------------------------------------------------------------------------------------
@mostly([*OPERATIONS, *COMPOSITIONS])
def test_an_operation_computes_the_same_on_them(case):
    check(case, range(len(case.sample.shapes)), NumPyTensor)


@pytest.mark.parametrize("case", [c for c in OPERATIONS if len(c.sample.shapes) > 1], ids=str)
def test_beside_plain_tensors_the_results_are_of_the_class(case):
    for place in range(len(case.sample.shapes)):
        check(case, (place,), NumPyTensor)


@pytest.mark.parametrize("call", CASES)
def test_numpys_functions_return_them(call):
    arrays = samples(call)
    results = parts(call.run(*map(numpy_tensor, arrays)))
    for ours, theirs in zip(results, parts(call.run(*arrays)), strict=True):
        assert type(ours) is NumPyTensor or not isinstance(ours, pb.Tensor)
        np.testing.assert_allclose(host(ours), theirs, rtol=1e-12, atol=1e-13)


def test_a_plain_tensor_given_to_numpys_function_keeps_its_class():
    x, plain = numpy_tensor([1.0, 2.0]), pb.ones(2)
    np.broadcast_arrays(x, plain)
    np.stack([plain, x])
    assert type(plain) is pb.Tensor


@pytest.mark.parametrize(
    ("compute", "dtype"),
    [
        (lambda x: (x > 0) * 0.1, "float64"),
        (lambda x: x.argmax(axis=0) / 2, "float64"),
        (lambda x: np.sqrt(x.argmax()), "float64"),
        (lambda x: x.astype(int) + 1j, "complex128"),
        (lambda x: np.fft.fft(x.astype(int)), "complex128"),
        (lambda x: np.angle(x.astype(int)), "float64"),
        (lambda x: x.astype(np.float32) * 0.1, "float32"),
        (lambda x: x.astype(int) * 3, "int64"),
    ],
)
def test_integers_beside_floats_become_float64_as_in_numpy(compute, dtype):
    assert compute(numpy_tensor(ARRAY)).dtype == dtype
    same(compute(numpy_tensor(ARRAY)), compute(ARRAY))


def test_a_tensor_that_requires_grad_can_be_read_as_integers_alone():
    x = numpy_tensor([1.5, -2.5], True)
    assert np.int64(x).tolist() == [1, -2]
    assert np.asarray(x, dtype=int).tolist() == [1, -2]
    for read in (np.asarray, np.float64, lambda x: np.array(x, dtype=complex)):
        with pytest.raises(RuntimeError, match="requires grad"):
            read(x)


def test_python_sees_an_array():
    x = numpy_tensor(ARRAY)
    assert -2.0 in x
    assert 0.5 not in x
    same(divmod(x, 3.0), divmod(ARRAY, 3.0))
    same(divmod(20.0, x + 9), divmod(20.0, ARRAY + 9))
    assert [float(v) for v in x[0]] == ARRAY[0].tolist()
    assert len(x) == 3


# -- printing and copies ---------------------------------------------------------------------------
def test_they_print_with_their_name_and_as_text_like_numpys():
    x = numpy_tensor([0.5, 2.0], True)
    assert repr(x) == "numpy_tensor([0.5000, 2.0000], dtype=float64, requires_grad=True)"
    assert repr(x.sum()) == "numpy_tensor(2.5000, dtype=float64, grad_fn=<SumBackward>)"
    assert (str(x), f"{x}", f"{x.sum():.2f}") == ("[0.5 2. ]", "[0.5 2. ]", "2.50")
    with pytest.raises(TypeError, match="format"):
        f"{x:.2f}"


def test_a_copy_stays_in_the_graph():
    def f(x):
        return np.sum(copy.copy(x) * copy.deepcopy({"x": x})["x"] * x.copy())

    assert pb.grad(f)(np.array([2.0, 3.0])).tolist() == [12.0, 27.0]


def test_a_leaf_is_pickled_with_its_class():
    again = pickle.loads(pickle.dumps(numpy_tensor([1.0, 2.0], True)))
    assert type(again) is NumPyTensor
    assert again.requires_grad
    assert again.std().item() == 0.5


MASK = np.array([True, False, True])
BESIDE = {
    "a ufunc": lambda x, a: np.multiply(a, x) + a * x,
    "a product of matrices": lambda x, a: (x[:, None] @ a[None]) + (a[:, None] @ x[None]),
    "a product with a vector": lambda x, a: a @ x + x @ a,
    "a choice": lambda x, a: np.where(MASK, x * x, a) * np.where(MASK, a, x),
    "a choice by a function": lambda x, a: pb.where(MASK, x, a) * pb.where(pb.asarray(MASK), a, x),
    "a distance": lambda x, a: np.hypot(x, a) + np.arctan2(a, x) + a**x,
    "joined": lambda x, a: np.concatenate([x, a]) * np.hstack([a, x]) + np.stack([a, x]).sum(),
}


@pytest.mark.parametrize("name", BESIDE)
def test_an_array_that_is_changed_after_its_use_is_not_seen_by_backward(name):
    x, values = np.array([0.3, 0.7, 1.1]), np.array([2.0, 0.5, 1.5])

    def changed(x, a):
        result = BESIDE[name](x, a)
        a[:] = 100.0
        return result.sum()

    def kept(x):
        return np.sum(np.asarray(BESIDE[name](pb.asarray(x), values)))

    found = pb.grad(changed)(x, values.copy())
    h = 1e-6
    slopes = [(kept(x + h * e) - kept(x - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(found, slopes, rtol=1e-6)


@pytest.mark.parametrize("name", BESIDE)
def test_results_beside_arrays_have_the_class_of_the_tensor_under_every_transform(name):
    x, a, v = np.array([0.3, 0.7, 1.1]), np.array([2.0, 0.5, 1.5]), np.array([1.0, -2.0, 0.5])
    kinds = []

    def f(x):
        result = BESIDE[name](x, a)
        kinds.append(type(result).__name__)
        return result

    pb.jvp(f, (x,), (v,))
    pb.vmap(f)(np.stack([x, v]) if name != "a distance" else np.stack([x, x]))
    pb.grad(lambda x: f(x).sum())(x)
    assert set(kinds) == {"NumPyTensor"}
