"""Whether a gradient agrees with differences at another call than the user's.

Of such a call nobody said that forward has a derivative there, or that its values are meant. So a
first look along one random direction decides whether it is right to all appearance, and what is
not right counts only if measurements speak for it: forward is smooth along the lines that show it,
its own noise is smaller than the disagreement, and the same shows with another cotangent, along
another direction and at a nearby point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pullback.check.exceptions import BackwardError, ForwardError
from pullback.check.inputs.arguments import FirstRun
from pullback.check.numerical import across, coordinates, direction_scales, joined, ties
from pullback.check.session import (
    Line,
    Session,
    away_from_zero,
    is_range,
    random_like,
    zeros_for_none,
)
from pullback.check.values import Array, host

# -- of the first look
_STEP = 1e-5  # of the length scale: the error of the differences is about 1e-10
_CLOSE = 1e-7  # relative to the terms of the component along the direction
_NOISE = 1e-9  # relative to the outputs
_GOLDEN = (5**0.5 - 1) / 2  # its multiples are spread evenly between whole numbers
_SMALLEST_SHARE = 1e-3  # of a direction: what is shorter is lost in rounding
# -- of what counts
_BESIDE = 1e-3  # how far a nearby point is
_FOURTH = 8.0  # fourth differences of noise are about so many times as large
_ROUNDED = 8.0  # times what noise makes of a slope
_RESPONDS = 0.1  # of the length scale: a step that changes outputs, unless they are saturated
_ADDS = 1e-5  # relative to slopes
_MOST = 8  # elements without a gradient that are looked at


# -- a first look ----------------------------------------------------------------------------------
def looks_right(first: FirstRun, seed: int) -> bool:
    """Return whether the gradients of a call agree with central differences.

    It costs two calls of forward beyond the first run, or two more for each argument.

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
    subject, rng = first.subject, np.random.default_rng(seed)
    seeds = [random_like(out, rng) for out in first.values]
    got = _coordinates_of_gradients(first, seeds)
    if got is None:
        return False
    sizes = [np.abs(coordinates(a)) for a in subject.arrays]
    directions = [away_from_zero(size.size, rng) * direction_scales(size) for size in sizes]
    terms = [direction * g for direction, g in zip(directions, got, strict=True)]
    sums, totals = [float(t.sum()) for t in terms], [float(np.abs(t).sum()) for t in terms]
    along = joined(seeds)
    noise = _NOISE * float(np.abs(along) @ np.abs(joined(first.values)))

    def agrees(shares: Mapping[int, float]) -> bool:
        steps = {i: _STEP * share * directions[i] for i, share in shares.items()}
        try:
            change = across(subject.values, subject.arrays, steps)
        except ForwardError:
            return False
        if change is None or change.shape != along.shape:
            return False
        excess = float(along @ change) / (2 * _STEP)
        excess -= sum(share * sums[i] for i, share in shares.items())
        size = sum(share * totals[i] for i, share in shares.items())
        return abs(excess) <= _CLOSE * size + noise

    together = dict(enumerate(_shares(totals)))
    return agrees(together) or (len(together) > 1 and all(agrees({i: 1.0}) for i in together))


def _coordinates_of_gradients(first: FirstRun, seeds: Sequence[Array]) -> list[Array] | None:
    """Return the gradients of a call in double precision; None where nothing can be told."""
    arrays = first.subject.arrays
    every = (*arrays, *first.values)
    if any(a.dtype.char not in "dD" or not np.isfinite(a).all() for a in every):
        return None
    try:
        with np.errstate(all="ignore"):
            grads = first.run.vjp(seeds)
    except Exception:  # of any kind: the full comparison says which, and whose
        return None
    found = zeros_for_none([None if g is None else host(g) for g in grads], arrays)
    found = [coordinates(g.astype(a.dtype)) for g, a in zip(found, arrays, strict=True)]
    sizes = [coordinates(a).size for a in arrays]
    usable = [g.size for g in found] == sizes and all(np.isfinite(g).all() for g in found)
    return found if usable else None


def _shares(sizes: Sequence[float]) -> list[float]:
    """Return by what to multiply directions for terms of about one size: none hides another.

    Of exactly one size, mistakes in what two arguments have in common could cancel.
    """
    least = min((size for size in sizes if size), default=1.0)
    shares = [max(least / max(size, least), _SMALLEST_SHARE) for size in sizes]
    return [share / (1 + _GOLDEN * i % 1) for i, share in enumerate(shares)]


# -- what counts -----------------------------------------------------------------------------------
def counts(session: Session, slack: float = 0.0, size: float = 0.0) -> list[str]:
    """Return the arguments whose gradient is wrong at a call, as far as measurements speak for it.

    Parameters
    ----------
    session : Session
        That of the call.
    slack : float, default 0
        How far off gradients may be, relative to their terms, beyond what is tolerated elsewhere.
    size : float, default 0
        Of the outputs of the user's call: what is nothing beside them may be so here by rounding.

    Returns
    -------
    list of str
        Their names; an empty name where backward raises.

    Examples
    --------
    >>> import pullback as pb
    >>> from pullback.check.report import Report
    >>> from pullback.check.session import Options
    >>> op = pb.autograd_function(lambda ctx, x: abs(x) + x**2, lambda ctx, g: {"x": g})
    >>> from pullback.check.subject import Subject
    >>> calls = [Subject(op, (np.array(values),)) for values in ([0.5, -1.5], [0.0, 0.0])]
    >>> [counts(Session(call, Options(), Report("", 0))) for call in calls]
    [['x'], []]
    """
    try:
        wrong = [i for i in range(len(session.arrays)) if _is_wrong(session, i, slack, size)]
        if wrong:
            moved = [_moved(a, a) for a in session.arrays]
            near = Session(session.subject.with_arrays(moved), session.options, session.report)
            wrong = [i for i in wrong if _is_wrong(near, i, slack, size)]
    except BackwardError:
        return [""] if _raises_around(session) else []
    except ForwardError:  # it is not defined nearby
        return []
    return [session.subject.names[i] for i in wrong]


