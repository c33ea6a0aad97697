"""The same call with other lengths of its axes, and a session to check it in.

Axes of equal length are taken for the same symbol, as `n` in "input: (n, d), target: (n,)", and
change together: where they belong together does not show in the values. The new values are made
from the call's own, so that they stay in the domain of the function.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import itertools
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
_MOST_AXES = 6  # of length 1 that are grown
_MOST_GROUPS = 10  # of axes of one length that are tried alone

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
    leaves = _arrays(session)
    pointers = {k for k, leaf in leaves if _is_pointers(leaf)}
    args, kwargs = session.subject.call
    lists = [v for v in (*args, *kwargs.values()) if isinstance(v, (list, tuple))]
    fixed = {int(leaf[-1]) for k, leaf in leaves if k in pointers}
    fixed |= {len(v) for v in lists if len(v) > _FEW}
    names = _documented(session)
    meant = {name for said in names.values() for name in _fixed_by(said)}
    fixed_here = {
        leaf.shape[a] for k, leaf in leaves for a in range(leaf.ndim) if names.get((k, a)) in meant
    }
    found: dict[int, list[Axis]] = {}
    for k, leaf in leaves:
        for axis, length in enumerate(leaf.shape):
            name = names.get((k, axis))
            stays = name in meant if name else length in fixed_here
            if length > 1 and k not in pointers and length not in fixed and not stays:
                found.setdefault(length, []).append((k, axis))
    return [Symbol(length, tuple(axes)) for length, axes in found.items()]


def parts(session: Session, symbol: Symbol) -> Iterator[Symbol]:
    """Yield axes of a symbol that may be as long as the others by chance.

    Those that the documented shapes give one name, where they give others another one, and some of
    those that square arrays have twice: a matrix that is square by chance hides a rule that takes
    rows for columns. Forward refuses the axes that do not go together; an index goes with what it
    counts, of which forward may read a part.
    """
    leaves, documented = session.leaves(), _documented(session)
    if any(leaves[k].dtype.kind in "iu" for k, _ in symbol.axes):
        return
    names = {pair: documented.get(pair, "") for pair in symbol.axes}
    groups: list[tuple[Axis, ...]] = []
    known = dict.fromkeys(name for name in names.values() if name)
    for name in known if len(known) > 1 else ():
        own, free = ([p for p in symbol.axes if names[p] == n] for n in (name, ""))
        groups += [tuple(own), tuple(sorted([*own, *free]))]
    arrays = [k for k, _ in symbol.axes]
    if len(set(arrays)) < len(arrays):
        for axis in sorted({axis for _, axis in symbol.axes}):
            groups.append(tuple(p for p in symbol.axes if p[1] == axis))
        groups += [
            pair for pair in itertools.combinations(symbol.axes, 2) if pair[0][0] != pair[1][0]
        ]
    for group in itertools.islice(dict.fromkeys(groups), _MOST_GROUPS):
        inside, outside = (
            {names[p] for p in symbol.axes if (p in group) == i} for i in (True, False)
        )
        if outside and not (inside & outside) - {""}:
            yield Symbol(symbol.length, group)


def lone_axes(session: Session) -> list[Symbol]:
    """Return the axes of length 1, each with those that forward ties to it: a batch may grow.

    Where others are broadcast along an axis that grows, it is the length of these as well. None
    where an index would grow with it: of two writes to one place, only one counts.
    """
    leaves, names = _arrays(session), _documented(session)
    if any(leaf.dtype.kind in "iu" and 1 in leaf.shape for _, leaf in leaves):
        return []
    every = [(k, a) for k, leaf in leaves for a, n in enumerate(leaf.shape) if n == 1]
    axes = [pair for pair in every if names.get(pair) != "1"][:_MOST_AXES]
    found = []
    for pair in axes:
        others = [other for other in axes if other != pair]
        for start in [(pair,), *((pair, other) for other in others), tuple(axes)]:
            outputs = _repeated(session, start)
            if outputs is not None:
                tied = [
                    p
                    for p in others
                    if p not in start and same_outputs(outputs, _repeated(session, (*start, p)))
                ]
                found.append(tuple(sorted({*start, *tied})))
                break
    return [Symbol(1, group) for group in dict.fromkeys(found)]


def _repeated(session: Session, axes: Sequence[Axis]) -> Arrays | None:
    """Return the outputs with the numbers along axes of length 1 repeated; None if refused."""
    leaves = session.leaves()
    for k, axis in axes:
        leaves[k] = np.repeat(leaves[k], 2, axis)
    with contextlib.suppress(ForwardError):
        return session.subject.with_leaves(leaves).run().values()
    return None


def same_outputs(a: Arrays, b: Arrays | None) -> bool:
    """Return whether two calls have the same outputs, but for rounding."""
    return (
        b is not None
        and len(a) == len(b)
        and all(
            x.shape == y.shape and np.allclose(x, y, 1e-6, equal_nan=True)
            for x, y in zip(a, b, strict=True)
        )
    )


def _arrays(session: Session) -> list[tuple[int, Any]]:
    return [(k, leaf) for k, leaf in enumerate(session.leaves()) if isinstance(leaf, np.ndarray)]


def _documented(session: Session) -> dict[Axis, str]:
    """Return what the documented shapes say of axes."""
    labels, said = session.subject.labels, session.subject.said
    shapes = [
        (k, said.get(labels[k], ()))
        for k, leaf in _arrays(session)
        if len(said.get(labels[k], ())) == leaf.ndim
    ]
    return {(k, axis): size for k, shape in shapes for axis, size in enumerate(shape)}


def _fixed_by(size: str) -> set[str]:
    """Return what a documented size that is no name fixes: itself, and the names within."""
    if size.isidentifier():
        return set()
    with contextlib.suppress(SyntaxError):
        nodes = ast.walk(ast.parse(size, mode="eval"))
        return {size} | {node.id for node in nodes if isinstance(node, ast.Name)}
    return {size}


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
    rng = session.rng(f"size {length}")
    leaves = session.leaves()
    indices = np.arange(length)
    for k in dict.fromkeys(k for k, _ in symbol.axes):
        old = leaves[k]
        new, added = old, np.zeros(old.shape, bool)
        for axis in (axis for leaf, axis in symbol.axes if leaf == k):
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
    found = [v for _, v in _arrays(session) if v.dtype.kind in "iu" and v.size]
    return any(v.min() >= 0 and length <= v.max() < symbol.length for v in found)


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
