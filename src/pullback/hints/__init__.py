"""What errors propose instead: of functions of other libraries, and of names that are not here.

Owns the tables, and finding which function is running. It knows other libraries by name alone and
imports none. A table is read when an error is about to be raised, and not before.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

__all__ = [
    "JOINED",
    "Answering",
    "absent",
    "explain",
    "explain_call",
    "here",
    "hinted",
    "option_of",
    "way_out",
]

F = TypeVar("F", bound=Callable[..., Any])


# What makes one tensor of tracked values, where an array was asked for.
JOINED = "np.stack([...]) or pb.asarray([...]) makes a tensor of a list of tracked values"


def _module(name: str) -> Any:
    return importlib.import_module(f"{__name__}.{name}")


def way_out(name: str) -> str:
    """Return what has a gradient instead of a function of NumPy's or SciPy's; "" if unknown.

    Examples
    --------
    >>> way_out("scipy.linalg.eigh")
    'np.linalg.eigh, which has a gradient'
    >>> way_out("scipy.stats.norm.logpdf")
    'pullback.interop.scipy.stats.norm.logpdf, which has a gradient'
    """
    result: str = _module("table").way_out(name)
    return result


def here() -> str:
    """Return what a hint says instead of the function of another library that is running.

    It is called where a tensor would have to become an array or a number; "" if nothing is known.
    """
    result: str = _module("running").way_out_here()
    return result


def explain(error: BaseException, kind: type) -> None:
    """Add a note to an error of NumPy's or SciPy's own that a `kind` among its arguments caused."""
    way = _module("running").way_out_of(error, kind)
    note = f"hint: {way}"
    if way and note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def hinted(function: F) -> F:
    """Let Python's error of arguments that `function` does not take say what it takes."""

    @functools.wraps(function)
    def call(*args: Any, **settings: Any) -> Any:
        try:
            return function(*args, **settings)
        except TypeError as error:
            called = type(args[0]) if function.__name__ == "__init__" else function
            explain_call(error, called, settings)
            raise

    return cast(F, call)


def explain_call(error: TypeError, function: Callable[..., Any], keywords: Iterable[str]) -> None:
    """Add a note to Python's error of a call, caught where that is, if it did not fit."""
    if error.__traceback__ is not None and error.__traceback__.tb_next is None:
        error.add_note(f"hint: {_module('calls').call_of(function, keywords)}")


def option_of(name: str) -> str:
    """Return what does the work of an option that is not taken; "" if unknown."""
    result: str = _module("calls").option_of(name)
    return result


def absent(module: str, name: str) -> AttributeError | ImportError:
    """Return the error for a name that a module of pullback, or "Tensor", does not have.

    It is called by the module's ``__getattr__``. Where ``from module import name`` asks, Python
    would replace an AttributeError by an error of its own.
    """
    owner = module.partition(".")[2] if module != "Tensor" else module
    way = "" if name.startswith("__") else _module("names").for_name(owner, name)
    if way and _module("running").is_imported(sys._getframe(2)):
        return ImportError(f"cannot import name {name!r} from {module!r}: {way}", name=module)
    of = f"module {module!r}" if module != "Tensor" else "a Tensor"
    return AttributeError(f"{of} has no attribute {name!r}{f': {way}' if way else ''}")


class Answering:
    """The base of objects whose errors say what does the work of an attribute that is not there."""

    _kind: ClassVar[str]

    if not TYPE_CHECKING:  # a checker would take every name for one that is there

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):  # a property, whose own error is the one to see
                return object.__getattribute__(self, name)
            way = "" if name.startswith("__") else _module("names").of_object(self._kind, name)
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(f"{text}{f': {way}' if way else ''}", name=name, obj=self)
