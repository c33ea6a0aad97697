"""Other sizes than the call's: one element, none, one more, twice as many; broadcast arguments.

resizing.py makes the call of another size. A shape that forward refuses, or for which its outputs
are not finite, is skipped.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from pullback.check.exceptions import (
    BackwardError,
    ForwardError,
    InapplicableError,
    first_line,
)
from pullback.check.explain import cause_of_exception, cause_of_size
from pullback.check.explain.evidence import Evidence
from pullback.check.naming import quoted
from pullback.check.properties.failing import fail
from pullback.check.properties.recheck import wrong_along
from pullback.check.report import Cause
from pullback.check.resizing import (
    Symbol,
    batches_of_one,
    describe_axes,
    divided,
    leaves_out,
    named,
    resized,
    session_with_leaves,
    symbols,
)
from pullback.check.session import Session
from pullback.check.values import Arrays
from pullback.errors import GradientError

_MAX_ELEMENTS = 20_000
_VECTOR = 4  # elements that a point, a colour or a quaternion has at most
_MOST_GROUPS = 10  # of axes of one length that are tried alone


def check_shapes(session: Session) -> None:
    """Check the gradients at other sizes and with broadcast arguments."""
    before = len(session.report.failures)
    taken = False
    with warnings.catch_warnings():
        # NumPy warns of means of empty arrays and the like.
        warnings.simplefilter("ignore")
        for check in _checks(session):
            taken |= check()
            if len(session.report.failures) > before:
                return  # other shapes would show the same failure
    if not taken:
        raise InapplicableError("forward takes these shapes only")


def _checks(session: Session) -> Iterator[Callable[[], bool]]:
    """Yield the checks of single shapes; each returns whether forward accepted any."""
    for symbol in symbols(session):
        yield partial(_sizes, session, symbol)
        for part in _rectangular(session, symbol):
            change = -1 if _distinct(session, part) else 1
            yield partial(_sizes, session, part, (symbol.length + change,))
        for part in named(session, symbol):
            yield partial(_sizes, session, part, (symbol.length + 1,))
    for batch in batches_of_one(session):
        yield partial(_sizes, session, batch, (2,))
    for i, shape in _variants(session):
        yield partial(_broadcast, session, i, shape)
    yield partial(_scalars, session)


def _rectangular(session: Session, symbol: Symbol) -> Iterator[Symbol]:
    """Yield some of the axes of a symbol that square arrays have twice.

    A matrix that is square by chance hides a rule that takes rows for columns. Forward refuses the
    axes that do not go together.
    """
    arrays = [k for k, _ in symbol.axes]
    if len(set(arrays)) == len(arrays):
        return
    groups = [
        tuple(pair for pair in symbol.axes if pair[1] == axis)
        for axis in sorted({axis for _, axis in symbol.axes})
    ]
    groups += [pair for pair in itertools.combinations(symbol.axes, 2) if pair[0][0] != pair[1][0]]
    for group in itertools.islice(dict.fromkeys(groups), _MOST_GROUPS):
        part = Symbol(symbol.length, group)
        if not divided(session, part, symbol):
            yield part


def _sizes(session: Session, symbol: Symbol, lengths: Sequence[int] = ()) -> bool:
    """Check other lengths of one symbol; return whether forward accepted any."""
    n, known = symbol.length, None
    usual = [n - 1, 1] if _distinct(session, symbol) else [n + 1, 2 * n, 1]
    if not session.iterates:  # a solver's compiled code may not survive empty arrays
        usual.append(0)
    for length in lengths or usual:
        if known and length == 2 * n:  # needed only if the length has to be a multiple
            continue
        if 0 < length < symbol.length and leaves_out(session, symbol, length):
            continue
        leaves = resized(session, symbol, length)
        if sum(v.size for v in leaves if isinstance(v, np.ndarray)) > _MAX_ELEMENTS:
            continue
        try:
            other = session_with_leaves(session, leaves)
        except InapplicableError:
            continue
        known = known or (length, other.outputs)
        sensible = _is_sensible(session, symbol, length, other.outputs, known)
        try:
            wrong = wrong_along(other)
        except BackwardError as error:
            _report_raised(session, other, symbol, length, error, sensible)
            break
        if wrong:
            _report_size(session, other, symbol, length, wrong, sensible)
            break
    return known is not None


def _is_sensible(
    session: Session, symbol: Symbol, length: int, outputs: Arrays, known: tuple[int, Arrays]
) -> bool:
    """Return whether forward seems to be meant for a length.

    A plain function may contain a setting that needs so many elements. A signal shorter than its
    filter has outputs whose lengths do not continue those of longer signals.
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


def _report_raised(
    session: Session,
    other: Session,
    symbol: Symbol,
    length: int,
    error: BackwardError,
    sensible: bool,
) -> None:
    """Report an exception in backward at another length."""
    situation = f"with {describe_axes(session, symbol)} of length {length}"
    # A setting may have to change with the axes; a plain function may contain it.
    settings = [value for _, value in session.subject.number_arguments()]
    fixed = symbol.length in settings or not session.subject.is_op
    odd = length == 0  # an error for an empty array is loud, and seldom meets anyone
    # One row is a batch; along an axis that the outputs do not have one element may be too few, and
    # a few may be the coordinates of points.
    shapes = [out.shape for out in session.outputs]
    summed = [out.shape for out in other.outputs] == shapes
    coordinates = symbol.length <= _VECTOR and any(axis for _, axis in symbol.axes)
    odd |= coordinates or (summed and (length == 1 or symbol.length <= _VECTOR))
    odd |= length == 1 and not isinstance(error.__cause__, GradientError)  # one may be too few
    if fixed or odd or not sensible or _is_fixed(session, symbol, error):
        session.note(f"forward works {situation}, but backward raises: {first_line(error)}")
    else:
        session.fail(cause_of_exception(error), situation=situation)


