"""Second derivatives where the first one jumps as at the tip of a cone: NaN, never 0."""

import numpy as np
import pytest
from tests.ops._cases import cases, leaves

import pullback as pb

pytestmark = pytest.mark.filterwarnings("ignore:.*equal (singular|eigen)")
F = pb.nn.functional
linalg = np.linalg
ZERO, MATRIX, PAIRS = np.zeros(3), np.zeros((2, 2)), np.zeros((2, 1, 2))


def complex_of(x):
    return x[0] + 1j * x[1]


UNBOUNDED = {
    "norm": (linalg.norm, ZERO),
    "norm ** 2": (lambda x: linalg.norm(x) ** 2, ZERO),
    "norm times norm": (lambda x: linalg.norm(x) * linalg.norm(x), ZERO),
    "square of norm": (lambda x: np.square(linalg.norm(x)), ZERO),
    "norm along an axis": (lambda x: (linalg.norm(x, axis=1) ** 2).sum(), MATRIX),
    "norm of order 3": (lambda x: linalg.norm(x, 3), ZERO),
    "norm of order 1.5": (lambda x: linalg.norm(x, 1.5), ZERO),
    "norm of order 1.5 at an element": (lambda x: linalg.norm(x, 1.5), np.array([0.0, 1.0])),
    "norm of order 0.5 at an element": (lambda x: linalg.norm(x, 0.5), np.array([0.0, 1.0])),
    "Frobenius": (linalg.norm, MATRIX),
    "nuclear": (lambda x: linalg.norm(x, "nuc"), MATRIX),
    "spectral": (lambda x: linalg.norm(x, 2), MATRIX),
    "vector_norm": (pb.linalg.vector_norm, ZERO),
    "norm of order 1 of complex": (lambda x: linalg.norm(complex_of(x).reshape(1), 1), ZERO),
    "norm of order inf of complex": (
        lambda x: linalg.norm(np.stack([complex_of(x), x[2] + 0j]), np.inf),
        ZERO,
    ),
    "abs of complex": (lambda x: np.abs(complex_of(x)), ZERO[:2]),
    "abs of complex ** 2": (lambda x: np.abs(complex_of(x)) ** 2, ZERO[:2]),
    "angle": (lambda x: np.angle(complex_of(x)), ZERO[:2]),
    "arctan2": (lambda x: np.arctan2(x[0], x[1]), ZERO[:2]),
    "hypot": (lambda x: np.hypot(x[0], x[1]), ZERO[:2]),
    "hypot ** 2": (lambda x: np.hypot(x[0], x[1]) ** 2, ZERO[:2]),
    "sqrt of a sum of squares": (lambda x: np.sqrt((x * x).sum()), ZERO),
    "cdist": (lambda x: pb.cdist(x[0], x[1]).sum(), PAIRS),
    "cdist ** 2": (lambda x: (pb.cdist(x[0], x[1]) ** 2).sum(), PAIRS),
    "pairwise_distance": (lambda x: F.pairwise_distance(x[0], x[1], eps=0).sum(), PAIRS),
    "std": (np.std, ZERO + 1),
    "std ** 2": (lambda x: np.std(x) ** 2, ZERO + 1),
    "nanstd": (np.nanstd, ZERO + 1),
    "xlogy": (lambda x: pb.xlogy(x, x).sum(), ZERO),
}
DIRECTION = np.array([1.0, -2.0, 0.5, 0.25])


def vjp(f, v):
    def pulled(x):
        out, pull = pb.vjp(f, x)
        return pull((out * 0 + 1) * v if out.shape == v.shape else out * 0 + 1)[0]

    return pulled


ONCE = {
    "grad": lambda f, v: pb.grad(lambda x: (f(x) * v).sum()),
    "vjp": vjp,
    "jvp": lambda f, v: lambda x: pb.jvp(f, (x,), (v,))[1],
    "jacfwd": lambda f, v: pb.jacfwd(f),
    "jacrev": lambda f, v: pb.jacrev(f),
}


@pytest.mark.parametrize("inner", ONCE)
@pytest.mark.parametrize("outer", ONCE)
@pytest.mark.parametrize("name", UNBOUNDED)
def test_a_second_derivative_of_norm_hypot_or_std_at_0_is_nan(name, outer, inner):
    f, x = UNBOUNDED[name]
    v = DIRECTION[: x.size].reshape(x.shape)
    twice = ONCE[outer](ONCE[inner](f, v), v)
    with np.errstate(all="ignore"):
        assert np.isnan(twice(x)).any()
        assert np.isnan(pb.vmap(twice)(np.stack([x, x]))).any()


@pytest.mark.parametrize("name", UNBOUNDED)
def test_a_hessian_of_norm_hypot_or_std_at_0_is_nan(name):
    f, x = UNBOUNDED[name]
    with np.errstate(all="ignore"):
        assert np.isnan(pb.hessian(f)(x)).any()
        assert np.isnan(pb.hvp(f)(x, DIRECTION[: x.size].reshape(x.shape))).any()


@pytest.mark.parametrize("name", [n for n in UNBOUNDED if "sqrt" not in n and "order 0" not in n])
def test_a_first_derivative_of_norm_hypot_or_std_at_0_is_0_in_both_modes(name):
    f, x = UNBOUNDED[name]
    x = x * (x == x[..., :1])  # the elements that are not 0 have slopes
    with np.errstate(all="ignore"):
        assert not pb.grad(f)(x).any()
        assert not pb.jacfwd(f)(x).any()


