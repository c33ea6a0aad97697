"""Calls that differ from the user's in what often changes what an operation does.

Other settings; whole numbers, larger values, values of both signs, zeros and ties in place of the
values; masks that hide something, indices that repeat. A variation counts only if forward takes it.
Must not know how a call is checked.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pullback.check.comparison import max_abs
from pullback.check.inputs.arguments import FirstRun, Inputs, first_run, keeps_bounds, try_forward
from pullback.check.inputs.changes import (
    Change,
    all_changes,
    asymmetric,
    is_free,
    is_order,
    is_unit,
    moved_around,
    positive,
    scaled,
)
from pullback.check.inputs.crossing import crossings
from pullback.check.inputs.domains import recognised
from pullback.check.inputs.drawing import LARGE
from pullback.check.inputs.limits import limits
from pullback.check.inputs.redrawing import Redrawn, redrawn
from pullback.check.inputs.settings import STOPPING, other_settings
from pullback.check.iterating import converges, iterates, said_of, text_of
from pullback.check.naming import labels_of
from pullback.check.values import Array, holds_numbers, host, in_place_of
from pullback.core.custom import pytree as tree
from pullback.core.tensor.tensor import Tensor

_SINGULAR = 1e-7  # relative change of the results that a change in the 13th digit must not make
_MOST_ALONE = 3  # arrays that are changed without the others
_MOST_DRAWN = 100  # calls at random
_MOST_SHIFTS = 3  # numbers among the settings around which values are drawn


class Variation(NamedTuple):
    """Another call.

    Attributes
    ----------
    what : str
        What is different.
    inputs : Inputs
        The call.
    tied : bool
        Whether equal values may make the operation not differentiable.
    edge : bool
        Whether values may lie at the edge of the domain.
    moved : bool
        Whether an iteration may end too early.
    coarse : bool
        Whether values are so large that little but NaN tells a mistake.
    small : bool
        Whether values are so small that differences may be those of rounding.
    inner : bool
        Whether a zero is put between values of both signs: no edge of the domain.
    crosses : bool
        Whether a comparison inside of the operation goes another way.
    drawn : Redrawn or None
        What it was made of, where several things are different.
    first_run : FirstRun or None
        Its first run, once it was tried.
    """

    what: str
    inputs: Inputs
    tied: bool = False
    edge: bool = False
    moved: bool = False
    coarse: bool = False
    small: bool = False
    inner: bool = False
    crosses: bool = False
    drawn: Redrawn | None = None
    first_run: FirstRun | None = None

    def simpler(self, fn: Callable[..., Any]) -> Iterator[Variation]:
        """Yield the variations in which one thing less is different."""
        draws = self.drawn.simpler() if self.drawn else ()
        return _taken(fn, (_of(fn, draw) for draw in draws))


def variations(
    fn: Callable[..., Any], parameters: Sequence[inspect.Parameter] | None, inputs: Inputs
) -> Iterator[Variation]:
    """Yield the variations of a call that forward takes.

    Parameters
    ----------
    fn : callable
    parameters : sequence of inspect.Parameter, optional
        Those of `fn`, if it has a signature.
    inputs : Inputs
        The call.
    """
    base = try_forward(fn, inputs)
    if isinstance(base, str):
        return
    repeats, approximate = iterates(fn), converges(fn)
    accepted: list[tuple[str, Inputs]] = []
    for what, calls in other_settings(fn, parameters or (), inputs, base):
        # A rule may go wrong for an axis counted from the end, where forward does not.
        tries = (Variation(what, call) for call in _or_positive(fn, calls))
        for variation in itertools.islice(_taken(fn, tries), 1):
            accepted.append((what, variation.inputs))
            yield variation
    values = itertools.chain(
        # What iterates compares to find out whether it is close enough.
        () if repeats else _crossings(fn, inputs),
        _values(fn, inputs, parameters or (), repeats, approximate),
        _complex(fn, inputs),
    )
    yield from _taken(fn, values, base)
    if not approximate:  # elsewhere an iteration may end too early
        yield from _drawn(fn, inputs, accepted, repeats)


def _drawn(
    fn: Callable[..., Any],
    inputs: Inputs,
    settings: Sequence[tuple[str, Inputs]],
    repeats: bool,
) -> Iterator[Variation]:
    """Yield calls with several differences."""
    draws = itertools.islice(redrawn(fn, inputs, settings, repeats), _MOST_DRAWN)
    yield from _taken(fn, (_of(fn, draw) for draw in draws if draw.settings or draw.values))


def _taken(
    fn: Callable[..., Any], variations: Iterable[Variation], base: Sequence[Array] = ()
) -> Iterator[Variation]:
    """Yield the variations that forward takes, with their first run.

    But for those with the results of the user's own call, if these are given.
    """
    for variation in variations:
        first = first_run(fn, variation.inputs)
        if isinstance(first, str):
            continue
        if variation.crosses or not _equal(first.values, base):  # an even function's slope is odd
            yield variation._replace(first_run=first)


def _of(fn: Callable[..., Any], draw: Redrawn) -> Variation:
    return Variation(draw.what(), draw.inputs(fn), tied=draw.is_tied(), edge=draw.edge, drawn=draw)


def _crossings(fn: Callable[..., Any], inputs: Inputs) -> Iterator[Variation]:
    """Yield calls in which a comparison goes another way, or where forward all but refuses."""
    yield from (Variation(what, call, crosses=True) for what, call in crossings(fn, inputs))
    at_limits = limits(fn, inputs)
    yield from (Variation(what, call, edge=True, small=True) for what, call in at_limits)


def _complex(fn: Callable[..., Any], inputs: Inputs) -> Iterator[Variation]:
    """Yield the call with complex numbers, if what is said of the operation names them."""
    if not re.search("real or complex|complex or real", said_of(fn), re.IGNORECASE):
        return

    def changed(value: Any) -> Any:
        array = host(value) if isinstance(value, Tensor) else None
        if array is None or array.dtype.kind != "f" or not value.requires_grad:
            return value
        return in_place_of(value, array + 0.5j * np.roll(array, 1))

    args, kwargs = tree.map_leaves(changed, (inputs.args, inputs.kwargs))
    call = inputs._replace(args=args, kwargs=kwargs)
    with warnings.catch_warnings():
        warnings.simplefilter("error", np.exceptions.ComplexWarning)
        try:
            fn(*args, **kwargs)
        except Exception:  # for real numbers alone
            return
    yield Variation("complex values", call)


def _or_positive(fn: Callable[..., Any], calls: Sequence[Inputs]) -> Iterator[Inputs]:
    """Yield calls, and then those with positive values: another setting may take a logarithm."""
    yield from calls
    for call in calls:
        yield _all_changed(fn, positive, call)


def _equal(a: Sequence[Array], b: Sequence[Array]) -> bool:
    pairs = zip(a, b, strict=False)
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in pairs)


def is_singular(fn: Callable[..., Any], inputs: Inputs) -> bool:
    """Return whether a change by rounding alone changes the results: nothing is to be compared.

    Equal values or whole numbers may make a matrix singular.
    """
    found = try_forward(fn, inputs)
    moved = try_forward(fn, _all_changed(fn, _rounded, inputs))
    if isinstance(found, str) or isinstance(moved, str) or len(moved) != len(found):
        return True
    pairs = list(zip(found, moved, strict=True))
    if any(a.shape != b.shape for a, b in pairs):
        return True
    return any(max_abs(b - a) > _SINGULAR * max_abs(a) for a, b in pairs)


def _rounded(array: Array) -> Array:
    """Change the last digits; equal values stay equal."""
    if array.dtype.kind != "f":
        return array
    return array * (1.0 + 1e-13 * np.cos(1e3 * array.astype(np.float64)))


# -- values ----------------------------------------------------------------------------------------
def _values(
    fn: Callable[..., Any],
    inputs: Inputs,
    parameters: Sequence[inspect.Parameter],
    repeats: bool,
    approximate: bool,
) -> Iterator[Variation]:
    """Yield calls with other values of the arrays."""
    around = (
        Change(
            f"values around `{name}` = {number:g}",
            functools.partial(moved_around, number),
            signs=True,
            small=True,  # beside one another: all get this size
        )
        for name, number in _numbers(inputs, parameters)
    )
    has_edge = _has_edge(inputs)
    symmetric = "symmetric" in (inspect.getdoc(getattr(fn, "forward", fn)) or "").lower()
    for change in itertools.chain(all_changes(), around, _alone(inputs)):
        if (change.moves and approximate) or (symmetric and change.of is asymmetric):
            continue
        if change.signs and repeats:  # it may search where there is nothing
            continue
        profile = LARGE if change.large else inputs.profile
        other = _all_changed(fn, change.of, inputs, change)._replace(profile=profile)
        yield Variation(
            change.what,
            other,
            tied=change.tied,
            edge=change.zero and has_edge,
            moved=change.moves,
            coarse=change.coarse,
            small=change.small,
            inner=change.inner,
        )


def _alone(inputs: Inputs) -> Iterator[Change]:
    """Yield the changes of single arrays: what matters may be which of two is larger."""
    arrays = [v for v in tree.leaves((inputs.args, inputs.kwargs)) if holds_numbers(v)]
    free = [k for k, v in enumerate(arrays) if is_free(host(v)) and not is_unit(host(v))]
    for k in free[:_MOST_ALONE] if len(free) > 1 else ():
        places = itertools.count()

        def changed(array: Array, places: Iterator[int] = places, k: int = k) -> Array:
            return scaled(8.0, array) if next(places) == k else array

        yield Change("larger values of one argument", changed, large=True)


def _has_edge(inputs: Inputs) -> bool:
    """Return whether an array has positive values alone: 0 may be the edge of its domain."""
    arrays = [host(v) for v in tree.leaves((inputs.args, inputs.kwargs)) if holds_numbers(v)]
    return any(bool((a > 0).all()) for a in arrays if a.dtype.kind == "f")


def _numbers(
    inputs: Inputs, parameters: Sequence[inspect.Parameter]
) -> Iterator[tuple[str, float]]:
    """Yield the numbers among the settings at which a formula may change, each value once."""
    named = [*zip([p.name for p in parameters], inputs.args, strict=False), *inputs.kwargs.items()]
    known = {name for name, _ in named}
    named += [(p.name, p.default) for p in parameters if p.name not in known]
    seen: set[float] = set()
    for name, value in named:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_number and np.isfinite(value) and value and not STOPPING.fullmatch(name):
            if value not in seen and len(seen) < _MOST_SHIFTS:
                yield name, float(value)
            seen.add(value)


def _all_changed(
    fn: Callable[..., Any],
    change: Callable[[Array], Array],
    inputs: Inputs,
    kind: Change | None = None,
) -> Inputs:
    """Return a call with every array or tensor changed, but those that would leave their bounds.

    What is sorted stays so.
    """
    labels = iter(labels_of(fn, inputs.args, inputs.kwargs))
    text = f"{said_of(fn)}\n{text_of(fn)}" if kind and kind.expects else ""
    stays = kind is not None and kind.far and _has_several(inputs)

    def changed(value: Any) -> Any:
        label = next(labels)
        if not holds_numbers(value) or not host(value).size or is_order(label, host(value)):
            return value
        is_tensor, expects = isinstance(value, Tensor), kind.expects if kind else ""
        if kind and ((is_tensor and expects) or (not is_tensor and kind.tensors)):
            return value
        if stays and host(value).size == 1:
            return value
        if expects and not re.search(expects.replace("NAME", label), f"{label}\n{text}", re.I):
            return value
        other = _changed(change, value, bool(expects), kind is not None and kind.tied)
        return other if keeps_bounds(inputs, label, host(value), host(other)) else value

    args, kwargs = tree.map_leaves(changed, (inputs.args, inputs.kwargs))
    return inputs._replace(args=args, kwargs=kwargs)


def _has_several(inputs: Inputs) -> bool:
    """Return whether an array of a call has several elements."""
    leaves = tree.leaves((inputs.args, inputs.kwargs))
    return any(host(v).size != 1 for v in leaves if holds_numbers(v))


def _keeps_order(array: Array, other: Array) -> bool:
    """Return whether what is sorted stays so, and rises where it rose."""
    steps = np.diff(other, axis=-1)
    return bool((steps >= 0).all() and (steps[np.diff(array, axis=-1) > 0] > 0).all())


def _changed(
    change: Callable[[Array], Array], value: Any, infinite: bool = False, tied: bool = False
) -> Any:
    """Return an array or tensor with other values; itself if they are the same, or not usable."""
    array = host(value)
    with np.errstate(all="ignore"):
        other = np.asarray(change(array)).astype(array.dtype)
    overflowed = array.dtype.kind == "f" and not np.isfinite(other).all() and not infinite
    if overflowed or np.array_equal(other, array):
        return value
    # Limits of a table stay apart where values are tied, also where they are few.
    limits = tied and not isinstance(value, Tensor) and array.ndim == 1 and array.size > 2
    ordered = recognised(array) == "sorted" or (limits and bool((np.diff(array) > 0).all()))
    if ordered and not _keeps_order(array, other):
        return value
    return in_place_of(value, other)
