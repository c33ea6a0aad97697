"""Fixed points of functions with a parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback import implicit
from pullback.compat.autograd.boxes import getval
from pullback.core.custom.pytree import map_leaves

__all__ = ["fixed_point"]

Function = Callable[..., Any]


def fixed_point(f: Function, a: Any, x0: Any, distance: Function, tol: float) -> Any:
    """Return x = f(a)(x), iterated from `x0` to a step of `tol`, with its derivative in `a`.

    Examples
    --------
    >>> from pullback.compat.autograd import grad
    >>> def newton(a):
    ...     return lambda x: 0.5 * (x + a / x)
    >>> root = lambda a: fixed_point(newton, a, 1.0, lambda x, y: abs(x - y), 1e-8)
    >>> round(float(grad(root)(4.0)), 6)
    0.25
    """
    step, x = f(map_leaves(getval, a)), map_leaves(getval, x0)
    x, previous = step(x), x
    while distance(x, previous) > tol:
        x, previous = step(x), x
    return implicit.fixed_point(lambda y, theta: f(theta)(y), x, a)
