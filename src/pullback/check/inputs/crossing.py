"""Calls in which a comparison inside of an operation goes the way it did not go before.

An argument that is compared itself is moved to the other side of what it is compared with; where
something computed is compared, changed arguments are tried until it goes the other way.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from pullback.check.deadline import Budget
from pullback.check.inputs.arguments import Inputs, keeps_bounds
from pullback.check.inputs.domains import recognised
from pullback.check.naming import labels_of
from pullback.check.repair import Branches
from pullback.check.repair.branches import Branch
from pullback.check.values import Array, holds_numbers, host, in_place_of
from pullback.core.custom import pytree as tree

_SECONDS = 0.5
_MOST = 200  # calls


def crossings(fn: Callable[..., Any], inputs: Inputs) -> Iterator[tuple[str, Inputs]]:
    """Yield what is different, and the call."""
    branches = Branches(fn)
    if not branches.known:
        return
    observe = _Observing(branches)
    base = observe(inputs)
    if base is None:
        return
    open_ = {key: branch for key, branch in base.items() if len(branch.outcomes) == 1}
    labels = labels_of(fn, inputs.args, inputs.kwargs)
    time = Budget(_SECONDS)
    for key, branch in list(open_.items()):
        if key not in open_:
            continue
        for call in _tries(inputs, labels, branch):
            if observe.count > _MOST or not time.lasts():
                return
            found = observe(call)
            if found is None or key not in found or found[key].outcomes == branch.outcomes:
                continue
            if not (np.isfinite(found[key].left).all() and np.isfinite(found[key].right).all()):
                continue  # what divides by 0 is not meant
            other = "false" if True in branch.outcomes else "true"
            for each, before in list(open_.items()):
                if each in found and found[each].outcomes != before.outcomes:
                    del open_[each]
            yield f"`{branch.text}` {other}", call
            break


class _Observing:
    """The comparisons of a call; None where it raises. Counts the calls."""

    def __init__(self, branches: Branches) -> None:
        self.branches = branches
        self.count = 0

    def __call__(self, inputs: Inputs) -> dict[Any, Branch] | None:
        self.count += 1
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return self.branches.of(inputs.args, inputs.kwargs)
        except Exception:
            return None


# -- what is tried ---------------------------------------------------------------------------------
def _tries(inputs: Inputs, labels: Sequence[str], branch: Branch) -> Iterator[Inputs]:
    """Yield changed calls, the likeliest first: positive values stay so if they can."""
    changes = list(_changes(inputs, branch))
    changes.sort(key=lambda change: bool((change[1] > 0).all() and (change[2] < 0).any()))
    for i, array, other in changes:
        if keeps_bounds(inputs, labels[i], array, other):
            yield with_array(inputs, i, other)


def _changes(inputs: Inputs, branch: Branch) -> Iterator[tuple[int, Array, Array]]:
    """Yield which array is changed, what it is, and what comes in its place."""
    values = tree.leaves((inputs.args, inputs.kwargs))
    arrays = {i: host(v) for i, v in enumerate(values) if holds_numbers(v) and host(v).size}
    for i, array in arrays.items():
        for own, other in ((branch.left, branch.right), (branch.right, branch.left)):
            if own.shape == array.shape and np.array_equal(own, array):
                for moved in _reflected(array, other):
                    yield i, array, moved
    for (i, array), (_, other) in itertools.permutations(arrays.items(), 2):
        same = array.shape == other.shape and array.dtype == other.dtype
        if same and array.dtype.kind == "f" and not np.array_equal(array, other):
            yield i, array, other.copy()
    for i, array in arrays.items():
        word = recognised(array)
        if array.dtype.kind == "f" and word in ("", "sorted"):
            yield from ((i, array, x) for x in _moved(array, branch) if recognised(x) == word)


def _reflected(array: Array, around: Array) -> Iterator[Array]:
    """Yield an array with some, or all, of its elements on the other side of others."""
    with np.errstate(all="ignore"):
        other = np.asarray(2 * np.asarray(around) - array)
    if other.shape != array.shape:
        return
    if array.dtype.kind in "iu":
        other = np.where(other == array, array - 1, other)
    some = array.astype(np.result_type(array.dtype, other.dtype))
    some.flat[::3] = other.flat[::3]
    yield from (each for each in (some, other) if _is_like(each, array))


def _moved(array: Array, branch: Branch) -> Iterator[Array]:
    """Yield an array with other values."""
    with np.errstate(all="ignore"):
        ratio = np.nan_to_num(np.abs(branch.right / branch.left), posinf=0.0)
        ratio = ratio[(ratio > 0) & (ratio < np.inf)]
        less, more = (0.1 * ratio.min(), 10 * ratio.max()) if ratio.size else (0.01, 100)
        gap = 1.5 * float(np.nan_to_num(np.abs(branch.right - branch.left)).max(initial=0.0))
    spread = float(np.std(array)) or float(np.abs(array).max()) or 1.0
    part = np.zeros(array.shape)
    part.flat[::3] = 1.0
    rest = (np.arange(array.size) >= array.size / 2).reshape(array.shape)
    for other in (
        array + 3 * spread * part, array - 3 * spread * part,
        array + gap * part, array - gap * part, array + gap * rest, 10 * array, 0.1 * array, -array,
        array + 3 * spread, array - 3 * spread, np.flip(array), 100 * array, 0.01 * array,
        array * (1 - 2 * part), array * (1 - part), np.sort(array, axis=None).reshape(array.shape),
        less * array, more * array,
    ):  # fmt: skip
        if _is_like(other, array):
            yield np.ascontiguousarray(other)


def _is_like(other: Array, array: Array) -> bool:
    """Return whether values between 0 and 1, which may be probabilities, stay there.

    One number that forward compares with something else is as likely a speed.
    """
    if np.array_equal(other, array) or not np.isfinite(other).all():
        return False
    unit = bool(((array >= 0) & (array <= 1)).all()) and array.dtype.kind == "f"
    unit &= array.size > 1
    return not unit or bool(((other >= 0) & (other <= 1)).all())


def with_array(inputs: Inputs, i: int, array: Array) -> Inputs:
    """Return a call with other values of its leaf `i`, an array."""
    places = itertools.count()

    def changed(value: Any) -> Any:
        if next(places) != i:
            return value
        return in_place_of(value, array.astype(host(value).dtype))

    args, kwargs = tree.map_leaves(changed, (inputs.args, inputs.kwargs))
    return inputs._replace(args=args, kwargs=kwargs)
