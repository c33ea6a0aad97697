"""The property that gradients are right at other sizes: axes that grow, shrink and broadcast."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.check.exceptions import BackwardError, InapplicableError, first_line
from pullback.check.explain import cause_of_size
from pullback.check.explain.evidence import Evidence
from pullback.check.properties.variants import Situation
from pullback.check.report import Cause
from pullback.check.resizing import (
    Symbol,
    describe_axes,
    leaves_out,
    parts,
    resized,
    same_outputs,
    session_with_leaves,
    symbols,
)
from pullback.check.session import Session
from pullback.check.values import Arrays

_MAX_ELEMENTS = 20_000


def shapes(session: Session) -> Iterator[Situation]:
    """Make axes longer and shorter, broadcast an argument, and call with 0-d arguments."""
    for symbol in symbols(session):
        n, distinct = symbol.length, _distinct(session, symbol)
        if n > 1:  # compiled code may not survive empty arrays
            yield from _sizes(session, symbol, [n - 1, 1] if distinct else [n + 1, 2 * n, 1])
        for part in parts(session, symbol) if n else ():
            yield from _sizes(session, part, [n - 1 if distinct else n + 1])
    yield from _broadcast(session)
    leaves, when = session.leaves(), "with 0-d arguments"
    if any(a.ndim for a in session.arrays) and all(a.size for a in session.arrays):
        for k, leaf in enumerate(leaves):
            if isinstance(leaf, np.ndarray) and leaf.size:
                leaves[k] = np.array(leaf.ravel()[0])
        other = _taken(session, leaves)
        if other is not None and _goes_back(session, other, when):
            yield Situation(other, when, "size", "allow for any number of axes")


def _taken(session: Session, leaves: Sequence[Any]) -> Session | None:
    """Return a session of the call with these leaves; None where forward does not take them."""
    with contextlib.suppress(InapplicableError):
        return session_with_leaves(session, leaves)
    return None


def _goes_back(session: Session, other: Session, when: str) -> bool:
    """Return whether backward takes what forward may never have been meant for; else note it."""
    try:
        other.gradients()
    except BackwardError as error:
        session.note(f"forward works {when}, but backward raises: {first_line(error)}")
        return False
    return True


def _broadcast(session: Session) -> Iterator[Situation]:
    """Yield calls with one of two arguments of one shape in a shape that broadcasts to it."""
    shapes = [a.shape for a in session.arrays]
    for i, a in enumerate(session.arrays):
        if not a.size or not a.ndim or shapes.count(a.shape) < 2:
            continue
        name, k = session.subject.names[i], session.subject.tracked[i]
        pieces = (a[:1], a[..., :1], a[0], a[(0,) * a.ndim])
        for small in {piece.shape: np.array(piece) for piece in pieces}.values():
            leaves = session.leaves()
            leaves[k] = small
            other = _taken(session, leaves) if small.shape != a.shape else None
            leaves[k] = np.broadcast_to(small, a.shape).copy()
            whole = _taken(session, leaves) if other is not None else None
            if other is None or whole is None or not same_outputs(other.outputs, whole.outputs):
                continue
            when = f"with `{name}` of shape {small.shape}, which forward broadcasts"
            hint = f"return pb.sum_to_size(grad, {name}.shape), or refuse other shapes"
            if _goes_back(session, other, when):
                yield Situation(other, when, "missing-sum", hint)


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
            yield Situation(other, when, partial(_cause, session, symbol, length), meant=meant)


def _cause(session: Session, symbol: Symbol, length: int, e: Evidence, i: int) -> Cause:
    return cause_of_size(session, e, symbol, i, length)


def _is_meant(
    session: Session, symbol: Symbol, length: int, outputs: Arrays, known: tuple[int, Arrays]
) -> bool:
    """Return whether forward seems to be meant for a length.

    A plain function may contain a setting that needs so many elements. A signal shorter than its
    filter has outputs whose lengths do not continue those of longer signals.
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
