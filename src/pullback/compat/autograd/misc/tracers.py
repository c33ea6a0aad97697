"""Functions of a recorded graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never

from pullback.hints import absent

__all__ = ["const_graph"]


def const_graph(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """Return `fun` of its remaining argument; the graph is recorded anew in each call.

    Examples
    --------
    >>> const_graph(pow, 2)(3.0)
    9.0
    """
    return (lambda x: fun(x, *args, **kwargs)) if args or kwargs else fun


def __getattr__(name: str) -> Never:
    raise absent(__name__, name)
