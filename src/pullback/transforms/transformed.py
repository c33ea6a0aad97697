"""The callable that a transform makes of a function: its name, documentation, pickling and repr."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any

from pullback.errors import ArgumentTypeError, compose

__all__ = ["Function", "Transformed", "name_of"]

Function = Callable[..., Any]
# A mode and a chunk_size are None then.
_DEFAULTS = {
    "argnum": 0,
    "has_aux": False,
    "in_axes": 0,
    "out_axes": 0,
    "randomness": "error",
    "check": True,
}


class Transformed:
    """What a transform makes of a function: pickled and copied as the call that made it.

    A subclass has `__call__`.

    Parameters
    ----------
    transform : callable
        What the user called; errors name it.
    fun : callable
        Its function.
    **settings : any
        Its other arguments.
    """

    def __init__(self, transform: Callable[..., Any], fun: Function, **settings: Any) -> None:
        api = transform.__name__
        if not callable(fun):
            raise ArgumentTypeError(compose(api, "a function required", type(fun).__name__))
        self.__name__ = self.__qualname__ = api  # where the function has no name
        functools.update_wrapper(self, fun)
        self._transform, self._fun, self._settings = transform, fun, settings
        self._api = api

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Compute the transform at these arguments."""
        raise NotImplementedError

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Return the method of an instance: in the body of a class this is one, like a function."""
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        return _again, (self._transform, self._fun, self._settings)

    def __repr__(self) -> str:
        shown = repr(self._fun) if isinstance(self._fun, Transformed) else name_of(self._fun)
        settings = (
            f", {name}={value!r}"
            for name, value in self._settings.items()
            if value != _DEFAULTS.get(name)
        )
        return f"{self._api}({shown}{''.join(settings)})"


def _again(transform: Callable[..., Any], fun: Function, settings: dict[str, Any]) -> Any:
    return transform(fun, **settings)


def name_of(fun: Function) -> str:
    """Return the name of a function as messages have it."""
    return str(getattr(fun, "__qualname__", None) or getattr(fun, "__name__", None) or repr(fun))
