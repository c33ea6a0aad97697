"""Reference values of sliding windows, convolutions and pooling: plain loops over windows."""

import itertools

import numpy as np


def _each(value, n):
    return tuple(value) if isinstance(value, tuple) else (value,) * n


def _surrounded(x, padding, value=0):
    """Return `x` with a border around its last axes."""
    pairs = [(0, 0)] * (x.ndim - len(padding)) + [(p, p) for p in padding]
    return np.pad(x, pairs, constant_values=value)


def _places(lengths, sizes, stride, dilation):
    """Return for each window, in order, the index that reads it."""
    spans = [d * (k - 1) + 1 for k, d in zip(sizes, dilation, strict=True)]
    starts = [range(0, n - span + 1, s) for n, span, s in zip(lengths, spans, stride, strict=True)]
    axes = list(zip(spans, dilation, strict=True))
    return [
        (..., *(slice(b, b + span, d) for b, (span, d) in zip(begin, axes, strict=True)))
        for begin in itertools.product(*starts)
    ]


def _unfold(x, kernel_size, dilation=1, padding=0, stride=1):
    sizes, padding = _each(kernel_size, 2), _each(padding, 2)
    wide = _surrounded(x, padding)
    places = _places(wide.shape[-2:], sizes, _each(stride, 2), _each(dilation, 2))
    rows = x.shape[-3] * int(np.prod(sizes))
    return np.stack([wide[place].reshape(*x.shape[:-3], rows) for place in places], axis=-1)


