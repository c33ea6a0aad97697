"""The property that gradients are right at other sizes: axes that grow, shrink and broadcast."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from pullback.check.explain import cause_of_size
from pullback.check.properties.variants import Situation
from pullback.check.resizing import (
    Symbol,
    describe_axes,
    parts,
    resized,
    same_outputs,
    session_of,
    symbols,
    with_other_length,
)
from pullback.check.session import Session


def shapes(session: Session) -> Iterator[Situation]:
    """Make axes longer and shorter, broadcast an argument, and call with 0-d arguments."""
    for symbol in symbols(session):
        for each in (symbol, *parts(session, symbol)):
            if found := with_other_length(session, each):
                yield _at_length(session, each, *found)
        one = resized(session, symbol, 1) if symbol.length > 1 and session.subject.is_op else None
        if one is not None and _continues(session, symbol.length, one):
            yield _at_length(session, symbol, 1, one)
    yield from _broadcast(session)
    leaves = session.leaves()
    if any(a.ndim for a in session.arrays) and all(a.size for a in session.arrays):
        for k, leaf in enumerate(leaves):
            if isinstance(leaf, np.ndarray) and leaf.size:
                leaves[k] = np.array(leaf.ravel()[0])
        other = session_of(session, leaves)
        if other is not None:
            yield Situation(other, "with 0-d arguments", "size", "allow for any number of axes")


def _broadcast(session: Session) -> Iterator[Situation]:
    """Yield calls with one of two arguments of one shape in a shape that broadcasts to it."""
    shapes = [a.shape for a in session.arrays]
    for i, a in enumerate(session.arrays):
        if not a.size or not a.ndim or shapes.count(a.shape) < 2:
            continue
        name, k = session.subject.names[i], session.subject.tracked[i]
        for small in (a[:1], a[..., :1], a[0], a[(0,) * a.ndim]):
            leaves, others = session.leaves(), []
            for value in (small, np.broadcast_to(small, a.shape)):
                leaves[k] = np.array(value)
                others.append(session_of(session, leaves))
            one, whole = others
            if one is not None and whole is not None and same_outputs(one.outputs, whole.outputs):
                when = f"with `{name}` of shape {small.shape}, which forward broadcasts"
                hint = f"return pb.sum_to_size(grad, {name}.shape), or refuse other shapes"
                yield Situation(one, when, "missing-sum", hint)


def _at_length(session: Session, symbol: Symbol, length: int, other: Session) -> Situation:
    when = f"with {describe_axes(session, symbol)} of length {length}"
    return Situation(other, when, partial(cause_of_size, session, symbol, length))


def _continues(session: Session, length: int, one: Session) -> bool:
    """Return whether outputs have 1 in place of a length; of a signal below its filter's, not."""
    shapes = [tuple(1 if n == length else n for n in out.shape) for out in session.outputs]
    return shapes == [out.shape for out in one.outputs]
