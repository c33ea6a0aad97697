"""A first look at a call: right to all appearance along one random direction.

It costs three calls of forward, or two more for each argument, and tells only where values are
smooth; whatever does not look right is for the full comparison, which knows of kinks, edges and
rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pullback.check.exceptions import ForwardError
from pullback.check.numerical import across, coordinates, joined
from pullback.check.session import away_from_zero, direction_scales, random_like
from pullback.check.subject import Subject
from pullback.check.values import host

_STEP = 1e-5  # of the length scale: the error of the differences is about 1e-10
_CLOSE = 1e-7  # relative to the terms of the component along the direction
_NOISE = 1e-9  # relative to the outputs
_SMALLEST_SHARE = 1e-3  # of a direction: what is shorter is lost in rounding


def looks_right(subject: Subject, seed: int) -> bool:
    """Return whether the gradients of a call agree with central differences.

    Parameters
    ----------
    subject : Subject
    seed : int
        Of the random output gradients and directions.

    Returns
    -------
    bool
        False also where this cannot be told: for other dtypes, where something raises, or is not
        finite.
    """
    arrays = subject.arrays
    if any(a.dtype.char not in "dD" or not np.isfinite(a).all() for a in arrays):
        return False
    rng = np.random.default_rng(seed)
    try:
        run = subject.run()
        outputs = run.values()
        seeds = [random_like(out, rng) for out in outputs]
        found = run.vjp(seeds)
    except Exception:  # of any kind: the full comparison says which, and whose
        return False
    if any(out.dtype.char not in "dD" for out in outputs) or len(found) != len(arrays):
        return False
    directions, terms = [], []
    for array, g in zip(arrays, found, strict=True):
        flat = coordinates(array)
        got = 0.0 * flat if g is None else coordinates(host(g).astype(array.dtype))
        if got.shape != flat.shape:
            return False
        directions.append(away_from_zero(flat.size, rng) * direction_scales(np.abs(flat)))
        terms.append(directions[-1] * got)
    along = joined(seeds)
    noise = _NOISE * float(np.abs(along) @ np.abs(joined(outputs)))

    def agree(shares: Mapping[int, float]) -> bool:
        steps = {i: _STEP * share * directions[i] for i, share in shares.items()}
        try:
            change = across(subject.values, arrays, steps)
        except ForwardError:
            return False
        if change is None or change.shape != along.shape:
            return False
        excess = float(along @ change) / (2 * _STEP)
        size = 0.0
        for i, share in shares.items():
            excess -= share * float(terms[i].sum())
            size += share * float(np.abs(terms[i]).sum())
        return abs(excess) <= _CLOSE * size + noise

    together = dict(enumerate(_shares([float(np.abs(some).sum()) for some in terms])))
    return agree(together) or (len(arrays) > 1 and all(agree({i: 1.0}) for i in together))


def _shares(sizes: Sequence[float]) -> list[float]:
    """Return by what to multiply directions for terms of about one size: none hides another."""
    least = min((size for size in sizes if size), default=1.0)
    return [max(least / max(size, least), _SMALLEST_SHARE) for size in sizes]
