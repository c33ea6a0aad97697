"""The properties of one call made in another way: again, in parts, at once.

The arguments are those of the call. What is written to, and what is kept, is looked at here too.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import threading
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from pullback.arrays import is_array
from pullback.check.comparison import gradient_noise
from pullback.check.deadline import deadline, starts_threads
from pullback.check.properties.variants import RAISED, Variant
from pullback.check.report import Cause, InapplicableError, first_line, quoted
from pullback.check.session import Session
from pullback.check.subject import BackwardError, ForwardError, Run, calling
from pullback.check.values import Array, Arrays, copies, host
from pullback.core.backward.collect import collect
from pullback.core.custom.context import saved_values
from pullback.core.graph.modes import no_grad
from pullback.core.graph.node import CustomNode
from pullback.core.tensor.tensor import Tensor, box
from pullback.errors import InplaceError

_FEW = 4  # arguments of which every subset is tried
_THREADS = 4


# -- what is written to, and what is kept ----------------------------------------------------------
def saved_arrays(run: Run) -> list[tuple[str, Any]]:
    """Return the arrays that the nodes of a run saved for backward, with labels."""
    found: list[tuple[str, Any]] = []
    for node in _nodes(run):
        if isinstance(node, CustomNode):
            found += [(f"the saved value `{name}`", value) for name, value in saved_values(node)]
        else:
            label = f"the value `{node.name()}.saved`"
            found += [(label, v) for v in node.record[node.count :] if is_array(v)]
    return found


def _nodes(run: Run) -> list[Any]:
    return collect([out._node for out in run.outputs if out._node is not None])[0]


def mutation(session: Session) -> Iterator[Cause]:
    """Compare the bytes of all that forward and backward could write to."""
    subject = session.subject
    labels, before = zip(*subject.array_arguments(), strict=True)
    hint = "call ctx.mark_dirty and return it, or work on a clone()"
    try:
        run = subject.run(copies(subject.arrays))
    except ForwardError as error:
        if not isinstance(error.__cause__, InplaceError):
            raise
        yield Cause("mutation", first_line(error), hint)
        return
    for label, value, old in zip(labels, run.passed_arrays, before, strict=True):
        if not getattr(value, "_version", 0) and host(value).tobytes() != old.tobytes():
            if isinstance(value, Tensor):
                text = f"forward changes `{label}` in place without mark_dirty"
                yield Cause("mutation", text, hint)
            else:  # it has no gradient: state that is kept between calls, as a running mean
                session.note(f"forward writes to the array `{label}`: is it meant to?")
    seeds = session.seeds("mutation", run.values())
    given = [box(subject.backend.from_numpy(g.copy())) for g in seeds]
    watched = [*(("grad_output", g) for g in given), *saved_arrays(run)]
    watched += [(f"the input `{n}`", v) for n, v in zip(labels, run.passed_arrays, strict=True)]
    memory = [host(value).tobytes() for _, value in watched]
    try:
        for _ in range(2):
            run.gradients(given)
    except BackwardError as error:
        raise InapplicableError("backward raises") from error
    for (name, value), old in zip(watched, memory, strict=True):
        if host(value).tobytes() != old:
            text = f"{name} is changed in place by backward"
            hint = "work on a copy: clone(), or numpy.array(...) of its memory"
            yield Cause("mutation", text, hint)


def lifetime(session: Session) -> Iterator[Cause]:
    """Drop a call, and look for what is still alive of it without the garbage collector.

    What the first call creates and keeps for all later ones is no leak; what every call keeps is.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        first, second = _references(session), _references(session)
        before = {id(ref()) for _, ref in first if ref() is not None}
        alive = [(n, ref) for n, ref in second if ref() is not None and id(ref()) not in before]
    finally:
        if enabled:
            gc.enable()
    if not alive:
        return
    gc.collect()
    stays = any(ref() is not None for _, ref in alive)
    labels = list(dict.fromkeys(label for label, _ in alive))
    why = "outside of it" if stays else "by a reference cycle until it is collected"
    text = f"after a call was dropped, memory of it is kept alive {why}: {', '.join(labels[:4])}"
    # A cycle beside the graph is the function's own; a model may keep its last activations.
    if session.subject.is_op and (stays or not all(label.startswith("the ") for label in labels)):
        hint = "keep nothing of a call outside of ctx: what ctx saves is released with the graph"
        yield Cause("leak", text, hint)
    else:
        session.note(text)


