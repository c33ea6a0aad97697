"""Reference values of what PyTorch has beyond the standard, by NumPy, SciPy or plain formulas."""

import itertools
import operator

import numpy as np
import scipy.integrate
import scipy.linalg
import scipy.spatial
import scipy.special
import scipy.stats


def _selu(x):
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _glu(x, dim=-1):
    a, b = np.split(x, 2, axis=dim)
    return a * scipy.special.expit(b)


def _prelu(x, weight):
    weight = weight.reshape(-1, *(1,) * (x.ndim - 2)) if x.ndim > 1 and weight.size > 1 else weight
    return np.where(x > 0, x, weight * x)


def _replaced(place):
    def write(x, src, **settings):
        result = x.copy()
        result[place(x, **settings)] = src
        return result

    return write


def _slices(x, dim=0, start=None, end=None, step=1):
    return (*(slice(None),) * (dim % x.ndim), slice(start, end, step))


def _on_diagonal(x, src, offset=0, dim1=0, dim2=1):
    result = x.copy()
    moved = np.moveaxis(result, (dim1, dim2), (-2, -1))
    steps = np.arange(src.shape[-1])
    moved[..., steps + max(-offset, 0), steps + max(offset, 0)] = src
    return result


def _product(*vectors):
    return np.array(list(itertools.product(*vectors)), vectors[0].dtype).reshape(-1, len(vectors))


def _choices(x, r=2, with_replacement=False):
    name = "combinations_with_replacement" if with_replacement else "combinations"
    return np.array(list(getattr(itertools, name)(x, r)), x.dtype).reshape(-1, r)


