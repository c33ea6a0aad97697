"""Other sizes than the call's: one element, none, one more, twice as many; broadcast arguments.

Axes of one length are taken for the same axis, as `n` is in "input: (n, d), target: (n,)", and
change together. Values are made from the given ones, so that they stay where the function is
defined. A shape that forward refuses, or for which it gives no finite outputs, says nothing.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pullback.arrays import is_array
from pullback.check.evidence import Evidence
from pullback.check.first import agrees, gradients
from pullback.check.numerical import coordinates
from pullback.check.report import Cause, Report
from pullback.check.session import BackwardError, InapplicableError, Line, Session
from pullback.check.subject import Array, Arrays, ForwardError, Subject, host
from pullback.core import tree
from pullback.core.tensor import Tensor

# Looser than at the call's own shape: a wrong size is off by much, and new values may be
# conditioned worse than the given ones.
_RTOL = 1e-4
_MOST_ELEMENTS = 20_000


class Symbol(NamedTuple):
    """Axes that have one length: ``(leaf, axis)`` each."""

    length: int
    axes: tuple[tuple[int, int], ...]


# -- calls of other shapes ------------------------------------------------------------------------
def with_leaves(subject: Subject, leaves: Sequence[Any]) -> Subject:
    """Return the same call with other leaves of its arguments; tracked ones stay tracked."""
    other = subject.at([np.asarray(leaves[i]) for i in subject.tracked])
    pieces = iter(leaves)
    other.call = tree.map_leaves(lambda _: next(pieces), subject.call)
    other._leaves = list(leaves)
    other.kept = None
    return other


def leaves_of(session: Session) -> list[Any]:
    """Return the leaves of the call's arguments, tensors and arrays as arrays on the host."""
    tracked = dict(zip(session.subject.tracked, session.arrays, strict=True))
    return [
        tracked[i] if i in tracked else host(v) if isinstance(v, Tensor) or is_array(v) else v
        for i, v in enumerate(session.subject._leaves)
    ]


def session_at(session: Session, leaves: Sequence[Any], rtol: float = _RTOL) -> Session:
    """Return a session of its own for the same call with other leaves.

    Raises
    ------
    InapplicableError
        If forward refuses them, or gives no finite outputs that are differentiable.
    """
    subject = with_leaves(session.subject, leaves)
    options = dataclasses.replace(
        session.options, rtol=max(rtol, session.rtol), atol=max(session.atol, _rounding(session))
    )
    other = Session(subject, options, Report(subject.name, options.seed))
    try:
        run = subject.run(other.arrays)
        other.outputs = run.values()
        known = all(bool(np.isfinite(x).all()) for x in (*other.outputs, *other.wide, other.center))
    except Exception as error:  # whatever a function says of arguments that it was not made for
        raise InapplicableError(str(error)) from None
    if not known or not any(out.requires_grad for out in run.outputs):
        raise InapplicableError("no finite outputs")
    return other


def _rounding(session: Session) -> float:
    """Return what is nothing beside the gradients at the call's own shape, times the arguments."""
    pairs = zip(gradients(session, "seeds"), session.arrays, strict=True)
    sizes = [float(np.abs(g).max()) * float(np.abs(a).max()) for g, a in pairs if a.size and g.size]
    return 1e-10 * max((size for size in sizes if np.isfinite(size)), default=0.0)


def wrong_along(session: Session) -> list[int]:
    """Return the arguments whose gradient disagrees with differences along random directions.

    An alarm has to repeat along other directions and at other values: at a kink that these inputs
    are on by chance, a rule may choose.

    Raises
    ------
    BackwardError
        If backward raises, or gives a gradient of another shape than its argument's.
    """
    got = _checked(session)
    wrong = [i for i in range(len(got)) if not agrees(session, _measured(session, i), got, "seeds")]
    if wrong:
        session.forget_inconsistent()
        wrong = _repeated(session, got, wrong)
    if wrong:
        rng = session.rng("near")
        arrays = [(a * rng.uniform(0.85, 1.0, a.shape)).astype(a.dtype) for a in session.arrays]
        near = Session(session.subject.at(arrays), session.options, session.report)
        try:
            if np.isfinite(near.center).all():
                wrong = _repeated(near, _checked(near), wrong)
        except (BackwardError, ForwardError):  # not defined there
            pass
    return wrong


