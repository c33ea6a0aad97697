"""Normalization to mean 0 and variance 1, with a rule of its own for speed."""

from __future__ import annotations

from typing import Any

from pullback.arrays import NUMPY, add_up
from pullback.ops.declare import needs_order, operation
from pullback.ops.samples import real, sample

_root = NUMPY.xp.sqrt


# -- mean 0 and variance 1 -------------------------------------------------------------------------
def _standardize(xp: Any, x: Any, *, axes: tuple[int, ...], eps: float) -> Any:
    needs_order("standardize", x)
    centred = x - xp.mean(x, axis=axes, keepdims=True)
    return centred / xp.sqrt(xp.mean(centred * centred, axis=axes, keepdims=True) + eps)


class _Shares(dict[Any, Any]):
    """By length and dtype: the weights of a mean."""

    def __missing__(self, key: Any) -> Any:
        n, dtype = key
        self[key] = result = NUMPY.xp.full(n, 1 / n, dtype)
        return result


class _Projections(dict[Any, Any]):
    """By length and dtype: the matrix that takes a row's mean off it, and the mean's weights."""

    def __missing__(self, key: Any) -> Any:
        n, dtype = key
        share = _SHARES[key]
        self[key] = result = NUMPY.xp.eye(n, dtype=dtype) - share, share
        return result


_SHARES, _PROJECTIONS = _Shares(), _Projections()
_FEW = 8192  # products: up to here two calls fewer save more than the projection costs
_SHORT = 128  # numbers of a row that may be added up in one go, see arrays/sums.py


def _means(x: Any, axes: tuple[int, ...]) -> Any:
    n = x.shape[-1]
    if axes in ((-1,), (x.ndim - 1,)) and n <= _SHORT and x.dtype.char in "fd":
        return x.reshape(-1, n).dot(_SHARES[n, x.dtype]).reshape(*x.shape[:-1], 1)
    total = add_up(x, axes, True)
    total /= x.size // total.size
    return total


def _projection(x: Any, axes: tuple[int, ...]) -> Any:
    """Return the projection and the weights for rows of x, None where subtracting is quicker."""
    n = x.shape[-1]
    rows = x.ndim == 2 and (axes == (1,) or axes == (-1,))
    return _PROJECTIONS[n, x.dtype] if rows and x.size * n <= _FEW else None


def _standardize_numpy(x: Any, *, axes: tuple[int, ...], eps: float) -> Any:
    if not x.size or not axes:
        raise TypeError
    short = _projection(x, axes)
    if short is None:
        centred = x - _means(x, axes)
        variance = _means(centred * centred, axes)
    else:
        projection, share = short
        centred = x.dot(projection)
        variance = (centred * centred).dot(share)[:, None]
    variance += eps
    centred /= _root(variance, variance)
    return centred


def _standardize_rule(g: Any, x: Any, axes: tuple[int, ...], eps: float, xp: Any) -> Any:
    """Return g less its mean and less its part along the result, times the factor."""
    if xp is NUMPY.xp and x.size and axes:
        return _standardize_rule_numpy(g, x, axes, eps)
    centred = x - xp.mean(x, axis=axes, keepdims=True)
    variance = xp.mean(centred * centred, axis=axes, keepdims=True) + eps
    along = xp.mean(g * centred, axis=axes, keepdims=True) / variance
    return (g - xp.mean(g, axis=axes, keepdims=True) - centred * along) / xp.sqrt(variance)


def _standardize_rule_numpy(g: Any, x: Any, axes: tuple[int, ...], eps: float) -> Any:
    short = _projection(x, axes)
    if short is None:
        centred, result = x - _means(x, axes), g - _means(g, axes)
        variance = _means(centred * centred, axes)
        along = _means(result * centred, axes)
    else:
        projection, share = short
        centred, result = x.dot(projection), g.dot(projection)
        variance = (centred * centred).dot(share)[:, None]
        along = (result * centred).dot(share)[:, None]
    variance += eps
    along /= variance
    centred *= along
    result -= centred
    result /= _root(variance, variance)
    return result


standardize_p = operation(
    "standardize",
    _standardize,
    numpy_kernel=_standardize_numpy,
    rules={"x": _standardize_rule},
    floating=True,
    domain=real(-2, 2),
    samples=(
        sample((2, 3), axes=(1,), eps=1e-5),
        sample((3, 2, 2), axes=(0, 2), eps=0.1),
        sample((), axes=(), eps=0.1),
        sample((0, 2), axes=(1,), eps=0.1),
    ),
    reference=(
        lambda np, x, axes, eps: (
            (x - x.mean(axis=axes, keepdims=True)) / np.sqrt(x.var(axis=axes, keepdims=True) + eps)
        )
    ),
    doc="Return (x - mean) / sqrt(variance + eps), each over the axes.",
    batch="axes",
)
