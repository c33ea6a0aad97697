"""Extrema, of complex numbers too: NumPy orders them by real, then by imaginary parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.compat.autograd.boxes import getval, isbox
from pullback.compat.autograd.numpy.lists import takes_lists

__all__ = ["amax", "amin", "max", "min"]


def _extremum(of_reals: Callable[..., Any], argument: Callable[..., Any]) -> Callable[..., Any]:
    of_reals = takes_lists(of_reals)

    def call(a: Any, axis: Any = None, *args: Any, **settings: Any) -> Any:
        if not isbox(a) or not np.iscomplexobj(a):
            return of_reals(a, axis, *args, **settings)
        index = argument(getval(a), axis=axis, keepdims=True)
        if axis is None:
            return np.ravel(a)[index if settings.get("keepdims") else index.item()]
        out = np.take_along_axis(a, index, axis)
        return out if settings.get("keepdims") else np.squeeze(out, axis)

    return call


max = amax = _extremum(np.max, np.argmax)
min = amin = _extremum(np.min, np.argmin)
