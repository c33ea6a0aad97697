"""Values and gradients of float32 at the ends of its range, where squares overflow or vanish."""

import numpy as np
import pytest

import pullback as pb

F, linalg = pb.nn.functional, pb.linalg
TALL = np.random.default_rng(0).normal(size=(4, 3))
SYMMETRIC = TALL.T @ TALL + np.diag([1.0, 2.0, 3.0])


def low_rank(x):
    u, s, vh = linalg.svd(x, full_matrices=False)
    return ((u[:, :1] * s[:1]) @ vh[:1])[0].sum()


# Each function, its input, and the power of a factor of the input that it is multiplied by.
FUNCTIONS = {
    "svd": (lambda x: abs(linalg.svd(x, full_matrices=False).U[0]).sum(), TALL, 0),
    "svd of a wide matrix": (lambda x: abs(linalg.svd(x).Vh[0]).sum(), TALL.T, 0),
    "svd of low rank": (low_rank, TALL, 1),
    "svdvals": (lambda x: linalg.svdvals(x).sum(), TALL, 1),
    "eigh": (lambda x: abs(linalg.eigh(x).eigenvectors[0]).sum(), SYMMETRIC, 0),
    "eigvalsh": (lambda x: linalg.eigvalsh(x)[0], SYMMETRIC, 1),
    "inv": (lambda x: linalg.inv(x).sum(), SYMMETRIC, -1),
    "qr": (lambda x: abs(linalg.qr(x).Q[0]).sum(), TALL, 0),
    "cholesky": (lambda x: linalg.cholesky(x).sum(), SYMMETRIC, 0.5),
    "vector_norm": (linalg.vector_norm, TALL, 1),
    "vector_norm along an axis": (lambda x: linalg.vector_norm(x, axis=1).sum(), TALL, 1),
    "vector_norm of order 3": (lambda x: linalg.vector_norm(x, ord=3), TALL, 1),
    "np.linalg.norm": (np.linalg.norm, TALL, 1),
    "matrix_norm": (linalg.matrix_norm, TALL, 1),
    "cdist": (lambda x: pb.cdist(x, x[:2] * 2).sum(), TALL, 1),
    "normalize": (lambda x: F.normalize(x, eps=1e-45)[:, 0].sum(), TALL, 0),
    "cosine_similarity": (
        lambda x: F.cosine_similarity(x, x.flip(0), eps=1e-45)[0],
        TALL,
        0,
    ),
    "std": (lambda x: pb.std(x, axis=0).sum(), TALL, 1),
    "layer_norm": (lambda x: F.layer_norm(x, 3, eps=0)[:, 0].sum(), TALL, 0),
    "rms_norm": (lambda x: F.rms_norm(x, 3, eps=0)[:, 0].sum(), TALL, 0),
    "group_norm": (lambda x: F.group_norm(x.reshape(1, 2, 6), 2, eps=0)[0, 0, 0], TALL, 0),
    "batch_norm": (
        lambda x: F.batch_norm(x, None, None, training=True, eps=0)[0].sum(),
        TALL,
        0,
    ),
    "instance_norm": (lambda x: F.instance_norm(x[None], eps=0)[0, :, 0].sum(), TALL, 0),
    "corrcoef": (lambda x: pb.corrcoef(x)[0, 1:].sum(), TALL, 0),
    "np.corrcoef": (lambda x: np.corrcoef(x)[0, 1:].sum(), TALL, 0),
    "corrcoef of complex": (lambda x: abs(pb.corrcoef(pb.complex(x, x.flip(0)))[0, 1]), TALL, 0),
    "cond": (linalg.cond, TALL, 0),
    "cond of order fro": (lambda x: linalg.cond(x, "fro"), SYMMETRIC, 0),
    "hypot": (lambda x: pb.hypot(x[0], x[1]).sum(), TALL, 1),
    "atan2": (lambda x: pb.atan2(x[0], x[1]).sum(), TALL, 0),
    "abs of complex": (lambda x: abs(pb.complex(x[0], x[1])).sum(), TALL, 1),
}


@pytest.mark.parametrize("power", [-30, -25, -19, 19, 25, 30])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_of_norms_and_decompositions_scale_as_they_should(name, power):
    f, x, degree = FUNCTIONS[name]
    scale = 10.0**power
    wide = pb.tensor(x, dtype="float64")
    value, gradient = pb.value_and_grad(f)(wide)
    if not 1e-37 < scale**degree < 1e37 or not 1e-37 < scale ** (degree - 1) < 1e37:
        return  # the answer itself is out of range
    with np.errstate(over="ignore", under="ignore"):
        found, slope = pb.value_and_grad(f)(pb.tensor((x * scale).astype("float32")))
    assert found.item() == pytest.approx(value.item() * scale**degree, rel=1e-4)
    expected = gradient.numpy() * scale ** (degree - 1)
    np.testing.assert_allclose(slope.numpy(), expected, rtol=1e-3, atol=1e-3 * abs(expected).max())


# -- rows of -inf ----------------------------------------------------------------------------------
ROWS = np.array([[-np.inf, -np.inf], [0.0, 1.0]])
OF_THE_SECOND_ROW = {
    "logsumexp": lambda x: pb.logsumexp(x, dim=1)[1],
    "logsumexp, left out": lambda x: np.where([False, True], pb.logsumexp(x, dim=1), 0.0).sum(),
    "softmax": lambda x: pb.softmax(x, axis=1)[1, 0],
    "log_softmax": lambda x: pb.log_softmax(x, axis=1)[1, 0],
    "softmin": lambda x: F.softmin(-x, dim=1)[1, 0],
    "logcumsumexp": lambda x: pb.logcumsumexp(x, 1)[1].sum(),
    "cross_entropy": lambda x: F.cross_entropy(x, pb.tensor([-100, 1])),
}


@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero):RuntimeWarning")
@pytest.mark.parametrize("name", OF_THE_SECOND_ROW)
def test_a_row_of_minus_infinity_on_which_nothing_depends_has_derivatives_of_0(name):
    f = OF_THE_SECOND_ROW[name]
    first, second = pb.grad(f)(ROWS), pb.hessian(f)(ROWS)
    h = 1e-6 * np.array([[0.0, 0.0], [1.0, -1.0]])
    slope = (f(pb.tensor(ROWS + h)).item() - f(pb.tensor(ROWS - h)).item()) / 2e-6
    assert first[0].tolist() == [0.0, 0.0]
    assert first[1, 0] - first[1, 1] == pytest.approx(slope, abs=1e-8)
    np.testing.assert_allclose(pb.jacfwd(f)(ROWS), first, atol=1e-15)
    assert not second[0].any()
    assert not second[:, :, 0].any()
    assert np.isfinite(second).all()


def test_a_row_of_minus_infinity_that_is_asked_for_is_nan_in_softmax():
    with np.errstate(invalid="ignore"):
        assert np.isnan(pb.grad(lambda x: pb.softmax(x, axis=1).sum())(ROWS)[0]).all()
