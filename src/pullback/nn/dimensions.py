"""Functions of one, two and three dimensions, written once for all of them.

Owns how one function of `n` becomes three: `conv` of this module's decorator is `conv1d`, `conv2d`
and `conv3d`, each with a signature, a docstring and samples of its own. Must not know what they
compute.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from pullback.core.function.codegen import define_as
from pullback.ops.declare import Sample, composition

P = ParamSpec("P")
R = TypeVar("R")

# What docstrings say of each number of dimensions.
_THINGS = ("sequences", "images", "volumes")
_AXES = ("D", "H", "W")
_KERNEL = ("kernel depth", "kernel height", "kernel width")
_INTS = ("int", "int or tuple of two int", "int or tuple of three int")


def axes_of(n: int) -> tuple[str, ...]:
    """Return the names of the axes of a batch of sequences, images or volumes."""
    return ("N", "C", *_AXES[3 - n :])


def in_dimensions(
    *samples: Sequence[Sample], examples: Sequence[str], name: str = "", **facts: Any
) -> Callable[
    [Callable[Concatenate[int, P], R]], tuple[Callable[P, R], Callable[P, R], Callable[P, R]]
]:
    """Declare three functions that one function of `n` describes, of n = 1, 2 and 3.

    `pool(n, x, size)` becomes `pool1d(x, size)`, whose body is ``return pool(1, x, size)``. In its
    docstring, ``{things}`` is sequences, images or volumes, ``{axes}`` the names of their axes,
    ``{kernel}`` those of a kernel's, ``{ints}`` the type of a setting for each axis, ``{n}`` the
    number and ``{example}`` the example.

    Parameters
    ----------
    *samples : sequence of Sample
        Calls to test, of each number of dimensions.
    examples : sequence of str
        The lines of an example, of each.
    name : str, optional
        What comes before ``1d``, where that is not the function's own name.
    **facts
        As for `composition`, of all three.
    """

    def decorate(function: Callable[Concatenate[int, P], R]) -> Any:
        written = [_of(function, name, n, lines) for n, lines in enumerate(examples, 1)]
        return tuple(
            composition(*calls, **facts)(each) for calls, each in zip(samples, written, strict=True)
        )

    return decorate


def _of(function: Callable[..., Any], name: str, n: int, example: str) -> FunctionType:
    """Return the function of `n` dimensions."""
    template = cast(FunctionType, function)
    name = f"{name or template.__name__}{n}d"
    _, *parameters = inspect.signature(template).parameters.values()
    handed = [f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else p.name for p in parameters]
    body = [f"return $template({', '.join([str(n), *handed])})"]
    call = define_as(inspect.Signature(parameters), body, name, name, template=template)
    call.__annotations__["return"] = template.__annotations__["return"]
    call.__module__ = template.__module__
    call.__doc__ = (template.__doc__ or "").format(
        n=n,
        things=_THINGS[n - 1],
        axes=", ".join(_AXES[3 - n :]),
        kernel=", ".join(_KERNEL[3 - n :]),
        ints=_INTS[n - 1],
        example="\n    ".join(example.strip().split("\n")),
    )
    return call
