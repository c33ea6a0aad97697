"""The property that gradients are right at other sizes: axes that grow, shrink and broadcast."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.check.exceptions import BackwardError, InapplicableError, first_line
from pullback.check.explain import cause_of_exception, cause_of_size
from pullback.check.explain.evidence import Evidence
from pullback.check.properties.variants import Situation
from pullback.check.report import Cause
from pullback.check.resizing import (
    Symbol,
    describe_axes,
    leaves_out,
    lone_axes,
    parts,
    resized,
    same_outputs,
    session_with_leaves,
    symbols,
)
from pullback.check.session import Session
from pullback.check.values import Arrays
from pullback.errors import GradientError

_MAX_ELEMENTS = 20_000


def shapes(session: Session) -> Iterator[Situation]:
    """Make axes longer and shorter, broadcast an argument, and call with 0-d arguments."""
    for symbol in symbols(session):
        n, distinct = symbol.length, _distinct(session, symbol)
        usual = [n - 1, 1] if distinct else [n + 1, 2 * n, 1]
        yield from _sizes(session, symbol, usual)  # compiled code may not survive empty arrays
        for part in parts(session, symbol):
            yield from _sizes(session, part, [n - 1 if distinct else n + 1])
    for symbol in lone_axes(session):
        yield from _sizes(session, symbol, [2])
    yield from _broadcast(session)
    if any(a.ndim for a in session.arrays) and all(a.size for a in session.arrays):
        leaves = session.leaves()
        arrays = {k: v for k, v in enumerate(leaves) if isinstance(v, np.ndarray) and v.size}
        other = _taken(
            session,
            [
                np.array(arrays[k].ravel()[0]) if k in arrays else leaf
                for k, leaf in enumerate(leaves)
            ],
        )
        if other is not None:
            yield _situation(other, "with 0-d arguments", "size", "allow for any number of axes")


def _taken(session: Session, leaves: Sequence[Any]) -> Session | None:
    """Return a session of the call with these leaves; None where forward does not take them."""
    try:
        return session_with_leaves(session, leaves)
    except InapplicableError:
        return None


def _situation(other: Session, when: str, cause: str, hint: str, note: str = "") -> Situation:
    return Situation(
        other,
        when,
        lambda e, i: Cause(cause, f"the gradient of `{e.names[i]}` is wrong {when}", hint),
        lambda error: note or f"forward works {when}, but backward raises: {first_line(error)}",
    )


def _broadcast(session: Session) -> Iterator[Situation]:
    """Yield calls with one of two arguments of one shape in a shape that broadcasts to it."""
    every = [a.shape for a in session.arrays]
    for i, shape in enumerate(every):
        if not shape or 0 in shape or every.count(shape) < 2:
            continue
        smaller = [(*shape[:axis], 1, *shape[axis + 1 :]) for axis in {0, len(shape) - 1}]
        name, k = session.subject.names[i], session.subject.tracked[i]
        for small in dict.fromkeys([*smaller, shape[1:], ()]):
            leaves = session.leaves()
            start = (0,) * (len(shape) - len(small))
            corner = (*start, *(slice(0, n) for n in small))
            leaves[k] = np.array(leaves[k][corner]).reshape(small)
            other = _taken(session, leaves) if small != shape else None
            if other is None:
                continue
            leaves[k] = np.broadcast_to(leaves[k], shape).copy()
            expanded = _taken(session, leaves)
            if expanded is not None and same_outputs(other.outputs, expanded.outputs):
                when = f"with `{name}` of shape {small}, which forward broadcasts"
                hint = f"return pb.sum_to_size(grad, {name}.shape), or refuse other shapes"
                note = f"forward broadcasts `{name}`, and asking for its gradient then is an error"
                yield _situation(other, when, "missing-sum", hint, f"{note}: {hint}")


def _sizes(session: Session, symbol: Symbol, lengths: Sequence[int]) -> Iterator[Situation]:
    """Yield the calls with other lengths of one symbol that forward takes."""
    n, known = symbol.length, None
    for length in lengths:
        if known and length == 2 * n:  # needed only if the length has to be a multiple
            continue
        if length < n and leaves_out(session, symbol, length):
            continue
        leaves = resized(session, symbol, length)
        few = sum(v.size for v in leaves if isinstance(v, np.ndarray)) <= _MAX_ELEMENTS
        other = _taken(session, leaves) if few else None
        if other is not None:
            known = known or (length, other.outputs)
            meant = _is_meant(session, symbol, length, other.outputs, known)
            when = f"with {describe_axes(session, symbol)} of length {length}"
            cause = partial(_cause_of_size, session, symbol, length, meant)
            yield Situation(other, when, cause, partial(_raised, session, symbol, when, meant))


def _is_meant(
    session: Session, symbol: Symbol, length: int, outputs: Arrays, known: tuple[int, Arrays]
) -> bool:
    """Return whether forward seems to be meant for a length.

    A plain function may contain a setting that needs so many elements. A signal shorter than its
    filter has outputs whose lengths do not continue those of longer signals. Of nothing, nothing
    is asked.
    """
    if length < symbol.length and not session.subject.is_op:
        return False
    step = (length - symbol.length) / (known[0] - symbol.length)
    found = zip(session.outputs, known[1], outputs, strict=False)
    return all(
        tuple(a + step * (b - a) for a, b in zip(old.shape, new.shape, strict=False)) == now.shape
        for old, new, now in found
    )


def _distinct(session: Session, symbol: Symbol) -> bool:
    """Return whether the axes hold distinct or sorted values: these may be required."""
    for k, axis in symbol.axes:
        leaf = session.leaves()[k]
        if leaf.dtype.kind in "iu" and np.diff(np.sort(leaf, axis), axis=axis).all():
            return True
        if k not in session.subject.tracked and leaf.dtype.kind == "f" and symbol.length > 2:
            steps = np.diff(leaf, axis=axis)
            if (steps >= 0).all() or (steps <= 0).all():
                return True
    return False


def _cause_of_size(
    session: Session, symbol: Symbol, length: int, meant: bool, e: Evidence, i: int
) -> Cause | None:
    """Return why a gradient is wrong at another length; None if forward is not meant for it."""
    few = length == 1 and np.isnan(e.got[i]).any()
    return cause_of_size(session, e, symbol, i, length) if meant and not few else None


def _raised(
    session: Session, symbol: Symbol, when: str, meant: bool, error: BackwardError
) -> Cause | str:
    """Return the cause where a gradient has a wrong shape at another length, which nobody means.

    Any other exception is loud, and seldom meets anyone. Nor is one meant where a setting or a
    plain function fixes the length, nor the shape that the gradient of the call has.
    """
    cause, subject = error.__cause__, session.subject
    shapes = dict(zip(subject.names, (a.shape for a in session.arrays), strict=True))
    fixed = any(value == symbol.length for _, value in subject.number_arguments())
    wrong = isinstance(cause, GradientError) and cause.came not in (
        None,
        shapes.get(cause.argument),
    )
    if meant and not fixed and wrong and subject.is_op and not session.options.guessed:
        return cause_of_exception(error)
    return f"forward works {when}, but backward raises: {first_line(error)}"
