"""Identities that the right gradient satisfies at these inputs, and backward's does not.

If the outputs do not change when a constant is added to an argument, its gradient sums to zero; if
they do not change when it is scaled, its gradient is orthogonal to it (Euler's theorem on
homogeneous functions, of degree 0). A rule that takes the mean, the norm or the sum inside of
forward for a constant breaks this.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from pullback.check.explain.evidence import Evidence
from pullback.check.naming import axes_text
from pullback.check.report import Cause
from pullback.check.values import Array


def invariance(e: Evidence, i: int) -> Cause | None:
    """The outputs do not change as the argument is shifted or scaled; by backward they do."""
    x, name = e.arrays[i], f"`{e.names[i]}`"
    pairs = ((e.expected[i], e.got[i]), (e.expected_other[i], e.got_other[i]))
    if x.size < 2 or x.dtype.kind == "c" or not all(np.isfinite(a).all() for p in pairs for a in p):
        return None
    for axes in _axes(x):
        if all(_vanishes(right, axes) and not _vanishes(got, axes) for right, got in pairs):
            text = (
                f"{name}: a term is missing: the outputs do not change when {_moved(name, axes, x)}"
                ", so its gradient sums to zero there, and backward's does not"
            )
            hint = (
                "a mean, a maximum or a normalisation (softmax) is taken for a constant, or one of "
                "two opposite terms is left out or has the wrong sign?"
            )
            return Cause("missing-term", text, hint)
        if all(_vanishes(r * x, axes) and not _vanishes(g * x, axes) for r, g in pairs):
            along = "" if len(axes) == x.ndim else f" along {axes_text(axes)}"
            text = (
                f"{name}: a term is missing: the outputs do not change when {name} is scaled"
                f"{along}, so its gradient is orthogonal to it there, and backward's is not"
            )
            hint = "a norm, a sum or a degree that normalises is taken for a constant?"
            return Cause("missing-term", text, hint)
    return None


def _moved(name: str, axes: tuple[int, ...], x: Array) -> str:
    """Return in words that a constant is added along some axes."""
    if len(axes) == x.ndim:
        return f"a constant is added to {name}"
    if x.ndim == 2:
        return f"all {('rows', 'columns')[axes[0]]} of {name} are moved alike"
    return f"a constant is added to {name} along {axes_text(axes)}"


def _axes(x: Array) -> Iterator[tuple[int, ...]]:
    """Yield the sets of axes along which an argument may be shifted or scaled."""
    long = [axis for axis, n in enumerate(x.shape) if n > 1]
    for count in range(1, len(long) + 1):
        yield from itertools.combinations(long, count)


def _vanishes(terms: Array, axes: tuple[int, ...]) -> bool:
    """Return whether the sums of some terms are zero up to rounding, and the terms are not."""
    size = np.abs(terms).sum(axis=axes)
    return bool(size.any() and (np.abs(terms.sum(axis=axes)) <= 1e-5 * size.max()).all())


def homogeneous(e: Evidence, i: int) -> Cause | None:
    """Backward's gradient has half of the right component along the argument, everywhere.

    Of the two places in which a quadratic form has its argument, the rule differentiates one.
    """
    if e.elsewhere is None or e.arrays[i].size < 2 or e.arrays[i].dtype.kind == "c":
        return None
    ratios = []
    for found in (e, e.elsewhere):
        for right, got in (
            (found.expected[i], found.got[i]),
            (found.expected_other[i], found.got_other[i]),
        ):
            along = float(np.sum(right * found.arrays[i]))
            size = float(np.sum(np.abs(right * found.arrays[i])))
            if not np.isfinite(along) or abs(along) <= 1e-6 * size:
                return None
            ratios.append(float(np.sum(got * found.arrays[i])) / along)
    name = f"`{e.names[i]}`"
    for part, word in ((0.5, "half"), (1 / 3, "a third"), (2 / 3, "two thirds")):
        if all(abs(r - part) < e.pattern_rtol for r in ratios):
            text = f"a term is missing from {name}: along {name} itself there is {word} of it"
            hint = f"forward uses {name} in several places: differentiate each of them"
            return Cause("missing-term", text, hint)
    return None


def stale(e: Evidence, i: int) -> Cause | None:
    """Backward's gradient is the same at other values, where the right one changes."""
    other = e.elsewhere
    if other is None or not np.any(e.got[i]):
        return None
    same = np.array_equal(other.got[i], e.got[i]) and np.array_equal(
        other.got_other[i], e.got_other[i]
    )
    if not same or e.matches(other.expected[i], e.expected[i]):
        return None
    text = (
        f"the gradient of `{e.names[i]}` does not change when the values do: it belongs to an "
        "earlier call (a cache, stale state), or a factor that depends on them is missing"
    )
    return Cause("state", text, "save what backward needs with ctx.save_for_backward in each call")
