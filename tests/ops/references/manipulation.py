"""Reference values of manipulation, scans and statistics, by NumPy or by plain formulas."""

import numpy as np

_MODES = {"replicate": "edge", "circular": "wrap"}


def _padded(x, widths, value=0, mode="constant"):
    """Pad by pairs of widths, one an axis; negative ones cut off."""
    cut = [
        slice(max(-low, 0), n - max(-high, 0))
        for n, (low, high) in zip(x.shape, widths, strict=True)
    ]
    grown = [(max(low, 0), max(high, 0)) for low, high in widths]
    more = {"constant_values": value} if mode == "constant" else {}
    return np.pad(x[tuple(cut)], grown, mode, **more) if x.ndim else x


def _pad(x, pad, mode="constant", value=0):
    pairs = list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    widths = [(0, 0)] * (x.ndim - len(pairs)) + pairs
    return _padded(x, widths, value, _MODES.get(mode, mode))


def _windows(x, dimension, size, step):
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=dimension)
    every = [slice(None)] * x.ndim
    every[dimension] = slice(None, None, step)
    return windows[(*every, ...)]


def _folded(g, axis, step, shape):
    result = np.zeros(shape, g.dtype)
    for number in range(g.shape[axis]):
        place = [slice(None)] * len(shape)
        place[axis] = slice(number * step, number * step + g.shape[-1])
        result[tuple(place)] += np.moveaxis(g.take(number, axis), -1, axis)
    return result


def _cumulated(function):
    return lambda x, axis: function(x, axis).reshape(x.shape)


def _moments(function):
    def both(x, axis=None, keepdims=False):
        return function(x, axis=axis, keepdims=keepdims, ddof=1), np.mean(
            x, axis, keepdims=keepdims
        )

    return both


REFERENCES = {
    "pad": _pad,
    "pad_constant": _padded,
    "unfoldDim": _windows,
    "foldDim": _folded,
    "cumsum": _cumulated(np.cumsum),
    "cumprod": _cumulated(np.cumprod),
    "logcumsumexp": _cumulated(lambda x, axis: np.log(np.cumsum(np.exp(x), axis))),
    "var_mean": _moments(np.var),
    "std_mean": _moments(np.std),
}
