"""What rules of primitives are written with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["unbroadcast_f"]


def unbroadcast_f(target: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    """Return `f` whose result is summed to the shape of `target`, and real where that is.

    Examples
    --------
    >>> unbroadcast_f(1.0, lambda g: g * np.ones((2, 3)))(2.0)
    np.float64(12.0)
    """
    shape, is_complex = np.shape(target), np.iscomplexobj(target)

    def pull(g: Any) -> Any:
        out = f(g)
        extra = np.ndim(out) - len(shape)
        out = np.sum(out, axis=tuple(range(extra))) if extra > 0 else out
        axes = tuple(i for i, n in enumerate(shape) if n == 1 and np.shape(out)[i] != 1)
        out = np.sum(out, axis=axes, keepdims=True) if axes else out
        return np.real(out) if np.iscomplexobj(out) and not is_complex else out

    return pull
