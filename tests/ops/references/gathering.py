"""Reference values of gathering, scattering, sets and counts, by NumPy or by plain loops."""

import numpy as np


def _each(index, axis):
    """Return (place in the index, place that it names) of an index of elements."""
    for here in np.ndindex(index.shape):
        there = list(here)
        there[axis] = index[here]
        yield here, tuple(there)


def _gather(x, index, axis):
    result = np.zeros(index.shape, x.dtype)
    for here, there in _each(index, axis):
        result[here] = x[there]
    return result


def _scatter(x, index, src, axis):
    result, src = x.copy(), np.broadcast_to(src, index.shape)
    for here, there in _each(index, axis):
        result[there] = src[here]
    return result


def _scatter_add(x, index, src, axis):
    result = x.copy()
    for here, there in _each(index, axis):
        result[there] += src[here]
    return result


def _written(x, index, source, axis):
    """Return x with slices overwritten, by a product with the rows that remain."""
    result = np.moveaxis(x, axis, 0).copy()
    wanted = (len(index), *result.shape[1:])
    values = np.broadcast_to(np.moveaxis(source, axis, 0) if source.ndim else source, wanted)
    for i, value in zip(index, values, strict=True):
        result[i] = value
    return np.moveaxis(result, 0, axis)


def _added(x, index, source, axis):
    rows = np.eye(x.shape[axis])[:, index]
    sums = np.tensordot(rows, np.moveaxis(source, axis, 0), 1)
    return x + np.moveaxis(sums, 0, axis)


def _put(g, mask):
    result = np.zeros(mask.shape, g.dtype)
    np.place(result, mask, g.ravel() if g.size else 0)
    return result


def _embedding(input, weight):
    rows = [weight[i] for i in input.ravel()]
    return np.reshape(rows, (*input.shape, weight.shape[1])).astype(weight.dtype)


def _histogram(x, bins, min=0.0, max=0.0):
    if min == max:
        min, max = (x.min(), x.max()) if x.size else (0.0, 0.0)
    limits = (min, max) if min < max else (min - 1, max + 1)
    return np.histogram(x, bins, limits)[0].astype(x.dtype)


REFERENCES = {
    "take_back": lambda g, index, axis, shape: _added(np.zeros(shape), index, g, axis),
    "gather": _gather,
    "gather_back": lambda g, index, axis, shape: _scatter_add(
        np.zeros(shape, g.dtype), index, g, axis
    ),
    "index_copy": _written,
    "index_fill": _written,
    "index_add": _added,
    "scatter": _scatter,
    "scatter_add": _scatter_add,
    "masked_put": _put,
    "embedding": _embedding,
    "histc": _histogram,
}
