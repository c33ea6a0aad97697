"""Comparing an array of the call with a gradient: by one factor, or element by element.

Hypotheses share these functions, which must not know of causes.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from pullback.check.values import Array

_SIMPLE = 8  # the largest number in a simple fraction


def multiple(got: Array, right: Array) -> complex:
    """Return the factor that fits `factor * right` to `got` by least squares."""
    size = float(np.vdot(right, right).real)
    return complex(np.vdot(right, got)) / size if size else 0.0


def fractions(got: Array, right: Array, rtol: float) -> list[Fraction]:
    """Return the factors that each element is off by, if all are simple fractions; else none.

    Examples
    --------
    >>> fractions(np.array([1.0, 6.0, 5.0]), np.array([3.0, 4.0, 5.0]), 1e-6)
    [Fraction(1, 3), Fraction(1, 1), Fraction(3, 2)]
    """
    if got.dtype.kind == "c" or not right.all() or not np.isfinite(got).all():
        return []
    ratios = got / right
    found = {float(r): Fraction(float(r)).limit_denominator(_SIMPLE) for r in np.unique(ratios)}
    if any(abs(r - f) > rtol * abs(r) or abs(f.numerator) > _SIMPLE for r, f in found.items()):
        return []
    several = sorted(set(found.values()))
    return several if 0 not in several and 1 < len(several) <= _SIMPLE else []


def aligned(array: Array, shape: tuple[int, ...]) -> Iterator[Array]:
    """Yield an array broadcast to a shape: unchanged, and with a reduced axis restored."""
    reduced = range(len(shape)) if 0 < array.ndim == len(shape) - 1 else ()
    for fitted in (array, *(np.expand_dims(array, axis) for axis in reduced)):
        if _broadcasts(fitted.shape, shape):
            yield np.broadcast_to(fitted, shape)


def _broadcasts(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    sizes = zip(reversed(shape), reversed(whole), strict=False)
    return len(shape) <= len(whole) and all(m in (1, n) for m, n in sizes)
