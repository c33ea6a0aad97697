"""Small helpers of HIPS autograd's that programs use."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pullback.compat.autograd.test_util import check_grads

__all__ = ["func", "quick_grad_check", "subval", "subvals"]


def subvals(x: Sequence[Any], ivs: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """Return `x` with other items at some positions.

    Examples
    --------
    >>> subvals((1, 2, 3), [(0, 10), (2, 30)])
    (10, 2, 30)
    """
    return tuple({**dict(enumerate(x)), **dict(ivs)}.values())


def subval(x: Sequence[Any], i: int, v: Any) -> tuple[Any, ...]:
    """Return `x` with another item at one position.

    Examples
    --------
    >>> subval((1, 2, 3), 0, 10)
    (10, 2, 3)
    """
    return subvals(x, [(i, v)])


def func(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function itself.

    Examples
    --------
    >>> func(abs) is abs
    True
    """
    return f


def quick_grad_check(
    fun: Callable[..., Any], arg0: Any, extra_args: Sequence[Any] = (), **kwargs: Any
) -> None:
    """Check the gradient of `fun` by its first argument.

    Examples
    --------
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     quick_grad_check(lambda x, n: x**n, 2.0, (3,))
    """
    warnings.warn("quick_grad_check is deprecated: use test_util.check_grads", stacklevel=2)
    check_grads(lambda x: fun(x, *extra_args, **kwargs.get("kwargs", {})), order=1)(arg0)
