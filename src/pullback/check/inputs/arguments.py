"""The arguments of one call: bound to a signature, tried, and printed in one line.

Must not know where they come from: a text, a strategy or a guess.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.check.deadline import deadline
from pullback.check.exceptions import ForwardError, first_line
from pullback.check.inputs.domains import DOMAINS, recognised
from pullback.check.iterating import ends
from pullback.check.naming import name_of, parameters_of
from pullback.check.subject import Run, Subject
from pullback.check.values import Array, holds_numbers, host
from pullback.core.custom.define import Function
from pullback.errors import ArgumentTypeError, AutogradError

_KINDS = inspect.Parameter
NOT_FINITE, NO_RESULT = "a result that is not finite", "no floating or complex result"
ENDLESS = "it does not end"
_PATIENCE, _SLOWER = 1.0, 20.0  # in seconds, and as calls take on average
_NOT_SYMMETRIC = 1e-2  # by how much a matrix is made so
_POSITIONAL = (_KINDS.POSITIONAL_ONLY, _KINDS.POSITIONAL_OR_KEYWORD)


def callable_of(op: Any, api: str = "check_op") -> Callable[..., Any]:
    """Return what is called to run an operation: for a `Function` class its ``apply``."""
    if isinstance(op, type) and issubclass(op, Function):
        return op.apply
    if not callable(op):
        raise ArgumentTypeError(
            f"{api}: an operation or a function to check is required, got {name_of(op)}.\n"
            "hint: pass the operation itself and its inputs after it."
        )
    return op  # type: ignore[no-any-return]


class Inputs(NamedTuple):
    """The arguments of one call.

    Attributes
    ----------
    args, kwargs : tuple, dict
    notes : tuple of str
        Notes for the report.
    domains : dict of str
        From the names of those that have a structure to the word for it.
    bounded : frozenset of str
        The names of those whose values have to stay between bounds.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    notes: tuple[str, ...] = ()
    domains: Mapping[str, str] = {}
    bounded: frozenset[str] = frozenset()


class Change(NamedTuple):
    """One difference from the user's call: what it is, of which argument, and how it is made."""

    what: str
    name: str
    put: Callable[[Inputs], Inputs]


def first_run(fn: Callable[..., Any], inputs: Inputs) -> tuple[Subject, Run] | str:
    """Run a call for the first time; return it and the run, or why it is not usable."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            subject = Subject(fn, inputs.args, inputs.kwargs)
            run = subject.run()
    except (ForwardError, AutogradError) as error:
        return first_line(error)
    values = run.values()
    if not any(v.size for v in values):
        return NO_RESULT
    return (subject, run) if all(np.isfinite(v).all() for v in values) else NOT_FINITE


def try_forward(fn: Callable[..., Any], inputs: Inputs) -> list[Array] | str:
    """Return the results of a call, or why it is not usable."""
    found = first_run(fn, inputs)
    return found if isinstance(found, str) else found[1].values()


def taken(fn: Callable[..., Any], inputs: Inputs) -> tuple[Subject, Run] | str:
    """Run a call that nobody made; return it and the run, or why it is not usable."""
    found: list[tuple[Subject, Run] | str] = []
    seconds = _PATIENCE + _SLOWER * deadline().average()
    over = not ends(lambda: found.append(first_run(fn, inputs)), seconds)
    return ENDLESS if over or not found else found[0]


def on_domains(fn: Callable[..., Any], domains: Mapping[str, str]) -> Callable[..., Any]:
    """Return a function of any arrays that calls `fn` with members of their domains.

    The derivative of `fn` along a domain, and that of `fn` after the map onto the domain, are the
    same.
    """
    maps = {name: DOMAINS[word].project for name, word in domains.items()}
    if not any(maps.values()) or parameters_of(fn) is None:
        return fn
    signature = inspect.signature(fn)

    @functools.wraps(fn, updated=())
    def called(*args: Any, **kwargs: Any) -> Any:
        call = signature.bind(*args, **kwargs)
        for name, value in call.arguments.items():
            project = maps.get(name)
            call.arguments[name] = value if project is None else project(value)
        return fn(*call.args, **call.kwargs)

    called.__name__ = name_of(fn)
    return called


def read_by_half(subject: Subject) -> dict[str, str]:
    """Return the words for the symmetric matrices that forward reads as such, by name.

    Of these it reads one triangle alone, or refuses others. The gradient is right if it is along
    symmetric matrices: over which elements it is spread is a convention.
    """
    words = {}
    for i, (name, array) in enumerate(zip(subject.names, subject.arrays, strict=True)):
        word = recognised(array)
        for half in (np.tril, np.triu) if word in ("spd", "symmetric") else ():
            by = _NOT_SYMMETRIC * np.abs(array).max() * half(1.0 - np.eye(array.shape[-1]))
            moved = [a + by.astype(a.dtype) if k == i else a for k, a in enumerate(subject.arrays)]
            try:
                same = map(np.array_equal, subject.values(moved), subject.values(subject.arrays))
                alone = all(same)
            except ForwardError:
                alone = True
            if alone:
                words[name] = word
    return words


def format_inputs(
    inputs: Inputs,
    parameters: Sequence[inspect.Parameter] | None = None,
    *,
    values: bool = False,
) -> str:
    """Return the arguments of a call in one line: arrays by shape or values, others by repr.

    Examples
    --------
    >>> import numpy as np
    >>> format_inputs(Inputs((np.zeros((2, 3)), 0.5), {"dim": 0}))
    'input 0 (2, 3), input 1 0.5, dim 0'
    """
    names = [p.name for p in parameters or [] if p.kind in _POSITIONAL][: len(inputs.args)]
    names += [f"input {i}" for i in range(len(names), len(inputs.args))]
    pairs = [*zip(names, inputs.args, strict=True), *inputs.kwargs.items()]
    return ", ".join(f"{name} {'= ' * values}{_text(value, values)}" for name, value in pairs)


def _text(value: Any, values: bool) -> str:
    if not holds_numbers(value):
        return repr(value)
    array = host(value)
    text = str(array.tolist()) if values and array.size <= 16 else f"{array.shape}"
    return text + ("" if array.dtype == np.float64 else f" {array.dtype}")
