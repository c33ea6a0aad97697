"""Sums of many numbers: as exact as a few roundings, and what NumPy's have as shape and dtype."""

import itertools

import numpy as np
import pytest

import pullback as pb
from pullback.arrays import add_up, running_sum

# A tenth is rounded up in float32: errors of sums one by one all have one sign.
TENTH = float(np.float32(0.1))


@pytest.mark.parametrize("shape", [(1_000_000, 2), (100_000, 1), (20_000, 3), (2, 30_000, 2)])
def test_long_columns_are_added_without_loss(shape):
    x = pb.full(shape, TENTH, dtype="float32")
    n = shape[-2]
    for total in (x.sum(-2), x.mean(-2) * n, x.mT.sum(-1), x.sum(-2, keepdim=True)):
        np.testing.assert_allclose(total.numpy(), n * TENTH, rtol=3e-6)


def test_every_part_of_numbers_is_added_without_loss():
    rows = pb.full((100_000, 4), TENTH, dtype="float32")
    np.testing.assert_allclose(rows[:, :3].sum().item(), 300_000 * TENTH, rtol=3e-6)
    np.testing.assert_allclose(rows[:1].expand(100_000, 4).sum(0), 1e5 * TENTH, rtol=3e-6)
    np.testing.assert_allclose(pb.ones(5000, 2, dtype="float16").mean(0), 1.0)
    np.testing.assert_allclose(pb.ones(5000, 2, dtype="float16").sum(0), 5000.0, rtol=1e-3)


def test_what_is_made_of_sums_is_as_exact():
    x = pb.arange(200_000.0).reshape(100_000, 2) % 7
    exact = x.double()
    for of in (
        lambda x: x.var(0),
        lambda x: pb.logsumexp(x, 0),
        lambda x: x.norm(dim=0),
        lambda x: x.norm(1, 0),
        lambda x: pb.einsum("ij,ij->j", x, x),
        lambda x: pb.tensordot(x, x, axes=([0], [0])),
        lambda x: x.cumsum(0)[-1],
        lambda x: pb.log_softmax(x, 0)[:5],
    ):
        np.testing.assert_allclose(of(x).numpy(), of(exact).numpy(), rtol=3e-6)


def test_gradients_of_what_was_repeated_are_added_without_loss():
    bias, one = (pb.zeros(n, requires_grad=True) for n in ((3,), (1, 3)))
    g = pb.full((100_000, 3), TENTH, dtype="float32")
    (pb.zeros(100_000, 3) + bias + one).backward(g)
    np.testing.assert_allclose(bias.grad.numpy(), 1e5 * TENTH, rtol=3e-6)
    np.testing.assert_allclose(one.grad.numpy(), [[1e5 * TENTH] * 3], rtol=3e-6)


def test_running_sums_and_their_gradient_are_exact_to_the_last():
    x = pb.full((100_000,), TENTH, dtype="float32", requires_grad=True)
    exact = np.arange(1, 100_001) * TENTH
    y = x.cumsum(0)
    np.testing.assert_allclose(y.detach().numpy(), exact, rtol=3e-6)
    y.backward(pb.full((100_000,), TENTH, dtype="float32"))
    np.testing.assert_allclose(x.grad.numpy(), exact[::-1], rtol=3e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", "float64"])
@pytest.mark.parametrize("shape", [(300, 5, 3), (2, 700, 1), (4097,), (257, 0, 2), (64 * 65, 2)])
def test_running_sums_have_the_shape_dtype_and_value_of_the_array_library(shape, dtype):
    array = (np.arange(np.prod(shape)).reshape(shape) % 5).astype(dtype)
    for axis in range(-array.ndim, array.ndim):
        for x in (array, array[::-1], array.T):
            found, wanted = running_sum(x, axis), np.add.accumulate(x.astype("D"), axis)
            assert (found.shape, found.dtype) == (x.shape, x.dtype)
            np.testing.assert_allclose(found, wanted, rtol=1e-3 if dtype == "float16" else 1e-6)
    assert running_sum(np.array([np.inf, 1.0] * 300), 0)[-1] == np.inf


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_infinite_and_missing_numbers_stay_in_their_row(dtype):
    x = np.full((300, 3), TENTH, dtype)
    x[7, 1], x[8, 0], x[9] = np.inf, np.nan, (-np.inf, 0, 1)
    found = add_up(x, -1)
    assert found[7] == np.inf
    assert np.isnan(found[8])
    assert found[9] == -np.inf
    np.testing.assert_allclose(np.delete(found, (7, 8, 9)), 3 * TENTH, rtol=1e-6)


def test_a_sum_of_rows_has_memory_of_its_own():
    for keepdims in (False, True):
        found = add_up(np.ones((3, 100, 4)), -1, keepdims)
        assert found.flags.owndata
        assert found.flags.c_contiguous
        assert (found == 4).all()


AXES = [None, (), 0, -1, (0, 1), (-1, 0), (0, 1, 2)]


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", "int32"])
@pytest.mark.parametrize("shape", [(700, 5, 3), (3, 700, 1), (257, 2, 2), (0, 300, 2), (300, 0, 3)])
def test_sums_have_the_shape_dtype_and_value_of_the_array_library(shape, dtype):
    array = (np.arange(np.prod(shape)).reshape(shape) % 5).astype(dtype)
    for order, axis, keep in itertools.product([(0, 1, 2), (2, 0, 1)], AXES, [False, True]):
        x = array.transpose(order)
        for part in (x, x[::2], x[..., ::-1], np.broadcast_to(x[:1], x.shape)):
            if dtype == "int32":
                assert add_up(part, axis, keep).dtype == np.add.reduce(part, axis).dtype
            found = np.asarray(add_up(part, axis, keep))
            wanted = np.add.reduce(part.astype("D"), axis, keepdims=keep)
            assert (found.shape, found.dtype) == (
                wanted.shape,
                np.add.reduce(part, axis).dtype,
            )
            np.testing.assert_allclose(found, wanted, rtol=2e-2 if dtype == "float16" else 1e-6)


def test_axes_that_are_none_are_refused_as_the_array_library_does():
    x = np.ones((300, 2), "float32")
    for axis in (2, (0, 3), (0, 0), "0"):
        with pytest.raises((IndexError, TypeError, ValueError)):
            add_up(x, axis)
    with pytest.raises(IndexError):
        running_sum(x, 2)