def _references(session: Session) -> list[tuple[str, weakref.ref[Any]]]:
    """Run forward and backward, drop everything, and return weak references to all of it."""
    run = session.subject.run(copies(session.arrays))
    with calling(BackwardError):
        grads = run.vjp(session.seeds("lifetime"), retain=True)
    labels = [f"the input `{name}`" for name in session.subject.names]
    objects: list[tuple[str, Any]] = [
        *((f"output {k}", t.data_array()) for k, t in enumerate(run.outputs)),
        *((label, t.data_array()) for label, t in zip(labels, run.tensors, strict=True)),
        *saved_arrays(run),
        *((f"node {node.name()}", node) for node in _nodes(run) if node.runs),
        *(("a gradient", g.data_array()) for g in grads if g is not None),
    ]
    return [(label, weakref.ref(x)) for label, x in objects if type(x).__weakrefoffset__]


# -- again -----------------------------------------------------------------------------------------
def repeatable(session: Session) -> Iterator[Variant]:
    """Repeat a backward pass and a call, and call the function between the passes of another."""
    call, arrays = session.subject.run, session.arrays
    run = call(copies(arrays))
    values = run.values()
    seeds = session.seeds("repeatable", values)
    hint = (
        "what backward needs goes through ctx.save_for_backward or ctx attributes, not through "
        "globals, the function, its class or a buffer used again"
    )
    same = partial(Variant, cause="state", hint=hint, wrong="depends on another call: it differs")
    try:
        once = run.gradients(seeds)
    except BackwardError as error:
        raise InapplicableError("backward raises") from error
    yield same("in a second backward pass", partial(run.gradients, seeds), once)
    again, when = call(copies(arrays)), "in a second call with the same inputs"
    own = "make a generator with a fixed seed inside, or pass the noise as an argument"
    outs = [f"output {k}" for k in range(len(values))]
    yield Variant(when, again.values, values, "state", own, outs, "differs")
    yield same(when, partial(again.gradients, seeds), once)
    with deadline().leaving_out(), contextlib.suppress(*RAISED):  # not defined there
        turned = [a[(slice(None, None, -1),) * a.ndim] for a in arrays]  # of a definite matrix, too
        others = [np.asarray(0.9375 * a).astype(a.dtype) for a in turned]
        other = call(copies(others))
        other_seeds = session.seeds("another point", other.values())
        alone = other.gradients(other_seeds)
        one, two = call(copies(arrays)), call(copies(others))
        when = "when another call comes between its forward and its backward"
        yield same(when, partial(one.gradients, seeds), once)
        when = "after the backward of an earlier call"
        yield same(when, partial(two.gradients, other_seeds), alone)
        # In one pass the first gradient still waits when the second is computed.
        both = Run([*one.tensors, *two.tensors], [*one.outputs, *two.outputs], [])
        every, names = [*once, *alone], session.subject.names * 2
        run_both = partial(both.gradients, [*seeds, *other_seeds])
        yield same("in a graph with another call", run_both, every, names=names)


def modes(session: Session) -> Iterator[Variant | str]:
    """Call without recording, and in several threads at once, each backward in another thread."""
    subject, arrays = session.subject, session.arrays

    def without_recording() -> list[Array]:
        with no_grad():
            return subject.run(copies(arrays)).values()

    hint = "keep no buffer or setting outside of ctx, nor in a threading.local"
    same = partial(Variant, cause="state", hint=hint)
    run = subject.run(copies(arrays))
    recorded = run.values()
    outs = [f"output {k}" for k in range(len(recorded))]
    yield same("under no_grad", without_recording, recorded, names=outs)
    if not starts_threads():
        yield "in one thread: no other can be started here"
        return
    seeds = [session.seeds(f"thread {k}") for k in range(_THREADS)]
    expected = [g for each in seeds for g in run.gradients(each)]

    def noise() -> list[Array]:
        return [n for each in seeds for n in gradient_noise(session, each)()]

    names, when = subject.names * _THREADS, f"with calls in {_THREADS} threads at once"
    yield same(when, partial(_in_threads, session, seeds), expected, names=names, noise=noise)


def _in_threads(session: Session, seeds: Sequence[Arrays]) -> list[Array]:
    """Return the gradients for each of `seeds`, computed by one thread each."""
    start = threading.Barrier(_THREADS)

    def forward(_: int) -> Run:
        start.wait()
        return session.subject.run(copies(session.arrays))

    def backward(run: Run, given: Arrays) -> list[Array]:
        start.wait()
        return run.gradients(given)

    with ThreadPoolExecutor(_THREADS) as ahead, ThreadPoolExecutor(_THREADS) as back:
        runs = list(ahead.map(forward, range(_THREADS)))
        return [g for found in back.map(backward, runs, seeds) for g in found]


