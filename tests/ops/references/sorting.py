"""Reference values of sorting, searching and order statistics, by NumPy or by plain formulas."""

import numpy as np


def _argsort(x, axis=-1, descending=False):
    if not x.ndim:
        return np.zeros((), np.int64)
    return np.argsort(-x if descending else x, axis, kind="stable")


def _sort(x, axis=-1, descending=False):
    if not x.ndim:
        return x
    return -np.sort(-x, axis) if descending else np.sort(x, axis)


def _topk(x, k, dim=-1, largest=True):
    ordered = _sort(np.atleast_1d(x), dim, largest)
    chosen = np.take(ordered, np.arange(k), dim)
    return chosen if x.ndim else chosen.reshape(())


def _kth(x, k, dim=-1, keepdim=False):
    chosen = np.partition(np.atleast_1d(x), k - 1, dim).take([k - 1], dim)
    return chosen if keepdim else chosen.squeeze(dim)


def _running(ufunc):
    return lambda x, dim: ufunc.accumulate(x, dim) if x.ndim else x


def _place(argbest):
    """Return the places of running extremes: for each prefix, the last of the best."""

    def places(x, axis):
        rows = np.moveaxis(x, axis, -1)
        found = np.zeros(rows.shape, np.int64)
        for place in np.ndindex(rows.shape):
            *row, i = place
            found[place] = i - argbest(rows[tuple(row)][i::-1])
        return np.moveaxis(found, -1, axis)

    return places


REFERENCES = {
    "argsort": _argsort,
    "sort": _sort,
    "msort": lambda x: _sort(x, 0),
    "topk": _topk,
    "kthvalue": _kth,
    "cummax": _running(np.maximum),
    "cummin": _running(np.minimum),
    "cummax_place": _place(np.argmax),
    "cummin_place": _place(np.argmin),
}
