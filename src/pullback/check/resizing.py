"""The same call with other lengths of its axes, and a session to check it in.

Axes of equal length are taken for the same symbol, as `n` in "input: (n, d), target: (n,)", and
change together. The new values are made from the call's own, so that they stay in the domain of the
function.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.check.exceptions import InapplicableError
from pullback.check.report import Report
from pullback.check.session import Session

# Looser than at the call's own shape: a wrong size makes a large error, and the new values may be
# conditioned worse than the call's.
_RTOL = 1e-4
_FEW = 4  # numbers that a shape, a kernel's size or the like has at most


class Symbol(NamedTuple):
    """Axes of equal length, each as ``(leaf, axis)``."""

    length: int
    axes: tuple[tuple[int, int], ...]


# -- calls of other shapes -------------------------------------------------------------------------
def session_with_leaves(session: Session, leaves: Sequence[Any], rtol: float = _RTOL) -> Session:
    """Return a new session for the same call with other leaves.

    Raises
    ------
    InapplicableError
        If forward raises for them, or has no finite differentiable outputs.
    """
    subject = session.subject.with_leaves(leaves)
    options = dataclasses.replace(
        session.options, rtol=max(rtol, session.rtol), atol=max(session.atol, _rounding(session))
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


def _rounding(session: Session) -> float:
    """Return a size that is negligible beside the gradients times the arguments of the call."""
    pairs = zip(session.gradients(), session.arrays, strict=True)
    sizes = [float(np.abs(g).max()) * float(np.abs(a).max()) for g, a in pairs if a.size and g.size]
    return 1e-10 * max((size for size in sizes if np.isfinite(size)), default=0.0)


def symbols(session: Session) -> list[Symbol]:
    """Return the axes of the array arguments, grouped by length.

    Without those of which an argument says the length, where the rows of a sparse matrix start or
    as a list of as many, or the docstring, as in "pixels: (n, 3)" or "nodes: (n,), gaps: (n - 1,)",
    and others as long.
    """
    axes_by_length: dict[int, list[tuple[int, int]]] = {}
    leaves = [(k, leaf) for k, leaf in enumerate(session.leaves()) if isinstance(leaf, np.ndarray)]
    pointers = {k for k, leaf in leaves if _is_pointers(leaf)}
    said = {int(leaf[-1]) for k, leaf in leaves if k in pointers} | _listed(session)
    documented = {(k, axis): size for k, _ in leaves for axis, size in _sizes(session, k)}
    meant = {size for size in documented.values() if not size.isidentifier()}
    meant |= {name for size in meant for name in re.findall(r"[A-Za-z_]\w*", size)}
    lengths = {
        leaf.shape[axis] for k, leaf in leaves for axis, size in _sizes(session, k) if size in meant
    }
    for k, leaf in leaves:
        for axis, length in enumerate(leaf.shape):
            size = documented.get((k, axis), "")
            stays = size in meant if size else length in lengths
            if length > 1 and k not in pointers and length not in said and not stays:
                axes_by_length.setdefault(length, []).append((k, axis))
    return [Symbol(length, tuple(axes)) for length, axes in axes_by_length.items()]


def _listed(session: Session) -> set[int]:
    """Return the lengths of lists among the arguments that may have one item for each element."""
    args, kwargs = session.subject.call
    lists = [v for v in (*args, *kwargs.values()) if isinstance(v, (list, tuple))]
    return {len(v) for v in lists if len(v) > _FEW}


def _sizes(session: Session, leaf: int) -> Iterator[tuple[int, str]]:
    """Yield the axes of an array that is an argument, with what the docstring says of them."""
    said = session.subject.said.get(session.subject.labels[leaf], ())
    if len(said) == np.ndim(session.leaves()[leaf]):
        yield from enumerate(said)


def _is_pointers(leaf: Any) -> bool:
    """Return whether an array is one of whole numbers that rise from 0, and not by 1 alone."""
    if leaf.dtype.kind not in "iu" or leaf.ndim != 1 or len(leaf) < 3 or leaf[0] != 0:
        return False
    steps = np.diff(leaf.astype(np.int64))
    return bool((steps >= 0).all() and (steps != 1).any() and leaf[-1] >= len(leaf) - 1)


def batches_of_one(session: Session) -> list[Symbol]:
    """Return the axes of length 1, grouped by their number: a batch of one may grow.

    None where an index would grow with it: of two writes to one place, only one counts.
    """
    axes: dict[int, list[tuple[int, int]]] = {}
    leaves = session.leaves()
    if any(isinstance(v, np.ndarray) and v.dtype.kind in "iu" and 1 in v.shape for v in leaves):
        return []
    for k, leaf in enumerate(leaves):
        if isinstance(leaf, np.ndarray):
            for axis, length in enumerate(leaf.shape):
                if length == 1 and dict(_sizes(session, k)).get(axis) != "1":
                    axes.setdefault(axis, []).append((k, axis))
    alone = [[pair] for found in axes.values() if len(found) > 1 for pair in found]
    return [Symbol(1, tuple(found)) for found in (*axes.values(), *alone)]


def divided(session: Session, part: Symbol, symbol: Symbol) -> bool:
    """Return whether a part of some axes would differ from others of their name in the docstring.

    "table: (v, v)" says that it is square.
    """
    labels, said = session.subject.labels, session.subject.said
    names: dict[bool, set[str]] = {True: set(), False: set()}
    for k, axis in symbol.axes:
        names[(k, axis) in part.axes].update(said.get(labels[k], ())[axis : axis + 1])
    return bool(names[True] & names[False])


def named(session: Session, symbol: Symbol) -> Iterator[Symbol]:
    """Yield the axes of a symbol that have one name in the docstring, where others have another.

    "points: (n, 3), places: (m, 3)" may be as many by chance. Axes without a name may go with
    either; forward refuses what does not go together.
    """
    names: dict[str, list[tuple[int, int]]] = {}
    for pair in symbol.axes:
        names.setdefault(dict(_sizes(session, pair[0])).get(pair[1], ""), []).append(pair)
    nameless = names.pop("", [])
    for axes in names.values() if len(names) > 1 else ():
        yield Symbol(symbol.length, tuple(axes))
        if nameless:
            yield Symbol(symbol.length, tuple(sorted([*axes, *nameless])))


def resized(session: Session, symbol: Symbol, length: int) -> list[Any]:
    """Return the call's leaves with another length of some axes.

    New elements repeat the old values; those of differentiated arguments are each moved a little
    towards zero: equal numbers would be ties, and equal rows a singular matrix. Constant
    probabilities keep a sum of 1. Where there was one of something, all indices may be 0: the
    others are meant, too, once there are more.
    """
    rng = session.rng(f"size {length}")
    leaves = session.leaves()
    for k in dict.fromkeys(k for k, _ in symbol.axes):
        old = leaves[k]
        new, added = old, np.zeros(old.shape, bool)
        for axis in (axis for leaf, axis in symbol.axes if leaf == k):
            indices = np.arange(length)
            new = np.take(new, indices % symbol.length, axis)
            added = np.take(added, indices % symbol.length, axis)
            fresh = (indices >= symbol.length).reshape([-1] + [1] * (old.ndim - axis - 1))
            added = added | fresh
        if k in session.subject.tracked:
            factor = np.where(added, rng.uniform(0.8, 1.0, new.shape), 1.0)
            new = np.asarray(new * factor).astype(old.dtype)
        elif _sums_to_one(old) and (new.sum(axis=-1) > 0).all():
            new = new / new.sum(axis=-1, keepdims=True)
        leaves[k] = np.ascontiguousarray(new).reshape(new.shape)
    for k, old in enumerate(leaves) if symbol.length == 1 < length else ():
        if isinstance(old, np.ndarray) and old.dtype.kind in "iu" and old.size and not old.any():
            leaves[k] = (np.arange(old.size) % length).astype(old.dtype).reshape(old.shape)
    return leaves


def leaves_out(session: Session, symbol: Symbol, length: int) -> bool:
    """Return whether an index would be one of what is left out at another length."""
    found = [v for v in session.leaves() if isinstance(v, np.ndarray) and v.dtype.kind in "iu"]
    return any(v.size and v.min() >= 0 and length <= v.max() < symbol.length for v in found)


def _sums_to_one(array: Any) -> bool:
    """Return whether the rows of an array are probabilities."""
    if array.dtype.kind != "f" or not array.ndim or array.shape[-1] < 2:
        return False
    return bool((array >= 0).all() and np.allclose(array.sum(axis=-1), 1.0))


def describe_axes(session: Session, symbol: Symbol, bare: bool = False) -> str:
    """Return the axes of a symbol in words, with the arguments that share an axis together."""
    by_axis: dict[int, list[str]] = {}
    for k, axis in symbol.axes:
        by_axis.setdefault(axis, []).append(f"`{session.subject.labels[k]}`")
    if bare:
        return f"axis {next(iter(by_axis))}"
    by_names: dict[str, list[str]] = {}
    for axis, names in by_axis.items():
        by_names.setdefault(", ".join(names), []).append(str(axis))
    return " and ".join(
        f"ax{'e' if len(axes) > 1 else 'i'}s {', '.join(axes)} of {names}"
        for names, axes in by_names.items()
    )
