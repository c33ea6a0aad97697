"""`pb.interop.scipy.linalg` and `special`: SciPy's values, and two derivatives."""

import numpy as np
import pytest
import scipy.linalg
import scipy.special
from tests.interop._derivatives import check_derivatives

import pullback as pb
from pullback.errors import ArgumentError, ArgumentTypeError, ShapeError

linalg, special = pb.interop.scipy.linalg, pb.interop.scipy.special
RNG = np.random.default_rng(5)
A = RNG.normal(size=(4, 4)) + 4 * np.eye(4)
B = RNG.normal(size=(4, 2))
Z = A + 0.5j * RNG.normal(size=(4, 4))
ZB = B + 1j * RNG.normal(size=(4, 2))
POSITIVE = A @ A.T
Q = RNG.normal(size=(4, 3))
SMALL = RNG.normal(size=(3, 3)) + 5 * np.eye(3)


def compare(ours, theirs, *arrays, rtol=1e-10):
    np.testing.assert_allclose(ours(*arrays), theirs(*arrays), rtol=rtol, atol=1e-12)
    check_derivatives(ours, *arrays)


@pytest.mark.parametrize(("a", "b"), [(A, B), (A, B[:, 0]), (Z, ZB), (A, ZB)])
@pytest.mark.parametrize("transposed", [False, True])
def test_solve(a, b, transposed):
    def ours(a, b):
        return linalg.solve(a, b, transposed=transposed)

    expected = scipy.linalg.solve(a.T if transposed else a, b)
    np.testing.assert_allclose(ours(a, b), expected, rtol=1e-10)
    check_derivatives(ours, a, b)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("assume_a", ["sym", "pos", "her"])
def test_solve_of_a_symmetric_matrix_looks_at_one_triangle(assume_a, lower):
    half = np.tril(POSITIVE) if lower else np.triu(POSITIVE)
    compare(
        lambda a, b: linalg.solve(a, b, lower=lower, assume_a=assume_a),
        lambda a, b: scipy.linalg.solve(a, b, lower=lower, assume_a=assume_a),
        half,
        B,
    )


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("trans", [0, "T", 2])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize(("a", "b"), [(A, B), (Z, ZB), (A, B[:, 0])])
def test_solve_triangular(a, b, lower, trans, unit):
    settings = {"lower": lower, "trans": trans, "unit_diagonal": unit}
    compare(
        lambda a, b: linalg.solve_triangular(a, b, **settings),
        lambda a, b: scipy.linalg.solve_triangular(a, b, **settings),
        a,
        b,
    )


@pytest.mark.parametrize("lower", [False, True])
def test_cholesky_factors_and_what_they_solve(lower):
    def whole(a, b):
        a = (a + a.T) / 2
        return linalg.cho_solve(linalg.cho_factor(a, lower=lower), b)

    np.testing.assert_allclose(whole(POSITIVE, B), np.linalg.solve(POSITIVE, B), rtol=1e-9)
    check_derivatives(whole, POSITIVE, B)
    factor = linalg.cholesky(POSITIVE, lower=lower)
    np.testing.assert_allclose(factor, scipy.linalg.cholesky(POSITIVE, lower=lower), rtol=1e-10)


@pytest.mark.parametrize("bands", [(1, 2), (2, 1), (0, 3), (3, 0)])
@pytest.mark.parametrize("b", [RNG.normal(size=5), RNG.normal(size=(5, 2))])
def test_solve_banded(bands, b):
    ab = RNG.normal(size=(4, 5))
    ab[bands[1]] += 8.0
    compare(
        lambda ab, b: linalg.solve_banded(bands, ab, b),
        lambda ab, b: scipy.linalg.solve_banded(bands, ab, b),
        ab,
        b,
    )


def test_solve_banded_of_complex_numbers():
    ab = RNG.normal(size=(3, 5)) + 1j * RNG.normal(size=(3, 5))
    ab[1] += 8.0
    b = RNG.normal(size=5) + 1j
    compare(
        lambda ab, b: linalg.solve_banded((1, 1), ab, b),
        lambda ab, b: scipy.linalg.solve_banded((1, 1), ab, b),
        ab,
        b,
    )


@pytest.mark.parametrize("factor", [1.0, 1.0 + 0.5j])
def test_solve_sylvester(factor):
    # SciPy itself is wrong where one matrix alone is complex: the equation tells.
    a, b, q = A * factor, SMALL, Q
    x = linalg.solve_sylvester(a, b, q)
    np.testing.assert_allclose(a @ x + x @ b, q, atol=1e-12)
    check_derivatives(linalg.solve_sylvester, a, b, q)