def _checked(session: Session) -> list[Array]:
    """Return the coordinates of the gradients, whose shapes are those of the arguments."""
    found = gradients(session, "seeds")
    for name, g, array in zip(session.subject.names, found, session.arrays, strict=True):
        if g.shape != array.shape:
            raise BackwardError(f"the gradient of `{name}` has shape {g.shape}, not {array.shape}")
    return [coordinates(g.astype(a.dtype)) for g, a in zip(found, session.wide, strict=True)]


def _repeated(session: Session, got: Sequence[Array], among: Sequence[int]) -> list[int]:
    """Return the arguments whose gradient disagrees along every direction."""
    lines = session.directions
    right = {d.argument for d in lines if agrees(session, d, got, "seeds")}
    return [i for i in among if i not in right]


def _measured(session: Session, i: int) -> Line:
    rng = session.rng(f"direction {i}")
    count = coordinates(session.wide[i]).size
    direction = rng.uniform(0.5, 1.5, count) * rng.choice([-1.0, 1.0], count)
    return session.measure(i, direction)


# -- the part -------------------------------------------------------------------------------------
def shapes(session: Session) -> None:
    """Check the gradients at other sizes and with broadcast arguments."""
    before = len(session.report.failures)
    taken = False
    with warnings.catch_warnings():
        # NumPy warns of means of nothing and the like.
        warnings.simplefilter("ignore")
        for check in _checks(session):
            taken |= check()
            if len(session.report.failures) > before:
                return  # other shapes would tell the same again
    if not taken:
        raise InapplicableError("forward takes these shapes only")


def _checks(session: Session) -> Iterator[Callable[[], bool]]:
    """Yield the checks of single shapes; each says whether forward took any."""
    for symbol in symbols(session):
        yield partial(_sizes, session, symbol)
    for i, shape in _variants(session):
        yield partial(_broadcast, session, i, shape)
    yield partial(_scalars, session)


def symbols(session: Session) -> list[Symbol]:
    """Return the axes of the array arguments, those of one length together."""
    places: dict[int, list[tuple[int, int]]] = {}
    for k, leaf in enumerate(leaves_of(session)):
        if isinstance(leaf, np.ndarray):
            for axis, length in enumerate(leaf.shape):
                if length > 1:
                    places.setdefault(length, []).append((k, axis))
    return [Symbol(length, tuple(axes)) for length, axes in places.items()]


def resized(session: Session, symbol: Symbol, length: int) -> list[Any]:
    """Return the call's leaves with another length of some axes.

    What is added repeats the given values, those of differentiated arguments a little closer to
    zero each: equal numbers would be ties, and equal rows a singular matrix.
    """
    rng = session.rng(f"size {length}")
    leaves = leaves_of(session)
    for k in dict.fromkeys(k for k, _ in symbol.axes):
        old = leaves[k]
        new, added = old, np.zeros(old.shape, bool)
        for axis in (axis for leaf, axis in symbol.axes if leaf == k):
            places = np.arange(length)
            new = np.take(new, places % symbol.length, axis)
            added = np.take(added, places % symbol.length, axis)
            fresh = (places >= symbol.length).reshape([-1] + [1] * (old.ndim - axis - 1))
            added = added | fresh
        if k in session.subject.tracked:
            factor = np.where(added, rng.uniform(0.8, 1.0, new.shape), 1.0)
            new = np.asarray(new * factor).astype(old.dtype)
        leaves[k] = np.ascontiguousarray(new).reshape(new.shape)
    return leaves


