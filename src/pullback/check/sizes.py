"""The property that gradients are right at other sizes: axes that grow, shrink and broadcast.

Axes of equal length are taken for the same symbol, as `n` in "input: (n, d), target: (n,)", and
change together: where they belong together does not show in the values. The new values are made
from the call's own, so that they stay in the domain of the function.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.check.comparison import Situation
from pullback.check.numerical import joined, max_abs
from pullback.check.session import Session
from pullback.check.subject import ForwardError
from pullback.check.values import Array, Arrays, points_into

# Looser than at the call's own shape: a wrong size makes a large error, and the new values may be
# conditioned worse than the call's.
_RTOL = 1e-4
_FEW = 4  # numbers that a shape, a kernel's size or the like has at most
_MOST_AXES = 6  # of one length that are changed alone

SIZE = "take the size from the saved shape, and average only where forward does"

Axis = tuple[int, int]


class Symbol(NamedTuple):
    """Axes of equal length, each as ``(leaf, axis)``."""

    length: int
    axes: tuple[Axis, ...]


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
    for i, a in reversed([*enumerate(session.arrays)]):  # the last is the likeliest to be smaller
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
    return Situation(other, when, "size", SIZE, explained=True)


def _continues(session: Session, length: int, one: Session) -> bool:
    """Return whether outputs have 1 in place of a length; of a signal below its filter's, not."""
    shapes = [tuple(1 if n == length else n for n in out.shape) for out in session.outputs]
    return shapes == [out.shape for out in one.outputs]


# -- another call ----------------------------------------------------------------------------------
def session_of(session: Session, leaves: Sequence[Any]) -> Session | None:
    """Return a session of the same call with other leaves; None where forward does not take them.

    That is where it raises, or has no finite differentiable outputs.
    """
    subject = session.subject.with_leaves(leaves)
    pairs = zip(session.gradients(), session.arrays, strict=True)
    # What is negligible beside the gradients times the arguments of the call.
    rounding = 1e-10 * max((max_abs(g) * max_abs(a) for g, a in pairs), default=0.0)
    rtol, atol = max(_RTOL, session.rtol), max(session.options.atol, rounding)
    other = session.on(subject, rtol=rtol, atol=atol)
    with contextlib.suppress(ForwardError):
        run = subject.run(other.arrays)
        other.outputs = run.values()
        known = np.isfinite(joined([*other.outputs, *other.wide])).all()
        if known and np.isfinite(other.center).all() and any(o.requires_grad for o in run.outputs):
            return other
    return None


# -- axes that change together ---------------------------------------------------------------------
def symbols(session: Session) -> list[Symbol]:
    """Return the axes of the array arguments, grouped by length.

    Without those of which an argument says the length: where the rows of a sparse matrix start, a
    list of as many, or a documented shape, as in "pixels: (n, 3)" or "nodes: (n,), gaps: (n - 1,)".
    """
    subject, arrays = session.subject, _arrays(session)
    args, kwargs = subject.call
    lists = [v for v in (*args, *kwargs.values()) if isinstance(v, (list, tuple))]
    fixed = {0, *(len(v) for v in lists if len(v) > _FEW)}
    sizes = itertools.chain.from_iterable(subject.said.values())
    text = " ".join(size for size in sizes if not size.isidentifier())
    found: dict[int, list[Axis]] = {}
    for k, leaf in arrays.items():
        if any(points_into(leaf, other) for other in arrays.values()):
            fixed |= {len(leaf), int(leaf[-1])}
        said = subject.said.get(subject.labels[k], ())
        if len(said) == leaf.ndim:
            fixed |= {n for n, size in zip(leaf.shape, said, strict=True) if size in text}
        for axis, n in enumerate(leaf.shape):
            found.setdefault(n, []).append((k, axis))
    return [Symbol(n, tuple(axes)) for n, axes in found.items() if n not in fixed]


