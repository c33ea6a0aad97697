"""Products with Jacobians, and the conventions in which values come in and go out."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb
from pullback.compat.autograd.boxes import conjugate, isbox, may_be_derived
from pullback.compat.autograd.extend import *  # noqa: F403
from pullback.compat.autograd.vspaces import VSpace as VSpace, vspace as vspace
from pullback.core.custom.pytree import leaves, map_leaves

Function = Callable[..., Any]


def make_vjp(fun: Function, x: Any) -> tuple[Function, Any]:
    """Return the function from cotangents to gradients at `x`, and the value there.

    Examples
    --------
    >>> vjp, value = make_vjp(lambda x: x * 1j, 2.0 + 0j)
    >>> vjp(1.0 + 0j), value
    (np.complex128(1j), np.complex128(2j))
    """
    out, pull = pb.vjp(_inexact(with_constants(fun)), x)
    return (lambda g: covector(pull(covector(g))[0])), as_numpy(out)


def make_jvp(fun: Function, x: Any) -> Function:
    """Return the function from a tangent at `x` to the value and its derivative along that.

    Examples
    --------
    >>> make_jvp(lambda x: x**2, 3.0)(1.0)
    (np.float64(9.0), np.float64(6.0))
    """
    fun = _inexact(with_constants(fun))
    return lambda v: as_numpy(pb.jvp(fun, (x,), (v,)))


# -- conventions -----------------------------------------------------------------------------------
def as_numpy(value: Any) -> Any:
    """Return Python's numbers in a value as NumPy's.

    Examples
    --------
    >>> as_numpy([1.0, "text"])
    [np.float64(1.0), 'text']
    """
    if value.__class__ is np.ndarray:
        return value
    return map_leaves(lambda x: np.array(x)[()] if isinstance(x, (float, complex)) else x, value)


def covector(value: Any) -> Any:
    """Return a gradient in the other convention: of complex numbers the conjugates.

    Examples
    --------
    >>> covector({"z": 1 + 2j})
    {'z': np.complex128(1-2j)}
    """
    if value.__class__ is np.ndarray and value.dtype.kind == "f":
        return value
    return map_leaves(conjugate, as_numpy(value))


def with_constants(fun: Function) -> Function:
    """Return `fun` with zero for the derivative of a result that has none, and a warning then.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     value = with_constants(lambda x: 3.0)(2.0)
    >>> value, str(caught[0].message)
    (tensor(3., dtype=float64), 'Output seems independent of input.')
    """

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        out = fun(*args, **kwargs)
        if isbox(out) and out.requires_grad:
            return out
        if not any(map(may_be_derived, leaves(out))):
            warnings.warn("Output seems independent of input.", stacklevel=2)
        return map_leaves(_constant, out)

    return call


def _constant(leaf: Any) -> Any:
    is_inexact = isinstance(leaf, (float, complex, np.inexact, np.ndarray))
    return pb.asarray(np.asarray(leaf)) if is_inexact else leaf


def _inexact(fun: Function) -> Function:
    """Return `fun` with the booleans and integers of its result as floating-point numbers."""

    def inexact(leaf: Any) -> Any:
        leaf = pb.asarray(np.asarray(leaf)) if isinstance(leaf, (int, np.generic)) else leaf
        return leaf if not isbox(leaf) or leaf.dtype.is_inexact else leaf.to(pb.float64)

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        return map_leaves(inexact, fun(*args, **kwargs))

    return call
