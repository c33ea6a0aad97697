"""The arguments of one call: bound to a signature, tried, and shown in a line.

Must not know where they come from: a text, a strategy or a guess.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.arrays import is_array
from pullback.check.exceptions import ForwardError, first_line
from pullback.check.inputs.drawing import GENERAL
from pullback.check.inputs.shape_text import Described
from pullback.check.naming import name_of, parameters_of
from pullback.check.subject import Subject
from pullback.check.values import Array, host
from pullback.core.tensor.tensor import Tensor
from pullback.errors import AutogradError

_KINDS = inspect.Parameter
_POSITIONAL = (_KINDS.POSITIONAL_ONLY, _KINDS.POSITIONAL_OR_KEYWORD)


class Inputs(NamedTuple):
    """The arguments of one call.

    Attributes
    ----------
    args, kwargs : tuple, dict
    notes : tuple of str
        What is worth knowing of them.
    symmetric : frozenset of str
        Which of them are symmetric matrices.
    character : str
        What their numbers are like, one of `CHARACTERS`.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    notes: tuple[str, ...] = ()
    symmetric: frozenset[str] = frozenset()
    character: str = GENERAL


def outcome(fn: Callable[..., Any], inputs: Inputs) -> list[Array] | str:
    """Return the results of a call, or what speaks against it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            subject = Subject(fn, inputs.args, inputs.kwargs)
            values = subject.values(subject.arrays)
    except (ForwardError, AutogradError) as error:
        return first_line(error)
    if not any(v.size for v in values):
        return "no floating or complex result"
    if not all(np.all(np.isfinite(v)) for v in values):
        return "a result that is not finite"
    return values


def symmetric(described: Iterable[Described]) -> frozenset[str]:
    """Return the names of the symmetric matrices."""
    return frozenset(d.name for d in described if d.domain == "spd")


def on_symmetric(fn: Callable[..., Any], names: Collection[str]) -> Callable[..., Any]:
    """Return a function of any matrices that calls `fn` with their symmetric parts.

    What `fn` reads of a symmetric matrix, and which triangle has the gradient, is its own choice;
    of the symmetric part the derivative is the same.
    """
    order = [p.name for p in parameters_of(fn) or []]
    if not names:
        return fn

    @functools.wraps(fn, updated=())
    def called(*args: Any, **kwargs: Any) -> Any:
        pairs = itertools.zip_longest(order[: len(args)], args)
        given = [_symmetric_part(v) if name in names else v for name, v in pairs]
        named = {k: _symmetric_part(v) if k in names else v for k, v in kwargs.items()}
        return fn(*given, **named)

    called.__name__ = name_of(fn)
    return called


def _symmetric_part(matrix: Any) -> Any:
    return (matrix + matrix.mH) / 2


def bound(parameters: Sequence[inspect.Parameter], drawn: dict[str, list[Any]]) -> Inputs:
    """Return a call with these values by name; those of ``*args`` are spread."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    by_name = False
    for p in parameters:
        values = drawn.get(p.name, [])
        if p.kind is _KINDS.VAR_POSITIONAL:
            args += values
        elif not values:
            by_name = True  # it keeps its default: what follows has to be named
        elif p.kind is _KINDS.KEYWORD_ONLY or (by_name and p.kind is not _KINDS.POSITIONAL_ONLY):
            kwargs[p.name] = values[0] if len(values) == 1 else values
        else:
            args.append(values[0] if len(values) == 1 else values)
    return Inputs(tuple(args), kwargs)


def shown(
    inputs: Inputs,
    parameters: Sequence[inspect.Parameter] | None = None,
    *,
    values: bool = False,
) -> str:
    """Return the arguments of a call in one line: arrays by shape or by values, others as they are.

    Examples
    --------
    >>> import numpy as np
    >>> shown(Inputs((np.zeros((2, 3)), 0.5), {"dim": 0}))
    'input 0 (2, 3), input 1 0.5, dim 0'
    """
    names = [p.name for p in parameters or [] if p.kind in _POSITIONAL][: len(inputs.args)]
    names += [f"input {i}" for i in range(len(names), len(inputs.args))]
    pairs = [*zip(names, inputs.args, strict=True), *inputs.kwargs.items()]
    if values:
        return ", ".join(f"{name} = {_written(v)}" for name, v in pairs)
    return ", ".join(f"{name} {_short(v)}" for name, v in pairs)


def _short(value: Any) -> str:
    if not _is_array(value):
        return repr(value)
    array = host(value)
    return f"{array.shape}" + ("" if array.dtype == np.float64 else f" {array.dtype}")


def _written(value: Any) -> str:
    if not _is_array(value):
        return repr(value)
    array = host(value)
    listed = array.tolist() if array.size <= 16 else f"array of shape {array.shape}"
    return f"{listed}" + ("" if array.dtype == np.float64 else f" {array.dtype}")


def _is_array(value: Any) -> bool:
    return isinstance(value, Tensor) or is_array(value)
