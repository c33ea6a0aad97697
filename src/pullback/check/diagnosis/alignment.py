"""Comparing an array of the call with a gradient: by one factor, or element by element.

Hypotheses share these functions, which must not know of causes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pullback.check.values import Array


def multiple(got: Array, right: Array) -> complex:
    """Return the factor that fits `factor * right` to `got` by least squares."""
    size = float(np.vdot(right, right).real)
    return complex(np.vdot(right, got)) / size if size else 0.0


def aligned(array: Array, shape: tuple[int, ...]) -> Iterator[Array]:
    """Yield an array broadcast to a shape: unchanged, and with a reduced axis restored."""
    reduced = range(len(shape)) if 0 < array.ndim == len(shape) - 1 else ()
    for fitted in (array, *(np.expand_dims(array, axis) for axis in reduced)):
        if _broadcasts(fitted.shape, shape):
            yield np.broadcast_to(fitted, shape)


def _broadcasts(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    sizes = zip(reversed(shape), reversed(whole), strict=False)
    return len(shape) <= len(whole) and all(m in (1, n) for m, n in sizes)
