"""Linear algebra where the registry's tests do not look: kinks, singular matrices, views."""

import inspect
import itertools

import array_api_strict
import numpy as np
import pytest
import scipy.linalg

import pullback as pb
from pullback import errors, linalg


def leaf(data, dtype="float64"):
    return pb.tensor(np.asarray(data, dtype), requires_grad=True)


def gradient(function, data, dtype="float64"):
    x = leaf(data, dtype)
    return pb.autograd.grad(function(x).sum(), x)[0].numpy()


def hessian(function, data, dtype="float64"):
    """Return the second derivatives of a real function of a matrix, as rows of flat matrices."""
    x = leaf(data, dtype)
    (first,) = pb.autograd.grad(function(x), x, create_graph=True)
    rows = []
    for place in np.ndindex(x.shape):
        (row,) = pb.autograd.grad(first[place], x, retain_graph=True)
        rows.append(row.numpy().ravel())
    return np.array(rows)


def close(ours, theirs, atol=1e-12):
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=atol)


# -- the namespace --------------------------------------------------------------------------------
STANDARD = array_api_strict.linalg.__all__


def kinds(function):
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in parameters]


@pytest.mark.parametrize("name", STANDARD)
def test_linalg_has_the_functions_of_the_standard(name):
    assert name in linalg.__all__


@pytest.mark.parametrize("name", sorted(set(STANDARD) - {"tensordot"}))
def test_linalg_has_the_signatures_of_the_standard(name):
    assert kinds(getattr(linalg, name)) == kinds(getattr(array_api_strict.linalg, name))


def test_tensordot_takes_the_arguments_of_the_standard_and_of_pytorch():
    x = pb.tensor([[2.0, 0.0], [0.0, 1.0]])
    for call in ({"axes": 2}, {"axes": ((0, 1), (0, 1))}, {"dims": 2}, {}):
        assert linalg.tensordot(x, x, **call).item() == 5.0
    assert linalg.tensordot(x, x, 2).item() == 5.0


@pytest.mark.parametrize("name", ["matmul", "matrix_transpose", "tensordot", "vecdot"])
def test_the_main_namespace_has_them_too(name):
    assert getattr(pb, name) is getattr(linalg, name)


def test_several_results_have_the_names_of_the_standard():
    x = pb.tensor([[2.0, 0.0], [0.0, 1.0]])
    assert linalg.eigh(x)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.qr(x)._fields == ("Q", "R")
    assert linalg.slogdet(x)._fields == ("sign", "logabsdet")
    assert linalg.svd(x)._fields == ("U", "S", "Vh")


def test_integers_become_floating():
    x = pb.tensor([[2, 0], [0, 4]])
    assert linalg.inv(x).tolist() == [[0.5, 0.0], [0.0, 0.25]]
    assert linalg.eigh(x).eigenvalues.dtype is pb.float32
    assert linalg.svdvals(x).tolist() == [4.0, 2.0]


def test_bare_arrays_are_taken():
    x = np.array([[2.0, 0.0], [0.0, 4.0]])
    assert linalg.svd(x).S.tolist() == [4.0, 2.0]
    assert linalg.matrix_power(x, 1).tolist() == x.tolist()
    assert linalg.matrix_power(x, 0).tolist() == [[1.0, 0.0], [0.0, 1.0]]


# -- determinants of singular matrices -------------------------------------------------------------
def products_of_minors(x):
    """Return the second derivatives of det: signed minors without two rows and two columns."""
    n = len(x)
    result = np.zeros((n, n, n, n), x.dtype)
    for i, j, k, m in np.ndindex(result.shape):
        if i != k and j != m:
            rest = np.delete(np.delete(x, [i, k], 0), [j, m], 1)
            sign = (-1) ** (i + j + k + m) * (1 if (i < k) == (j < m) else -1)
            result[i, j, k, m] = sign * np.linalg.det(rest)
    return result.reshape(n * n, n * n)