@pytest.mark.parametrize("a", [A, Z, -A])
def test_sqrtm_expm_inv_and_det(a):
    compare(linalg.sqrtm, scipy.linalg.sqrtm, a)
    compare(linalg.expm, scipy.linalg.expm, a / 4)
    compare(linalg.inv, scipy.linalg.inv, a)
    compare(linalg.det, scipy.linalg.det, a)


@pytest.mark.parametrize("a", [A, Z, -Z])
def test_logm(a):
    compare(linalg.logm, scipy.linalg.logm, a)


NEGATIVE = np.array([[-1.0, 0.5, 0.2], [0.3, 2.0, -1.0], [0.1, 1.0, 2.0]])  # -1.06, 2.03 +- 0.96i


@pytest.mark.parametrize("name", ["logm", "sqrtm"])
@pytest.mark.parametrize("a", [np.diag([-1.0, -3.0, 0.5]), NEGATIVE])
def test_a_real_matrix_with_negative_eigenvalues_has_a_complex_result_and_two_derivatives(name, a):
    assert getattr(linalg, name)(a).dtype == np.complex128
    compare(getattr(linalg, name), getattr(scipy.linalg, name), a, rtol=1e-9)


@pytest.mark.parametrize("name", ["logm", "sqrtm"])
def test_where_the_principal_branch_jumps_a_gradient_is_refused(name):
    # Two equal ones leave the cut as a pair, and a complex matrix may leave it to either side.
    for a, value in ((-np.eye(2), -1), (np.diag([2.0, -3.0, -3.0]), -3), (np.diag([-1.0, 2j]), -1)):
        leaf = pb.tensor(a, requires_grad=True)
        found = getattr(linalg, name)(leaf)
        np.testing.assert_allclose(found.detach(), getattr(scipy.linalg, name)(a), rtol=1e-9)
        required = (
            f"{name}: no negative eigenvalue of A, or .*, required for a gradient, got {value}\n"
        )
        with pytest.raises(ArgumentError, match=required):
            pb.autograd.grad(pb.real(found).sum(), leaf)


@pytest.mark.filterwarnings("ignore:Matrix is singular")  # SciPy's own
def test_sqrtm_of_a_singular_matrix_has_a_value_and_refuses_a_gradient():
    for a in (np.diag([0.0, 1.0]), np.ones((2, 2))):
        leaf = pb.tensor(a, requires_grad=True)
        found = linalg.sqrtm(leaf)
        np.testing.assert_allclose(found.detach() @ found.detach(), a, atol=1e-12)
        with pytest.raises(
            ArgumentError, match=r"(?s)sqrtm: a regular matrix required for.*detach"
        ):
            pb.autograd.grad(pb.real(found).sum(), leaf)


