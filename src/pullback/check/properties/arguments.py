"""The properties of calls made from the one given: of tangents, batches and its gradient.

Also of one tensor that is passed twice.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.check.agreement import wrong_at
from pullback.check.comparison import rounding_noise, unequal
from pullback.check.exceptions import (
    BackwardError,
    ForwardError,
    InapplicableError,
    NotComparedError,
    first_line,
)
from pullback.check.explain.evidence import Evidence
from pullback.check.naming import quoted
from pullback.check.numerical import max_abs, random_like
from pullback.check.properties.variants import Situation, Variant
from pullback.check.report import Cause, Report
from pullback.check.session import Session, gradients, run_backward, zeros_for_none
from pullback.check.slopes import Options
from pullback.check.subject import Subject
from pullback.check.values import Array, Arrays, copies, host
from pullback.core.backward.api import grad
from pullback.core.graph.modes import enable_grad, is_grad_enabled
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import GraphError
from pullback.transforms.jvp import jvp as pushforward
from pullback.transforms.vjp import vjp as pullback_of
from pullback.transforms.vmap import vmap as vectorized

_SCALES = (1.0, 0.97, 0.94)  # of the samples of a batch, which stay in about every domain
_MAX_PAIRS = 6
_MARK = "write it with tensor operations or mark it pb.once_differentiable"


def _results(subject: Subject, *primals: Tensor) -> list[Tensor]:
    """Return the differentiated results of the call on tensors."""
    leaves = subject.tensors(subject.arrays, ())
    for place, primal in zip(subject.tracked, primals, strict=True):
        leaves[place] = primal
    found = subject.results(leaves)
    return [found[k] for k in subject.output_indices or range(len(found))]


def _tensors(subject: Subject, arrays: Sequence[Array]) -> list[Any]:
    return [box(subject.backend.from_numpy(np.array(a))) for a in arrays]


def _session_of(
    session: Session,
    fn: Callable[..., list[Tensor]],
    names: Sequence[str],
    arrays: Arrays,
    outputs: int,
    options: Options,
) -> Session:
    """Return a session of a function that is made from that of another one."""
    subject = Subject(fn, tuple(_tensors(session.subject, arrays)))
    subject.name, subject.names = session.subject.name, list(names)
    subject.output_indices = list(range(outputs))  # also those that are made without a graph
    return Session(subject, options, Report(subject.name, options.seed))


# -- by a rule that was given ----------------------------------------------------------------------
def jvp(session: Session) -> Iterator[Variant]:
    """Compare <g, jvp(v)> with <vjp(g), v>: they are one number, whatever the operation."""
    subject = session.subject
    if getattr(subject.fn, "forward_rule", None) is None or subject.works_in_place:
        return
    run = subject.run(copies(session.arrays))
    seeds = session.seeds("jvp", run.values())
    pulled = gradients(run, seeds, session.arrays)
    hint = "compute what backward is the transpose of, or leave jvp out: backward gives one"
    what, wrong = ["the product <g, jvp(v)>"], "is not <vjp(g), v>"
    same = partial(Variant, cause="jvp", hint=hint, names=what, wrong=wrong)

    def pushed(i: int, v: Array) -> list[Array]:
        primals, tangents = _tensors(subject, session.arrays), [None] * len(session.arrays)
        (tangents[i],) = _tensors(subject, [v])
        pushes = partial(pushforward, partial(_results, subject), primals, tangents)
        _, found = run_backward(pushes)
        return [np.sum([_terms(g, host(t)).sum() for g, t in zip(seeds, found, strict=True)])]

    for i, name in enumerate(subject.names):
        v = random_like(session.arrays[i], session.rng(f"jvp {i}"))
        terms = _terms(pulled[i], v)
        limit = np.inf if subject.surrogate else 10 * session.rtol * float(np.abs(terms).sum())
        noise, expected = partial(list[float], [limit]), [terms.sum()]
        yield same(f"in jvp along `{name}`", partial(pushed, i, v), expected, noise=noise)
    if subject.surrogate:
        raise NotComparedError(subject.surrogate)


def _terms(a: Array, b: Array) -> Array:
    """Return the terms of the real inner product of two arrays."""
    return np.asarray(np.real(np.conj(a) * b), float)


def vmap(session: Session) -> Iterator[Variant]:
    """Compare a batch with a loop over its samples, with every argument mapped and each alone."""
    subject, count, seeds = session.subject, len(session.arrays), session.seeds("vmap")
    if getattr(subject.fn, "vmap_rule", None) is None or subject.works_in_place:
        return
    hint = "return for each sample what the operation returns, or leave vmap out: it is a loop then"
    names = [*(f"output {k}" for k in range(len(seeds))), *subject.names]
    fn = partial(_results, subject)

    def pulled(*given: Tensor) -> list[Tensor]:
        outs, vjp_fn = pullback_of(fn, *given[:count])
        return [*outs, *vjp_fn(list(given[count:]))]

    def together(given: Sequence[Array], axes: tuple[Any, ...]) -> list[Array]:
        xs = _tensors(subject, given)
        plain = vectorized(fn, axes[:count], randomness="same")
        values = run_backward(lambda: plain(*xs[:count]))
        found = run_backward(lambda: vectorized(pulled, axes, randomness="same")(*xs))
        return [host(t) for t in (*values, *found[len(values) :])]

    alone = [[i == k for i in range(count)] for k in range(count)] if count > 1 else []
    for mapped in ([True] * count, *alone):
        axes = tuple(0 if m else None for m in [*mapped, *(True for _ in seeds)])
        samples = [[*_scaled(session.arrays, mapped, c), *seeds] for c in _SCALES]
        columns = zip(zip(*samples, strict=True), axes, strict=True)
        given = [np.stack(arrays) if axis == 0 else arrays[0] for arrays, axis in columns]
        try:
            rows = [[host(t) for t in pulled(*_tensors(subject, row))] for row in samples]
        except Exception as error:
            reason = f"{type(error).__name__}: {first_line(error)}"
            raise InapplicableError(f"not defined near the arguments: {reason}") from None
        over = quoted((name for name, m in zip(subject.names, mapped, strict=True) if m), " and ")
        when = f"in vmap mapped over {over}, unlike in a loop over the samples"
        expected = [np.stack(column) for column in zip(*rows, strict=True)]
        limits = [9 * session.rtol * max_abs(e) + session.atol for e in expected]
        run, noise = partial(together, given, axes), partial(list[float], limits)
        yield Variant(when, run, expected, "vmap", hint, names, noise=noise)


def _scaled(arrays: Arrays, chosen: Sequence[bool], factor: float) -> list[Array]:
    pairs = zip(arrays, chosen, strict=True)
    return [(factor * a).astype(a.dtype) if yes else a for a, yes in pairs]


# -- one tensor twice ------------------------------------------------------------------------------
def aliases(session: Session) -> Iterator[Variant | Situation]:
    """Pass one tensor for two arguments: its gradient is the sum of theirs, and the derivative.

    Where two arguments are equal, each alone may be at a kink, as those of a maximum are. Together
    they move along it.
    """
    subject = session.subject
    if session.outputs and subject.works_in_place:  # known only after the first run
        raise InapplicableError(f"{subject.name} works in place on an argument")
    pairs = [
        (i, j)
        for (i, a), (j, b) in itertools.combinations(enumerate(session.arrays), 2)
        if a.shape == b.shape and a.dtype == b.dtype
    ]
    for i, j in pairs[:_MAX_PAIRS]:
        with contextlib.suppress(ForwardError, BackwardError):  # not defined for equal arguments
            yield from _one_for_both(session, i, j)


def _one_for_both(session: Session, i: int, j: int) -> Iterator[Variant | Situation]:
    subject, options = session.subject, session.options
    both = f"`{subject.names[i]}` and `{subject.names[j]}`"
    arrays = [session.arrays[i] if k == j else a for k, a in enumerate(session.arrays)]
    seeds = session.seeds("aliases", subject.run(copies(arrays)).values())
    expected = _summed(subject, i, j, arrays, seeds)
    names = [name for k, name in enumerate(subject.names) if k != j]
    once, fn = [a for k, a in enumerate(arrays) if k != j], partial(_of_one, subject, i, j)
    twice = _session_of(session, fn, names, once, len(seeds), options)
    noise = partial(rounding_noise, partial(_summed, subject, i, j), arrays, seeds)
    hint = "decide by ctx.needs_input_grad and the arguments' positions, not by identity"
    when, run = f"when one tensor is passed for both {both}", partial(_pulled, twice, seeds)
    yield Variant(when, run, expected, "same-tensor", hint, names, noise=noise)
    arrays[j] = (1.01 * arrays[j] + 1e-3 * max_abs(arrays[j])).astype(arrays[j].dtype)
    apart = Session(subject.with_arrays(arrays), options, Report(subject.name, options.seed))
    if wrong_at(twice) and not wrong_at(apart):
        hint = "at a tie give the gradient to one of them, or half of it to each"
        yield Situation(twice, f"where {both} are equal and move together", "ties", hint)


def _summed(subject: Subject, i: int, j: int, arrays: Arrays, seeds: Arrays) -> list[Array]:
    """Return the gradients with those of arguments `i` and `j` added up, at index `i`."""
    found = gradients(subject.run(copies(arrays)), seeds, arrays)
    found[i] = found[i] + found[j]
    return [g for k, g in enumerate(found) if k != j]


def _pulled(session: Session, seeds: Arrays) -> list[Array]:
    return zeros_for_none(session.vjp(seeds), session.arrays)


def _of_one(subject: Subject, i: int, j: int, *tensors: Tensor) -> list[Tensor]:
    """Return the results of the call with one tensor as argument `i` and `j`."""
    return _results(subject, *tensors[:j], tensors[i], *tensors[j:])


# -- second derivatives ----------------------------------------------------------------------------
def second_order(session: Session) -> Iterator[Situation | Cause]:
    """Compare the gradient of the gradient with differences of the gradient.

    The gradient is a function like any other, of the arguments and of the output gradients. Its own
    gradient, computed with backward recorded, has to agree with differences of backward without
    recording.
    """
    if getattr(session.subject.fn, "once", False):
        raise InapplicableError("marked once_differentiable")
    names, outputs = session.subject.names, session.subject.run(session.wide).values()
    seeds = session.seeds(outputs=outputs)
    labels = [f"the gradient of output {k}" for k in range(len(seeds))]
    labels = labels if len(seeds) > 1 else ["grad_output"]
    # A second derivative amplifies rounding; the error of a wrong one is large.
    rtol = max(1e-4 if session.eps < 1e-12 else 5e-2, session.options.rtol or 0.0)
    atol = max(session.atol, 1e-12 * max_abs(*seeds))
    options = dataclasses.replace(session.options, rtol=rtol, atol=atol)
    fn, arrays = partial(_gradient, session.subject), [*session.wide, *seeds]
    other = _session_of(session, fn, [*names, *labels], arrays, len(names), options)
    try:
        recorded = other.outputs
        if not all(bool(np.isfinite(v).all()) for v in (other.center, *other.arrays)):
            raise InapplicableError("the gradients are not all finite here")
        other.gradients()
    except (ForwardError, BackwardError) as error:
        yield _unavailable(session, error)
        return
    for i, wrong in unequal(other, recorded, other.subject.values(other.arrays)):
        text = f"the gradient of `{names[i]}` is different when backward is recorded"
        text += f" (create_graph=True) at {int(wrong.sum())} elements"
        yield Cause("second-order", text, _MARK)

    def cause_of(e: Evidence, i: int) -> Cause:
        text = (
            f"the second derivative in `{e.names[i]}` is wrong although the first is right: "
            "backward leaves the recorded operations (detach, numpy, no_grad)"
        )
        return Cause("second-order", text, _MARK)

    yield Situation(other, "twice", cause_of)


def _unavailable(session: Session, error: ForwardError | BackwardError) -> Cause:
    """Note that backward cannot be differentiated; return the cause if that was asked for."""
    cause = error.__cause__
    if isinstance(cause, GraphError) and "marked with @once_differentiable" in str(cause):
        raise InapplicableError("marked once_differentiable")
    if session.options.order < 2:
        session.note(f"second derivative: not available, says {first_line(error)}")
        raise InapplicableError("backward cannot be differentiated")
    text = f"second derivative: backward raises when it is recorded: {first_line(error)}"
    return Cause("second-order", text, _MARK)


def _gradient(subject: Subject, *tensors: Tensor) -> list[Tensor]:
    """Return the gradient as a function of the differentiated arguments and output gradients."""
    recorded, count = is_grad_enabled(), len(subject.tracked)
    with enable_grad():
        xs = [t if t.requires_grad else t.detach().requires_grad_() for t in tensors[:count]]
        # No leaf may be changed in place.
        outs = _results(subject, *[x.clone() if subject.works_in_place else x for x in xs])
        pairs = [(o, g * 1) for o, g in zip(outs, tensors[count:], strict=True) if o.requires_grad]
        if not pairs:
            return [t.new_zeros(t.shape) for t in xs]
        roots, seeds = zip(*pairs, strict=True)
        grads = grad(roots, xs, seeds, create_graph=recorded, allow_unused=True)
    return [x.new_zeros(x.shape) if g is None else g for g, x in zip(grads, xs, strict=True)]
