"""The kernels of the default library: a declaration's ``numpy_kernel`` gives what forward gives."""

import numpy as np
import pytest
from tests.ops import _cases

import pullback as pb
from pullback.arrays import NUMPY
from pullback.ops.declare import REGISTRY

KERNELS = sorted(
    n for n, d in REGISTRY.items() if callable(getattr(d.primitive, "numpy_kernel", None))
)
CALLS = [_cases.Case(name, i) for name in KERNELS for i in range(len(REGISTRY[name].samples))]
# Errors for which a call goes to the complete forward.
LEAVES = (IndexError, OverflowError, TypeError, ValueError)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CALLS, ids=str)
def test_a_kernel_gives_what_forward_gives_or_leaves_it_to_forward(case, dtype):
    op, arrays = case.op, case.arrays(dtype)
    settings = {**op.settings, **case.settings()}
    try:
        found = op.numpy_kernel(*arrays, **settings)
    except LEAVES:
        return
    expected = op.forward(NUMPY.xp, *arrays, **settings)
    pairs = zip(found, expected, strict=True) if op.multi else [(found, expected)]
    for ours, forwards in pairs:
        assert np.shape(ours) == np.shape(forwards)
        assert ours.dtype == forwards.dtype
        np.testing.assert_allclose(ours, forwards, rtol=3e-6 if dtype == "float32" else 1e-13)


@pytest.mark.parametrize("largest", [1.0, 49.0, 51.0, 1e4])
def test_softmax_of_small_and_of_large_numbers(largest):
    x = pb.tensor([largest, -largest, 0.0], dtype=pb.float32, requires_grad=True)
    y = pb.softmax(x, 0)
    e = np.exp(np.array([0.0, -2 * largest, -largest]))
    np.testing.assert_allclose(y.detach().numpy(), e / e.sum(), rtol=1e-5, atol=1e-37)


@pytest.mark.parametrize("length", [1, 16, 100])
def test_short_and_long_rows_are_standardized_with_one_gradient(length):
    x = pb.tensor(np.random.default_rng(0).normal(5, 1, (2, length)), requires_grad=True)
    seed = np.random.default_rng(1).normal(size=(2, length))
    y = pb.layer_norm(x, length)
    deviation = x - pb.mean(x, axis=1, keepdims=True)
    expected = deviation / pb.sqrt(pb.mean(deviation**2, axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y.detach().numpy(), expected.detach().numpy(), atol=1e-11)
    (g,) = pb.autograd.grad(y, x, pb.tensor(seed))
    (by_parts,) = pb.autograd.grad(expected, x, pb.tensor(seed))
    np.testing.assert_allclose(g.numpy(), by_parts.numpy(), atol=1e-9)


def test_einsum_takes_what_is_no_plain_pair_the_long_way():
    x, y = np.ones((2, 3)), np.arange(6.0).reshape(2, 3)
    for equation in ("ij,ij", "ij,ij->", "ij , ij -> j", "ij,kj->i", "...j,j...->...", "ij,ij->ij"):
        second = y.T if equation == "...j,j...->..." else y
        found = pb.einsum(equation, pb.tensor(x), pb.tensor(second))
        if equation == "...j,j...->...":
            np.testing.assert_allclose(found.numpy(), (x * y).sum(1))
        else:
            np.testing.assert_allclose(found.numpy(), np.einsum(equation, x, second))
    with pytest.raises(pb.errors.ShapeError, match="einsum"):
        pb.einsum("ij,jk->ik", pb.tensor(x), pb.tensor(y))


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_largest_and_smallest_of_many_short_rows(dtype):
    x = np.random.default_rng(0).integers(-9, 9, (30, 4, 7)).astype(dtype)
    for name, of_numpy in (("max", np.max), ("min", np.min)):
        for keepdims in (True, False):
            result = getattr(NUMPY.xp, name)(x, axis=-1, keepdims=keepdims)
            np.testing.assert_array_equal(result, of_numpy(x, -1, keepdims=keepdims))
    if dtype == "float32":
        x[3, 2, 1] = np.nan
        assert np.isnan(NUMPY.xp.max(x, axis=2)).sum() == 1