# -- in parts --------------------------------------------------------------------------------------
def masks(session: Session) -> Iterator[Variant]:
    """Differentiate each subset: these alone require grad, or all do and these are asked for.

    Of many arguments those of one, and of all but one.
    """
    names, count, seeds = session.subject.names, len(session.arrays), session.seeds()
    full = session.subject.run(copies(session.arrays)).gradients(seeds)
    hint = (
        "compute each gradient under its own ctx.needs_input_grad, from nothing that is only "
        "computed or saved for another one"
    )

    def compute(subset: Sequence[int], asked: bool) -> list[Array]:
        run = session.subject.run(copies(session.arrays), None if asked else subset)
        return Run([run.tensors[i] for i in subset], run.outputs, []).gradients(seeds)

    sizes = [k for k in range(count - 1, 0, -1) if count <= _FEW or k in (1, count - 1)]
    for size, asked in itertools.product(sizes, (False, True)):
        for subset in itertools.combinations(range(count), size):
            kept = [names[i] for i in subset]
            out = [name for name in names if name not in kept]
            when = f"when only {quoted(kept)} needs one"
            if len(out) == 1:
                when = f"when {quoted(out)} needs no gradient"
            when += f", by autograd.grad(outputs, [{', '.join(kept)}])" if asked else ""
            run, expected = partial(compute, subset, asked), [full[i] for i in subset]
            yield Variant(when, run, expected, "needs-input-grad", hint, kept)


def outputs(session: Session) -> Iterator[Variant]:
    """Differentiate each output alone, the others having no gradient, and compare the sum."""
    run = session.subject.run(copies(session.arrays))
    seeds = session.seeds("outputs", run.values())
    count, noise = len(seeds), partial(gradient_noise, session)
    if count < 2:
        return
    hint = "test each gradient for None, or leave out ctx.set_materialize_grads(False)"
    total = [np.zeros_like(a) for a in session.arrays]
    for k in range(count):
        zeros = [g if m == k else np.zeros_like(g) for m, g in enumerate(seeds)]
        alone = partial(run.gradients, [g if m == k else None for m, g in enumerate(seeds)])
        when = f"when only output {k} of {count} has a gradient, the others being None, not zero"
        expected = run.gradients(zeros)
        yield Variant(when, alone, expected, "zero-grad", hint, noise=noise(zeros))
        total = [t + np.asarray(g) for t, g in zip(total, expected, strict=True)]
    when, wrong = "of those through each output alone", "is not the sum"
    once = partial(run.gradients, seeds)
    yield Variant(when, once, total, "output-ignored", wrong=wrong, noise=noise(seeds))


def linear(session: Session) -> Iterator[Variant]:
    """Multiply grad_output by numbers, also by 0, and add another one to it."""
    run = session.subject.run(copies(session.arrays))
    g, h = (session.seeds(purpose, run.values()) for purpose in ("linear", "linear, other"))
    at_g, at_h, nothing = run.gradients(g), run.gradients(h), _sum(0.0, g)
    # Where a derivative is infinite, 0 times it is NaN in a right backward as well: unknown.
    zeros = _sum(0.0, at_g)

    def nan_alone() -> list[Array]:
        return [np.where(np.isnan(z), z, 0) for z in run.gradients(nothing)]

    yield Variant("when grad_output is zero", nan_alone, zeros, "zero-grad", wrong="is NaN")
    size, bound = "is it multiplied by it twice, or not at all?", "a bound, an eps?"
    calls = [("zero: a term is not multiplied by grad_output", nothing, zeros, "")]
    for a, hint in ((2.0, size), (-1.0, "does only its size count?"), (1e-3, bound), (1e3, bound)):
        calls.append((f"multiplied by {a:g}", _sum(a, g), _sum(a, at_g), hint))
    calls.append(("a sum of two", _sum(0.75, g, -1.5, h), _sum(0.75, at_g, -1.5, at_h), ""))
    wrong = "is not linear in grad_output: it is wrong when that is"
    for what, seeds, expected, hint in calls:
        vjp, noise = partial(run.gradients, seeds), gradient_noise(session, seeds)
        yield Variant(what, vjp, expected, "nonlinear", hint, wrong=wrong, noise=noise)


def _sum(a: float, xs: Arrays, b: float = 0.0, ys: Arrays = ()) -> list[Array]:
    """Return a * x + b * y for arrays."""
    with np.errstate(all="ignore"):
        pairs = zip(xs, ys or xs, strict=True)
        return [np.asarray(a * x + b * y if b else a * x).astype(x.dtype) for x, y in pairs]