def _sizes(session: Session, symbol: Symbol) -> bool:
    """Check other lengths of one symbol; say whether forward took any."""
    n, known = symbol.length, None
    for length in (n - 1, 1, 0) if _distinct(session, symbol) else (n + 1, 2 * n, 1, 0):
        if known and length == 2 * n:  # only where the length has to be a multiple
            continue
        leaves = resized(session, symbol, length)
        if sum(v.size for v in leaves if isinstance(v, np.ndarray)) > _MOST_ELEMENTS:
            continue
        try:
            other = session_at(session, leaves)
        except InapplicableError:
            continue
        known = known or (length, other.outputs)
        sensible = _is_sensible(session, symbol, length, other.outputs, known)
        try:
            wrong = wrong_along(other)
        except BackwardError as error:
            _tell_raised(session, other, symbol, length, error, sensible)
            break
        if wrong:
            _tell_size(session, other, symbol, length, wrong, sensible)
            break
    return known is not None


def _is_sensible(
    session: Session, symbol: Symbol, length: int, outputs: Arrays, known: tuple[int, Arrays]
) -> bool:
    """Say whether forward was made for a length, as far as that shows.

    A plain function may have a setting in its body that needs so many elements. A signal shorter
    than its filter gives outputs whose lengths are not what those of longer ones lead to.
    """
    if length < symbol.length and not session.subject.is_op:
        return False
    step = (length - symbol.length) / (known[0] - symbol.length)
    all_shapes = zip(
        *([out.shape for out in found] for found in (session.outputs, known[1], outputs)),
        strict=False,
    )
    return all(
        tuple(a + step * (b - a) for a, b in zip(old, new, strict=False)) == now
        for old, new, now in all_shapes
    )


def _distinct(session: Session, symbol: Symbol) -> bool:
    """Say whether the axes hold integers that are all distinct: then these may have to be."""
    for k, axis in symbol.axes:
        leaf = leaves_of(session)[k]
        if leaf.dtype.kind in "iu":
            ordered = np.sort(leaf, axis)
            if np.diff(ordered, axis=axis).all():
                return True
    return False


def _tell_raised(
    session: Session,
    other: Session,
    symbol: Symbol,
    length: int,
    error: BackwardError,
    sensible: bool,
) -> None:
    """Report an exception in backward at another length."""
    situation = f"with {_axes(session, symbol)} of length {length}"
    # A setting may have to change with the axes; that of a plain function may be in its body.
    settings = [value for _, value in session.subject.given_numbers()]
    fixed = symbol.length in settings or not session.subject.is_op
    # No rows of a batch give no results; a kernel of no elements makes no sense.
    odd = length == 0 and any(out.size for out in other.outputs)
    if fixed or odd or not sensible:
        first_line = str(error).split("\n")[0]
        session.note(f"forward works {situation}, but backward raises: {first_line}")
    else:
        session.fail(Evidence(other).cause_of(error), situation=situation)


def _tell_size(
    session: Session,
    other: Session,
    symbol: Symbol,
    length: int,
    wrong: Sequence[int],
    sensible: bool,
) -> None:
    """Report gradients that are wrong at another length."""
    if not sensible:
        names = ", ".join(f"`{session.subject.names[i]}`" for i in wrong)
        where = f"{_axes(session, symbol)} of length {length}"
        session.note(f"the gradients of {names} are wrong with {where}")
        return
    evidence = Evidence(other)
    batch = {axis for _, axis in symbol.axes} == {0}
    size = "the batch size" if batch else "that length"
    for i in wrong:
        factor = constant_factor(evidence, i)
        text = (
            f"right for {_axes(session, symbol, bare=batch)} of length {symbol.length} but wrong "
            f"for length {length}: the gradient of `{evidence.names[i]}` depends on {size}"
        )
        if factor is not None:
            text += f"; there it is off by the factor {factor:.4g} everywhere"
        hint = "take the size from the saved shape, and average only where forward does"
        session.fail(Cause("size", text, hint), evidence.names[i], **_numbers(evidence, i))