def _moved(array: Array, phase: Array) -> Array:
    """Return an array a little beside: what is 0 stays so, and so do equal values of the phase."""
    factor = 1 + _BESIDE * np.cos(1.0 + 1e3 * (phase.real + 2 * phase.imag).astype(np.float64))
    return np.asarray(array * factor).astype(array.dtype)


def _raises_around(session: Session) -> bool:
    """Return whether backward raises at nearby points too, with no zeros and no equal values."""
    rng = session.rng("around")
    for _ in range(2):
        steps = [np.asarray(rng.uniform(size=a.shape)) for a in session.arrays]
        pairs = zip(session.arrays, steps, strict=True)
        arrays = [_moved(np.where(a == 0, _BESIDE * s, a).astype(a.dtype), s) for a, s in pairs]
        try:
            session.vjp(session.seeds(), arrays)
        except BackwardError:
            continue
        except ForwardError:
            pass
        return False
    return True


def _is_wrong(session: Session, i: int, slack: float, size: float) -> bool:
    """Return whether a gradient disagrees along two directions, or as equal values move together.

    Where values are equal, each alone may be at a kink; together they may move along it.
    """
    if not np.isfinite(session.center).all():
        return False
    rng, count = session.rng(f"directions {i}"), coordinates(session.wide[i]).size
    directions = [away_from_zero(count, rng) for _ in range(2)]
    one = session.measure(i, directions[0])
    if _disagrees(session, one, slack, size):
        other = session.measure(i, directions[1])
        both = session.measure(i, directions[0] + directions[1])
        return _disagrees(session, other, slack, size) and _add_up(one, other, both)
    together = ties(coordinates(session.wide[i])) if one.slope.kink.any() else ()
    return any(_disagrees(session, session.measure(i, d), slack, size) for d in together)


def _add_up(one: Line, other: Line, both: Line) -> bool:
    """Return whether slopes add up; those of a median of equal values do not."""
    with np.errstate(all="ignore"):
        off = np.abs(both.slope.value - one.slope.value - other.slope.value)
        size = np.abs(one.slope.value) + np.abs(other.slope.value)
        error = one.slope.error + other.slope.error + both.slope.error
        return not (off > _ADDS * size + 10 * error).any()


def _disagrees(session: Session, line: Line, slack: float, size: float) -> bool:
    """Return whether a gradient is off along a line with both of two cotangents.

    Of the outputs that are smooth along it; of complex ones the second cotangent is that of a
    function of their sizes, since a rule may be right but for a phase, as that of eigenvectors is.
    """
    smooth = ~line.slope.kink & is_range(line.slope.low, line.slope.high)
    noise = _noise(session, line, size) if smooth.any() else None
    if noise is None:
        return False
    rng = session.rng("sizes")
    sizes = [
        rng.uniform(0.5, 1.5, out.shape) * out if out.dtype.kind == "c" else random_like(out, rng)
        for out in session.outputs
    ]
    return all(
        _is_off(session, line, session.split(np.where(smooth, joined(seeds), 0.0)), noise, slack)
        for seeds in (session.seeds(), sizes)
    )


def _is_off(
    session: Session, line: Line, seeds: Sequence[Array], noise: Array, slack: float
) -> bool:
    """Return whether a gradient's component along a line is off by more than noise."""
    i = line.argument
    found = zeros_for_none(session.vjp(seeds), session.arrays)[i].astype(session.wide[i].dtype)
    if found.shape != session.arrays[i].shape:
        raise BackwardError("the gradient has another shape than its argument")
    got = coordinates(found)
    unknown = ~np.isfinite(got) & (line.direction != 0)
    if unknown.any():  # at a guess nobody said that forward is meant for the values either
        return not session.options.guessed and _has_derivative(session, i, np.flatnonzero(unknown))
    rounded = _ROUNDED * float(np.abs(joined(seeds)) @ noise)
    return not session.agrees(line, got, seeds, slack, rounded)


def _has_derivative(session: Session, i: int, elements: Array) -> bool:
    """Return whether outputs are smooth along one of some elements, and change with it at all.

    Where forward is saturated, NaN is as good as the 0 that nobody needs.
    """
    for line in session.along(i, [int(k) for k in elements[:_MOST]]):
        step = _RESPONDS * line.scale
        ends = [session.curve((i,), line.direction)(t) for t in (-step, step)]
        responds = any(end is not None and (end != session.center).any() for end in ends)
        if responds and not line.slope.kink.any():
            return True
    return False


def _noise(session: Session, line: Line, size: float) -> Array | None:
    """Return what forward's noise makes of slopes along a line; None if forward ends nearby.

    Noise is what fourth differences leave of the outputs at five points close by, or what a change
    of the last bits of all arguments makes of them.
    """
    step = session.eps**0.25
    curve = session.curve((line.argument,), line.direction)
    points = [curve(k * step * line.scale) for k in (-2, -1, 0, 1, 2)]
    if any(point is None for point in points):
        return None
    arrays = [np.asarray(a * (1 + 2 * session.eps * np.cos(1e3 * a.real))) for a in session.wide]
    bits = joined(session.subject.values(arrays)) - session.center
    with np.errstate(all="ignore"):
        a, b, c, d, e = (np.asarray(point) for point in points)
        rough = np.abs(a - 4 * b + 6 * c - 4 * d + e) / _FOURTH
        least = np.maximum(np.abs(bits), session.eps * size)
        return np.asarray(np.maximum(rough, least) / step)
