"""A first look at a call: right to all appearance along one random direction.

It costs two calls of forward beyond the first run, or two more for each argument, and tells only
where values are smooth; whatever does not look right is for the full comparison, which knows of
kinks, edges and rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pullback.check.exceptions import ForwardError
from pullback.check.inputs.arguments import FirstRun
from pullback.check.numerical import across, coordinates, joined
from pullback.check.session import away_from_zero, direction_scales, random_like
from pullback.check.subject import Subject
from pullback.check.values import Array, host

_STEP = 1e-5  # of the length scale: the error of the differences is about 1e-10
_CLOSE = 1e-7  # relative to the terms of the component along the direction
_NOISE = 1e-9  # relative to the outputs
_GOLDEN = (5**0.5 - 1) / 2  # its multiples are spread evenly between whole numbers
_SMALLEST_SHARE = 1e-3  # of a direction: what is shorter is lost in rounding


def looks_right(first: FirstRun, seed: int) -> bool:
    """Return whether the gradients of a call agree with central differences.

    Parameters
    ----------
    first : FirstRun
        The call, and its first run, of which the graph is used up.
    seed : int
        Of the random output gradients and directions.

    Returns
    -------
    bool
        False also where this cannot be told: for other dtypes, where something raises, or is not
        finite.
    """
    look = _look(first, np.random.default_rng(seed))
    if look is None:
        return False
    together = dict(enumerate(_shares(look.sizes)))
    several = len(together) > 1
    return look.agrees(together) or (several and all(look.agrees({i: 1.0}) for i in together))


class _Look(NamedTuple):
    """One backward pass of a call, and a direction for each of its arguments.

    Attributes
    ----------
    subject : Subject
    along : array
        The output gradients, in coordinates of all outputs.
    noise : float
        How much of a slope may be rounding.
    directions : list of array
    terms : list of array
        Those of the slope along each direction that the gradients say.
    sizes : list of float
        How large the terms are, for each argument.
    """

    subject: Subject
    along: Array
    noise: float
    directions: list[Array]
    terms: list[Array]
    sizes: list[float]

    def agrees(self, shares: Mapping[int, float]) -> bool:
        """Return whether forward changes as the gradients say, along shares of directions."""
        steps = {i: _STEP * share * self.directions[i] for i, share in shares.items()}
        try:
            change = across(self.subject.values, self.subject.arrays, steps)
        except ForwardError:
            return False
        if change is None or change.shape != self.along.shape:
            return False
        excess = float(self.along @ change) / (2 * _STEP)
        excess -= sum(share * float(self.terms[i].sum()) for i, share in shares.items())
        size = sum(share * self.sizes[i] for i, share in shares.items())
        return abs(excess) <= _CLOSE * size + self.noise


def _look(first: FirstRun, rng: np.random.Generator) -> _Look | None:
    """Return what a call and its backward pass give; None where nothing can be told."""
    arrays, outputs = first.subject.arrays, first.values
    if any(a.dtype.char not in "dD" or not np.isfinite(a).all() for a in arrays):
        return None
    if any(out.dtype.char not in "dD" for out in outputs):
        return None
    seeds = [random_like(out, rng) for out in outputs]
    try:
        found = first.run.vjp(seeds)
    except Exception:  # of any kind: the full comparison says which, and whose
        return None
    if len(found) != len(arrays):
        return None
    directions, terms = [], []
    for array, g in zip(arrays, found, strict=True):
        flat = coordinates(array)
        got = 0.0 * flat if g is None else coordinates(host(g).astype(array.dtype))
        if got.shape != flat.shape or not np.isfinite(got).all():
            return None
        directions.append(away_from_zero(flat.size, rng) * direction_scales(np.abs(flat)))
        terms.append(directions[-1] * got)
    along = joined(seeds)
    noise = _NOISE * float(np.abs(along) @ np.abs(joined(outputs)))
    sizes = [float(np.abs(some).sum()) for some in terms]
    return _Look(first.subject, along, noise, directions, terms, sizes)


def _shares(sizes: Sequence[float]) -> list[float]:
    """Return by what to multiply directions for terms of about one size: none hides another.

    Of exactly one size, mistakes in what two arguments have in common could cancel.
    """
    least = min((size for size in sizes if size), default=1.0)
    shares = [max(least / max(size, least), _SMALLEST_SHARE) for size in sizes]
    return [share / (1 + _GOLDEN * i % 1) for i, share in enumerate(shares)]
