"""Orders, searches and sets: what is chosen by comparing elements.

What is chosen by order passes its gradient to the element that was chosen. Edge values: of equals
the first comes first, also in descending order; NaN is larger than every number.

The gradient of a value of a set goes to the first element that has it; NaN equals nothing, so each
NaN is a value of its own. The median of a whole tensor shares the gradient evenly between elements
that tie, as `max` does.
"""

from __future__ import annotations

from typing import Any

from pullback.arrays import DTYPES, library_of
from pullback.ops.axes import normalize_axis
from pullback.ops.declare import Primitive, needs_order, operation
from pullback.ops.samples import grid, real, sample


# -- sorting ---------------------------------------------------------------------------------------
def _argsort(
    xp: Any, x: Any, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Any:
    axis = normalize_axis("argsort", axis, len(x.shape))
    needs_order("argsort", x)
    if not x.shape:
        return xp.zeros_like(x, dtype=library_of(x).native(DTYPES["int64"]))
    if not descending:
        return xp.argsort(x, axis=axis, stable=stable)
    # The other way round and back again keeps the order of equals.
    backwards = xp.argsort(xp.flip(x, axis=axis), axis=axis, stable=stable)
    return x.shape[axis] - 1 - xp.flip(backwards, axis=axis)


argsort_p = operation(
    "argsort",
    _argsort,
    differentiable=False,
    domain=grid(-2, 2),
    samples=(
        sample((3, 4), axis=0),
        sample((5,), descending=True),
        sample((2, 0), axis=1, descending=True),
        sample(()),
    ),
    result_dtype="int64",
    batch="axis",
)


# -- running extremes ------------------------------------------------------------------------------
def _running_place(name: str, beats: Any) -> Primitive:
    """Declare the position of the largest or smallest element so far, of equals the last."""

    def forward(xp: Any, x: Any, *, axis: int) -> Any:
        n, lead = x.shape[axis], (slice(None),) * axis
        steps = xp.reshape(xp.arange(n, device=x.device), (n,) + (1,) * (len(x.shape) - axis - 1))
        best, positions, step = x, xp.broadcast_to(steps, x.shape), 1
        while step < n:  # each round, the best of twice as many elements before
            first, before = (*lead, slice(0, step), ...), (*lead, slice(0, n - step), ...)
            here = (*lead, slice(step, n), ...)
            old, new = best[before], best[here]
            keep = beats(old, new) | ((old != old) & (new == new))
            best = xp.concat([best[first], xp.where(keep, old, new)], axis=axis)
            chosen = xp.where(keep, positions[before], positions[here])
            positions = xp.concat([positions[first], chosen], axis=axis)
            step *= 2
        return positions + 0

    return operation(
        name,
        forward,
        differentiable=False,
        domain=grid(-2, 2),
        samples=(sample((6,), axis=0), sample((2, 4), axis=1), sample((0, 2), axis=0)),
        result_dtype="int64",
        scalars=False,
        batch="axis",
        doc="Return the position of the best element so far along an axis.",
    )


cummax_place_p = _running_place("cummax_place", lambda old, new: old > new)
cummin_place_p = _running_place("cummin_place", lambda old, new: old < new)


# -- searching -------------------------------------------------------------------------------------
nonzero_p = operation(
    "nonzero",
    lambda xp, x: list(xp.nonzero(x)),
    multi=True,
    differentiable=False,
    domain=grid(-1, 1),
    samples=(sample((3, 4)), sample((0, 2)), sample((3,))),
    result_dtype="int64",
    scalars=False,
)


def _searchsorted(xp: Any, x1: Any, x2: Any, *, side: str = "left") -> Any:
    needs_order("searchsorted", x1, x2)
    return xp.searchsorted(x1, x2, side=side)


searchsorted_p = operation(
    "searchsorted",
    _searchsorted,
    differentiable=False,
    domain={"x1": grid(-2, 2)._replace(within=lambda x: x[x.argsort()]), "x2": grid(-3, 3)},
    samples=(
        sample((5,), (2, 3)),
        sample((4,), (), side="right"),
        sample((0,), (2,)),
        sample((3,), (0,)),
    ),
    result_dtype="int64",
    batch="searchsorted",
)


# -- sets ------------------------------------------------------------------------------------------
def _to_the_first(g: Any, x: Any, xp: Any) -> Any:
    """Return the gradients of the values, each at the first element that has the value."""
    _, first, numbers, _ = xp.unique_all(x)
    numbers = xp.reshape(numbers, (-1,))
    is_first = xp.arange(numbers.shape[0], device=x.device) == xp.take(first, numbers, axis=0)
    spread = xp.take(g[0], numbers, axis=0)
    return xp.reshape(xp.where(is_first, spread, xp.zeros_like(spread)), x.shape)


def _unique(name: str, reference: Any) -> Primitive:
    def forward(xp: Any, x: Any) -> Any:
        return list(getattr(xp, name)(x))

    return operation(
        name,
        forward,
        multi=True,
        rules={"x": _to_the_first},
        domain=real(-2, 2),
        distinct=True,
        observed=lambda values, *counts: values,
        samples=(sample((3, 4)), sample(()), sample((0, 2))),
        reference=reference,
    )


unique_all_p = _unique("unique_all", lambda np, x: np.unique(x, True, True, True, equal_nan=False))
unique_counts_p = _unique(
    "unique_counts", lambda np, x: np.unique(x, return_counts=True, equal_nan=False)
)
unique_inverse_p = _unique(
    "unique_inverse", lambda np, x: np.unique(x, return_inverse=True, equal_nan=False)
)


def _isin(xp: Any, x1: Any, x2: Any, *, invert: bool = False) -> Any:
    """Number the values of both, mark the numbers that x2 has, and look up those of x1."""
    library = library_of(x1)
    first, second = xp.reshape(x1, (-1,)), xp.reshape(x2, (-1,))
    numbers = xp.unique_inverse(xp.concat([first, second])).inverse_indices
    n = first.shape[0]
    marks = xp.full(numbers.shape, invert, dtype=library.native(DTYPES["bool"]), device=x1.device)
    marks = library.assign(marks, numbers[n:], not invert)
    return xp.reshape(xp.take(marks, numbers[:n], axis=0), x1.shape)


isin_p = operation(
    "isin",
    _isin,
    differentiable=False,
    domain=grid(-2, 2),
    samples=(
        sample((3, 4), (2,)),
        sample((), (2, 2), invert=True),
        sample((2,), ()),
        sample((3,), (0,)),
        sample((0, 2), (3,)),
    ),
    result_dtype="bool",
    batch="isin",
)


# -- medians ---------------------------------------------------------------------------------------
def middle(array: Any, axis: int, skip_nan: bool) -> Any:
    """Return where the lower median stands among the sorted elements, the axis kept.

    That is the first NaN, which stands after the numbers, where there is one to be heeded.
    """
    library = library_of(array)
    xp, n = library.xp, array.shape[axis]
    numbers = library.astype(array == array, DTYPES["int64"])
    count = xp.sum(numbers, axis=axis, keepdims=True)
    if skip_nan:
        return xp.where(count > 0, (count - 1) // 2, xp.zeros_like(count))
    return xp.where(count < n, count, xp.full_like(count, (n - 1) // 2))


def _median_of_all(xp: Any, x: Any, *, skip_nan: bool = False) -> Any:
    flat = xp.reshape(x, (-1,))
    position = middle(flat, 0, skip_nan)
    return xp.reshape(xp.take(xp.sort(flat), position, axis=0), ())


def _shared(g: Any, x: Any, out: Any, xp: Any) -> Any:
    """Return the gradient shared evenly by the elements that are the result."""
    ties = (x == out) | ((x != x) & (out != out))
    count = xp.sum(xp.where(ties, xp.ones_like(x), xp.zeros_like(x)))
    return xp.where(ties, g / count, xp.zeros_like(x))


median_of_all_p = operation(
    "median_of_all",
    _median_of_all,
    rules={"x": _shared},
    domain=real(-2, 2),
    samples=(sample((3, 3)), sample((4,), skip_nan=True), sample((1, 1)), sample(())),
    reference=(lambda np, x, skip_nan=False: np.quantile(x, 0.5, method="lower")),
    doc="Return the lower median of all elements; those that tie share the gradient evenly.",
)
