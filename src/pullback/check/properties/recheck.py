"""First derivatives in a session made by another part: of another shape, dtype or function.

Nothing is known there about kinks and edges that the values may be on by chance. So a disagreement
counts only if it repeats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.check.comparison import max_abs
from pullback.check.exceptions import BackwardError, ForwardError
from pullback.check.numerical import coordinates
from pullback.check.properties.accuracy import forward_error
from pullback.check.properties.first import agrees
from pullback.check.session import Line, Session, away_from_zero
from pullback.check.values import Array


def wrong_along(session: Session) -> list[int]:
    """Return the arguments whose gradient disagrees with differences along random directions.

    A disagreement has to repeat along other directions and at other values: at a kink, where these
    inputs may be by chance, a rule may choose any slope.

    Raises
    ------
    BackwardError
        If backward raises, or returns a gradient of another shape than its argument's.
    """
    got = _checked(session)
    if session.subject.surrogate:
        return []
    seeds = session.seeds()
    wrong = [i for i in range(len(got)) if not agrees(session, _measured(session, i), got, seeds)]
    if wrong:
        session.discard_inconsistent()
        wrong = _repeated(session, got, wrong)
    if wrong:
        rng = session.rng("near")
        arrays = [(a * rng.uniform(0.85, 1.0, a.shape)).astype(a.dtype) for a in session.arrays]
        near = Session(session.subject.with_arrays(arrays), session.options, session.report)
        try:
            if np.isfinite(near.center).all():
                wrong = _repeated(near, _checked(near), wrong, enough=1)
        except (BackwardError, ForwardError):  # not defined there
            pass
    return [] if wrong and forward_error(session, wrong) is not None else wrong


def _checked(session: Session) -> list[Array]:
    """Return the coordinates of the gradients; raise if their shapes are wrong."""
    found = session.gradients()
    for name, g, array in zip(session.subject.names, found, session.arrays, strict=True):
        if g.shape != array.shape:
            raise BackwardError(f"the gradient of `{name}` has shape {g.shape}, not {array.shape}")
    return [coordinates(g.astype(a.dtype)) for g, a in zip(found, session.wide, strict=True)]


def _repeated(
    session: Session, got: Sequence[Array], among: Sequence[int], enough: int | None = None
) -> list[int]:
    """Return the arguments whose gradient disagrees along every direction, or along `enough`."""
    found, seeds = [], session.seeds()
    for i in among:
        lines = [d for d in session.directions if d.argument == i]
        off = sum(not agrees(session, d, got, seeds) for d in lines)
        if off >= (len(lines) if enough is None else enough):
            found.append(i)
    return found


def _measured(session: Session, i: int) -> Line:
    count = coordinates(session.wide[i]).size
    return session.measure(i, away_from_zero(count, session.rng(f"direction {i}")))


def perturbed_leaves(session: Session, leaves: Sequence[Any], step: float) -> list[Any]:
    """Return the leaves with the differentiated arguments moved a little."""
    rng = session.rng("nearby")
    moved = list(leaves)
    for i in session.subject.tracked:
        length = np.where(leaves[i] == 0, max_abs(leaves[i]) or 1.0, -leaves[i])
        moved[i] = np.asarray(leaves[i] + step * rng.uniform(size=leaves[i].shape) * length)
    return moved
