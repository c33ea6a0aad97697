"""The properties of calls made from the one given: of tangents, batches and its gradient.

Also of one tensor that is passed twice.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.check.comparison import max_abs, rounding_noise, unequal
from pullback.check.exceptions import (
    BackwardError,
    ForwardError,
    InapplicableError,
    NotComparedError,
    first_line,
)
from pullback.check.explain.evidence import Evidence
from pullback.check.naming import quoted
from pullback.check.numerical import coordinates
from pullback.check.properties.variants import Situation, Variant
from pullback.check.report import Cause, Report
from pullback.check.session import (
    Session,
    away_from_zero,
    gradients,
    random_like,
    run_backward,
)
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


def _batch(array: Array) -> Array:
    return np.stack([(array * scale).astype(array.dtype) for scale in _SCALES])


def _tensors(subject: Subject, arrays: Sequence[Array]) -> list[Any]:
    return [box(subject.backend.from_numpy(np.array(a))) for a in arrays]


# -- by a rule that was given ----------------------------------------------------------------------
def jvp(session: Session) -> Iterator[Variant]:
    """Compare <g, jvp(v)> with <vjp(g), v>: they are one number, whatever the operation."""
    subject = session.subject
    if getattr(subject.fn, "forward_rule", None) is None or subject.works_in_place:
        return
    run = subject.run(copies(session.arrays))
    seeds = session.seeds("jvp", run.values())
    pulled = gradients(run, seeds, session.arrays)
    hint = (
        "compute what backward is the transpose of, or leave jvp out: it is derived from backward"
    )

    def pushed(i: int, v: Array) -> list[Array]:
        primals = _tensors(subject, session.arrays)
        tangents: list[Any] = [None] * len(primals)
        (tangents[i],) = _tensors(subject, [v])
        pushes = partial(pushforward, partial(_results, subject), primals, tangents)
        _, found = run_backward(pushes)
        return [_inner(seeds, [host(t) for t in found])[0]]

    for i, name in enumerate(subject.names):
        v = random_like(session.arrays[i], session.rng(f"jvp {i}"))
        expected, size = _inner([pulled[i]], [v])
        limit = np.inf if subject.surrogate else 10 * session.rtol * size
        when = f"in jvp along `{name}`"
        what, wrong = ["the product <g, jvp(v)>"], "is not <vjp(g), v>"
        product = partial(pushed, i, v)
        yield Variant(when, product, [expected], "jvp", hint, what, wrong, _fixed(limit))
    if subject.surrogate:
        raise NotComparedError("surrogate")


def _fixed(*limits: float) -> Callable[[], Sequence[Array | float]]:
    return lambda: limits


def _inner(a: Arrays, b: Arrays) -> tuple[Array, float]:
    """Return the real inner product of arrays, and the sum of its terms' sizes."""
    products = [np.real(np.conj(x) * y).astype(float) for x, y in zip(a, b, strict=True)]
    sizes = (float(np.abs(p).sum()) for p in products)
    return np.array(sum(float(p.sum()) for p in products)), sum(sizes)


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
        batches = [*map(_batch, session.arrays), *(np.stack([g] * len(_SCALES)) for g in seeds)]
        pieces = zip(batches, axes, strict=True)
        given = [batch if axis == 0 else batch[0] for batch, axis in pieces]
        pairs = list(zip(given, axes, strict=True))
        samples = [[x if a is None else x[s] for x, a in pairs] for s in range(len(_SCALES))]
        try:
            rows = [[host(t) for t in pulled(*_tensors(subject, row))] for row in samples]
        except Exception as error:
            reason = f"{type(error).__name__}: {first_line(error)}"
            raise InapplicableError(f"not defined near the arguments: {reason}") from None
        over = [name for name, m in zip(subject.names, mapped, strict=True) if m]
        when = f"in vmap mapped over {quoted(over, ' and ')}, unlike in a loop over the samples"
        expected = [np.stack(column) for column in zip(*rows, strict=True)]
        limits = _fixed(*(9 * session.rtol * max_abs(e) + session.atol for e in expected))
        run = partial(together, given, axes)
        yield Variant(when, run, expected, "vmap", hint, names, noise=limits)


# -- one tensor twice ------------------------------------------------------------------------------
def aliases(session: Session) -> Iterator[Variant]:
    """Pass one tensor for two arguments, and move two equal arguments together."""
    subject = session.subject
    if session.outputs and subject.works_in_place:  # known only after the first run
        raise InapplicableError(f"{subject.name} works in place on an argument")
    pairs = [
        (i, j)
        for (i, a), (j, b) in itertools.combinations(enumerate(session.arrays), 2)
        if a.shape == b.shape and a.dtype == b.dtype
    ]
    hint = "decide by ctx.needs_input_grad and the arguments' positions, not by identity"
    for i, j in pairs[:_MAX_PAIRS]:
        both = f"`{subject.names[i]}` and `{subject.names[j]}`"
        arrays = [session.arrays[i] if k == j else a for k, a in enumerate(session.arrays)]
        try:
            seeds = session.seeds("aliases", subject.run(copies(arrays)).values())
            expected = _summed(subject, i, j, arrays, seeds)
        except (ForwardError, BackwardError):
            continue  # not defined for equal arguments
        noise = partial(rounding_noise, partial(_summed, subject, i, j), arrays, seeds)
        names = [name for k, name in enumerate(subject.names) if k != j]
        when = f"when one tensor is passed for both {both}"
        run = partial(_aliased, subject, i, j, arrays, seeds)
        yield Variant(when, run, expected, "same-tensor", hint, names, noise=noise)
        yield from _together(session, arrays, i, j, noise)


