"""`compat.autograd.numpy`: NumPy, which takes lists of traced values."""

import numpy as onp
import pytest

import pullback.compat.autograd.numpy as np
from pullback.compat.autograd import grad, jacobian
from pullback.compat.autograd.numpy.numpy_boxes import ArrayBox
from pullback.compat.autograd.numpy.numpy_vjps import (
    match_complex,
    repeat_to_match_shape,
    unbroadcast,
    unbroadcast_f,
)

X = onp.array([1.0, 2.0])
# Of x, an array, and its elements a and b; and the gradient that HIPS autograd 1.9.1 gives.
OF_LISTS = {
    "array": (lambda x, a, b: np.sum(np.array([a, b * b])), [1.0, 4.0]),
    "array, nested": (lambda x, a, b: np.sum(np.array([[a, 1.0], [2.0, b]]) ** 2), [2.0, 4.0]),
    "array, dtype": (lambda x, a, b: np.sum(np.array(x, dtype=float)), [1.0, 1.0]),
    "array, ndmin": (lambda x, a, b: np.array(x, ndmin=2)[0, 1], [0.0, 1.0]),
    "full": (lambda x, a, b: np.sum(np.full((2, 2), b)), [0.0, 4.0]),
    "sum": (lambda x, a, b: np.sum([a, b, a * b]), [3.0, 2.0]),
    "sum, axis": (lambda x, a, b: np.sum([[a, b], [b, b]], axis=0)[1], [0.0, 2.0]),
    "prod": (lambda x, a, b: np.prod([a, b]), [2.0, 1.0]),
    "mean": (lambda x, a, b: np.mean([a, b]), [0.5, 0.5]),
    "max": (lambda x, a, b: np.max([a, b]), [0.0, 1.0]),
    "dot": (lambda x, a, b: np.dot([a, b], x), [2.0, 4.0]),
    "concatenate": (lambda x, a, b: np.sum(np.concatenate([x, X, x])), [2.0, 2.0]),
    "concatenate, lists": (lambda x, a, b: np.sum(np.concatenate([[a], [b, b]])), [1.0, 2.0]),
    "vstack": (lambda x, a, b: np.sum(np.vstack([x, [a, a]])), [3.0, 1.0]),
    "hstack": (lambda x, a, b: np.sum(np.hstack([x, a])), [2.0, 1.0]),
    "stack": (lambda x, a, b: np.sum(np.stack([x, x])), [2.0, 2.0]),
    "append": (lambda x, a, b: np.sum(np.append(x, [a, b])), [2.0, 2.0]),
    "select": (lambda x, a, b: np.sum(np.select([x > 1], [x], 0.0)), [0.0, 1.0]),
    "where": (lambda x, a, b: np.sum(np.where(x > 1, [a, b], 0.0)), [0.0, 1.0]),
    "r_": (lambda x, a, b: np.sum(np.r_[x, a, 0:2]), [2.0, 1.0]),
    "c_": (lambda x, a, b: np.sum(np.c_[x, x]), [2.0, 2.0]),
    "linalg.norm": (lambda x, a, b: np.linalg.norm([a * 3, b * 2]), [1.8, 1.6]),
    "make_diagonal": (lambda x, a, b: np.sum(np.make_diagonal(x) ** 2), [2.0, 4.0]),
}


@pytest.mark.parametrize("name", OF_LISTS)
def test_functions_take_lists_of_traced_values(name):
    fun, expected = OF_LISTS[name]
    onp.testing.assert_allclose(grad(lambda x: fun(x, x[0], x[1]))(X), expected)
    assert isinstance(fun(X, X[0], X[1]), (float, onp.ndarray))


def test_numpys_names_are_all_there():
    assert set(dir(onp)) - {"__getattr__"} <= {*np.__all__} | {n for n in dir(onp) if n[0] == "_"}
    assert np.pi == onp.pi
    assert np.float64 is onp.float64
    assert np.random.RandomState is onp.random.RandomState
    assert np.fft.rfft is onp.fft.rfft
    with pytest.raises(AttributeError):
        np.no_such_name  # noqa: B018


