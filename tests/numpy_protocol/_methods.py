"""Every public attribute of ndarray: calls that mean on tensors what they mean on arrays, or raise.

A program runs on NumPy's arrays and on `NumPyTensor`s alike; what it returns is compared, and what
it leaves in the array.
"""

import numpy as np
from tests.numpy_protocol._calls import EVEN, on

vector, matrix, square, cube = on((5,)), on((3, 4)), on((3, 3)), on((2, 3, 4))
wide, pair, scalar = on((3, 4), low=-2.0, high=2.0), on((3, 4), (4,)), on(())
numbers, single = on((3, 4), kind="c"), on((1, 3, 1))


def then(change):
    """Return the program that changes its array in place and returns it."""

    def run(x, *more):
        x = x.copy()
        assert change(x, *more) is None
        return x

    return run


def filled_flat(x):
    x = x.T.copy()
    x.flat[1:3] = 7.0
    x.flat[5] = x.flat[0] * 2
    return x


def set_flat(x):
    x = x.copy()
    x.flat = x[0] * 2
    return x


METHODS = {
    "T": [matrix(lambda x: x.T), cube(lambda x: x.T)],
    "all": [
        wide(lambda x: (x > 0).all()),
        wide(lambda x: (x > -1).all(0)),
        wide(lambda x: (x > -1).all(axis=1, keepdims=True)),
        wide(lambda x: (x > 0).all(where=EVEN)),
    ],
    "any": [
        wide(lambda x: (x > 0).any()),
        wide(lambda x: (x > 1).any(0)),
        wide(lambda x: (x > 1).any(axis=(0, 1), keepdims=True)),
    ],
    "argmax": [
        wide(lambda x: x.argmax()),
        wide(lambda x: x.argmax(1)),
        wide(lambda x: x.argmax(0)),
    ],
    "argmin": [wide(lambda x: x.argmin()), wide(lambda x: x.argmin(axis=1, keepdims=True))],
    "argpartition": [vector(lambda x: x[x.argpartition(2)[2]])],
    "argsort": [
        wide(lambda x: x.argsort()),
        wide(lambda x: x.argsort(0)),
        wide(lambda x: x.argsort(axis=None, kind="stable")),
    ],
    "astype": [
        matrix(lambda x: x.astype(float)),
        matrix(lambda x: x.astype(int)),
        matrix(lambda x: x.astype("int32") + 1),
        matrix(lambda x: x.astype(complex)),
        matrix(lambda x: x.astype(bool)),
        matrix(lambda x: x.astype(x.dtype, copy=False)),
    ],
    "base": [matrix(lambda x: x.copy().base is None)],
    "clip": [
        wide(lambda x: x.clip(-1, 1)),
        wide(lambda x: x.clip(min=0.25)),
        wide(lambda x: x.clip(max=0.25)),
        pair(lambda x, y: x.clip(y, 1.5)),
        wide(lambda x: x.clip(None, 1.0)),
    ],
    "choose": [pair(lambda x, y: (x > 1).astype(int).choose([x, y]))],
    "compress": [
        matrix(lambda x: x.compress([True, False, True], axis=0)),
        matrix(lambda x: x.compress([False, True, True])),
    ],
    "conj": [numbers(lambda x: x.conj()), matrix(lambda x: x.conj())],
    "conjugate": [numbers(lambda x: x.conjugate()), matrix(lambda x: x.conjugate())],
    "copy": [matrix(lambda x: x.copy()), matrix(lambda x: x.copy(order="F"))],
    "cumprod": [matrix(lambda x: x.cumprod()), matrix(lambda x: x.cumprod(1))],
    "cumsum": [
        matrix(lambda x: x.cumsum()),
        matrix(lambda x: x.cumsum(0)),
        matrix(lambda x: x.cumsum(axis=-1)),
        matrix(lambda x: x.astype(int).cumsum(dtype=float)),
    ],
    "device": [matrix(lambda x: x.device)],
    "diagonal": [
        matrix(lambda x: x.diagonal()),
        matrix(lambda x: x.diagonal(1)),
        cube(lambda x: x.diagonal(0, 1, 2)),
        cube(lambda x: x.diagonal(offset=-1, axis1=2, axis2=0)),
    ],
    "dot": [
        pair(lambda x, y: x.dot(y)),
        square(lambda x: x.dot(x)),
        cube(lambda x: x.dot(x[0].T)),
        vector(lambda x: x.dot(2.0)),
        matrix(lambda x: x.dot(np.ones(4))),
    ],
    "dtype": [
        matrix(lambda x: x.dtype == np.float64),
        matrix(lambda x: (x.dtype == float, x.dtype == int, x.dtype == "f8", x.dtype.kind)),
        matrix(lambda x: np.zeros(3, dtype=x.dtype)),
        matrix(lambda x: (np.finfo(x.dtype).eps, np.issubdtype(x.dtype, np.floating))),
        matrix(lambda x: x.dtype in (np.float32, np.float64)),
        matrix(lambda x: np.dtype(x.dtype).name),
        matrix(lambda x: (x.dtype.type is np.float64, x.dtype.char, x.dtype.itemsize)),
    ],
    "fill": [matrix(then(lambda x: x.fill(2))), matrix(then(lambda x: x[0].fill(x[1, 1])))],
    "flags": [matrix(lambda x: (x.flags.c_contiguous, x.T.flags.c_contiguous))],
    "flat": [
        matrix(lambda x: x.flat[5]),
        matrix(lambda x: x.T.flat[[1, 5]]),
        matrix(lambda x: np.stack(list(x.T.flat))),
        matrix(lambda x: (len(x.flat), x.flat.copy())[1]),
        matrix(filled_flat),
        matrix(set_flat),
    ],
    "flatten": [matrix(lambda x: x.flatten()), cube(lambda x: x.flatten("F"))],
    "imag": [numbers(lambda x: x.imag), matrix(lambda x: x.imag)],
    "item": [
        matrix(lambda x: x.item(5)),
        matrix(lambda x: x.item(1, 2)),
        matrix(lambda x: x.item((1, 2))),
        scalar(lambda x: x.item()),
    ],
    "itemsize": [matrix(lambda x: x.itemsize)],
    "mT": [cube(lambda x: x.mT)],
    "max": [
        wide(lambda x: x.max()),
        wide(lambda x: x.max(0)),
        wide(lambda x: x.max(axis=1, keepdims=True)),
        cube(lambda x: x.max((0, 2))),
        wide(lambda x: x.max(axis=0, initial=1.0)),
        wide(lambda x: x.max(axis=1, where=EVEN, initial=-9.0)),
    ],
    "mean": [
        matrix(lambda x: x.mean()),
        matrix(lambda x: x.mean(1)),
        cube(lambda x: x.mean(axis=(0, -1), keepdims=True)),
        matrix(lambda x: x.astype(int).mean()),
        wide(lambda x: (x > 0).mean(axis=0)),
        matrix(lambda x: x.mean(where=EVEN)),
    ],
    "min": [
        wide(lambda x: x.min()),
        wide(lambda x: x.min(-1)),
        wide(lambda x: x.min(axis=0, keepdims=True)),
        wide(lambda x: x.min(initial=-9)),
    ],
    "nbytes": [matrix(lambda x: x.nbytes)],
    "ndim": [cube(lambda x: x.ndim)],
    "nonzero": [
        wide(lambda x: (x > 0).nonzero()),
        wide(lambda x: x[(x > 0).nonzero()]),
    ],
    "partition": [
        vector(lambda x: then(lambda y: y.partition(2))(x)[2]),
        matrix(lambda x: then(lambda y: y.partition(1, axis=0))(x)[1]),
    ],
    "prod": [
        matrix(lambda x: x.prod()),
        matrix(lambda x: x.prod(axis=0)),
        matrix(lambda x: x.prod(1, keepdims=True)),
        matrix(lambda x: x.prod(initial=3.0)),
    ],
    "ptp": [matrix(lambda x: x.ptp(axis=0) if hasattr(x, "ptp") else np.ptp(x, axis=0))],
    "put": [
        matrix(then(lambda x: x.put([1, 5], [8.0, 9.0]))),
        matrix(then(lambda x: x.put([1, 5, -1], 8.0))),
        matrix(then(lambda x: x.put([0, 25], [8.0, 9.0], mode="wrap"))),
        pair(then(lambda x, y: x.put([0, 2, 4, 6, 8], y * 2))),
        matrix(then(lambda x: x.put([], [8.0]))),
    ],
    "ravel": [
        matrix(lambda x: x.ravel()),
        matrix(lambda x: x.T.ravel("K")),
        cube(lambda x: x.ravel("F")),
    ],
    "real": [numbers(lambda x: x.real), matrix(lambda x: x.real)],
    "repeat": [
        matrix(lambda x: x.repeat(2)),
        matrix(lambda x: x.repeat(2, 1)),
        matrix(lambda x: x.repeat([1, 0, 2], axis=0)),
    ],
    "reshape": [
        matrix(lambda x: x.reshape(2, 6)),
        matrix(lambda x: x.reshape((4, -1))),
        matrix(lambda x: x.reshape(-1)),
        matrix(lambda x: x.reshape([2, 6])),
        cube(lambda x: x.reshape(4, 6, order="F")),
        matrix(lambda x: x.T.reshape((2, 6), order="A")),
        matrix(lambda x: x.reshape(np.int64(2), 6)),
        scalar(lambda x: x.reshape(())),
    ],
    "round": [
        wide(lambda x: x.round()),
        wide(lambda x: x.round(1)),
        wide(lambda x: x.round(decimals=2)),
    ],
    "searchsorted": [vector(lambda x: np.sort(x).searchsorted([0.7, 1.2], side="right"))],
    "shape": [cube(lambda x: x.shape)],
    "size": [cube(lambda x: x.size), cube(lambda x: type(x.size) is int)],
    "sort": [
        wide(then(lambda x: x.sort())),
        wide(then(lambda x: x.sort(0))),
        wide(then(lambda x: x.sort(axis=-1, kind="stable"))),
    ],
    "squeeze": [
        single(lambda x: x.squeeze()),
        single(lambda x: x.squeeze(0)),
        single(lambda x: x.squeeze(axis=(0, 2))),
    ],
    "std": [
        matrix(lambda x: x.std()),
        matrix(lambda x: x.std(0)),
        matrix(lambda x: x.std(axis=1, ddof=1, keepdims=True)),
        matrix(lambda x: x.astype(int).std()),
        numbers(lambda x: x.std(axis=0)),
    ],
    "strides": [matrix(lambda x: x.T.strides)],
    "sum": [
        matrix(lambda x: x.sum()),
        matrix(lambda x: x.sum(0)),
        matrix(lambda x: x.sum(axis=1, keepdims=True)),
        cube(lambda x: x.sum((0, 2))),
        matrix(lambda x: x.sum(None, np.float32)),
        matrix(lambda x: x.sum(0, None, None, True)),
        matrix(lambda x: x.sum(axis=0, initial=3.0)),
        matrix(lambda x: x.sum(axis=0, where=EVEN)),
        wide(lambda x: (x > 0).sum()),
    ],
    "swapaxes": [cube(lambda x: x.swapaxes(0, 2)), cube(lambda x: x.swapaxes(-1, 1))],
    "take": [
        matrix(lambda x: x.take([1, 5, 5])),
        matrix(lambda x: x.take([[0, 2], [1, 1]], axis=1)),
        matrix(lambda x: x.take(2, 0)),
    ],
    "to_device": [matrix(lambda x: x.to_device("cpu"))],
    "tolist": [matrix(lambda x: x.tolist()), scalar(lambda x: x.tolist())],
    "trace": [square(lambda x: x.trace()), cube(lambda x: x.trace(1, 1, 2))],
    "transpose": [
        matrix(lambda x: x.transpose()),
        cube(lambda x: x.transpose()),
        cube(lambda x: x.transpose(1, 2, 0)),
        cube(lambda x: x.transpose((0, 2, 1))),
        cube(lambda x: x.transpose([2, 0, 1])),
        cube(lambda x: x.transpose(None)),
    ],
    "var": [
        matrix(lambda x: x.var()),
        matrix(lambda x: x.var(0)),
        matrix(lambda x: x.var(axis=1, ddof=1)),
        matrix(lambda x: x.var(keepdims=True)),
    ],
    "view": [matrix(lambda x: x.view()), matrix(lambda x: x.view(np.float64))],
}

