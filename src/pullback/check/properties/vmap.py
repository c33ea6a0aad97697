"""The rule for batches that was given computes what a loop over the samples computes.

Values and gradients are compared, with every argument mapped and with each alone: the others are
then the same for all samples, and get None in `in_dims`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.check.comparison import differs
from pullback.check.exceptions import InapplicableError, first_line
from pullback.check.report import Cause
from pullback.check.session import Session
from pullback.check.values import Array, copies, host
from pullback.core.tensor.tensor import Tensor, box
from pullback.transforms.vjp import vjp
from pullback.transforms.vmap import vmap

_HINT = "return for each sample what the operation returns, or leave vmap out: it is a loop then"
# The samples are the arguments, and these multiples, which stay in about every domain.
_SCALES = (1.0, 0.97, 0.94)


def check_vmap(session: Session) -> None:
    """Check the vmap that was given against a loop."""
    subject = session.subject
    if getattr(subject.fn, "vmap_rule", None) is None:
        raise InapplicableError("no vmap of its own: it is called for each sample")
    if subject.works_in_place:
        raise InapplicableError("vmap changes no argument in place")
    count = len(session.arrays)
    every = [True] * count
    alone = [[i == k for i in range(count)] for k in range(count)] if count > 1 else []
    for mapped in (every, *alone):
        if not _is_right(session, mapped):
            return


def _is_right(session: Session, mapped: Sequence[bool]) -> bool:
    """Return whether a batch is the loop where these arguments are mapped; report if not."""
    names = [f"`{n}`" for n, m in zip(session.subject.names, mapped, strict=True) if m]
    where = f"mapped over {' and '.join(names)}"
    columns = [
        np.stack([(a * s).astype(a.dtype) for s in _SCALES]) if m else a
        for a, m in zip(copies(session.arrays), mapped, strict=True)
    ]
    seeds = [
        np.stack([g] * len(_SCALES))
        for g in session.seeds("vmap", _values(session, columns, mapped))
    ]
    inputs, axes = [*columns, *seeds], [*(0 if m else None for m in mapped), *(0 for _ in seeds)]
    try:
        rows = [
            _one(session, [x if a is None else x[i] for x, a in zip(inputs, axes, strict=True)])
            for i in range(len(_SCALES))
        ]
    except Exception as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise InapplicableError(f"not defined near the arguments: {reason}") from None
    expected = [np.stack(column) for column in zip(*rows, strict=True)]
    try:
        found = _together(session, inputs, tuple(axes))
    except Exception as error:
        text = f"vmap raises where it is {where}: {type(error).__name__}: {first_line(error)}"
        session.fail(Cause("vmap", text, _HINT), session.subject.names[mapped.index(True)])
        return False
    return _is_same(session, where, found, expected, len(seeds))


def _is_same(
    session: Session, where: str, found: list[Array], expected: list[Array], outs: int
) -> bool:
    for k, (got, wanted) in enumerate(zip(found, expected, strict=True)):
        name = session.subject.names[max(0, k - outs)]
        what = "the value" if k < outs else f"the gradient of `{name}`"
        if got.shape != wanted.shape:
            text = f"vmap, {where}, gives {what} the shape {got.shape}, the loop {wanted.shape}"
        elif differs(got, wanted, 10 * session.rtol, session.atol).any():
            text = f"vmap, {where}, is not the loop over the samples: {what} differs"
        else:
            continue
        session.fail(Cause("vmap", text, _HINT), name)
        return False
    return True


def _values(session: Session, columns: list[Array], mapped: Sequence[bool]) -> list[Array]:
    """Return the results of the first sample."""
    first = [c[0] if m else c for c, m in zip(columns, mapped, strict=True)]
    backend = session.subject.backend
    return [host(t) for t in _results(session, [box(backend.from_numpy(a)) for a in first])]


def _results(session: Session, primals: Sequence[Tensor]) -> list[Tensor]:
    """Return the differentiated results of a call on tensors."""
    subject = session.subject
    leaves = subject.tensors(session.arrays, ())
    for place, primal in zip(subject.tracked, primals, strict=True):
        leaves[place] = primal
    results = subject.results(leaves)
    return [results[k] for k in subject.output_indices or range(len(results))]


def _pulled(session: Session, given: Sequence[Tensor]) -> list[Tensor]:
    """Return the results of one sample and the gradients, from its arguments and cotangents."""
    count = len(session.arrays)
    outs, vjp_fn = vjp(lambda *primals: _results(session, primals), *given[:count])
    return [*outs, *vjp_fn(list(given[count:]))]


def _one(session: Session, arrays: Sequence[Array]) -> list[Array]:
    backend = session.subject.backend
    with np.errstate(all="ignore"):
        tensors = [box(backend.from_numpy(np.array(a))) for a in arrays]
        return [host(t) for t in _pulled(session, tensors)]


def _together(session: Session, arrays: Sequence[Array], axes: tuple[Any, ...]) -> list[Array]:
    """Return the results of all samples, from a call that is not recorded, and the gradients."""
    backend, count = session.subject.backend, len(session.arrays)
    with np.errstate(all="ignore"):
        tensors = [box(backend.from_numpy(np.array(a))) for a in arrays]
        plain = vmap(lambda *given: _results(session, given), axes[:count], randomness="same")
        outs = plain(*tensors[:count])
        pulled = vmap(lambda *given: _pulled(session, given), axes, randomness="same")
        gradients = pulled(*tensors)[len(outs) :]
    return [host(t) for t in (*outs, *gradients)]