def _summed(subject: Subject, i: int, j: int, arrays: Arrays, seeds: Arrays) -> list[Array]:
    """Return the gradients with those of arguments `i` and `j` added up, at index `i`."""
    found = gradients(subject.run(copies(arrays)), seeds, arrays)
    found[i] = found[i] + found[j]
    return [g for k, g in enumerate(found) if k != j]


def _aliased(subject: Subject, i: int, j: int, arrays: Arrays, seeds: Arrays) -> list[Array]:
    """Return the gradients where one tensor is both argument `i` and `j`."""
    leaves = subject.tensors(copies(arrays), None)
    leaves[subject.tracked[j]] = leaves[subject.tracked[i]]
    run = subject.run_leaves(leaves)
    del run.tensors[j]
    return gradients(run, seeds, [a for k, a in enumerate(arrays) if k != j])


def _together(
    session: Session, arrays: Arrays, i: int, j: int, noise: Callable[[], list[Array]]
) -> Iterator[Variant]:
    """Compare the sum of two gradients with the slope as two equal arguments move together.

    Where they are equal, each alone may be at a kink, as those of a maximum are. Together they move
    along it, and only the sum of the two gradients counts.
    """
    subject = session.subject
    apart = [1.01 * a + 1e-3 * max_abs(a) if k == j else a for k, a in enumerate(arrays)]
    steps = session.rng(f"together {i} {j}")
    direction = away_from_zero(coordinates(session.wide[i]).size, steps)
    found = []
    for values in (apart, arrays):
        call = subject.with_arrays([v.astype(a.dtype) for v, a in zip(values, arrays, strict=True)])
        other = Session(call, session.options, Report(subject.name, 0))
        try:
            if not np.isfinite(other.center).all():
                return
            line, seeds = other.measure(i, direction, also=[j]), other.seeds()
            got = [coordinates(g) for g in other.gradients()]
        except (ForwardError, BackwardError):
            return
        (low, high, error), value = other.bounds(line, seeds), line.direction @ (got[i] + got[j])
        if not np.isfinite([low, high, value]).all() or other.is_kinked(line, seeds):
            return
        # Looser than elsewhere: a rule that is wrong at ties is wrong by whole terms.
        limit = 1e-3 * other.magnitude(line, seeds) + error + other.atol + (high - low) / 2
        found.append((value, (low + high) / 2, limit))
    if abs(found[0][0] - found[0][1]) > found[0][2]:
        return  # not where they are equal alone
    value, slope, limit = found[1]
    yield Variant(
        f"where the two are equal (ties): as both move together, {value:.6g} came, not {slope:.6g}",
        lambda: [np.array(value)],
        [np.array(slope)],
        "ties",
        "at a tie give the gradient to one of them, or half of it to each",
        [f"the sum of the gradients of `{subject.names[i]}` and `{subject.names[j]}`"],
        "is wrong",
        lambda: [limit + np.max(noise()[i]) * float(np.abs(line.direction).sum())],
    )


# -- second derivatives ----------------------------------------------------------------------------
def second_order(session: Session) -> Iterator[Situation | Cause]:
    """Compare the gradient of the gradient with differences of the gradient.

    The gradient is a function like any other, of the arguments and of the output gradients. Its own
    gradient, computed with backward recorded, has to agree with differences of backward without
    recording.
    """
    if getattr(session.subject.fn, "once", False):
        raise InapplicableError("marked once_differentiable")
    other = _session_of_gradient(session)
    try:
        recorded = other.outputs
    except ForwardError as error:
        yield _unavailable(session, error)
        return
    if not all(bool(np.isfinite(v).all()) for v in (other.center, *other.arrays)):
        raise InapplicableError("the gradients are not all finite here")
    for i, wrong in unequal(other, recorded, other.subject.values(other.arrays)):
        name = session.subject.names[i]
        text = (
            f"the gradient of `{name}` is different when backward is recorded (create_graph=True)"
        )
        yield Cause("second-order", f"{text} at {int(wrong.sum())} elements", _MARK)
    text = "is wrong although the first is right: backward leaves the recorded operations (detach, "

    def cause_of(e: Evidence, i: int) -> Cause:
        what = f"the second derivative in `{e.names[i]}`"
        return Cause("second-order", f"{what} {text}numpy, no_grad)", _MARK)

    yield Situation(other, "twice", cause_of, partial(_unavailable, session))


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


def _session_of_gradient(session: Session) -> Session:
    """Return a session whose function is the gradient of the session's function."""
    arrays, count = session.wide, len(session.wide)
    seeds = session.seeds(outputs=session.subject.run(arrays).values())
    tensors = tuple(_tensors(session.subject, [*arrays, *seeds]))
    subject = Subject(partial(_gradient, session.subject), tensors)
    subject.name = f"the gradient of {session.subject.name}"
    labels = [f"the gradient of output {k}" for k in range(len(seeds))]
    subject.names = [*session.subject.names, *(labels if len(seeds) > 1 else ["grad_output"])]
    subject.output_indices = list(range(count))  # also those that backward computes without a graph
    # A second derivative amplifies rounding; the error of a wrong one is large.
    rtol = max(1e-4 if session.eps < 1e-12 else 5e-2, session.options.rtol or 0.0)
    atol = max(session.atol, 1e-12 * max(map(max_abs, seeds), default=0))
    options = dataclasses.replace(session.options, rtol=rtol, atol=atol)
    return Session(subject, options, Report(subject.name, options.seed))


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