# On a tensor that does not require grad these are those of its array; else they raise.
OF_THE_ARRAY = {
    "ctypes": lambda x: x.ctypes.strides[:],
    "data": lambda x: (x.data.shape, x.data.tolist()),
    "dump": None,  # writes a file, see the test
    "dumps": lambda x: np.loads(x.dumps()) if hasattr(np, "loads") else x.dumps()[:1],
    "tobytes": lambda x: x.tobytes(),
    "tofile": None,
}

RAISES = {
    "byteswap": (lambda x: x.byteswap(), "convert the array before it becomes a tensor"),
    "getfield": (lambda x: x.getfield(np.float32), "use astype for other numbers"),
    "resize": (lambda x: x.resize((2, 6)), r"np.resize\(x, shape\)"),
    "setfield": (lambda x: x.setfield(1.0, np.float64), "assign to an index"),
    "setflags": (lambda x: x.setflags(write=False), r"is kept by copy\(\)"),
}

# What means less than in NumPy, or PyTorch's arguments, said by an error.
MISTAKES = {
    "PyTorch's view": (lambda x: x.view(2, 6), r"reshape\(\) gives another shape"),
    "view of the bytes": (lambda x: x.view(np.int64), "bytes have no gradient"),
    "PyTorch's transpose": (lambda x: x.reshape(2, 2, 3).transpose(0, 1), "each of the 3 axes"),
    "PyTorch's unbiased": (lambda x: x.std(unbiased=False), "a call without unbiased= required"),
    "PyTorch's descending": (lambda x: x.argsort(descending=True), "without descending= required"),
    "PyTorch's size": (lambda x: x.size(), "'int' object is not callable"),
    "PyTorch's maximum": (lambda x: x.max(x), "axis must be an integer"),
    "squeezing what is longer": (lambda x: x.squeeze(0), "length 1"),
    "another order": (lambda x: x.reshape(2, 6, order="Z"), "order 'C' or 'F' required"),
    "a shape assigned": (lambda x: setattr(x, "shape", (2, 6)), r"reshape\(\) required"),
    "a cast that is not safe": (lambda x: x.astype(int, casting="safe"), "casting='safe'"),
    "an order of fields": (lambda x: x.copy().sort(order="a"), "order"),
    "both names of an axis": (lambda x: x.sum(axis=0, dim=0), "axis"),
}