def _shuffled(x, upscale_factor):
    r, (n, c, h, w) = upscale_factor, (1,) * (4 - x.ndim) + x.shape
    result = np.zeros((n, c // r**2, h * r, w * r), x.dtype)
    for i, j in np.ndindex(r, r):
        result[:, :, i::r, j::r] = x.reshape(n, c, h, w)[:, i * r + j :: r * r]
    return result.reshape(*x.shape[:-3], *result.shape[1:])


def _unshuffled(x, downscale_factor):
    r = downscale_factor
    parts = [x[:, :, i::r, j::r] for i, j in np.ndindex(r, r)]
    return np.stack(parts, axis=2).reshape(x.shape[0], -1, *parts[0].shape[2:])


def _renormed(x, p, dim, maxnorm):
    rows = np.moveaxis(x, dim, 0).reshape(x.shape[dim], -1)
    lengths = np.linalg.norm(rows, p, axis=1)
    factors = np.where(lengths > maxnorm, maxnorm / (lengths + 1e-7), 1)
    return x * np.expand_dims(factors, [i for i in range(x.ndim) if i != dim % x.ndim])


def _gradient(x, spacing=1, dim=None, edge_order=1):
    found = np.gradient(x, spacing, axis=dim, edge_order=edge_order)
    return found if isinstance(found, (list, tuple)) else [found]


def _triangular(a, b, upper, left=True, unitriangular=False):
    def one(a, b):
        triangle = np.triu(a) if upper else np.tril(a)
        if unitriangular:
            np.fill_diagonal(triangle, 1)
        return np.linalg.inv(triangle) @ b if left else b @ np.linalg.inv(triangle)

    return np.stack([one(*pair) for pair in zip(a, b, strict=True)]) if a.ndim > 2 else one(a, b)


def _of_factor(factor, upper):
    factor = np.triu(factor) if upper else np.tril(factor)
    other = factor.conj().T
    return np.linalg.inv(other @ factor if upper else factor @ other)


def _lstsq(a, b):
    solution = np.linalg.lstsq(a, b)[0]
    return solution, np.zeros(0), np.zeros(0), np.zeros(0)


def _masked_scatter(x, mask, source):
    result = x.copy()
    mask = np.broadcast_to(mask, x.shape)
    result[mask] = source.ravel()[: mask.sum()]
    return result


def _put(x, index, source, accumulate=False):
    result = x.copy()
    (np.add.at if accumulate else operator.setitem)(result.reshape(-1), index, source)
    return result


_REDUCING = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "amax": np.max, "amin": np.min}


def _scatter_reduced(x, index, src, dim, reduce, include_self=True):
    there = {place: [x[place]] if include_self else [] for place in np.ndindex(x.shape)}
    for place in np.ndindex(index.shape):
        target = list(place)
        target[dim] = int(index[place])
        there[tuple(target)].append(src[place])
    result = x.copy()
    for place, values in there.items():
        result[place] = _REDUCING[reduce](values) if values else x[place]
    return result


def _index_reduced(x, index, source, dim, **settings):
    shape = [1] * x.ndim
    shape[dim] = -1
    return _scatter_reduced(
        x, np.broadcast_to(index.reshape(shape), source.shape), source, dim, **settings
    )


def _runs(x, dim=None):
    x = x.ravel() if dim is None else x
    new = [i for i in range(len(x)) if not i or np.any(x[i] != x[i - 1])]
    return x[new]


def _mode(x, dim=-1, keepdim=False):
    if not x.ndim:
        return x, np.zeros((), int)
    values = scipy.stats.mode(x, axis=dim, keepdims=keepdim).mode
    return values, np.zeros(values.shape, int)


def _reduced(function):
    def loss(*arrays, reduction="mean", **settings):
        values = function(*arrays, **settings)
        return values if reduction == "none" else getattr(np, reduction)(values)

    return loss


def _triplet(a, near_by, n, margin=1, swap=False, **more):
    order = more.get("p", 2)
    near, far, other = (
        np.linalg.norm(x - y + 1e-6, order, axis=-1)
        for x, y in ((a, near_by), (a, n), (near_by, n))
    )
    return np.maximum(0, margin + near - (np.minimum(far, other) if swap else far))


def _cosine(x, y):
    return np.sum(x * y, -1) / np.linalg.norm(x, axis=-1) / np.linalg.norm(y, axis=-1)


def _multi_margin(x, target, p=1, margin=1):
    x, target = np.atleast_2d(x), np.atleast_1d(target)
    rows = [
        sum(max(0, margin - row[t] + row[j]) ** p for j in range(len(row)) if j != t) / len(row)
        for row, t in zip(x, target, strict=True)
    ]
    return np.array(rows, x.dtype)


def _poisson(x, target, log_input=True, full=False):
    values = np.exp(x) - target * x if log_input else x - target * np.log(x + 1e-8)
    some = np.maximum(target, 1)
    stirling = some * np.log(some) - some + np.log(2 * np.pi * some) / 2
    return values + full * (target > 1) * stirling


# -- activations -----------------------------------------------------------------------------------
REFERENCES = {
    "selu": _selu,
    "glu": _glu,
    "prelu": _prelu,
}

# -- arrangement -----------------------------------------------------------------------------------
REFERENCES |= {
    "diagonal_scatter": _on_diagonal,
    "cartesian_prod": _product,
    "combinations": _choices,
    "select_scatter": _replaced(lambda x, dim, index: (*(slice(None),) * (dim % x.ndim), index)),
    "slice_scatter": _replaced(_slices),
    "pixel_shuffle": _shuffled,
    "pixel_unshuffle": _unshuffled,
}

# -- vectors and matrices --------------------------------------------------------------------------
REFERENCES |= {
    "renorm": _renormed,
    "gradient": _gradient,
    "solve_triangular": _triangular,
    "cholesky_solve": lambda b, factor, upper=False: _of_factor(factor, upper) @ b,
    "cholesky_inverse": lambda factor, upper=False: _of_factor(factor, upper),
    "lstsq": _lstsq,
}

# -- places and counts -----------------------------------------------------------------------------
REFERENCES |= {
    "masked_scatter": _masked_scatter,
    "put": _put,
    "scatter_reduce": _scatter_reduced,
    "index_reduce": _index_reduced,
    "unique_consecutive": _runs,
    "mode": _mode,
}

# -- losses ----------------------------------------------------------------------------------------
REFERENCES |= {
    name: _reduced(function)
    for name, function in {
        "margin_ranking_loss": lambda x, y, t, margin=0: np.maximum(0, margin - t * (x - y)),
        "hinge_embedding_loss": lambda x, t, margin=1: np.where(
            t == 1, x, np.maximum(0, margin - x)
        ),
        "cosine_embedding_loss": lambda x, y, t, margin=0: np.where(
            t == 1, 1 - _cosine(x, y), np.maximum(0, _cosine(x, y) - margin)
        ),
        "triplet_margin_loss": _triplet,
        "triplet_margin_with_distance_loss": _triplet,
        "soft_margin_loss": lambda x, t: np.log1p(np.exp(-t * x)),
        "multi_margin_loss": _multi_margin,
        "multilabel_soft_margin_loss": lambda x, t: np.mean(np.log1p(np.exp(x)) - t * x, -1),
        "poisson_nll_loss": _poisson,
        "gaussian_nll_loss": lambda x, t, v, full=False, eps=1e-6: (
            (
                np.log(np.maximum(v, eps))
                + (x - t) ** 2 / np.maximum(v, eps)
                + full * np.log(2 * np.pi)
            )
            / 2
        ),
    }.items()
}
