"""Reference values of attention, recurrence, resampling and further pooling, by plain formulas."""

import math

import numpy as np


def _attention(q, k, v, is_causal=False, scale=None, enable_gqa=False):
    if enable_gqa:
        k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    weights = np.exp(scores)
    weights = np.tril(weights) if is_causal else weights
    return weights / weights.sum(-1, keepdims=True) @ v


def _keys(t, a=-0.75):
    """Return the weight of cubic convolution at a distance (Keys, 1981)."""
    t = abs(t)
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else 0


def _hat(t):
    return max(0, 1 - abs(t))


def _resized(x, axis, m, scale, mode, align_corners):
    n = x.shape[axis]
    matrix = np.zeros((m, n))
    for i in range(m):
        if mode.startswith("nearest"):
            matrix[i, min(int((i + (mode == "nearest-exact") / 2) * scale), n - 1)] = 1
            continue
        place = i * (n - 1) / max(m - 1, 1) if align_corners else (i + 0.5) * scale - 0.5
        weight = _keys if mode == "bicubic" else _hat
        for j in range(math.floor(place) - 1, math.floor(place) + 3):
            matrix[i, min(max(j, 0), n - 1)] += weight(place - j)
    return np.moveaxis(np.tensordot(matrix, x, axes=(1, axis)), 0, axis).astype(x.dtype)


def _interpolate(x, size=None, scale_factor=None, mode="nearest", align_corners=False):
    count = x.ndim - 2
    given = scale_factor if size is None else size
    given = given if isinstance(given, tuple) else (given,) * count
    for axis, value in enumerate(given, 2):
        n = x.shape[axis]
        m, scale = (int(n * value), 1 / value) if size is None else (value, n / value)
        x = _resized(x, axis, m, scale, mode, align_corners)
    return x


def _ends(n, align_corners):
    return np.linspace(-1, 1, n) if align_corners else (2 * np.arange(n) + 1) / n - 1


def _affine_grid(theta, size, align_corners=False):
    ends = [_ends(n, align_corners) if n > 1 or not align_corners else [0] for n in size[2:]]
    places = np.meshgrid(*ends, indexing="ij")
    points = np.stack([*reversed(places), np.ones_like(places[0])], -1)
    return np.einsum("nij,...j->n...i", theta, points)


def _reflected(place, low, high):
    while not low <= place <= high:
        place = 2 * low - place if place < low else 2 * high - place
    return place


