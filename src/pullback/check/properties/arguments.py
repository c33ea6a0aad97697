"""The properties of calls made from the one given: of tangents, batches and its gradient.

Also of one tensor that is passed twice.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from pullback.check.comparison import Situation, rounding_noise, wrong_at
from pullback.check.numerical import max_abs, random_like
from pullback.check.properties.variants import Variant
from pullback.check.report import Cause, InapplicableError, NotComparedError, first_line, quoted
from pullback.check.session import Session
from pullback.check.subject import BackwardError, ForwardError, Subject, calling
from pullback.check.values import Array, Arrays, copies, host
from pullback.core.backward.api import grad
from pullback.core.graph.modes import enable_grad, is_grad_enabled
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import GraphError
from pullback.transforms.api.grad import vjp as pullback_of
from pullback.transforms.api.jvp import jvp as pushforward
from pullback.transforms.api.vmap import vmap as vectorized

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


def _of(fn: Callable[..., Any], subject: Subject, arrays: Sequence[Array]) -> Subject:
    """Return the call of a function made from another call's, on tensors of these arrays."""
    other = Subject(fn, tuple(_tensors(subject, arrays)), surrogate=subject.surrogate)
    other.name = subject.name
    return other


# -- by a rule that was given ----------------------------------------------------------------------
def jvp(session: Session) -> Iterator[Variant]:
    """Compare <g, jvp(v)> with <vjp(g), v>: they are one number, whatever the operation."""
    subject = session.subject
    if getattr(subject.fn, "forward_rule", None) is None or subject.works_in_place:
        return
    if subject.surrogate:
        raise NotComparedError(subject.surrogate)
    run = subject.run(copies(session.arrays))
    seeds = session.seeds("jvp", run.values())
    pulled = run.gradients(seeds)
    hint = "compute what backward is the transpose of, or leave jvp out: backward gives one"
    what, wrong = ["the product <g, jvp(v)>"], "is not <vjp(g), v>"

    def pushed(i: int, v: Array) -> list[Array]:
        primals, tangents = _tensors(subject, session.arrays), [None] * len(session.arrays)
        (tangents[i],) = _tensors(subject, [v])
        with calling(BackwardError):
            _, found = pushforward(partial(_results, subject), primals, tangents)
        pairs = zip(seeds, found, strict=True)
        return [np.sum([np.vdot(g, host(t)).real for g, t in pairs])]

    for i, name in enumerate(subject.names):
        v, grad = random_like(session.arrays[i], session.rng(f"jvp {i}")), pulled[i]
        expected, run_i = [np.asarray(np.vdot(grad, v).real)], partial(pushed, i, v)
        limit = 10 * session.rtol * float(np.vdot(np.abs(grad), np.abs(v)))
        noise, when = partial(list[float], [limit]), f"in jvp along `{name}`"
        yield Variant(when, run_i, expected, "jvp", hint, what, wrong, noise)


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
        with calling(BackwardError):
            values = vectorized(fn, axes[:count], randomness="same")(*xs[:count])
            found = vectorized(pulled, axes, randomness="same")(*xs)
        return [host(t) for t in (*values, *found[len(values) :])]

    for mapped in (np.ones(count, bool), *np.eye(count, dtype=bool)):
        axes = *(0 if m else None for m in mapped), *(0 for _ in seeds)
        pairs = list(zip([*session.arrays, *seeds], axes, strict=True))
        samples = [[a if m is None else (c * a).astype(a.dtype) for a, m in pairs] for c in _SCALES]
        columns = zip(zip(*samples, strict=True), axes, strict=True)
        given = [arrays[0] if m is None else np.stack(arrays) for arrays, m in columns]
        try:
            rows = [[host(t) for t in pulled(*_tensors(subject, row))] for row in samples]
        except Exception as error:
            reason = f"{type(error).__name__}: {first_line(error)}"
            raise InapplicableError(f"not defined near the arguments: {reason}") from None
        over = quoted((name for name, m in zip(subject.names, mapped, strict=True) if m), " and ")
        when = f"in vmap mapped over {over}, unlike in a loop over the samples"
        expected = [np.stack(column) for column in zip(*rows, strict=True)]
        limits = [9 * session.rtol * max_abs(e) + session.options.atol for e in expected]
        run, noise = partial(together, given, axes), partial(list[float], limits)
        yield Variant(when, run, expected, "vmap", hint, names, noise=noise)


