r"""NumPy's functions that are functions of ours under other names, as their declarations say.

Owns the reading of the fact ``numpy=``: NumPy's names below ``np``, a colon, and what is taken of
NumPy's parameters, in its order. ``a=x`` is our parameter `x`; ``*arrays`` are several arrays in
one argument; ``axis/flat`` means the flat array where it is None, and ``a/flat`` that always; a
``dtype`` that ours lacks is that of the result; ``-> list`` is what several results come in. Names
alone are those of a ufunc, which is called as ours is. What is written from
``take_along_axis: arr=x indices axis/flat``:

>>> print(source_of(renamed("take_along_axis")), end="")
def take_along_axis(arr, indices, axis=-1):
    arr, indices = together(arr, indices)
    arr, axis = along('np.take_along_axis', arr, axis)
    return ours(arr, indices, axis=axis)
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.core.function.codegen import define_as, source_of
from pullback.numpy_protocol.arguments import along, as_tensor, flat, numpy_dtype, together
from pullback.ops.declare import NUMPY
from pullback.ops.functions.data_types import astype

__all__ = ["parameters_of", "renamed", "source_of"]


_NOT_BY_POSITION = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.KEYWORD_ONLY)


class _Renaming(NamedTuple):
    """A parameter of NumPy's and ours, and what is after the slash."""

    theirs: str
    ours: str
    manner: str
    several: bool


@functools.cache
def renamed(name: str) -> Callable[..., Any]:
    """Return the counterpart of a function of NumPy's: ours, with NumPy's parameters."""
    ours, text = NUMPY[name]
    if not text:
        return ours
    text, _, container = text.partition("->")
    renamings = list(map(_read, text.split()))
    parameters = _parameters(operator.attrgetter(name)(np), ours, renamings)
    short = name.rpartition(".")[2]
    lines = _reading(f"np.{name}", ours, renamings)
    lines.append(f"return {_call(container.strip(), ours, renamings, parameters)}")
    uses = {"along": along, "as_tensor": as_tensor, "cast": _cast, "flat": flat}
    head = inspect.Signature(parameters)
    return define_as(head, lines, short, f"np.{name}", ours=ours, together=together, **uses)


def parameters_of(function: Any) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a function of NumPy's, none where it does not tell them."""
    try:
        return inspect.signature(function).parameters
    except ValueError:  # compiled functions, before NumPy 2.4
        return {}


def _read(item: str) -> _Renaming:
    theirs, _, ours = item.removeprefix("*").partition("=")
    theirs, _, manner = theirs.partition("/")
    return _Renaming(theirs, ours or theirs, manner, item.startswith("*"))


def _parameters(
    function: Any, ours: Any, renamings: Sequence[_Renaming]
) -> list[inspect.Parameter]:
    """Return NumPy's parameters with its defaults; ours where it tells none."""
    own, theirs = inspect.signature(ours).parameters, parameters_of(function)
    result = []
    for renaming in renamings:
        told, other = theirs.get(renaming.theirs), own.get(renaming.ours)
        kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
        default: Any = np._NoValue
        if told is not None:
            kind = told.kind if told.kind in _NOT_BY_POSITION else kind
            default = told.default
        if default is np._NoValue:
            default = None if other is None else other.default
        result.append(inspect.Parameter(renaming.theirs, kind, default=default))
    return result


def _reading(name: str, ours: Any, renamings: Sequence[_Renaming]) -> list[str]:
    """Return the source of what makes tensors of the arrays."""
    own, inputs = inspect.signature(ours).parameters, ours.primitive.inputs
    if not own.keys() >= {*inputs}:  # it calls its arrays something else
        inputs = [*own][: len(inputs)]
    lines = [f"{r.theirs} = $together(*{r.theirs})" for r in renamings if r.several]
    arrays = [r.theirs for r in renamings if r.ours in inputs and not lines]
    if arrays:
        reading = "as_tensor" if len(arrays) == 1 else "together"
        lines.append(f"{', '.join(arrays)} = ${reading}({', '.join(arrays)})")
    for theirs in [r.theirs for r in renamings if r.manner == "flat"]:
        if theirs in arrays:
            lines.append(f"{theirs} = $flat({theirs})")
        else:
            lines.append(f"{arrays[0]}, {theirs} = $along({name!r}, {arrays[0]}, {theirs})")
    return lines


def _call(
    container: str,
    ours: Any,
    renamings: Sequence[_Renaming],
    parameters: Sequence[inspect.Parameter],
) -> str:
    """Return the source of the call of ours, in the container and dtype that NumPy returns."""
    own = inspect.signature(ours).parameters
    pairs = list(zip(renamings, parameters, strict=True))
    passed = ", ".join(_argument(p, own[r.ours]) for r, p in pairs if r.ours in own)
    call = f"$ours({passed})"
    for renaming in renamings:
        if renaming.ours not in own:
            call = f"$cast({call}, {renaming.theirs})"
    return f"{container}({call})" if container else call


def _argument(theirs: inspect.Parameter, own: inspect.Parameter) -> str:
    if own.kind is own.POSITIONAL_ONLY:
        return theirs.name
    if own.kind is own.VAR_POSITIONAL:
        return f"*{theirs.name}"
    if theirs.default is None is not own.default is not own.empty:
        return f"{own.name}={theirs.name} or {own.default!r}"  # None is our default
    return f"{own.name}={theirs.name}"


def _cast(result: Any, dtype: Any) -> Any:
    return result if dtype is None else astype(result, numpy_dtype(dtype), copy=False)
