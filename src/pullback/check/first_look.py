"""A first look at a call: right to all appearance along one random direction for each argument.

It costs three calls of forward and tells only where values are smooth; whatever does not look right
is for the full comparison, which knows of kinks, edges and rounding.
"""

from __future__ import annotations

import numpy as np

from pullback.check.exceptions import ForwardError
from pullback.check.numerical import across, coordinates, joined
from pullback.check.session import away_from_zero, direction_scales, random_like
from pullback.check.subject import Subject
from pullback.check.values import host

_STEP = 1e-5  # of the length scale: the error of the differences is about 1e-10
_CLOSE = 1e-7  # relative to the terms of the component along the direction
_NOISE = 1e-9  # relative to the outputs


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
    along = joined(seeds)
    noise = _NOISE * float(np.abs(along) @ np.abs(joined(outputs)))
    for i, (array, g) in enumerate(zip(arrays, found, strict=True)):
        flat = coordinates(array)
        direction = away_from_zero(flat.size, rng) * direction_scales(np.abs(flat))
        got = 0.0 * flat if g is None else coordinates(host(g).astype(array.dtype))
        if got.shape != flat.shape:
            return False
        terms = direction * got
        try:
            change = across(subject.values, arrays, i, _STEP * direction)
        except ForwardError:
            return False
        if change is None or change.shape != along.shape:
            return False
        slope = float(along @ change) / (2 * _STEP)
        if not abs(slope - terms.sum()) <= _CLOSE * np.abs(terms).sum() + noise:
            return False
    return True
