"""The memory that forward's arguments, results and saved values share.

Owns which of them count their changes together, what is kept of an array that forward saved, and
the copies of what forward, rules and hooks return but keep. Views and arrays of the array library
itself are tied by their memory alone. Invariant: what a node saved either has the version counter
of every argument and result that shows its memory, or nobody can write to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from typing import Any

from pullback.arrays import NUMPY, is_array, library_of, ndarray
from pullback.core.custom import pytree as tree
from pullback.core.custom.saved_variables import SavedArray
from pullback.core.tensor.ownership import SOLE, is_held_once, is_unreachable
from pullback.core.tensor.tensor import Tensor, box
from pullback.core.tensor.versions import BORROWED, Counter, counter_of, shared_counter


def position_of(value: Any, values: Sequence[Any]) -> int | None:
    """Return where an object itself is among others, None where it is none of them."""
    for i, other in enumerate(values):
        if other is value:
            return i
    return None


def count_together(
    args: Sequence[Any],
    detached: Sequence[Any],
    outs: Sequence[Any],
    ctx: Any,
    variables: Sequence[int] = (0,),
) -> list[Any]:
    """Let each result that shows the memory of an argument count with it.

    Return the results: a copy of one that shows the memory of another result, or whose memory
    somebody else holds, such as a buffer that forward fills in every call; ctx may hold it as well.
    A change of one in place would change another, whose gradient knows nothing of it. `args` and
    `detached` are the caller's arguments and what forward was called with; `variables` says of each
    of `outs` how many others within the library hold its array.
    """
    results = list(outs)
    for i, out in enumerate(outs):
        if not isinstance(out, Tensor):
            continue
        owner = out if out._base is None else out._base
        if position_of(owner, detached) is not None:
            continue
        overlaps = library_of(out._data).overlaps
        for t, other in zip(detached, args, strict=True):
            if isinstance(t, Tensor) and t is not out and overlaps(out._data, t._data):
                owner._counter = shared_counter(other)
                break
        else:
            array = out._data
            is_shared = i > 0 and any(
                overlaps(array, t._data) for t in outs[:i] if isinstance(t, Tensor) and t is not out
            )
            if is_shared or (
                array.__class__ is ndarray and _others_hold(array, outs, ctx, variables[i] + 1)
            ):
                results[i] = _copied(out, ctx)
    return results


def _copied(out: Tensor, ctx: Any) -> Tensor:
    """Return a copy of a result, which takes its place in ctx, too."""
    array = out.data_array()
    copy = box(library_of(array).copy(array))
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
    others = getrefcount(owner) - SOLE
    if is_own:
        others -= variables + 1  # `array` is one
        rest = others - 1  # without the result
        for value in ctx._named.values() if ctx._named else ():
            rest -= value is owner
        if rest <= 0:  # as most often
            return False
    seen = set[int]()
    for value in (*outs, *ctx._values, *dict(ctx._named).values(), *ctx.__dict__.values()):
        is_leaf = value.__class__ is ndarray or value.__class__ is Tensor
        for leaf in (value,) if is_leaf else tree.leaves(value):
            if others <= 0:
                return False
            others -= leaf is owner
            if id(leaf) not in seen:
                seen.add(id(leaf))
                others -= _times_held(owner, leaf)
    return others > 0


def _times_held(owner: Any, leaf: Any) -> int:
    """Return how often a tensor or an array holds an array."""
    if leaf.__class__ is ndarray:
        return leaf.base is owner
    if not isinstance(leaf, Tensor):
        return 0
    count = (leaf._data is owner) + (getattr(leaf._data, "base", None) is owner)
    base = leaf._base
    return count if base is None else count + (base._data is owner) + (leaf._base_data is owner)


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
    array: Any, counter: Any, held_once: bool, detached: Sequence[Any], outs: Sequence[Any]
) -> tuple[Any, Any]:
    """Return what is kept of a saved tensor that is no argument and no result: array, counter.

    Of an array that somebody else holds, and forward made a tensor of that nobody else holds, a
    copy.
    """
    shown = _shown_by(array, detached, outs)
    if shown is None and held_once and array.__class__ is ndarray:
        is_ours = getrefcount(array) == SOLE + 2 and is_unreachable(array)
        return (array if is_ours else array.copy()), counter
    if shown is None or shown is BORROWED:  # a change of a borrowed result is one of a copy
        return array, counter
    if is_array(shown):
        return library_of(array).snapshot(array), Counter()
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
        is_kept = is_ours or _is_read_only(array)
        return (array if is_kept else library.copy(array), None, 0, None)
    if shown is BORROWED:
        return (array, None, 0, None)
    if not is_array(shown):
        return (SavedArray(array), shown, shown.version, None)
    return (library.snapshot(array), None, 0, position_of(array, detached))


def _is_read_only(array: Any) -> bool:
    """Return whether nobody writes to the memory of an array, nor of what it is a view of."""
    owner = getattr(array, "base", None)
    owners = [array] if owner is None else [array, owner]
    return all(each.__class__ is ndarray and not each.flags.writeable for each in owners)


def _references(leaf: Any) -> int:
    return getrefcount(leaf)


# What `tree.map_leaves` lets a function find of an array that a container alone holds.
IN_CONTAINER: int = tree.map_leaves(_references, [NUMPY.xp.zeros(1)])[0] if SOLE > 0 else -1


# -- what a user's rules and hooks return ----------------------------------------------------------
def lent_to_rule(node: Any, g: Any) -> list[Any]:
    """Return the tensors and arrays, and other objects, that a rule was given for a node."""
    return [*(g if isinstance(g, list) else [g]), *(node.saved or ())]


def own(result: Any, others: int, lent: Sequence[Any]) -> Any:
    """Return what a rule or hook returned, with copies of the arrays that somebody else holds.

    One variable of the caller's holds `result`, and `others` each of its items. The memory of
    what was `lent` is nobody's to write to.
    """
    held_once = getrefcount(result) == SOLE + 1
    return _own(result, held_once, others, lent)


def _own(value: Any, held_once: bool, others: int, lent: Sequence[Any]) -> Any:
    if value.__class__ is ndarray:
        return own_array(value, held_once, lent)
    items = tree.children(value)
    if items is not None:
        owned = []
        for _, item in items:  # which the container, its pair and a variable hold
            once = held_once and getrefcount(item) == SOLE + 2 + others
            owned.append(_own(item, once, 0, lent))
        return tree.rebuild(value, owned)
    is_plain = value.__class__ is Tensor and value._node is None
    if not is_plain or (array := value.data_array()).__class__ is not ndarray:
        return value
    if value._base is None:
        held_once = held_once and is_held_once(value._data, 1)  # `array` is one more
    elif held_once and _is_only_view(value):
        return value
    else:
        held_once = False
    owned = own_array(array, held_once, lent)
    return value if owned is array else box(owned)


def _is_only_view(value: Tensor) -> bool:
    """Return whether a view alone shows its memory, which its base holds for nobody else."""
    if not is_held_once(value._base):
        return False
    owner = value._base._data  # type: ignore[union-attr]
    is_own = owner.base is None and owner.flags.owndata
    return is_own and getrefcount(owner) == SOLE + _times_held(owner, value)


def own_array(array: Any, held_once: bool, lent: Sequence[Any]) -> Any:
    """Return an array, or a copy where somebody else holds its memory, such as a rule's buffer."""
    if held_once and is_unreachable(array):
        return array
    arrays = [each._data if isinstance(each, Tensor) else each for each in lent]
    overlaps = NUMPY.overlaps
    if any(each.__class__ is ndarray and overlaps(array, each) for each in arrays):
        return array
    return array.copy()
