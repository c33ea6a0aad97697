"""Operators of functions of one argument, for functions of several."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["unary_to_nary"]

Function = Callable[..., Any]


def unary_to_nary(operator: Function) -> Function:
    """Return ``operator(fun, x)`` as one that takes ``(fun, argnum)`` and then the arguments.

    Examples
    --------
    >>> at = unary_to_nary(lambda fun, x: fun(x + 1))
    >>> at(pow, 1)(2, 3)
    16
    """

    @functools.wraps(operator)
    def nary(fun: Function, argnum: Any = 0, *settings: Any, **options: Any) -> Function:
        @functools.wraps(fun)
        def at(*args: Any, **kwargs: Any) -> Any:
            def unary(x: Any) -> Any:
                values = dict(enumerate(args))
                values.update({argnum: x} if single else zip(argnum, x, strict=True))
                return fun(*values.values(), **kwargs)

            single = isinstance(argnum, int)
            unary.__name__ = getattr(fun, "__name__", repr(fun))
            x = args[argnum] if single else tuple(args[i] for i in argnum)
            return operator(unary, x, *settings, **options)

        return at

    return nary
