"""The same call with other lengths of its axes, and a session to check it in.

Axes of equal length are taken for the same symbol, as `n` in "input: (n, d), target: (n,)", and
change together: where they belong together does not show in the values. The new values are made
from the call's own, so that they stay in the domain of the function.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.check.exceptions import ForwardError, InapplicableError
from pullback.check.report import Report
from pullback.check.session import Session
from pullback.check.values import Arrays

# Looser than at the call's own shape: a wrong size makes a large error, and the new values may be
# conditioned worse than the call's.
_RTOL = 1e-4
_FEW = 4  # numbers that a shape, a kernel's size or the like has at most
_MOST_AXES = 6  # of one length that are changed alone

Axis = tuple[int, int]


class Symbol(NamedTuple):
    """Axes of equal length, each as ``(leaf, axis)``."""

    length: int
    axes: tuple[Axis, ...]


# -- calls of other shapes -------------------------------------------------------------------------
def session_with_leaves(session: Session, leaves: Sequence[Any], rtol: float = _RTOL) -> Session:
    """Return a new session for the same call with other leaves.

    Raises
    ------
    InapplicableError
        If forward raises for them, or has no finite differentiable outputs.
    """
    subject = session.subject.with_leaves(leaves)
    pairs = zip(session.gradients(), session.arrays, strict=True)
    sizes = [float(np.abs(g).max()) * float(np.abs(a).max()) for g, a in pairs if a.size and g.size]
    # What is negligible beside the gradients times the arguments of the call.
    rounding = 1e-10 * max((size for size in sizes if np.isfinite(size)), default=0.0)
    options = dataclasses.replace(
        session.options, rtol=max(rtol, session.rtol), atol=max(session.atol, rounding)
    )
    other = Session(subject, options, Report(subject.name, options.seed))
    try:
        run = subject.run(other.arrays)
        other.outputs = run.values()
        known = all(bool(np.isfinite(x).all()) for x in (*other.outputs, *other.wide, other.center))
    except Exception as error:  # a function may raise anything for arguments it was not made for
        raise InapplicableError(str(error)) from None
    if not known or not any(out.requires_grad for out in run.outputs):
        raise InapplicableError("no finite outputs")
    return other


# -- axes that change together ---------------------------------------------------------------------
def symbols(session: Session) -> list[Symbol]:
    """Return the axes of the array arguments, grouped by length.

    Without those of which an argument says the length: where the rows of a sparse matrix start, a
    list of as many, or a documented shape, as in "pixels: (n, 3)" or "nodes: (n,), gaps: (n - 1,)".
    """
    args, kwargs = session.subject.call
    lists = [v for v in (*args, *kwargs.values()) if isinstance(v, (list, tuple))]
    fixed = {len(v) for v in lists if len(v) > _FEW}
    every = {(k, a): n for k, leaf in _arrays(session) for a, n in enumerate(leaf.shape)}
    for k, leaf in _arrays(session):
        if _is_pointers(leaf):
            del every[k, 0]
            fixed.add(int(leaf[-1]))
    names = _documented(session)
    sizes = {size for size in names.values() if not size.isidentifier()}
    words = "".join(c if c.isalnum() or c == "_" else " " for c in " ".join(sizes)).split()
    meant = {*sizes, *words}
    fixed_here = {n for axis, n in every.items() if names.get(axis) in meant}
    found: dict[int, list[Axis]] = {}
    for axis, n in every.items():
        stays = names[axis] in meant if axis in names else n in fixed_here
        if n not in fixed and not stays:
            found.setdefault(n, []).append(axis)
    return [Symbol(n, tuple(axes)) for n, axes in found.items()]


def parts(session: Session, symbol: Symbol) -> Iterator[Symbol]:
    """Yield the fewest axes of a symbol, around each one, that forward lets grow without the rest.

    Of length 1 every axis may be that of a batch; where others are broadcast along it, it is their
    length as well. Longer ones are equal by chance where the documented shapes give them different
    names, or where an array is square, which hides a rule that takes rows for columns. No index
    grows: it belongs to what it counts, of which forward may read a part.
    """
    leaves, names = session.leaves(), _documented(session)
    arrays, known = [k for k, _ in symbol.axes], {names.get(axis) for axis in symbol.axes} - {None}
    by_chance = symbol.length == 1 or len(set(arrays)) < len(arrays) or len(known) > 1
    if not by_chance or any(leaves[k].dtype.kind in "iu" for k in arrays):
        return

    def with_names(*axes: Axis) -> tuple[Axis, ...]:
        own = {names[axis] for axis in axes if axis in names}
        return tuple(axis for axis in symbol.axes if axis in axes or names.get(axis) in own)

    found = []
    for axis in symbol.axes[:_MOST_AXES]:
        pairs = [with_names(axis, other) for other in symbol.axes if other != axis]
        for group in dict.fromkeys([with_names(axis), *pairs, symbol.axes]):
            outputs = _repeated(session, group)
            if outputs is not None:
                rest = [a for a in symbol.axes if a not in group]
                tied = [a for a in rest if same_outputs(outputs, _repeated(session, (*group, a)))]
                found.append(tuple(sorted({*group, *tied})))
                break
    for group in dict.fromkeys(found):
        if symbol.length == 1 or len(group) < len(symbol.axes):
            yield Symbol(symbol.length, group)


def _repeated(session: Session, axes: Sequence[Axis]) -> Arrays | None:
    """Return the outputs with the numbers along some axes repeated; None if forward refuses."""
    leaves = session.leaves()
    for k, axis in axes:
        leaves[k] = np.repeat(leaves[k], 2, axis)
    with contextlib.suppress(ForwardError):
        return session.subject.with_leaves(leaves).run().values()
    return None


def same_outputs(a: Arrays, b: Arrays | None) -> bool:
    """Return whether two calls have the same outputs, but for rounding."""
    return [x.shape for x in a] == [y.shape for y in b or ()] and all(
        np.allclose(x, y, 1e-6, equal_nan=True) for x, y in zip(a, b or (), strict=True)
    )


def _arrays(session: Session) -> list[tuple[int, Any]]:
    return [(k, leaf) for k, leaf in enumerate(session.leaves()) if isinstance(leaf, np.ndarray)]


def _documented(session: Session) -> dict[Axis, str]:
    """Return what the documented shapes say of axes."""
    labels, said = session.subject.labels, session.subject.said
    shapes = [(k, said.get(labels[k], ()), leaf.ndim) for k, leaf in _arrays(session)]
    every = [(k, shape) for k, shape, ndim in shapes if len(shape) == ndim]
    return {(k, axis): size for k, shape in every for axis, size in enumerate(shape)}


def _is_pointers(leaf: Any) -> bool:
    """Return whether an array is one of whole numbers that rise from 0, and not by 1 alone."""
    if leaf.dtype.kind not in "iu" or leaf.ndim != 1 or len(leaf) < 3 or leaf[0] != 0:
        return False
    steps = np.diff(leaf.astype(np.int64))
    return bool((steps >= 0).all() and (steps != 1).any() and leaf[-1] >= len(leaf) - 1)


# -- other lengths ---------------------------------------------------------------------------------
def resized(session: Session, symbol: Symbol, length: int) -> list[Any]:
    """Return the call's leaves with another length of some axes.

    New elements repeat the old values; those of differentiated arguments are each moved a little
    towards zero: equal numbers would be ties, and equal rows a singular matrix. Constant
    probabilities keep a sum of 1. Where there was one of something, all indices may be 0: the
    others are meant, too, once there are more.
    """
    rng, leaves = session.rng(f"size {length}"), session.leaves()
    places = np.arange(length)
    for k in dict.fromkeys(k for k, _ in symbol.axes):
        old = new = leaves[k]
        added = np.zeros(old.shape, bool)
        for axis in (axis for leaf, axis in symbol.axes if leaf == k):
            new, added = (np.take(x, places % symbol.length, axis) for x in (new, added))
            np.moveaxis(added, axis, -1)[..., symbol.length :] = True
        if k in session.subject.tracked:
            factor = np.where(added, rng.uniform(0.8, 1.0, new.shape), 1.0)
            new = np.asarray(new * factor).astype(old.dtype)
        elif old.dtype.kind == "f" and old.shape[-1] > 1 and (old >= 0).all():
            total = new.sum(axis=-1, keepdims=True)
            new = new / total if np.allclose(old.sum(axis=-1), 1.0) and (total > 0).all() else new
        leaves[k] = np.ascontiguousarray(new).reshape(new.shape)
    for k, old in enumerate(leaves) if symbol.length == 1 < length else ():
        if isinstance(old, np.ndarray) and old.dtype.kind in "iu" and old.size and not old.any():
            leaves[k] = (np.arange(old.size) % length).astype(old.dtype).reshape(old.shape)
    return leaves


def leaves_out(session: Session, symbol: Symbol, length: int) -> bool:
    """Return whether an index would be one of what is left out at another length."""
    found = [v for _, v in _arrays(session) if v.dtype.kind in "iu" and v.size]
    return any(v.min() >= 0 and length <= v.max() < symbol.length for v in found)


def describe_axes(session: Session, symbol: Symbol, bare: bool = False) -> str:
    """Return the axes of a symbol in words, with the arguments that share an axis together."""
    found: dict[int, list[str]] = {}
    for k, axis in symbol.axes:
        found.setdefault(axis, []).append(f"`{session.subject.labels[k]}`")
    if bare:
        return f"axis {next(iter(found))}"
    return " and ".join(f"axis {axis} of {', '.join(names)}" for axis, names in found.items())