# Kinks of real numbers, limits such as eps, and a distance that stays 0 have bounded curvature.
BOUNDED = {
    "abs": (lambda x: np.abs(x).sum(), ZERO, 0.0),
    "relu": (lambda x: pb.relu(x).sum(), ZERO, 0.0),
    "max": (np.max, ZERO, 0.0),
    "clip": (lambda x: np.clip(x, 0, 1).sum(), ZERO, 0.0),
    "sort": (lambda x: np.sort(x)[0], ZERO, 0.0),
    "norm of order 1": (lambda x: linalg.norm(x, 1), ZERO, 0.0),
    "norm of order inf": (lambda x: linalg.norm(x, np.inf), ZERO, 0.0),
    "matrix norm of order 1": (lambda x: linalg.norm(x, 1), MATRIX, 0.0),
    "norm of one element": (linalg.norm, ZERO[:1], 0.0),
    "norm of order 3 at an element": (lambda x: linalg.norm(x, 3)[None], np.array([0.0]), 0.0),
    "normalize": (lambda x: F.normalize(x, dim=0).sum(), ZERO, 0.0),
    "cosine_similarity": (lambda x: pb.cosine_similarity(x, ZERO + 1, dim=0), ZERO, 0.0),
    "renorm": (lambda x: pb.renorm(x, 2, 0, 1.0).sum(), MATRIX, 0.0),
    "cdist of points with themselves": (lambda x: (pb.cdist(x, x) ** 2).sum(), MATRIX[:1], 0.0),
    "var": (np.var, np.ones(2), np.array([[0.5, -0.5], [-0.5, 0.5]])),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_a_second_derivative_at_a_kink_or_below_a_limit_is_that_beside_it(name):
    f, x, expected = BOUNDED[name]
    scalar = lambda x: f(x).sum()  # noqa: E731
    np.testing.assert_allclose(pb.hessian(scalar)(x), np.zeros(x.shape * 2) + expected, atol=1e-15)


@pytest.mark.parametrize("inner", [pb.jacfwd, pb.jacrev])
@pytest.mark.parametrize("outer", [pb.jacfwd, pb.jacrev])
def test_the_hessian_of_cdist_between_all_points_of_one_array_is_finite(outer, inner):
    x = np.array([[0.0, 1.0], [2.0, -1.0], [0.5, 0.5]])
    found = outer(inner(lambda x: (pb.cdist(x, x) ** 2).sum()))(x).reshape(6, 6)
    np.testing.assert_allclose(found, np.kron(4 * (3 * np.eye(3) - 1), np.eye(2)), atol=1e-12)


def test_cdist_keeps_a_point_that_is_not_finite_apart_from_itself():
    x = pb.tensor([[1.0, np.nan], [np.inf, 1.0], [1.0, 2.0]])
    with np.errstate(invalid="ignore"):
        found, apart = pb.cdist(x, x).numpy(), pb.cdist(x, x.clone()).numpy()
    np.testing.assert_array_equal(found.diagonal(), [np.nan, np.nan, 0.0])
    np.testing.assert_array_equal(found, apart)


# -- every declared operation ----------------------------------------------------------------------
# Near 0, an `eps` makes them other functions, of bounded curvature.
LIMITED = {"cosine_similarity", "normalize", "cosine_embedding_loss", "rms_norm"}
LIMITED |= {"binary_cross_entropy", "poisson_nll_loss"}
# At exponents or orders of 0 alone they are constants.
LIMITED |= {"pow", "float_power", "jv", "iv", "ive"}


def derivatives(case, scale):
    """Return the gradient and the product of the Hessian and a vector, at inputs of a scale."""
    arrays = [a * scale if a.dtype.kind in "fc" else a for a in case.arrays()]
    tensors = leaves(arrays, case.wanted)
    found = [tensors[i] for i in case.wanted]
    try:
        total = sum(r.abs().sum() if r.is_complex() else r.sum() for r in case.results(tensors))
        first = pb.autograd.grad(total, found, create_graph=True, allow_unused=True)
        product = sum(
            (g.real * (0.3 + np.arange(g.numel()).reshape(g.shape) % 1.7)).sum()
            for g in first
            if g is not None and g.requires_grad
        )
        second = pb.autograd.grad(product, found, allow_unused=True)
    except (pb.AutogradError, AttributeError):  # not defined there, or no second derivative
        return None, None
    return largest(first), largest(second)


def largest(gradients):
    sizes = [abs(g.detach().numpy()).max(initial=0.0) for g in gradients if g is not None]
    return max(sizes) if np.isfinite(sizes).all() else np.inf


@pytest.mark.parametrize("case", cases(differentiable=True), ids=str)
def test_no_operation_has_a_finite_second_derivative_at_0_where_it_is_unbounded(case):
    with np.errstate(all="ignore"):
        (first, near), (slope, nearer) = derivatives(case, 1e-5), derivatives(case, 1e-6)
        _, at = derivatives(case, 0.0)
    if None in (near, nearer, at) or case.name in LIMITED:
        return
    if slope < 2 * first < 1e3 and 5 * near < nearer < np.inf and nearer > 1e3:
        assert at == np.inf