def parts(session: Session, symbol: Symbol) -> Iterator[Symbol]:
    """Yield each axis of a symbol with those alone that forward ties to it.

    Of length 1 every axis may be that of a batch. Longer ones are equal by chance where an array is
    square, which hides a rule that takes rows for columns. An axis is tied to another that does not
    grow without it, or that makes it broadcast. No index grows: it belongs to what it counts, of
    which forward may read a part.
    """
    arrays, owners = _arrays(session), [k for k, _ in symbol.axes]
    if symbol.length > 1 and len(set(owners)) == len(owners):
        return
    if any(arrays[k].dtype.kind in "iu" for k in owners):
        return
    found = []
    for axis in symbol.axes[:_MOST_AXES]:
        alone, group = _repeated(session, [axis]), [axis]
        for other in symbol.axes:
            both = _repeated(session, [axis, other]) if other != axis else None
            if both is not None and (alone is None or same_outputs(alone, both)):
                group.append(other)
        found.append(tuple(sorted(group)))
    for axes in dict.fromkeys(found):
        if symbol.length == 1 or len(axes) < len(symbol.axes):
            yield Symbol(symbol.length, axes)


def _repeated(session: Session, axes: Sequence[Axis]) -> Arrays | None:
    """Return the outputs with the numbers along some axes repeated; None if forward refuses."""
    leaves = session.leaves()
    for k, axis in axes:
        leaves[k] = np.repeat(leaves[k], 2, axis)
    with contextlib.suppress(ForwardError):
        return session.subject.with_leaves(leaves).run().values()
    return None


def same_outputs(a: Arrays, b: Arrays) -> bool:
    """Return whether two calls have the same outputs, but for rounding."""
    return [x.shape for x in a] == [y.shape for y in b] and all(
        np.allclose(x, y, 1e-6, equal_nan=True) for x, y in zip(a, b, strict=True)
    )


def _arrays(session: Session) -> dict[int, Array]:
    return {k: leaf for k, leaf in enumerate(session.leaves()) if isinstance(leaf, np.ndarray)}


# -- other lengths ---------------------------------------------------------------------------------
def with_other_length(session: Session, symbol: Symbol) -> tuple[int, Session] | None:
    """Return the first other length above 1 that forward takes, and a session of that call.

    A shorter one keeps what is sorted or distinct. A plain function may contain a setting that
    needs so many elements.
    """
    n = symbol.length
    for length in (n + 1, 2 * n, n - 1) if session.subject.is_op else (n + 1, 2 * n):
        other = resized(session, symbol, length) if length > 1 else None
        if other is not None:
            return length, other
    return None


def resized(session: Session, symbol: Symbol, length: int) -> Session | None:
    """Return a session of the call with another length of some axes; None if forward refuses it.

    No index is left out. New elements repeat the old values, if these may be repeated; those of
    differentiated arguments are moved a little towards zero then: equal numbers would be ties, and
    equal rows a singular matrix.
    """
    n, rng, leaves = symbol.length, session.rng(f"size {length}"), session.leaves()
    whole = [v for v in _arrays(session).values() if v.dtype.kind in "iu" and v.size]
    constants = [(leaves[k], axis) for k, axis in symbol.axes if k not in session.subject.tracked]
    if any(v.min() >= 0 and length <= v.max() < n for v in whole):
        return None
    if length > n and any(_is_distinct(*each) for each in constants):
        return None
    for k, axis in symbol.axes:
        leaves[k] = np.take(leaves[k], np.arange(length) % n, axis)
    for k in dict.fromkeys(k for k, _ in symbol.axes):
        old, new = session.leaves()[k], leaves[k]
        if k not in session.subject.tracked:
            if old.dtype.kind == "f" and np.allclose(old.sum(axis=-1), 1.0):  # probabilities
                leaves[k] = new / new.sum(axis=-1, keepdims=True)
        elif length > n:
            leaves[k] = (new * rng.uniform(0.8, 1.0, new.shape)).astype(new.dtype)
    return session_of(session, leaves)


def _is_distinct(constant: Array, axis: int) -> bool:
    """Return whether indices are distinct along an axis, or real numbers sorted."""
    is_index = constant.dtype.kind in "iu"
    steps = np.diff(np.sort(constant, axis) if is_index else constant, axis=axis)
    monotonic = bool((steps > 0).all() or (steps < 0).all())
    return monotonic and (is_index or constant.shape[axis] > 2)


def describe_axes(session: Session, symbol: Symbol) -> str:
    """Return the axes of a symbol in words, with the arguments that share an axis together."""
    found: dict[int, list[str]] = {}
    for k, axis in symbol.axes:
        found.setdefault(axis, []).append(f"`{session.subject.labels[k]}`")
    return " and ".join(f"axis {axis} of {', '.join(names)}" for axis, names in found.items())