# -- one tensor twice ------------------------------------------------------------------------------
def aliases(session: Session) -> Iterator[Variant | Situation]:
    """Pass one tensor for two arguments: its gradient is the sum of theirs, and the derivative.

    Where two arguments are equal, each alone may be at a kink, as those of a maximum are. Together
    they move along it.
    """
    subject = session.subject
    if session.outputs and subject.works_in_place:  # known only after the first run
        raise InapplicableError(f"{subject.name} works in place on an argument")
    pairs = itertools.combinations(enumerate(session.arrays), 2)
    alike = [(i, j) for (i, a), (j, b) in pairs if (a.shape, a.dtype) == (b.shape, b.dtype)]
    for i, j in alike[:_MAX_PAIRS]:
        with contextlib.suppress(ForwardError, BackwardError):  # not defined for equal arguments
            yield from _one_for_both(session, i, j)


def _one_for_both(session: Session, i: int, j: int) -> Iterator[Variant | Situation]:
    subject, arrays = session.subject, list(session.arrays)
    both = f"`{subject.names[i]}` and `{subject.names[j]}`"
    arrays[j] = arrays[i]
    seeds = session.on(subject.with_arrays(arrays)).seeds("aliases")

    def summed(arrays: Arrays, seeds: Arrays) -> list[Array]:
        found = subject.run(copies(arrays)).gradients(seeds)
        found[i] = found[j] = found[i] + found[j]
        return found

    def together() -> list[Array]:
        leaves = subject.tensors(copies(arrays), None)
        leaves[subject.tracked[j]] = leaves[subject.tracked[i]]
        return subject.run_leaves(leaves).gradients(seeds)

    expected, noise = summed(arrays, seeds), partial(rounding_noise, summed, arrays, seeds)
    hint = "decide by ctx.needs_input_grad and the arguments' positions, not by identity"
    when = f"when one tensor is passed for both {both}"
    yield Variant(when, together, expected, "same-tensor", hint, noise=noise)
    apart = (1.01 * arrays[j] + 1e-3 * max_abs(arrays[j])).astype(arrays[j].dtype)
    if wrong_at(session.on(subject.with_arrays([*arrays[:j], apart, *arrays[j + 1 :]]))):
        return
    once = [k for k in range(len(arrays)) if k != j]
    equal = _of(partial(_passing_twice, subject, i, j), subject, [arrays[k] for k in once])
    equal.names, equal.base = [subject.names[k] for k in once], subject
    when = f"where {both} are equal and move together"
    hint = "at a tie give the gradient to one of them, or half of it to each"
    yield Situation(session.on(equal), when, "ties", hint)


def _passing_twice(subject: Subject, i: int, j: int, *primals: Tensor) -> list[Tensor]:
    """Return the results of the call with argument `i` for argument `j` too, which is left out."""
    return _results(subject, *primals[:j], primals[i], *primals[j:])


# -- second derivatives ----------------------------------------------------------------------------
def second_order(session: Session) -> Iterator[Any]:
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
    atol = max(session.options.atol, 1e-12 * max_abs(*seeds))
    subject = _of(partial(_gradient, session.subject), session.subject, [*session.wide, *seeds])
    subject.names = [*names, *labels]
    subject.output_indices = list(range(len(names)))  # also those that are made without a graph
    other = session.on(subject, rtol=rtol, atol=atol)
    try:
        recorded = other.outputs
        if not all(bool(np.isfinite(v).all()) for v in (other.center, *other.arrays)):
            raise InapplicableError("the gradients are not all finite here")
        other.gradients()
    except (ForwardError, BackwardError) as error:
        yield _unavailable(session, error)
        return
    plain, when = other.subject.values(other.arrays), "when backward is recorded"
    yield Variant(when, lambda: recorded, plain, "second-order", _MARK)
    hint = f"backward leaves the recorded operations (detach, numpy, no_grad): {_MARK}"
    yield Situation(other, "where it is differentiated again", "second-order", hint)


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
        found: Any = grad(roots, xs, seeds, create_graph=recorded, materialize_grads=True)
        return list(found)