def _is_fixed(session: Session, symbol: Symbol, error: BackwardError) -> bool:
    """Return whether an argument is always a point, a colour or the like, or a square matrix.

    Forward reads its first elements, and the gradient has as many whatever comes.
    """
    cause = error.__cause__
    if not isinstance(cause, GradientError):
        return False
    pairs = zip(session.subject.names, session.arrays, strict=True)
    same = [array for name, array in pairs if name == cause.argument and array.shape == cause.came]
    return any(
        symbol.length <= _VECTOR or (array.ndim > 1 and array.shape[-1] == array.shape[-2])
        for array in same
    )


def _report_size(
    session: Session,
    other: Session,
    symbol: Symbol,
    length: int,
    wrong: Sequence[int],
    sensible: bool,
) -> None:
    """Report gradients that are wrong at another length."""
    if not sensible:
        names = quoted(session.subject.names[i] for i in wrong)
        where = f"{describe_axes(session, symbol)} of length {length}"
        session.note(f"the gradients of {names} are wrong with {where}")
        return
    other.subject.base = session.subject
    evidence = Evidence(other)
    # Too few elements, and it shows.
    few = [i for i in wrong if length == 0 or (length == 1 and np.isnan(evidence.got[i]).any())]
    for i in few:
        axes, how = describe_axes(session, symbol), "wrong" if length == 0 else "NaN"
        name = evidence.names[i]
        session.note(f"the gradient of `{name}` is {how} with {axes} of length {length}")
    told = [i for i in wrong if i not in few]
    causes = [(i, cause_of_size(session, evidence, symbol, i, length)) for i in told]
    fail(session, evidence, causes)


# -- broadcasting ----------------------------------------------------------------------------------
def _variants(session: Session) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield arguments that share their shape, with shapes that broadcast to it."""
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
    """Check one argument in a shape that broadcasts; return whether forward accepted it."""
    leaves = session.leaves()
    k = session.subject.tracked[i]
    start = (0,) * (leaves[k].ndim - len(shape))
    corner = (*start, *(slice(0, n) for n in shape))
    leaves[k] = np.array(leaves[k][corner]).reshape(shape)
    try:
        other = session_with_leaves(session, leaves)
    except InapplicableError:
        return False
    if not _equals_expanded(session, other, k):
        return False
    name = session.subject.names[i]
    situation = f"with `{name}` of shape {shape}, which forward broadcasts"
    refused = (
        f"forward broadcasts `{name}`, and asking for its gradient then is an error: return "
        f"pb.sum_to_size(grad, {name}.shape) to allow it"
    )
    for j in _wrong_or_noted(session, other, situation, refused):
        wrong = other.subject.names[j]
        text = f"the gradient of `{wrong}` is wrong when forward broadcasts `{name}`"
        hint = f"write pb.sum_to_size(grad, {wrong}.shape), or refuse other shapes in forward"
        cause = Cause("missing-sum", text, hint)
        session.fail(cause, wrong, situation=situation, **Evidence(other).failure_arrays(j))
    return True


def _equals_expanded(session: Session, other: Session, k: int) -> bool:
    """Return whether a smaller array has the results of the one that it broadcasts to."""
    leaves = [np.array(v) if isinstance(v, np.ndarray) else v for v in other.leaves()]
    leaves[k] = np.broadcast_to(leaves[k], session.leaves()[k].shape).copy()
    try:
        outputs = session.subject.with_leaves(leaves).run().values()
    except ForwardError:
        return False
    return len(outputs) == len(other.outputs) and all(
        a.shape == b.shape and np.allclose(a, b, 1e-6, equal_nan=True)
        for a, b in zip(outputs, other.outputs, strict=True)
    )


def _scalars(session: Session) -> bool:
    """Check the call with 0-d arguments; return whether forward accepted them."""
    if any(not array.size for array in session.arrays):
        return False
    if not any(array.ndim for array in session.arrays):
        return False
    leaves = [
        np.array(v.ravel()[0]) if isinstance(v, np.ndarray) and v.size else v
        for v in session.leaves()
    ]
    try:
        other = session_with_leaves(session, leaves)
    except InapplicableError:
        return False
    for j in _wrong_or_noted(session, other, "with 0-d arguments"):
        name = other.subject.names[j]
        text = f"the gradient of `{name}` is wrong for 0-d arguments"
        session.fail(Cause("size", text), name, **Evidence(other).failure_arrays(j))
    return True


def _wrong_or_noted(
    session: Session, other: Session, situation: str, refused: str = ""
) -> list[int]:
    """Return the arguments with wrong gradients; an exception in backward becomes a note.

    `refused` is the note if the engine refused a gradient of the wrong shape.
    """
    try:
        return wrong_along(other)
    except BackwardError as error:
        text = f"forward works {situation}, but backward raises: {first_line(error)}"
        unsummed = isinstance(error.__cause__, GradientError) and error.__cause__.unsummed
        session.note(refused if refused and unsummed else text)
        return []
