"""Counts, axes and lengths: NumPy's whole numbers do what Python's do."""

import numpy as np
import pytest

import pullback as pb

F = pb.nn.functional


def m():
    return pb.arange(6.0).reshape(3, 2)


def image():
    return pb.arange(16.0).reshape(1, 1, 4, 4)


# Each takes the number 1, as Python's or as NumPy's.
CALLS = {
    # axes
    "sum": lambda i: m().sum(i),
    "sum over two": lambda i: m().sum((0, i)),
    "mean": lambda i: m().mean(i),
    "var": lambda i: m().var(i, correction=i),
    "max": lambda i: m().max(i),
    "min": lambda i: m().min(i),
    "amax": lambda i: m().amax(i),
    "argmax": lambda i: m().argmax(i),
    "cumsum": lambda i: m().cumsum(i),
    "softmax": lambda i: m().softmax(i),
    "sort": lambda i: m().sort(i),
    "median": lambda i: m().median(i),
    "norm": lambda i: m().norm(i, i),
    "quantile": lambda i: m().quantile(0.5, i),
    "unsqueeze": lambda i: m().unsqueeze(i),
    "squeeze": lambda i: pb.zeros(3, 1).squeeze(i),
    "flip": lambda i: m().flip(i),
    "flip of two": lambda i: pb.flip(m(), axis=(0, i)),
    "transpose": lambda i: m().transpose(0, i),
    "permute": lambda i: m().permute(i, 0),
    "movedim": lambda i: m().movedim(0, i),
    "unbind": lambda i: m().unbind(i),
    "cat": lambda i: pb.cat((m(), m()), i),
    "stack": lambda i: pb.stack((m(), m()), axis=i),
    "gather": lambda i: m().gather(i, pb.zeros(3, 2).long()),
    "select": lambda i: m().select(0, i),
    "cross": lambda i: pb.cross(pb.eye(3), pb.ones(3, 3), axis=i),
    "fft": lambda i: pb.fft.fftn(m(), s=i, axes=i),
    # counts
    "roll": lambda i: m().roll(i),
    "roll along": lambda i: m().roll(i, i),
    "roll along two": lambda i: m().roll((i, i), (0, i)),
    "tensordot": lambda i: pb.tensordot(m(), m().T, axes=i),
    "tensordot along": lambda i: pb.tensordot(m(), m().T, axes=([i], [0])),
    "split": lambda i: m().split(i),
    "split along": lambda i: m().split(i, i),
    "split in lengths": lambda i: m().split([i, 2]),
    "chunk": lambda i: m().chunk(i, i),
    "tensor_split": lambda i: m().tensor_split(i, i),
    "hsplit": lambda i: m().hsplit(i),
    "hsplit at": lambda i: m().hsplit((i,)),
    "repeat": lambda i: m().repeat(i, 2),
    "repeat_interleave": lambda i: m().repeat_interleave(i, i),
    "tile": lambda i: pb.tile(m(), i),
    "tile along two": lambda i: pb.tile(m(), (i, 2)),
    "expand": lambda i: pb.zeros(1, 2).expand(i, 2),
    "topk": lambda i: m().topk(i, i),
    "kthvalue": lambda i: m().kthvalue(i, i),
    "narrow": lambda i: m().narrow(0, i, i),
    "unfold": lambda i: m().unfold(0, i, i),
    "rot90": lambda i: m().rot90(i, (0, i)),
    "diagonal": lambda i: m().diagonal(i),
    "triu": lambda i: m().triu(i),
    "reshape": lambda i: m()[0, :1].reshape(i),
    "pb.reshape": lambda i: pb.reshape(m()[0, :1], i),
    "view": lambda i: m().view(i, 6),
    "unflatten": lambda i: m().unflatten(i, (i, 2)),
    "zeros": lambda i: pb.zeros(i, 2),
    "eye": lambda i: pb.eye(i, i),
    "arange": lambda i: pb.arange(i),
    "broadcast_shapes": lambda i: pb.zeros(pb.broadcast_shapes(i, (3, i))),
    "gradient": lambda i: pb.gradient(pb.arange(3.0), spacing=i)[0],
    "polygamma": lambda i: pb.polygamma(i, pb.ones(2)),
    "matrix_power": lambda i: pb.linalg.matrix_power(pb.eye(2), i),
    "rand": lambda i: pb.rand(2, generator=pb.Generator(seed=i)),
    "one_hot": lambda i: F.one_hot(pb.zeros(2).long(), i),
    "pad": lambda i: F.pad(m(), (i, i)),
    "avg_pool2d": lambda i: F.avg_pool2d(image(), (i, i), i),
    "max_pool2d": lambda i: F.max_pool2d(image(), i),
    "conv2d": lambda i: F.conv2d(image(), pb.ones(1, 1, 2, 2), None, i, i, i, i),
    # NumPy's functions
    "np.roll": lambda i: np.roll(m(), i, i),
    "np.split": lambda i: np.split(m(), i, i),
    "np.array_split": lambda i: np.array_split(m(), i),
    "np.repeat": lambda i: np.repeat(m(), i, i),
    "np.tile": lambda i: np.tile(m(), i),
    "np.tensordot": lambda i: np.tensordot(m(), m().T, i),
    "np.flip": lambda i: np.flip(m(), i),
    "np.expand_dims": lambda i: np.expand_dims(m(), i),
    "np.moveaxis": lambda i: np.moveaxis(m(), 0, i),
    "np.diff": lambda i: np.diff(m(), i, i),
    "np.sum": lambda i: np.sum(m(), i),
    "np.max": lambda i: np.max(m(), i),
    "np.stack": lambda i: np.stack([m(), m()], i),
    "np.take": lambda i: np.take(m(), i, i),
    "np.reshape": lambda i: np.reshape(m()[0, :1], i),
    "np.rot90": lambda i: np.rot90(m(), i),
}


def shown(results):
    several = results if isinstance(results, (tuple, list)) else [results]
    return [(r.shape, r.dtype, r.tolist()) for r in several]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CALLS)
def test_whole_numbers_of_the_array_library_are_as_good_as_any(name):
    expected = shown(CALLS[name](1))
    for kind in (np.int64, np.int32, np.uint8):
        found = CALLS[name](kind(1))
        assert shown(found) == expected
        for r in found if isinstance(found, (tuple, list)) else [found]:
            assert {type(n) for n in r.shape} <= {int}


def test_a_number_that_is_none_is_refused_as_before():
    for count in (1.0, np.float64(1)):
        for call in (m().split, m().roll, m().chunk):
            with pytest.raises((TypeError, ValueError)):
                call(count, 0)