def _grid_sample(x, grid, padding_mode="zeros", align_corners=False, mode="bilinear"):
    near = _keys if mode == "bicubic" else _hat
    result = np.zeros((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    for n, *place in np.ndindex(grid.shape[:-1]):
        places = []
        for value, size in zip(grid[(n, *place)], x.shape[:1:-1], strict=True):
            half = (size - align_corners) / 2
            at = (value + 1) * half - (0 if align_corners else 0.5)
            if padding_mode == "reflection":
                at = _reflected(at, *((0, size - 1) if align_corners else (-0.5, size - 0.5)))
            places.append(at if padding_mode == "zeros" else min(max(at, 0), size - 1))
        for pixel in np.ndindex(x.shape[2:]):
            weight = math.prod(near(a - b) for a, b in zip(reversed(places), pixel, strict=True))
            result[(n, slice(None), *place)] += weight * x[(n, slice(None), *pixel)]
    return result


def _adaptive(take, count):
    def pool(x, output_size):
        sizes = output_size if isinstance(output_size, tuple) else (output_size,) * count
        lengths = x.shape[-count:]
        sizes = [m or n for m, n in zip(sizes, lengths, strict=True)]
        result = np.zeros((*x.shape[:-count], *sizes), x.dtype)
        for place in np.ndindex(*sizes):
            window = tuple(
                slice(i * n // m, -(-(i + 1) * n // m))
                for i, n, m in zip(place, lengths, sizes, strict=True)
            )
            result[(..., *place)] = take(x[(..., *window)], axis=tuple(range(-count, 0)))
        return result

    return pool


def _unpooled(count):
    def put(x, indices, kernel_size, output_size=None):
        lengths = output_size or [n * kernel_size for n in x.shape[-count:]]
        result = np.zeros((*x.shape[:-count], math.prod(lengths)), x.dtype)
        np.put_along_axis(
            result,
            indices.reshape(*x.shape[:-count], -1),
            x.reshape(*x.shape[:-count], -1),
            axis=-1,
        )
        return result.reshape(*x.shape[:-count], *lengths)

    return put


def _lp(x, norm_type, kernel_size):
    size = kernel_size if isinstance(kernel_size, int) else kernel_size[-1]
    windows = x.reshape(*x.shape[:-1], -1, size)
    return np.sum(windows**norm_type, -1) ** (1 / norm_type)


def _response(x, size, alpha=1e-4, beta=0.75, k=1.0):
    result = np.zeros_like(x)
    for c in range(x.shape[1]):
        near = x[:, max(c - size // 2, 0) : c + (size - 1) // 2 + 1]
        result[:, c] = x[:, c] / (k + alpha * np.sum(near**2, 1) / size) ** beta
    return result


def _uniform(x, seed):
    """Return what the library draws first from a seed, from (0, 1]."""
    return (1 - np.random.default_rng(seed).random(x.shape, dtype=np.float32)).astype(x.dtype)


def _channels(count):
    def drop(x, p, seed):
        shape = (*x.shape[: x.ndim - count], *(1,) * count)
        drawn = np.random.default_rng(seed).random(shape, dtype=np.float32)
        return x * (drawn >= p) / (1 - p)

    return drop


def _alpha_dropout(x, p, seed):
    floor = -1.7580993408473766
    scale = (1 - p + p * (1 - p) * floor**2) ** -0.5
    return scale * (np.where(_uniform(x, seed) > p, x, floor) - p * floor)


def _gumbel(x, tau, seed):
    values = np.exp((x - np.log(-np.log(_uniform(x, seed)) + 1e-20)) / tau)
    return values / np.sum(values, axis=-1, keepdims=True) if x.ndim else np.ones_like(x)


def _full(window, n_fft):
    left = (n_fft - window.size) // 2
    return np.pad(window, (left, n_fft - window.size - left))


def _stft(x, window, n_fft, hop_length, win_length=None, center=True, normalized=False, **more):
    half = n_fft // 2
    if center:
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(half, half)], more.get("pad_mode", "reflect"))
    starts = range(0, x.shape[-1] - n_fft + 1, hop_length)
    pieces = [np.fft.fft(x[..., i : i + n_fft] * _full(window, n_fft)) for i in starts]
    spectra = np.stack(pieces, -1) / (math.sqrt(n_fft) if normalized else 1)
    return spectra if more.get("onesided") is False else spectra[..., : half + 1, :]


def _istft(x, window, n_fft, hop_length, length=None, normalized=False, **more):
    x = x * (math.sqrt(n_fft) if normalized else 1)
    count = x.shape[-1]
    total = np.zeros((*x.shape[:-2], n_fft + hop_length * (count - 1)))
    envelope = np.zeros(total.shape[-1])
    for i in range(count):
        place = slice(i * hop_length, i * hop_length + n_fft)
        total[..., place] += np.fft.irfft(x[..., : n_fft // 2 + 1, i], n_fft) * window
        envelope[place] += window**2
    end = total.shape[-1] - n_fft // 2 if length is None else n_fft // 2 + length
    return (total / envelope)[..., n_fft // 2 : end]


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _lstm(x, weight, h, c):
    rows = []
    for products in x:
        i, f, g, o = np.split(products + h @ weight.T, 4, axis=-1)
        i, f, o, g = _sigmoid(i), _sigmoid(f), _sigmoid(o), np.tanh(g)
        c = f * c + i * g
        h = o * np.tanh(c)
        rows.append((h, c, np.stack((i, f, g, o), -2)))
    return tuple(map(np.stack, zip(*rows, strict=True)))


def _gru(x, weight, h):
    rows = []
    for products in x:
        of_state = h @ weight[:, : h.shape[-1]].T + weight[:, h.shape[-1] :].sum(1)
        (r, z, n), (hr, hz, hn) = (np.split(a, 3, axis=-1) for a in (products, of_state))
        r, z = _sigmoid(r + hr), _sigmoid(z + hz)
        n = np.tanh(n + r * hn)
        h = (1 - z) * n + z * h
        rows.append((h, np.stack((r, z, n, hn), -2)))
    return tuple(map(np.stack, zip(*rows, strict=True)))


REFERENCES = {
    "gru": _gru,
    "lstm": _lstm,
    "scaled_dot_product_attention": _attention,
    "interpolate": _interpolate,
    "affine_grid": _affine_grid,
    "grid_sample": _grid_sample,
    "adaptive_max_pool1d": _adaptive(np.max, 1),
    "adaptive_max_pool2d": _adaptive(np.max, 2),
    "adaptive_max_pool3d": _adaptive(np.max, 3),
    "adaptive_avg_pool3d": _adaptive(np.mean, 3),
    "max_unpool1d": _unpooled(1),
    "max_unpool2d": _unpooled(2),
    "max_unpool3d": _unpooled(3),
    "lp_pool1d": _lp,
    "lp_pool2d": _lp,
    "lp_pool3d": _lp,
    "local_response_norm": _response,
    "dropout1d": _channels(1),
    "dropout2d": _channels(2),
    "dropout3d": _channels(3),
    "alpha_dropout": _alpha_dropout,
    "gumbel_softmax": _gumbel,
    "stft": _stft,
    "istft": _istft,
}