def constant_factor(evidence: Evidence, i: int) -> float | None:
    """Return the number that the right gradient of an argument is multiplied by, if it is one."""
    expected, got = evidence.expected[i], evidence.got[i]
    seen = np.isfinite(expected)
    squares = float(np.sum(np.abs(expected[seen]) ** 2))
    if not squares:
        return None
    factor = float(np.sum((np.conj(expected[seen]) * got[seen]).real)) / squares
    return factor if factor and evidence.alike(got / factor, expected) else None


def _numbers(evidence: Evidence, i: int) -> dict[str, Array]:
    return {
        "expected": evidence.expected[i],
        "got": evidence.got[i],
        "wrong": evidence.wrong[i],
    }


def _axes(session: Session, symbol: Symbol, bare: bool = False) -> str:
    """Name the axes of a symbol, the arguments that share an axis together."""
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


# -- broadcasting ---------------------------------------------------------------------------------
def _variants(session: Session) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield arguments that have the shape of another one, with shapes that broadcast to it."""
    all_shapes = [array.shape for array in session.arrays]
    for i, shape in enumerate(all_shapes):
        if not shape or 0 in shape or all_shapes.count(shape) < 2:
            continue
        found = [(*shape[:axis], 1, *shape[axis + 1 :]) for axis in {0, len(shape) - 1}]
        found += [shape[1:], ()]
        for small in dict.fromkeys(found):
            if small != shape:
                yield i, small


def _broadcast(session: Session, i: int, shape: tuple[int, ...]) -> bool:
    """Check one argument in a shape that broadcasts to its own; say whether forward took it."""
    leaves = leaves_of(session)
    k = session.subject.tracked[i]
    start = (0,) * (leaves[k].ndim - len(shape))
    corner = (*start, *(slice(0, n) for n in shape))
    leaves[k] = np.array(leaves[k][corner]).reshape(shape)
    try:
        other = session_at(session, leaves)
    except InapplicableError:
        return False
    if [out.shape for out in other.outputs] != [out.shape for out in session.outputs]:
        return False
    name = session.subject.names[i]
    situation = f"with `{name}` of shape {shape}, which forward broadcasts"
    for j in _wrong_or_noted(session, other, situation):
        wrong = other.subject.names[j]
        text = f"the gradient of `{wrong}` is wrong when forward broadcasts `{name}`"
        hint = f"write pb.sum_to_size(grad, {wrong}.shape), or refuse other shapes in forward"
        cause = Cause("missing-sum", text, hint)
        session.fail(cause, wrong, situation=situation, **_numbers(Evidence(other), j))
    return True


def _scalars(session: Session) -> bool:
    """Check the call with 0-d arguments; say whether forward took them."""
    if any(not array.size for array in session.arrays):
        return False
    if not any(array.ndim for array in session.arrays):
        return False
    leaves = [
        np.array(v.ravel()[0]) if isinstance(v, np.ndarray) and v.size else v
        for v in leaves_of(session)
    ]
    try:
        other = session_at(session, leaves)
    except InapplicableError:
        return False
    for j in _wrong_or_noted(session, other, "with 0-d arguments"):
        name = other.subject.names[j]
        text = f"the gradient of `{name}` is wrong for 0-d arguments"
        session.fail(Cause("size", text), name, **_numbers(Evidence(other), j))
    return True


def _wrong_or_noted(session: Session, other: Session, situation: str) -> list[int]:
    """Return the arguments with wrong gradients; an exception in backward becomes a note."""
    try:
        return wrong_along(other)
    except BackwardError as error:
        session.note(
            f"forward works {situation}, but backward raises: {str(error).split(chr(10))[0]}"
        )
        return []
