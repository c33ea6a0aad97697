"""The memory that forward's arguments, results and saved values share.

Owns which of them count their changes together, and what is kept of an array that forward saved:
views and arrays of the array library itself are tied by their memory alone. Invariant: what a node
saved either has the version counter of every argument and result that shows its memory, or nobody
can write to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from sys import getrefcount
from typing import Any

from pullback.arrays import NUMPY, is_array, library_of
from pullback.core.custom import pytree as tree
from pullback.core.custom.saved_variables import SavedArray
from pullback.core.tensor.ownership import SOLE, is_unreachable
from pullback.core.tensor.tensor import Tensor, box
from pullback.core.tensor.versions import BORROWED, Counter, counter_of, new_counter, shared_counter

_ndarray = NUMPY.array_types[0]


def count_together(
    args: Sequence[Any], detached: Sequence[Any], outs: Sequence[Any], ctx: Any, variables: int = 0
) -> list[Any]:
    """Let each result that shows the memory of an argument, or of another result, count with it.

    Return the results: a copy of one whose memory somebody else holds, such as a buffer that
    forward fills in every call.

    Parameters
    ----------
    args, detached : sequence
        The caller's arguments, and what forward was called with.
    outs : sequence
        What it returned: tensors and other objects.
    ctx : Context
        Which may hold a result's memory as well.
    variables : int
        How many others within the library hold the arrays of `outs`.
    """
    results = list(outs)
    for i, out in enumerate(outs):
        owner = out if not isinstance(out, Tensor) or out._base is None else out._base
        if not isinstance(out, Tensor) or any(owner is t for t in detached):
            continue
        overlaps = library_of(out._data).overlaps
        for t, other in (*zip(detached, args, strict=True), *((t, t) for t in outs[:i])):
            if isinstance(t, Tensor) and t is not out and overlaps(out._data, t._data):
                owner._counter = shared_counter(other)
                break
        else:
            if out._data.__class__ is _ndarray and _others_hold(out._data, outs, ctx, variables):
                results[i] = _copied(out, ctx)
    return results


def _copied(out: Tensor, ctx: Any) -> Tensor:
    """Return a copy of a result, which takes its place in ctx, too."""
    copy = box(out._data.copy())
    ctx._values = tuple([copy if value is out else value for value in ctx._values])
    for names in (ctx._named, ctx.__dict__):
        for name in [name for name in names if names[name] is out]:
            names[name] = copy
    return copy


def _others_hold(array: Any, outs: Sequence[Any], ctx: Any, variables: int) -> bool:
    """Return whether more than results and ctx hold the memory of a result's array."""
    if SOLE < 0:  # the interpreter does not count exactly
        return True
    is_own = array.base is None
    owner = array if is_own else array.base
    count = getrefcount(owner) - SOLE
    known = variables + 1 if is_own else 0  # `array` is one more
    seen = set[int]()
    for value in (*outs, *tree.leaves([*ctx._values, *dict(ctx._named).values(), ctx.__dict__])):
        known += value is owner
        if id(value) not in seen:
            seen.add(id(value))
            known += sum(held is owner for held in _held_by(value))
    return count > known


def _held_by(value: Any) -> Iterator[Any]:
    """Yield what a tensor or an array holds that may be an array."""
    arrays = [value]
    if isinstance(value, Tensor):
        arrays = [value._data]
        if value._base is not None:
            arrays += [value._base._data, value._base_data]
        yield from arrays
    for array in {id(array): array for array in arrays}.values():
        yield getattr(array, "base", None)


def _shown_by(array: Any, detached: Sequence[Any], outs: Sequence[Any]) -> Any:
    """Return a result or an argument, tensor or array, that shows the memory of an array, if any.

    A tensor is returned as what counts its changes.
    """
    overlaps = library_of(array).overlaps
    for value in (*outs, *detached):
        if isinstance(value, Tensor):
            if overlaps(array, value._data):
                return counter_among(detached, counter_of(value))
        elif overlaps(array, value):
            return value
    return None


def counter_among(detached: Sequence[Any], counter: Any) -> Any:
    """Return what counts for the caller too, where forward shared the memory of an argument.

    Forward's tensor then has a counter of its own; the caller's goes on with the node before it.
    """
    origin = (
        None if counter.__class__ is not Counter or counter.origin is None else counter.origin()
    )
    if origin is None or not any(isinstance(t, Tensor) and t._counter is counter for t in detached):
        return counter
    return origin


def kept_tensor(
    array: Any, counter: Any, detached: Sequence[Any], outs: Sequence[Any]
) -> tuple[Any, Any]:
    """Return what is kept of a saved tensor that is no argument and no result: array, counter."""
    shown = _shown_by(array, detached, outs)
    if shown is None or shown is BORROWED:  # a change of a borrowed result is one of a copy
        return array, counter
    if is_array(shown):
        return library_of(array).snapshot(array), new_counter()
    return array, shown


def kept_array(
    array: Any, held_once: bool, detached: Sequence[Any], outs: Sequence[Any]
) -> tuple[Any, ...]:
    """Return the four items of a saved array that is no tensor.

    Of an argument that is a snapshot, which others may share; of what forward made, and somebody
    else holds, a copy of its own.
    """
    shown, library = _shown_by(array, detached, outs), library_of(array)
    if shown is None:
        is_ours = not library.mutable or (held_once and is_unreachable(array))
        return (array if is_ours else library.copy(array), None, 0, None)
    if shown is BORROWED:
        return (array, None, 0, None)
    if not is_array(shown):
        return (SavedArray(array), shown, shown.version, None)
    position = next((i for i, value in enumerate(detached) if value is array), None)
    return (library.snapshot(array), None, 0, position)


def _references(leaf: Any) -> int:
    return getrefcount(leaf)


# What `tree.map_leaves` lets a function find of an array that a container alone holds.
IN_CONTAINER: int = tree.map_leaves(_references, [NUMPY.xp.zeros(1)])[0] if SOLE > 0 else -1
