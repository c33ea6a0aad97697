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
    name: getattr(np, name)
    for name in (
        *("broadcast_arrays", "meshgrid", "moveaxis", "ravel", "roll", "fliplr", "flipud"),
        *(
            "repeat",
            "tril",
            "triu",
            "atleast_1d",
            "atleast_2d",
            "atleast_3d",
            "cumulative_sum",
            "cumulative_prod",
            "nansum",
            "nanmean",
        ),
        "count_nonzero",
    )
}
REFERENCES |= {
    "column_stack": lambda *arrays: np.column_stack(arrays),
    "dstack": lambda *arrays: np.dstack(arrays),
    "hstack": lambda *arrays: np.hstack(arrays),
    "vstack": lambda *arrays: np.vstack(arrays),
    "tile": lambda x, repetitions: np.tile(x, repetitions),
    "movedim": np.moveaxis,
    "unsqueeze": lambda x, dim: np.expand_dims(x, dim),
    "unflatten": lambda x, dim, sizes: x.reshape(*x.shape[:dim], *sizes),
    "select": lambda x, dim, index: x.take(index, dim),
    "narrow": lambda x, dim, start, length: x.take(range(start, start + length), dim),
    "tensor_split": lambda x, indices_or_sections, dim=0: np.array_split(
        x, indices_or_sections, dim
    ),
    "repeat_interleave": lambda x, repeats, dim: np.repeat(x, repeats, dim),
    "rot90": lambda x, k=1, dims=(0, 1): np.rot90(x, k, dims),
    "diag": lambda x, diagonal=0: np.diag(x, diagonal),
    "diff": lambda x, prepend, append, axis=-1, n=1: np.diff(x, n, axis, prepend, append),
    "pad": _pad,
    "pad_constant": _padded,
    "unfoldDim": _windows,
    "foldDim": _folded,
    "cumsum": _cumulated(np.cumsum),
    "cumprod": _cumulated(np.cumprod),
    "logcumsumexp": _cumulated(lambda x, axis: np.log(np.cumsum(np.exp(x), axis))),
    "amax": np.max,
    "amin": np.min,
    "aminmax": lambda x, axis, keepdims: (np.min(x, axis), np.max(x, axis)),
    "var_mean": _moments(np.var),
    "std_mean": _moments(np.std),
}

RESULTS = {
    "count_nonzero": "int64",
    "var_mean": ("real", "same"),
    "std_mean": ("real", "same"),
}
NO_SCALARS = {
    *("movedim", "unsqueeze", "unflatten", "select", "narrow", "tensor_split", "fliplr", "flipud"),
    *("rot90", "repeat_interleave", "tril", "triu", "diag", "diff", "unfoldDim", "foldDim"),
    *(
        "dstack",
        "cumulative_sum",
        "cumulative_prod",
        "amax",
        "amin",
        "aminmax",
        "var_mean",
        "std_mean",
    ),
}
