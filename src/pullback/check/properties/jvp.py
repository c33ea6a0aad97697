"""The forward derivative that was given is that of backward.

Backward has been compared with differences by then. For output gradients g and a direction v,
<g, jvp(v)> and <vjp(g), v> are one number, whatever the operation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.check.exceptions import InapplicableError, first_line
from pullback.check.report import Cause
from pullback.check.session import Session, gradients, random_like
from pullback.check.values import Array, Arrays, copies, host
from pullback.core.tensor.tensor import Tensor, box
from pullback.transforms.jvp import jvp

_HINT = "compute what backward is the transpose of, or leave jvp out: it is derived from backward"


def check_jvp(session: Session) -> None:
    """Check the jvp that was given: its inner products with those of backward."""
    subject = session.subject
    if getattr(subject.fn, "forward_rule", None) is None:
        raise InapplicableError("no jvp of its own: forward mode transposes backward")
    if subject.works_in_place:
        raise InapplicableError("forward mode changes no argument in place")
    run = subject.run(copies(session.arrays))
    seeds = session.seeds("jvp", run.values())
    pulled = gradients(run, seeds, session.arrays)
    for i, name in enumerate(subject.names):
        vector = random_like(session.arrays[i], session.rng(f"jvp {i}"))
        try:
            found = _pushed(session, i, vector)
        except Exception as error:
            text = f"jvp raises along `{name}`: {type(error).__name__}: {first_line(error)}"
            session.fail(Cause("jvp", text, _HINT), name)
            return
        if not subject.surrogate:
            _compare(session, i, (seeds, found), (pulled[i], vector))


def _pushed(session: Session, i: int, vector: Array) -> list[Array]:
    """Return the tangents of the differentiated outputs as one argument moves along a vector."""
    subject = session.subject

    def function(*primals: Tensor) -> list[Tensor]:
        leaves = subject.tensors(session.arrays, ())
        for place, primal in zip(subject.tracked, primals, strict=True):
            leaves[place] = primal
        results = subject.results(leaves)
        return [results[k] for k in subject.output_indices or range(len(results))]

    primals = [box(subject.backend.from_numpy(a)) for a in copies(session.arrays)]
    tangents: list[Any] = [None] * len(primals)
    tangents[i] = box(subject.backend.from_numpy(vector))
    with np.errstate(all="ignore"):
        _, found = jvp(function, primals, tangents)
    return [host(t) for t in found]


def _compare(
    session: Session, i: int, forward: tuple[Arrays, Arrays], backward: tuple[Array, Array]
) -> None:
    got, size = _inner(*forward)
    expected, other = _inner([backward[0]], [backward[1]])
    if not (np.isfinite(got) and np.isfinite(expected)):
        return
    if abs(got - expected) <= 10 * session.rtol * max(size, other) + session.atol:
        return
    name = session.subject.names[i]
    how = "with the other sign" if abs(got + expected) <= 1e-6 * other else f"{got:.6g}"
    text = (
        f"jvp is not the transpose of backward along `{name}`: <g, jvp(v)> is {how}, "
        f"<vjp(g), v> is {expected:.6g}"
    )
    session.fail(Cause("jvp", text, _HINT), name)


def _inner(a: Arrays, b: Arrays) -> tuple[float, float]:
    """Return the real inner product of arrays, and the sum of its terms' sizes."""
    products = [np.real(np.conj(x) * y).astype(float) for x, y in zip(a, b, strict=True)]
    return sum(float(p.sum()) for p in products), sum(float(np.abs(p).sum()) for p in products)