@pytest.mark.parametrize("name", ["logm", "sqrtm", "expm"])
def test_matrices_in_leading_axes_are_taken_one_by_one(name):
    first, second = SMALL[:2, :2] / 3, np.diag([-1.0, 2.0])
    for stack in (np.stack([first, 2 * first])[:, None], np.stack([first, second])):
        ours, theirs = getattr(linalg, name), getattr(scipy.linalg, name)
        assert ours(stack).dtype == theirs(stack).dtype
        np.testing.assert_allclose(ours(stack), theirs(stack), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(pb.vmap(ours)(stack), theirs(stack), rtol=1e-9, atol=1e-12)
    check_derivatives(ours, stack, second=False)
    assert ours(np.zeros((0, 3, 3))).shape == (0, 3, 3)
    with pytest.raises(ArgumentTypeError, match=f"{name}: numbers required as A, got list"):
        ours([["a"]])
    with pytest.raises(ShapeError, match=rf"{name}: a square matrix, or several, required as 'A'"):
        ours(np.ones((2, 3, 4)))


def test_logm_of_equal_eigenvalues_has_two_derivatives():
    compare(linalg.logm, scipy.linalg.logm, 2 * np.eye(3) + np.diag([1.0, 1.0], 1))


def test_logm_in_single_precision_stays_there_and_refuses_what_is_singular():
    x = pb.tensor(A.astype(np.float32), requires_grad=True)
    found = linalg.logm(x)
    np.testing.assert_allclose(found.detach(), scipy.linalg.logm(A), rtol=1e-4, atol=1e-5)
    (g,) = pb.autograd.grad(found.sum(), x)
    assert found.dtype.name == g.dtype.name == "float32"
    for singular in (np.zeros((2, 2)), np.ones((2, 2))):
        with pytest.raises(ArgumentError, match="logm: a regular matrix required, got singular"):
            linalg.logm(singular)
    with pytest.raises(ShapeError, match="logm: a square matrix, or several, required as 'A'"):
        linalg.logm(B)


def test_logm_of_no_elements_is_empty_and_of_nan_is_an_error():
    assert linalg.logm(np.zeros((0, 0))).shape == (0, 0)
    assert pb.grad(lambda a: linalg.logm(a).sum())(np.zeros((0, 0))).shape == (0, 0)
    with pytest.raises(ArgumentError, match="logm: finite elements required"):
        linalg.logm(np.full((2, 2), np.nan))


def test_vmap_takes_a_logarithm_of_each_matrix():
    found = pb.vmap(linalg.logm)(np.stack([A, 2 * A]))
    np.testing.assert_allclose(found, [scipy.linalg.logm(A), scipy.linalg.logm(2 * A)], rtol=1e-9)


def test_wrong_arguments_are_named():
    with pytest.raises(ShapeError, match="sqrtm: a square matrix, or several, required as 'A'"):
        linalg.sqrtm(B)
    with pytest.raises(ShapeError, match="solve: 4 rows required in b"):
        linalg.solve(A, B[:3])
    with pytest.raises(ShapeError, match="solve_banded: ab with 3 rows"):
        linalg.solve_banded((1, 1), np.ones((2, 5)), np.ones(5))
    with pytest.raises(ShapeError, match=r"q of shape \(4, 3\) required"):
        linalg.solve_sylvester(A, SMALL, A)
    with pytest.raises(ArgumentError, match="assume_a one of gen"):
        linalg.solve(A, B, assume_a="banded")
    with pytest.raises(ArgumentError, match="trans 0, 1, 2"):
        linalg.solve_triangular(A, B, trans=3)
    with pytest.raises(ArgumentError, match="solve_triangular: a regular matrix required"):
        linalg.solve_triangular(np.zeros((2, 2)), np.ones(2))
    with pytest.raises(AttributeError, match=r"one of cho_factor, .* required, got 'lu'"):
        _ = linalg.lu


# -- special ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_logsumexp_with_weights(axis):
    a, b = RNG.normal(size=(3, 4)), RNG.uniform(0.2, 2.0, (3, 4))
    compare(
        lambda a, b: special.logsumexp(a, axis=axis, b=b),
        lambda a, b: scipy.special.logsumexp(a, axis=axis, b=b),
        a,
        b,
    )
    kept = special.logsumexp(a, axis=axis, keepdims=True)
    np.testing.assert_allclose(kept, scipy.special.logsumexp(a, axis=axis, keepdims=True))


def test_logsumexp_of_large_numbers_and_of_weights_that_are_zero_or_negative():
    a, b = np.array([1000.0, 5000.0, 999.0]), np.array([1.0, 0.0, -5.0])
    found = special.logsumexp(a, b=b, return_sign=True)
    np.testing.assert_allclose(found, scipy.special.logsumexp(a, b=b, return_sign=True))
    leaf = pb.tensor(a, requires_grad=True)
    (g,) = pb.autograd.grad(special.logsumexp(leaf, b=np.array([1.0, 0.0, 1.0])), leaf)
    np.testing.assert_allclose(g.numpy(), [1 / (1 + np.exp(-1)), 0.0, 1 / (1 + np.exp(1))])


def test_functions_that_are_no_ufuncs():
    compare(
        lambda a: special.multigammaln(a, 3),
        lambda a: scipy.special.multigammaln(a, 3),
        B[:, 0] ** 2 + 3,
    )
    compare(lambda x: special.softmax(x, 1), lambda x: scipy.special.softmax(x, 1), A)
    compare(lambda x: special.log_softmax(x, 1), lambda x: scipy.special.log_softmax(x, 1), A)


def test_the_other_special_functions_are_those_of_pullback():
    x = pb.tensor([0.5], requires_grad=True)
    assert special.gamma(x).grad_fn.name() == pb.special.gamma(x).grad_fn.name()
    with pytest.raises(AttributeError, match="got 'lambertw'"):
        _ = special.lambertw