def _fold(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    sizes, padding = _each(kernel_size, 2), _each(padding, 2)
    channels = x.shape[-2] // int(np.prod(sizes))
    lengths = _each(output_size, 2)
    wide = _surrounded(np.zeros((*x.shape[:-2], channels, *lengths), x.dtype), padding)
    places = _places(wide.shape[-2:], sizes, _each(stride, 2), _each(dilation, 2))
    for number, place in enumerate(places):
        wide[place] += x[..., number].reshape(*x.shape[:-2], channels, *sizes)
    return wide[(..., *(slice(p, p + n) for p, n in zip(padding, lengths, strict=True)))]


# -- convolutions: one output element at a time ---------------------------------------------------
def _product(x, weight, stride, dilation, groups):
    """Return, for an input with its border, the sums over windows times the weight."""
    outs, n = weight.shape[0], weight.ndim - 2
    sizes = weight.shape[2:]
    places = _places(x.shape[2:], sizes, stride, dilation)
    spans = [d * (k - 1) + 1 for k, d in zip(sizes, dilation, strict=True)]
    shape = [(m - span) // s + 1 for m, span, s in zip(x.shape[2:], spans, stride, strict=True)]
    result = np.zeros((x.shape[0], outs, len(places)), np.result_type(x, weight))
    for o in range(outs):
        group = o // (outs // groups)
        channels = x[:, group * weight.shape[1] : (group + 1) * weight.shape[1]]
        for number, place in enumerate(places):
            result[:, o, number] = (channels[place] * weight[o]).sum(axis=tuple(range(1, n + 2)))
    return result.reshape(x.shape[0], outs, *shape)


def _cut(x, padding):
    """Return `x` with zeros around its last axes, or less of it where a padding is negative."""
    wide = np.pad(x, [(0, 0), (0, 0), *((max(a, 0), max(b, 0)) for a, b in padding)])
    return wide[(..., *(slice(max(-a, 0), min(b, 0) or None) for a, b in padding))]


def _transposed(y, weight, lengths, stride, dilation, padding, groups):
    """Return each element of y times the weight, added up at the place of its window."""
    batch, outs, *_ = y.shape
    channels, sizes = weight.shape[1] * groups, weight.shape[2:]
    wide = [n + a + b for n, (a, b) in zip(lengths, padding, strict=True)]
    room = [n + max(-b, 0) for n, (_, b) in zip(wide, padding, strict=True)]
    result = np.zeros((batch, channels, *room), np.result_type(y, weight))
    for number, place in enumerate(_places(wide, sizes, stride, dilation)):
        for o in range(outs):
            first = o // (outs // groups) * weight.shape[1]
            part = result[:, first : first + weight.shape[1]]
            value = y.reshape(batch, outs, -1)[:, o, number]
            part[place] += value.reshape(-1, *(1,) * (weight.ndim - 1)) * weight[o]
    axes = zip(padding, lengths, strict=True)
    return result[(..., *(slice(a, a + n) for (a, _), n in axes))]


def _convolution(x, weight, geometry, groups):
    stride, dilation, padding = geometry
    return _product(_cut(x, padding), weight, stride, dilation, groups)


def _lengths(y, weight, stride, dilation, padding):
    axes = zip(y.shape[2:], weight.shape[2:], stride, dilation, padding, strict=True)
    return [(n - 1) * s + d * (k - 1) + 1 - a - b for n, k, s, d, (a, b) in axes]


def _convolution_input(y, weight, geometry, groups):
    """Solve <convolution(x, weight), y> = <x, result> for the result, one unit x at a time."""
    lengths = _lengths(y, weight, *geometry)
    x = np.zeros((y.shape[0], weight.shape[1] * groups, *lengths))
    return _adjoint(x, lambda unit: (_convolution(unit, weight, geometry, groups) * y).sum())


def _convolution_weight(x, y, geometry, groups):
    """Solve <convolution(x, weight), y> = <weight, result> for the result likewise."""
    axes = zip(x.shape[2:], y.shape[2:], *geometry, strict=True)
    sizes = [(n + a + b - (m - 1) * s - 1) // d + 1 for n, m, s, d, (a, b) in axes]
    weight = np.zeros((y.shape[1], x.shape[1] // groups, *sizes))
    return _adjoint(weight, lambda unit: (_convolution(x, unit, geometry, groups) * y).sum())


def _adjoint(zeros, product):
    result = zeros.copy()
    for place in np.ndindex(zeros.shape):
        unit = zeros.copy()
        unit[place] = 1
        result[place] = product(unit)
    return result


def _conv(input, weight, bias, stride=1, padding=0, dilation=1, groups=1):
    n, batched = weight.ndim - 2, input.ndim == weight.ndim
    x = input if batched else input[None]
    dilation = _each(dilation, n)
    if padding == "same":
        total = [d * (k - 1) for k, d in zip(weight.shape[2:], dilation, strict=True)]
        x = np.pad(x, [(0, 0), (0, 0), *((t // 2, t - t // 2) for t in total)])
    else:
        x = _surrounded(x, _each(padding, n))
    y = _product(x, weight, _each(stride, n), dilation, groups) + bias.reshape(-1, *(1,) * n)
    return y if batched else y[0]


def _conv_transpose(
    input, weight, bias, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    n, batched = weight.ndim - 2, input.ndim == weight.ndim
    y, stride, dilation = input if batched else input[None], _each(stride, n), _each(dilation, n)
    cut, extra = _each(padding, n), _each(output_padding, n)
    pads = [(p, p - e) for p, e in zip(cut, extra, strict=True)]
    lengths = _lengths(y, weight, stride, dilation, pads)
    result = _transposed(y, weight, lengths, stride, dilation, pads, groups)
    result = result + bias.reshape(-1, *(1,) * n)
    return result if batched else result[0]


# -- pooling: each window by itself ----------------------------------------------------------------
def _elements(length, size, step, pad, dilation, ceil):
    """Return where each window of an axis begins, and its elements that are no padding."""
    span = dilation * (size - 1) + 1
    count = (length + 2 * pad - span) / step
    count = int(np.ceil(count) if ceil else np.floor(count)) + 1
    begins = [i * step - pad for i in range(count) if i * step < length + pad]
    return [
        (begin, [p for p in range(begin, begin + span, dilation) if 0 <= p < length])
        for begin in begins
    ]


def _pooled(x, axes, function):
    """Return ``function(begins, elements)`` of each window, each axis being a list of windows."""
    result = np.zeros((*x.shape[: -len(axes)], *map(len, axes)))
    for place in np.ndindex(*map(len, axes)):
        window = [axis[i] for axis, i in zip(axes, place, strict=True)]
        elements = x[(..., *np.ix_(*(which for _, which in window)))]
        result[(..., *place)] = function([begin for begin, _ in window], elements)
    return result


def _axes(n, x, kernel_size, stride, padding, dilation, ceil_mode):
    each = [kernel_size, kernel_size if stride is None else stride, padding, dilation]
    settings = zip(x.shape[-n:], *(_each(value, n) for value in each), strict=True)
    return [_elements(*setting, ceil_mode) for setting in settings]


def _max_pool(n):
    def pool(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
        axes = _axes(n, x, kernel_size, stride, padding, dilation, ceil_mode)
        return _pooled(x, axes, lambda _, window: window.max(axis=tuple(range(-n, 0))))

    return pool


def _avg_pool(n):
    def pool(
        x,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        sizes, borders = _each(kernel_size, n), _each(padding, n)

        def mean(begins, window):
            number = np.prod(window.shape[-n:])
            if count_include_pad:
                axes = zip(begins, sizes, x.shape[-n:], borders, strict=True)
                number = np.prod([min(b + k, m + p) - b for b, k, m, p in axes])
            return window.sum(axis=tuple(range(-n, 0))) / (divisor_override or number)

        axes = _axes(n, x, kernel_size, stride, padding, 1, ceil_mode)
        return _pooled(x, axes, mean)

    return pool


def _adaptive_avg_pool(n):
    def pool(x, output_size):
        lengths = x.shape[-n:]
        counts = [
            length if m is None else m
            for m, length in zip(_each(output_size, n), lengths, strict=True)
        ]
        axes = [
            [
                (0, range(int(np.floor(i * length / m)), int(np.ceil((i + 1) * length / m))))
                for i in range(m)
            ]
            for m, length in zip(counts, lengths, strict=True)
        ]
        return _pooled(x, axes, lambda _, window: window.mean(axis=tuple(range(-n, 0))))

    return pool


def _max_positions(x, sizes, geometry):
    n, lengths = len(sizes), x.shape[-len(sizes) :]
    pads = [low for low, _ in geometry.padding]
    numbers = np.arange(np.prod(lengths)).reshape(lengths)
    axes = [
        _elements(*setting, False)
        for setting in zip(lengths, sizes, geometry.stride, pads, geometry.dilation, strict=True)
    ]
    result = np.zeros((*x.shape[:-n], *map(len, axes)), np.int64)
    for place in np.ndindex(*result.shape):
        window = np.ix_(*(axes[i][k][1] for i, k in enumerate(place[-n:])))
        best = np.argmax(x[place[:-n]][window])
        result[place] = numbers[window].reshape(-1)[best]
    return result


def _mean_windows(x, sizes, geometry, divisor):
    n = len(sizes)
    wide = np.pad(x, [(0, 0)] * (x.ndim - n) + list(geometry.padding))
    places = _places(wide.shape[-n:], sizes, geometry.stride, geometry.dilation)
    sums = [wide[place].sum(axis=tuple(range(-n, 0))) for place in places]
    by = np.ravel(np.outer(*divisor)) if isinstance(divisor, tuple) else divisor
    lengths = zip(wide.shape[-n:], sizes, geometry.stride, strict=True)
    shape = [(m - k) // s + 1 for m, k, s in lengths]
    return (np.stack(sums, axis=-1) / by).reshape(*x.shape[:-n], *shape)


def _spread_windows(y, lengths, sizes, geometry, divisor):
    x = np.zeros((*y.shape[: -len(sizes)], *lengths))
    return _adjoint(x, lambda unit: (_mean_windows(unit, sizes, geometry, divisor) * y).sum())


REFERENCES = {
    "unfold": _unfold,
    "fold": _fold,
    "convolution": _convolution,
    "convolution_input": _convolution_input,
    "convolution_weight": _convolution_weight,
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _conv),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _conv_transpose),
    **{f"max_pool{n}d": _max_pool(n) for n in (1, 2, 3)},
    **{f"avg_pool{n}d": _avg_pool(n) for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": _adaptive_avg_pool(n) for n in (1, 2)},
    "max_positions": _max_positions,
    "mean_windows": _mean_windows,
    "spread_windows": _spread_windows,
}