SINGULAR = {
    "zero": np.zeros((2, 2)),
    "zero of 3": np.zeros((3, 3)),
    "one by one": np.zeros((1, 1)),
    "rank 2 of 3": np.arange(9.0).reshape(3, 3),
    "rank 2 with equal singular values": np.diag([1.0, 1.0, 0.0]),
    "rank 1": np.ones((3, 3)),
    "rank 1 of 4": np.outer([1.0, 2.0, 3.0, 4.0], [1.0, -1.0, 2.0, 0.5]),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_derivatives_of_det_are_right_at_a_singular_matrix(name):
    x = SINGULAR[name]
    n = len(x)
    cofactors = np.zeros((n, n))
    for i, j in np.ndindex(n, n):
        rest = np.delete(np.delete(x, i, 0), j, 1)
        cofactors[i, j] = (-1) ** (i + j) * np.linalg.det(rest)
    close(gradient(linalg.det, x), cofactors)
    if n > 1:
        close(hessian(linalg.det, x), products_of_minors(x))


def test_derivatives_of_det_are_right_at_a_complex_singular_matrix():
    x = np.outer([1.0, 2j, 3.0], [1j, 1.0 - 1j, 2.0])
    close(gradient(lambda x: pb.real(linalg.det(x)), x, complex), np.zeros((3, 3)))
    # Of the gradient of Re(det), the conjugate of the second derivatives of det.
    minors = products_of_minors(x)
    z = leaf(x, complex)
    (first,) = pb.autograd.grad(pb.real(linalg.det(z)), z, create_graph=True)
    (row,) = pb.autograd.grad(pb.real(first[0, 0]), z)
    close(row.numpy().ravel(), np.conj(minors[0]))


def test_det_of_a_stack_with_a_singular_matrix():
    stack = np.stack([np.eye(2) * 2, np.ones((2, 2))])
    close(gradient(linalg.det, stack), [[[2, 0], [0, 2]], [[1, -1], [-1, 1]]])


def test_a_determinant_that_underflows_has_its_gradient_all_the_same():
    x = np.diag([1e-200, 1e-200, 1.0])
    assert linalg.det(leaf(x)).item() == 0.0
    close(gradient(linalg.det, x)[0, 0], 1e-200, atol=0)


def test_the_third_derivative_of_det():
    x = leaf(np.eye(3))
    (first,) = pb.autograd.grad(linalg.det(x), x, create_graph=True)
    (second,) = pb.autograd.grad(first[0, 0], x, create_graph=True)
    (third,) = pb.autograd.grad(second[1, 1], x)
    close(third.numpy(), np.diag([0.0, 0.0, 1.0]))


def test_slogdet_of_a_singular_matrix_spoils_no_other():
    x = leaf([[[0.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 4.0]]])
    sign, logabsdet = linalg.slogdet(x)
    assert (sign.tolist(), logabsdet[0].item()) == ([0.0, 1.0], -np.inf)
    (found,) = pb.autograd.grad(logabsdet[1], x, retain_graph=True)
    close(found[1].numpy(), [[0.5, 0.0], [0.0, 0.25]])
    (found,) = pb.autograd.grad(logabsdet.sum(), x)
    assert np.isnan(found[0].numpy()).all()
    close(found[1].numpy(), [[0.5, 0.0], [0.0, 0.25]])


def test_slogdet_does_not_overflow():
    x = leaf(np.eye(200) * 1e10)
    close(linalg.slogdet(x).logabsdet.item(), 2000 * np.log(10))
    close(gradient(lambda x: linalg.slogdet(x).logabsdet, x.detach().numpy()), np.eye(200) / 1e10)


def test_the_sign_of_a_real_determinant_does_not_change():
    x = leaf([[0.0, 1.0], [1.0, 0.0]])
    (found,) = pb.autograd.grad(linalg.slogdet(x).sign, x, materialize_grads=True)
    assert found.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_logdet():
    assert np.isnan(pb.logdet(pb.tensor([[-1.0]])).item())
    assert pb.logdet(pb.tensor([[0.0]])).item() == -np.inf
    close(pb.logdet(pb.tensor([[-1.0 + 0j]])).item(), np.pi * 1j, atol=1e-6)
    assert pb.logdet(pb.tensor([[0j]])).item() == -np.inf


# -- triangles, phases, bases ----------------------------------------------------------------------
@pytest.mark.parametrize("function", [linalg.eigvalsh, linalg.cholesky])
def test_the_gradient_of_what_reads_one_triangle_is_symmetric(function):
    found = gradient(lambda x: function(x)[0], [[2.0, 1.0], [1.0, 3.0]])
    close(found, found.T)


def test_the_unread_triangle_does_not_matter():
    whole, half = pb.tensor([[2.0, 1.0], [1.0, 3.0]]), pb.tensor([[2.0, 7.0], [1.0, 3.0]])
    for function in (linalg.eigvalsh, linalg.cholesky):
        assert function(whole).tolist() == function(half).tolist()


def test_upper_and_lower_cholesky_factors_are_adjoint():
    x = np.array([[2.0, 1j], [-1j, 3.0]])
    upper = linalg.cholesky(pb.asarray(x), upper=True)
    close(upper.numpy(), linalg.cholesky(pb.asarray(x)).numpy().conj().T)


def test_equal_eigenvalues_have_a_gradient_and_their_vectors_none():
    assert gradient(linalg.eigvalsh, np.eye(3)).tolist() == np.eye(3).tolist()
    with pytest.warns(RuntimeWarning, match="eigh: equal"):
        assert np.isnan(gradient(lambda x: linalg.eigh(x).eigenvectors, np.eye(2))).all()


def test_equal_singular_values_have_a_gradient_and_their_vectors_none():
    assert gradient(linalg.svdvals, np.eye(3)).tolist() == np.eye(3).tolist()
    with pytest.warns(RuntimeWarning, match="svd: equal"):
        assert np.isnan(gradient(lambda x: linalg.svd(x).U, np.eye(2))).all()


def test_what_depends_on_the_phase_of_an_eigenvector_is_dropped():
    x = np.array([[2.0, 1.0 - 1j], [1.0 + 1j, 3.0]])

    def turned(x):
        vectors = linalg.eigh(x).eigenvectors
        return pb.imag(vectors * pb.conj(vectors.detach())).sum()  # only the phase changes it

    close(gradient(turned, x, complex), np.zeros((2, 2)), atol=1e-10)


def test_a_loss_of_the_further_singular_vectors_that_does_not_depend_on_the_basis():
    x, weight = np.array([[3.0, 1.0], [0.5, 2.0], [1.0, -1.0], [0.2, 0.7]]), np.diag([1, 2, 3, 4.0])

    def further(x):
        rest = linalg.svd(x).U[:, 2:]
        return (rest.mT @ pb.asarray(weight) @ rest).trace()

    def first(x):
        u = linalg.svd(x, full_matrices=False).U
        return -(u.mT @ pb.asarray(weight) @ u).trace()

    def by_qr(x):
        rest = linalg.qr(x, mode="complete").Q[:, 2:]
        return (rest.mT @ pb.asarray(weight) @ rest).trace()

    close(gradient(further, x), gradient(first, x))
    close(gradient(by_qr, x), gradient(first, x))


def test_a_matrix_with_a_singular_value_of_0_has_the_gradient_of_its_factors():
    x = np.diag([2.0, 1.0, 0.0]) + 0j
    found = gradient(lambda x: pb.real(linalg.svd(x).U[0, 0] * linalg.svd(x).Vh[0, 0]), x, complex)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("shape", [(3, 2), (2, 2), (2, 3)])
@pytest.mark.parametrize(
    "function", [linalg.qr, lambda x: linalg.qr(x, mode="complete"), linalg.svd]
)
def test_the_gradients_of_one_factor_at_a_time_add_up(function, shape):
    x = np.random.default_rng(0).standard_normal(shape)
    count = len(function(pb.asarray(x)))

    def loss(x, chosen):
        factors = [factor for i, factor in enumerate(function(x)) if i in chosen]
        return sum((factor[..., :2] ** 2 * factor[..., :2]).sum() for factor in factors)

    parts = [gradient(lambda x, i=i: loss(x, [i]), x) for i in range(count)]
    close(sum(parts), gradient(lambda x: loss(x, range(count)), x))
    assert all(part.any() for part in parts)


def test_factors_that_were_changed_in_place_are_not_used():
    for function in (linalg.eigh, linalg.svd, linalg.qr):
        x = leaf([[2.0, 1.0], [1.0, 3.0]])
        results = function(x)
        loss = results[0].sum() + results[1].sum()
        results[0].detach().mul_(2.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_without_a_gradient_nothing_is_recorded():
    x = leaf([[2.0, 1.0], [1.0, 3.0]])
    with pb.no_grad():
        assert [out.grad_fn for out in linalg.eigh(x)] == [None, None]
        assert linalg.eigvalsh(x).grad_fn is None
        assert linalg.svdvals(x).grad_fn is None
    assert linalg.eigvalsh(x).grad_fn.name() == "EighBackward"


def test_decompositions_take_part_in_saved_tensors_hooks():
    x = leaf([[2.0, 1.0], [1.0, 3.0]])
    packed = []
    with pb.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        loss = linalg.svd(x).U[0, 0]
    loss.backward()
    assert [t.shape for t in packed] == [(2, 2), (2,), (2, 2)]
    close(x.grad.numpy(), gradient(lambda x: linalg.svd(x).U[0, 0], x.detach().numpy()))


# -- pseudo-inverses and ranks ---------------------------------------------------------------------
def test_pinv_along_matrices_of_one_rank():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((4, 1)), rng.standard_normal((1, 3))
    seed = rng.standard_normal((3, 4))

    def loss(a, b):
        return float(np.sum(seed * np.linalg.pinv(a @ b)))

    left, right = leaf(a), leaf(b)
    (linalg.pinv(left @ right) * pb.asarray(seed)).sum().backward()
    for found, i in ((left.grad, 0), (right.grad, 1)):
        for place in np.ndindex(found.shape):
            step = np.zeros(found.shape)
            step[place] = 1e-6
            ahead, behind = [a, b], [a, b]
            ahead[i], behind[i] = ahead[i] + step, behind[i] - step
            close(found[place].item(), (loss(*ahead) - loss(*behind)) / 2e-6, atol=1e-8)


def test_rtol_may_be_a_tensor_with_one_value_a_matrix():
    x = pb.asarray(np.stack([np.diag([1.0, 0.1]), np.diag([1.0, 0.1])]))
    rtol = pb.asarray(np.array([0.5, 0.01]))
    assert linalg.matrix_rank(x, rtol=rtol).tolist() == [1, 2]
    close(linalg.pinv(x, rtol=rtol).numpy(), [np.diag([1.0, 0.0]), np.diag([1.0, 10.0])])


def test_the_rank_of_nothing_is_0():
    assert linalg.matrix_rank(pb.zeros((2, 0, 3))).tolist() == [0, 0]


# -- powers ----------------------------------------------------------------------------------------
def test_the_power_0_is_the_identity_with_a_gradient_of_0():
    x = leaf(np.full((2, 2, 2), np.nan))
    result = linalg.matrix_power(x, 0)
    assert result.tolist() == [np.eye(2).tolist()] * 2
    result.sum().backward()
    assert not x.grad.numpy().any()


def test_the_power_1_is_a_copy():
    x = pb.tensor([[1.0]])
    linalg.matrix_power(x, 1).mul_(2.0)
    assert x.item() == 1.0


# -- norms -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("order", [1, 2, 3, np.inf, -np.inf, 0])
def test_the_second_derivative_of_a_norm_is_finite_where_an_element_is_0(order):
    x = leaf([0.0, 3.0, 4.0])
    norm = linalg.vector_norm(x, ord=order)
    (first,) = pb.autograd.grad(norm, x, create_graph=True)
    if first.requires_grad:
        (second,) = pb.autograd.grad(first.sum(), x)
        assert np.isfinite(second.numpy()).all()


def test_the_second_derivative_of_the_norm_at_a_zero_element():
    close(hessian(linalg.vector_norm, [0.0, 2.0]), [[0.5, 0.0], [0.0, 0.0]])


def test_a_norm_over_no_axes_is_the_size():
    x = leaf([-2.0, 0.0])
    assert linalg.vector_norm(x, axis=()).tolist() == [2.0, 0.0]
    assert linalg.vector_norm(x, axis=(), ord=0).tolist() == [1.0, 0.0]
    assert gradient(lambda x: linalg.vector_norm(x, axis=()), [-2.0, 0.0]).tolist() == [-1.0, 0.0]


def test_frobenius_by_another_name():
    x = pb.tensor([[3.0, 4.0]])
    assert linalg.matrix_norm(x, ord=None).item() == 5.0
    assert pb.norm(x, None).item() == 5.0
    assert pb.norm(x, axis=1, keepdims=True).tolist() == [[5.0]]


def test_the_nuclear_norm_over_any_two_dimensions():
    x = np.random.default_rng(0).standard_normal((2, 3, 4))
    for dims in ((0, 2), (2, 0), (1, 2)):
        ours = pb.norm(pb.asarray(x), "nuc", dim=dims, keepdim=True)
        close(ours.numpy(), np.linalg.norm(x, "nuc", dims, keepdims=True))


def test_normalize_names_its_dimension_either_way():
    x = pb.tensor([[3.0, 4.0], [0.0, 0.0]])
    assert (
        pb.nn.functional.normalize(x, axis=1).tolist()
        == pb.nn.functional.normalize(x, dim=1).tolist()
    )
    assert pb.nn.functional.normalize(x)[1].tolist() == [0.0, 0.0]


def test_distances_to_oneself_have_the_gradient_0():
    x = leaf([[1.0, 2.0], [3.0, 5.0]])
    pb.cdist(x, x).sum().backward()
    ahead = np.array([2.0, 3.0]) / np.sqrt(13)
    close(x.grad.numpy(), [-2 * ahead, 2 * ahead])


# -- products --------------------------------------------------------------------------------------
def test_what_beta_0_leaves_out_may_be_nan():
    x, one = pb.full((2, 2), np.nan), pb.eye(2)
    assert pb.addmm(x, one, one, beta=0).tolist() == one.tolist()
    assert pb.baddbmm(x, one[None], one[None], beta=0).tolist() == [one.tolist()]


def test_products_that_are_not_square():
    rng = np.random.default_rng(0)
    c, a, b = (rng.standard_normal(shape) for shape in ((2, 4), (2, 3), (3, 4)))
    result = pb.addmm(*map(pb.asarray, (c, a, b)), beta=2.0, alpha=-1.0)
    close(result.numpy(), 2 * c - a @ b)
    x = pb.tensor(c)
    assert x.addmm_(pb.asarray(a), pb.asarray(b), beta=2.0, alpha=-1.0) is x
    close(x.numpy(), result.numpy())


def test_a_cross_product_along_an_axis_from_the_front():
    x, y = np.random.default_rng(0).standard_normal((2, 3, 2))
    close(linalg.cross(pb.asarray(x), pb.asarray(y), axis=0).numpy(), np.cross(x, y, axis=0))


# -- methods ---------------------------------------------------------------------------------------
MATRIX = np.array([[3.0, 1.0], [1.0, 2.0]])
TALL = np.array([[3.0, 1.0], [1.0, 2.0], [0.5, -1.0]])
METHODS = {
    "det": (lambda x: x.det(), np.linalg.det(MATRIX)),
    "logdet": (lambda x: x.logdet(), np.log(5.0)),
    "slogdet": (lambda x: x.slogdet()[1], np.log(5.0)),
    "inverse": (lambda x: x.inverse(), np.linalg.inv(MATRIX)),
    "pinverse": (lambda x: x.pinverse(), np.linalg.inv(MATRIX)),
    "matrix_power": (lambda x: x.matrix_power(2), MATRIX @ MATRIX),
    "trace": (lambda x: x.trace(), 5.0),
    "cholesky": (lambda x: x.cholesky(), np.linalg.cholesky(MATRIX)),
    "cholesky upper": (lambda x: x.cholesky(upper=True), np.linalg.cholesky(MATRIX).T),
    "norm": (lambda x: x.norm(), np.sqrt(15.0)),
    "norm of rows": (lambda x: x.norm(1, dim=1, keepdim=True), [[4.0], [3.0]]),
    "dist": (lambda x: x.dist(x + 1.0, p=1), 4.0),
    "mv": (lambda x: x.mv(x[0]), MATRIX @ MATRIX[0]),
    "dot": (lambda x: x[0].dot(x[1]), 5.0),
    "outer": (lambda x: x[0].outer(x[1]), np.outer(*MATRIX)),
    "kron": (lambda x: x.kron(x), np.kron(MATRIX, MATRIX)),
    "bmm": (lambda x: x[None].bmm(x[None]), [MATRIX @ MATRIX]),
    "addmm": (lambda x: x.addmm(x, x, alpha=2), MATRIX + 2 * MATRIX @ MATRIX),
    "baddbmm": (lambda x: x.baddbmm(x[None], x[None]), [MATRIX + MATRIX @ MATRIX]),
    "cross": (lambda x: pb.asarray(TALL).cross(pb.asarray(TALL + 1), dim=0), None),
    "mH": (lambda x: x.mH, MATRIX.T),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_gives_what_numpy_gives(name):
    method, expected = METHODS[name]
    expected = np.cross(TALL, TALL + 1, axis=0) if expected is None else expected
    close(method(pb.asarray(MATRIX)).numpy(), expected)


@pytest.mark.parametrize("some", [True, False])
def test_the_methods_svd_and_qr_give_factors_as_in_pytorch(some):
    x = TALL * (1 + 1j)
    u, s, v = pb.asarray(x).svd(some=some)
    assert (u.shape, v.shape) == ((3, 2 if some else 3), (2, 2))
    close((u[:, :2] * s @ v.mH).numpy(), x)
    q, r = pb.asarray(x).qr(some=some)
    assert q.shape == (3, 2 if some else 3)
    close((q @ r).numpy(), x)


# -- diagonals -------------------------------------------------------------------------------------
@pytest.mark.parametrize("library", [np, array_api_strict])
@pytest.mark.parametrize("offset", [-4, -1, 0, 2, 5])
def test_a_diagonal_of_a_stack_is_a_view_that_can_be_written_to(library, offset):
    array = np.arange(24.0).reshape(2, 3, 4)
    x = pb.asarray(library.asarray(array.copy()))
    linalg.diagonal(x, offset=offset).mul_(10.0)
    expected = array.copy()
    for i in range(3):
        if 0 <= i + offset < 4:
            expected[:, i, i + offset] *= 10
    assert np.asarray(x.tolist()).tolist() == expected.tolist()


def test_a_diagonal_of_any_two_dimensions_passes_changes_on_to_the_history():
    root = leaf(np.arange(8.0).reshape(2, 2, 2))
    x = root.clone()
    x.diagonal(dim1=2, dim2=0).mul_(3.0)
    expected = np.ones((2, 2, 2))
    for i in range(2):
        expected[i, :, i] = 3.0
    x.sum().backward()
    assert root.grad.tolist() == expected.tolist()
    assert x.diagonal(1, 0, 1).shape == (2, 1)


def test_the_trace_in_another_dtype():
    assert linalg.trace(pb.eye(2, dtype="float32"), dtype=pb.float64).dtype is pb.float64
    assert linalg.trace(pb.ones((2, 2), dtype="int32")).item() == 2


# -- matrices and vectors --------------------------------------------------------------------------
def test_large_matrices_are_scaled_and_squared():
    a = np.array([[0.0, 30.0], [-30.0, 1.0]])
    np.testing.assert_allclose(pb.matrix_exp(pb.tensor(a)).numpy(), scipy.linalg.expm(a), rtol=1e-9)
    assert pb.matrix_exp(pb.tensor([[0, 0], [0, 0]])).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_the_product_of_many_goes_the_cheapest_way():
    sizes = (10, 100, 5, 50)
    parts = [pb.ones(n, m, dtype="float64") for n, m in itertools.pairwise(sizes)]
    assert pb.linalg.multi_dot(parts).shape == (10, 50)
    assert pb.chain_matmul(parts[0]).equal(parts[0])
    for wrong in ([parts[0]], [parts[0], parts[2]], [parts[0], pb.ones(100, 1, 1)]):
        with pytest.raises(ValueError, match="multi_dot: "):
            pb.linalg.multi_dot(wrong)


def test_least_squares_tells_rank_and_residuals():
    a = pb.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], dtype="float64")
    found = pb.linalg.lstsq(a, pb.tensor([[1.0], [3.0], [6.0]], dtype="float64"))
    assert int(found.rank) == 2
    assert found.singular_values.shape == (2,)
    np.testing.assert_allclose(found.residuals.tolist(), [1 / 6])
    assert pb.linalg.lstsq(a.mT, pb.ones(2, 1, dtype="float64")).residuals.shape == (0,)


def test_vectors_broadcast_before_their_angle_is_measured():
    cosine = pb.cosine_similarity(pb.ones(1, 2, 3), pb.ones(2, 1, 3), dim=-2)
    np.testing.assert_allclose(cosine.numpy(), np.ones((2, 3)), rtol=1e-6)


# -- eigenvectors of general matrices -------------------------------------------------------------
def of_eigenvectors(x):
    """Return a number that depends on eigenvalues, on vectors and on their phases."""
    values, vectors = pb.linalg.eig(x)
    weights = pb.asarray(np.random.default_rng(1).uniform(1, 2, (4, 4)))
    parts = pb.real(values) ** 2 + pb.imag(values) * weights[0]
    return parts.sum() + (weights * (pb.real(vectors) + pb.imag(vectors) ** 3)).sum()


@pytest.mark.parametrize("turn", [0.0, 1j])
def test_eigenvectors_have_two_derivatives_of_the_phase_that_lapack_gives_them(turn):
    rng = np.random.default_rng(0)
    x = pb.tensor(rng.normal(size=(4, 4)) + turn * rng.normal(size=(4, 4)), requires_grad=True)
    assert pb.check.gradcheck(of_eigenvectors, (x,))


def test_numpys_eig_of_a_tensor_is_real_where_numpys_is():
    x = pb.tensor([[2.0, 1.0], [0.0, 3.0]], dtype="float64", requires_grad=True)
    values, vectors = np.linalg.eig(x)
    assert (values.tolist(), vectors.is_complex()) == ([2.0, 3.0], False)
    (g,) = pb.autograd.grad(values[1], x)
    np.testing.assert_allclose(g.numpy(), [[0.0, 0.0], [1.0, 1.0]], rtol=1e-14)
    assert np.linalg.eigvals(pb.tensor([[0.0, 1.0], [-1.0, 0.0]])).tolist() == [1j, -1j]


def test_a_library_without_eig_has_numpys(monkeypatch):
    monkeypatch.delattr(array_api_strict.linalg, "eig")
    monkeypatch.delattr(array_api_strict.linalg, "eigvals")
    x = pb.asarray(array_api_strict.asarray([[2.0, 1.0], [0.0, 3.0]]))
    values, vectors = linalg.eig(x)
    assert values.tolist() == linalg.eigvals(x).tolist() == [2.0, 3.0]
    assert {type(t.data_array()) for t in (values, vectors)} == {
        array_api_strict._array_object.Array
    }


# -- equal eigenvalues and singular values ---------------------------------------------------------
OF_EQUAL_VALUES = {
    "svd": lambda x: (lambda u, s, vh: ((u @ vh) * WEIGHTS).sum())(*linalg.svd(x)),
    "eigh": lambda x: (linalg.eigh(x).eigenvectors * WEIGHTS).sum(),
    "eig": lambda x: (abs(linalg.eig(x).eigenvectors) * WEIGHTS).sum(),
}
WEIGHTS = np.arange(9.0).reshape(3, 3)


@pytest.mark.parametrize("transform", [pb.grad, pb.jacfwd])
@pytest.mark.parametrize("name", OF_EQUAL_VALUES)
def test_a_gradient_through_vectors_of_equal_values_is_nan_with_a_warning(name, transform):
    x = np.diag([2.0, 2.0, 1.0])
    with pytest.warns(RuntimeWarning, match=f"{name}: equal (singular |eigen)values, .*NaN"):
        assert np.isnan(transform(OF_EQUAL_VALUES[name])(x)).any()


def test_a_gradient_through_vectors_of_values_that_are_equal_to_rounding_warns():
    q = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    for transform in (pb.grad, pb.jacfwd):
        with pytest.warns(RuntimeWarning, match="svd: equal singular values, exactly or to round"):
            transform(OF_EQUAL_VALUES["svd"])(q @ np.diag([2.0, 2.0, 1.0]) @ q.T)


def test_a_gradient_of_equal_singular_values_themselves_does_not_warn():
    x = np.diag([2.0, 2.0, 1.0])
    np.testing.assert_allclose(pb.grad(lambda x: linalg.svdvals(x).sum())(x), np.eye(3))


def test_lstsq_of_an_exact_complex_solution_has_second_derivatives():
    matrix = pb.tensor([[2.0], [0.0], [0.0]], dtype="complex128", requires_grad=True)
    found = pb.linalg.lstsq(matrix, matrix.detach() * 2.0)  # no residuals are left
    (first,) = pb.autograd.grad(found.residuals.sum(), matrix, create_graph=True)
    (second,) = pb.autograd.grad(first.real.sum(), matrix)
    assert np.isfinite(second.numpy()).all()


# -- shapes ----------------------------------------------------------------------------------------
SQUARE = ("cholesky", "det", "eigh", "eigvalsh", "inv", "slogdet")
MATRICES = (*SQUARE, "diagonal", "matrix_norm", "matrix_rank", "pinv", "qr", "svd", "svdvals")


@pytest.mark.parametrize("name", [*MATRICES, "trace"])
def test_matrices_are_asked_for(name):
    with pytest.raises(errors.ShapeError, match=rf"{name}: a matrix or a stack .*\(3,\)"):
        getattr(linalg, name)(pb.ones(3))


@pytest.mark.parametrize("name", SQUARE)
def test_square_matrices_are_asked_for(name):
    with pytest.raises(errors.ShapeError, match=f"{name}: as many rows as columns.* 2 rows and 3"):
        getattr(linalg, name)(pb.ones(4, 2, 3))


@pytest.mark.parametrize(
    ("x", "y", "hint"),
    [((5, 3), (2, 3), r"y\.T has"), ((3, 5), (3, 2), r"x\.T has"), ((5, 3), (3,), "use matmul")],
)
def test_mm_says_which_matrix_to_transpose(x, y, hint):
    with pytest.raises(pb.errors.ShapeError, match=rf"two matrices .* required, got[\s\S]*{hint}"):
        pb.mm(pb.ones(x), pb.ones(y))


def test_mm_of_shapes_that_do_not_fit_in_any_way_has_no_hint():
    with pytest.raises(pb.errors.ShapeError) as caught:
        pb.ones((5, 3)) @ pb.ones((2, 4))
    assert "hint" not in str(caught.value)