PYTORCHS = {
    "dim": (lambda x: x.sum(dim=0), lambda a: a.sum(axis=0)),
    "dim of max": (lambda x: x.max(dim=1), lambda a: a.max(axis=1)),
    "dim of std": (lambda x: x.std(dim=1, keepdim=True), lambda a: a.std(axis=1, keepdims=True)),
    "keepdim": (lambda x: x.mean(dim=1, keepdim=True), lambda a: a.mean(axis=1, keepdims=True)),
    "argmax": (lambda x: x.argmax(dim=1), lambda a: a.argmax(axis=1)),
    "cumsum": (lambda x: x.cumsum(dim=1), lambda a: a.cumsum(axis=1)),
    "clamp": (lambda x: x.clamp(min=0.0), lambda a: a.clip(0.0)),
    "mm": (lambda x: x.mm(x.t()), lambda a: a @ a.T),
    "unsqueeze": (lambda x: x.unsqueeze(0), lambda a: a[None]),
    "relu": (lambda x: x.relu(), lambda a: a.clip(0.0)),
    "amax": (lambda x: x.amax(dim=0), lambda a: a.max(axis=0)),
}

INDICES = {
    "an integer, a slice and a list": lambda x: x[1, 1:, [1, 3]],
    "a list, a slice and an integer": lambda x: x[[0, 1], :, 2],
    "an integer and a list": lambda x: x[1, [0, 2]],
    "a list behind an integer and a new axis": lambda x: x[0, None, [0, 2]],
    "lists around a slice": lambda x: x[[0, 1], 1:, [1, 3]],
    "lists side by side": lambda x: x[:, [0, 2], [1, 3]],
    "a mask behind an integer": lambda x: x[1, [True, False, True]],
    "an integer and a mask apart": lambda x: x[1, :, [True, False, True, True]],
    "a mask": lambda x: x[x > 1.2],
    "arrays": lambda x: x[np.array([[0, 1], [1, 1]]), np.array([0, 2])],
    "NumPy's integers": lambda x: x[np.int64(1), :, np.array([0, 1])],
    "an ellipsis and a list": lambda x: x[..., [0, 1]],
    "slices": lambda x: x[::-1, None, 1:, -1],
    "no list": lambda x: x[(0, 1)],
}
