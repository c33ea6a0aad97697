"""`pb.interop.scipy.sparse`: products and systems, with derivatives in values, never densified."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from tests.interop._derivatives import check_derivatives

import pullback as pb
from pullback.errors import ArgumentError, ArgumentTypeError, ShapeError

sparse = pb.interop.scipy.sparse
RNG = np.random.default_rng(2)
ROWS, COLUMNS = np.array([0, 0, 1, 2, 3, 3, 1]), np.array([0, 2, 1, 2, 0, 3, 1])  # (1, 1) twice
DATA = RNG.uniform(1.0, 2.0, 7)
DENSE = scipy.sparse.coo_array((DATA, (ROWS, COLUMNS)), shape=(4, 4)).toarray()
X = RNG.normal(size=(4, 3))


def made(data, kind=sparse.csr_array):
    return kind((data, (ROWS, COLUMNS)), shape=(4, 4))


@pytest.mark.parametrize("x", [X, X[:, 0]])
@pytest.mark.parametrize("name", ["csr_array", "csc_array", "coo_array"])
def test_a_product_with_a_dense_matrix_has_two_derivatives_in_both(name, x):
    kind = getattr(sparse, name)
    np.testing.assert_allclose(made(DATA, kind) @ x, DENSE @ x, rtol=1e-12)
    check_derivatives(lambda data, x: made(data, kind) @ x, DATA, x)
    check_derivatives(lambda data, x: made(data, kind).T @ x, DATA, x)


def test_a_product_of_complex_numbers_has_two_derivatives():
    data, x = DATA * (1 + 0.5j), X + 1j
    np.testing.assert_allclose(made(data) @ x, DENSE * (1 + 0.5j) @ x, rtol=1e-12)
    check_derivatives(lambda data, x: made(data) @ x, data, x)
    check_derivatives(lambda data, x: made(data) @ x, DATA, x)


def test_a_dense_matrix_may_be_on_the_left():
    left = X.T
    np.testing.assert_allclose(left @ made(DATA), left @ DENSE, rtol=1e-12)
    np.testing.assert_allclose(X[:, 0] @ made(DATA), X[:, 0] @ DENSE, rtol=1e-12)
    check_derivatives(lambda data, x: x @ made(data), DATA, left)


@pytest.mark.parametrize("b", [X, X[:, 0]])
def test_a_sparse_system_has_two_derivatives_in_values_and_right_hand_side(b):
    spsolve = sparse.linalg.spsolve
    np.testing.assert_allclose(spsolve(made(DATA), b), np.linalg.solve(DENSE, b), rtol=1e-10)
    check_derivatives(lambda data, b: spsolve(made(data), b), DATA, b)
    constant = scipy.sparse.csr_array(DENSE)
    check_derivatives(lambda b: spsolve(constant, b), b)


def test_scipys_three_arrays_and_its_matrices_are_taken():
    given = scipy.sparse.csr_array(DENSE)
    np.testing.assert_allclose(sparse.csr_array(given) @ X, DENSE @ X)
    np.testing.assert_allclose(sparse.csc_array(DENSE) @ X, DENSE @ X)

    def product(data):
        parts = (data, given.indices, given.indptr)
        return 2.0 * -sparse.csr_array(parts, shape=(4, 4)) @ X

    np.testing.assert_allclose(product(given.data), -2 * DENSE @ X)
    check_derivatives(product, given.data)


def test_a_dense_matrix_is_made_on_request():
    leaf = pb.tensor(DATA, requires_grad=True)
    matrix = made(leaf)
    assert (matrix.shape, matrix.nnz) == ((4, 4), 7)
    assert repr(matrix) == "<sparse matrix of 4 by 4, 7 values, float64>"
    np.testing.assert_allclose(matrix.toarray().detach().numpy(), DENSE)
    check_derivatives(lambda data: made(data).toarray(), DATA)


def test_a_large_matrix_is_never_dense():
    n = 100_000  # dense, it would be 80 GB
    index = np.arange(n)
    data = pb.tensor(np.ones(n), requires_grad=True)
    x = pb.tensor(np.ones((n, 2)), requires_grad=True)
    tracemalloc.start()
    matrix = sparse.csr_array((2 * data, (index, (index * 7) % n)), shape=(n, n))
    y = sparse.linalg.spsolve(matrix, matrix @ x)
    grads = pb.autograd.grad((y * y).sum(), (data, x), create_graph=True)
    second = pb.autograd.grad((grads[0] ** 2).sum() + (grads[1] ** 2).sum(), (data, x))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert second[0].shape == (n,)
    assert grads[1].detach().numpy() == pytest.approx(2.0)
    assert peak < 500e6


def test_wrong_arguments_are_named():
    with pytest.raises(ArgumentTypeError, match="csr_array: a SciPy matrix, or values"):
        sparse.csr_array(pb.ones(2, 2))
    with pytest.raises(ArgumentTypeError, match="sparse @: a dense right-hand side required"):
        made(DATA) @ made(DATA)
    with pytest.raises(ArgumentTypeError, match=r"sparse \*: a number required"):
        made(DATA) * np.ones(3)
    with pytest.raises(ShapeError, match="sparse @: a vector or matrix of 4 rows"):
        made(DATA) @ np.ones(3)
    with pytest.raises(ShapeError, match="csr_array: values of one axis required"):
        sparse.csr_array((np.ones((2, 2)), (ROWS, COLUMNS)))
    with pytest.raises(ShapeError, match="spsolve: a square matrix and a b"):
        sparse.linalg.spsolve(made(DATA), np.ones(3))
    with pytest.raises(ArgumentError, match="spsolve: a regular matrix required"):
        sparse.linalg.spsolve(made(0.0 * DATA), np.ones(4))
    with pytest.raises(AttributeError, match="got 'dok_array'"):
        _ = sparse.dok_array
    with pytest.raises(AttributeError, match="got 'cg'"):
        _ = sparse.linalg.cg