def test_where_of_a_bool_keeps_pythons_values():
    assert np.where(True, [1, 2], [3, 4]) == [1, 2]
    assert np.where(onp.array([True, False]))[0].tolist() == [0]


def test_asarray_gives_a_traced_value_itself():
    seen = []
    grad(lambda x: seen.append((np.asarray(x) is x, isinstance(x, ArrayBox))) or x)(1.0)
    assert seen == [(True, True)]
    assert np.asarray([1, 2]).dtype.kind == "i"


@pytest.mark.parametrize(("axis", "keepdims"), [(None, False), (None, True), (0, False), (0, True)])
def test_max_orders_complex_numbers_as_numpy_does(axis, keepdims):
    z = onp.array([1 + 1j, 2 - 1j, 2 + 0j])

    def real(z):
        out = np.max(z, axis=axis, keepdims=keepdims)
        assert out.shape == onp.max(X, axis=axis, keepdims=keepdims).shape
        return np.real(np.sum(out))

    onp.testing.assert_allclose(grad(real)(z), [0, 0, 1])


@pytest.mark.parametrize(
    ("triangle", "expected"), [("L", [[1, 0], [2, 1]]), ("U", [[1, 2], [0, 1]])]
)
def test_eigh_reads_one_triangle_and_so_does_its_gradient(triangle, expected):
    a = onp.array([[2.0, 1.0], [1.0, 2.0]])
    gradient = grad(lambda a: np.linalg.eigh(a, triangle)[0][1] * 2)(a)
    onp.testing.assert_allclose(gradient, expected, atol=1e-12)
    assert np.linalg.eigvalsh(a, triangle).tolist() == [1.0, 3.0]


def test_unbroadcast_f_sums_to_the_shape_and_field_of_the_target():
    assert unbroadcast_f(1.0, lambda g: g * onp.ones((2, 3)))(2.0) == 12.0
    assert unbroadcast_f(onp.ones((2, 1)), lambda g: g * onp.ones((2, 3)))(1j).tolist() == [
        [0],
        [0],
    ]


@pytest.mark.parametrize("axis", [None, 1, -2, (0, 2)])
@pytest.mark.parametrize("keepdims", [True, False])
def test_repeat_to_match_shape_is_the_gradient_of_a_sum(axis, keepdims):
    x = onp.arange(24.0).reshape((2, 3, 4))
    summed = x.sum(axis=axis, keepdims=keepdims)
    repeated, count = repeat_to_match_shape(summed, x.shape, float, axis, keepdims)
    assert onp.array_equal(repeated, onp.broadcast_to(x.sum(axis=axis, keepdims=True), x.shape))
    assert count == x.size // summed.size
    assert repeat_to_match_shape(2.0, (), float, None, False) == (2.0, 1)


def test_unbroadcast_and_match_complex_take_metadata_and_traced_values():
    meta = np.metadata(onp.ones((2, 3)))
    assert meta == ((2, 3), 2, onp.dtype(float), False)
    assert unbroadcast(onp.ones((2, 3, 4)), meta, -1).tolist() == [[4.0] * 3] * 2
    assert grad(lambda x: match_complex(np.metadata(x)[1] + x, x + 1j))(2.0) == 1.0
    assert match_complex(1j, 2.0) == 2.0 + 0j


def test_jacobian_of_an_array_of_traced_values():
    expected = [[0.0, 1.0], [2.0, 1.0]]
    assert jacobian(lambda x: np.array([x[1], x[0] * x[1]]))(X).tolist() == expected


@pytest.mark.parametrize("offset", [-1, 0, 2])
def test_make_diagonal_of_numbers_is_the_inverse_of_diagonal(offset):
    values = onp.arange(6.0).reshape(2, 3)
    matrices = np.make_diagonal(values, offset)
    assert type(matrices) is onp.ndarray
    onp.testing.assert_array_equal(onp.diagonal(matrices, offset, -2, -1), values)
    assert onp.count_nonzero(matrices) == onp.count_nonzero(values)
