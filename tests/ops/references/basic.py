"""Reference values of the basic operations, by NumPy or by plain formulas."""

import numpy as np


def _added(g, index, shape):
    result = np.zeros(shape, g.dtype)
    np.add.at(result, index, g)
    return result


def _written(x, value, index):
    result = x.copy()
    result[index] = value
    return result


def _parts(x, sizes, axis):
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def _softmax(x, axis):
    axis = axis if x.ndim else None
    return np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True)


REFERENCES = {
    "split": _parts,
    "take": np.take,
    "index_put": _added,
    "setitem": _written,
    "softmax": _softmax,
    "log_softmax": lambda x, axis: np.log(_softmax(x, axis)) if x.size else x,
}
