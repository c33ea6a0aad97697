"""The properties of one call made in another way: again, in parts, at once.

The arguments are those of the call. What is written to, and what is kept, is looked at here too.
"""

from __future__ import annotations

import gc
import itertools
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import FrameType, FunctionType
from typing import Any

import numpy as np

from pullback.arrays import is_array
from pullback.check.comparison import gradient_noise
from pullback.check.deadline import deadline
from pullback.check.exceptions import (
    BackwardError,
    ForwardError,
    InapplicableError,
    first_line,
)
from pullback.check.naming import quoted
from pullback.check.properties.variants import Variant
from pullback.check.report import Cause
from pullback.check.session import (
    Session,
    gradients,
    grads_on_host,
    run_backward,
    zeros_for_none,
)
from pullback.check.subject import Run
from pullback.check.values import Array, Arrays, copies, host
from pullback.core.backward.collect import collect
from pullback.core.custom.context import saved_values
from pullback.core.graph.modes import no_grad
from pullback.core.graph.node import CustomNode
from pullback.core.tensor.tensor import Tensor, box

_FEW = 4  # arguments of which every subset is tried
_THREADS = 4


# -- what is written to, and what is kept ----------------------------------------------------------
def saved_arrays(run: Run) -> list[tuple[str, Any]]:
    """Return the arrays that the nodes of a run saved for backward, with labels."""
    found: list[tuple[str, Any]] = []
    for node in collect([out._node for out in run.outputs if out._node is not None])[0]:
        if isinstance(node, CustomNode):
            found += [(f"the saved value `{name}`", value) for name, value in saved_values(node)]
        else:
            label = f"the value `{node.name()}.saved`"
            found += [(label, v) for v in node.record[node.count :] if is_array(v)]
    return found


def mutation(session: Session) -> Iterator[Variant | Cause]:
    """Compare the bytes of all that forward and backward could write to."""
    subject, changed = session.subject, []
    labels, before = zip(*subject.array_arguments(), strict=True)
    try:
        run = subject.run(copies(subject.arrays))
    except ForwardError as error:
        changed = [n for n in labels if f"changed its argument '{n}' by an inplace" in str(error)]
        if not changed:
            raise
    else:
        passed = list(zip(labels, run.passed_arrays, strict=True))
        for (label, value), old in zip(passed, before, strict=True):
            if not getattr(value, "_version", 0) and host(value).tobytes() != old.tobytes():
                if isinstance(value, Tensor):
                    changed.append(label)
                else:  # it has no gradient: state that is kept between calls, as a running mean
                    session.note(f"forward writes to the array `{label}`: is it meant to?")
    if changed:
        text = f"forward changes {quoted(changed)} in place without mark_dirty"
        yield Cause("mutation", text, "call ctx.mark_dirty and return it, or work on a clone()")
        return
    yield from _written_by_backward(session, run, passed)


def _written_by_backward(
    session: Session, run: Run, passed: Sequence[tuple[str, Any]]
) -> Iterator[Variant | Cause]:
    """Compare grad_output, what was saved and the other inputs before and after two passes."""
    seeds, saved = session.seeds("mutation", run.values()), saved_arrays(run)
    given = [box(session.subject.backend.from_numpy(g.copy())) for g in seeds]
    watched = [*(("grad_output", g) for g in given), *saved]
    watched += [(f"the input `{name}`", v) for name, v in passed if not _is_among(v, saved)]
    kept = [host(value).copy() for _, value in watched]
    hint = "work on a copy: clone(), or numpy.array(...) of its memory"
    try:
        for _ in range(2):
            run_backward(lambda: run.vjp(given, retain=True))
    except BackwardError as error:
        if "read-only" not in str(error):
            raise InapplicableError("backward raises") from error
        fixed = [n for n, v in watched if isinstance(v, np.ndarray) and not v.flags.writeable]
        what = " or ".join(["grad_output", *fixed])
        yield Cause("mutation", f"backward changes {what} in place: {first_line(error)}", hint)
        return
    names, now = [name for name, _ in watched], [host(value) for _, value in watched]
    same = partial(Variant, cause="mutation", hint=hint, wrong="is changed", exact=True)
    yield same("in place by backward", lambda: now, kept, names=names)


def _is_among(value: Any, saved: Sequence[tuple[str, Any]]) -> bool:
    array = value.data_array() if isinstance(value, Tensor) else value
    return any(
        np.may_share_memory(array, other)
        if isinstance(array, np.ndarray) and isinstance(other, np.ndarray)
        else array is other
        for _, other in saved
    )


def lifetime(session: Session) -> Iterator[Cause]:
    """Drop a call, and look for what is still alive of it without the garbage collector.

    What the first call creates and keeps for all later ones is no leak; what every call keeps is.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        _, first, second = (_references(session) for _ in range(3))
        before = {id(ref()) for _, ref in first if ref() is not None}
        alive = [(n, ref) for n, ref in second if ref() is not None and id(ref()) not in before]
        grows = not before <= {id(ref()) for _, ref in second}
        holder = _holder([ref() for _, ref in alive]) if alive else ""
        gc.collect()
    finally:
        if enabled:
            gc.enable()
    if not alive:
        return
    stays = any(ref() is not None for _, ref in alive)
    labels = list(dict.fromkeys(label for label, _ in alive))
    why = f"kept by {holder}" if stays else "kept by a reference cycle until it is collected"
    text = f"after a call was dropped, memory of it is still alive ({why}): {', '.join(labels[:4])}"
    graph = any(label.startswith(("the node", "output", "a gradient")) for label in labels)
    # A cycle beside the graph is the function's own; a model may keep its last activations.
    if (stays or graph) and (grows or session.subject.is_op):
        hint = "keep nothing of a call outside of ctx: what ctx saves is released with the graph"
        yield Cause("leak", text, hint)
    else:
        session.note(f"{text}; only the last call's" if stays else text)


def _references(session: Session) -> list[tuple[str, weakref.ref[Any]]]:
    """Run forward and backward, drop everything, and return weak references to all of it."""
    run = session.subject.run(copies(session.arrays))
    named = zip(session.subject.names, run.tensors, strict=True)
    objects: list[tuple[str, Any]] = [(f"the input `{name}`", t.data_array()) for name, t in named]
    objects += [(f"output {k}", out.data_array()) for k, out in enumerate(run.outputs)]
    objects += saved_arrays(run)
    roots = [out._node for out in run.outputs if out._node is not None]
    objects += [(f"the node {node.name()}", node) for node in collect(roots)[0] if node.runs]
    grads = run_backward(lambda: run.vjp(session.seeds("lifetime")))
    objects += [("a gradient", g.data_array()) for g in grads if g is not None]
    return [(label, weakref.ref(x)) for label, x in objects if type(x).__weakrefoffset__]


def _holder(held: list[Any]) -> str:
    """Return the name of what refers to these objects, through up to four others."""
    seen: set[int] = set()
    for _ in range(4):
        seen.update(map(id, [held, *held]))
        found = gc.get_referrers(*held)
        found = [r for r in found if id(r) not in seen and not isinstance(r, FrameType)]
        for r in found:
            if isinstance(r, dict) and "__builtins__" in r:
                name = next(k for k, value in r.items() if any(value is item for item in held))
                return f"the global `{name}` of the module {r.get('__name__')}"
            if isinstance(r, (type, FunctionType)):
                return f"`{r.__name__}`"
        held = found
    return "something"


# -- again -----------------------------------------------------------------------------------------
def repeatable(session: Session) -> Iterator[Variant]:
    """Repeat a backward pass and a call, and call the function between the passes of another."""
    run, arrays = session.subject.run(copies(session.arrays)), session.arrays
    values = run.values()
    seeds = session.seeds("repeatable", values)
    hint = (
        "what backward needs goes through ctx.save_for_backward or ctx attributes, not through "
        "globals, the function, its class or a buffer used again"
    )
    same = partial(Variant, cause="state", hint=hint, wrong="depends on another call: it differs")
    try:
        once = gradients(run, seeds, arrays)
    except BackwardError as error:
        raise InapplicableError("backward raises") from error
    yield same("in a second backward pass", lambda: gradients(run, seeds, arrays), once)
    again, when = session.subject.run(copies(arrays)), "in a second call with the same inputs"
    random = "make a generator with a fixed seed inside, or pass the noise as an argument"
    yield Variant(when, again.values, values, "state", random, _outputs(values), "differs")
    yield same(when, lambda: gradients(again, seeds, arrays), once)
    with deadline().leaving_out():
        others, other_seeds, alone = _another_point(session)
        one = session.subject.run(copies(arrays))
        two = session.subject.run(copies(others))
        when = "when another call comes between its forward and its backward"
        yield same(when, lambda: gradients(one, seeds, once), once)
        when = "after the backward of an earlier call"
        yield same(when, lambda: gradients(two, other_seeds, alone), alone)
        # In one pass the first gradient still waits when the second is computed.
        both = Run([*one.tensors, *two.tensors], [*one.outputs, *two.outputs], [])
        every, given = [*once, *alone], [*seeds, *other_seeds]
        run_both, when = partial(gradients, both, given, every), "in a graph with another call"
        yield same(when, run_both, every, names=session.subject.names * 2)


def _outputs(values: Arrays) -> list[str]:
    return [f"output {k}" for k in range(len(values))]


def _another_point(session: Session) -> tuple[Arrays, Arrays, Arrays]:
    """Return other inputs of the same shapes, seeds for them and the gradients."""
    for turned in (True, False):  # a reversed matrix is still positive definite
        moved = [a[(slice(None, None, -1),) * a.ndim] if turned else a for a in session.arrays]
        arrays = [np.asarray(0.9375 * a).astype(a.dtype) for a in moved]
        try:
            run = session.subject.run(copies(arrays))
            seeds = session.seeds("another point", run.values())
            return arrays, seeds, gradients(run, seeds, arrays)
        except (ForwardError, BackwardError):
            continue
    return session.arrays, session.seeds(), session.gradients()


def modes(session: Session) -> Iterator[Variant]:
    """Call without recording, and in several threads at once, each backward in another thread."""
    recorded = session.subject.run(copies(session.arrays)).values()
    with no_grad():
        run = session.subject.run(copies(session.arrays))
    hint = "keep no buffer or setting outside of ctx, nor in a threading.local"
    same = partial(Variant, cause="state", hint=hint)
    yield same("under no_grad", run.values, recorded, names=_outputs(recorded))
    if any(out.grad_fn is not None for out in run.outputs):
        session.note(f"{session.subject.name} records under no_grad")
    if session.options.fast:
        return
    seeds = [session.seeds(f"thread {k}") for k in range(_THREADS)]
    serial = session.subject.run(copies(session.arrays))
    expected = [g for each in seeds for g in gradients(serial, each, session.arrays)]

    def noise() -> list[Array | float]:
        return [n for each in seeds for n in gradient_noise(session, each)()]

    names, when = session.subject.names * _THREADS, f"with calls in {_THREADS} threads at once"
    yield same(when, partial(_in_threads, session, seeds), expected, names=names, noise=noise)


def _in_threads(session: Session, seeds: Sequence[Arrays]) -> list[Array]:
    """Return the gradients for each of `seeds`, computed by one thread each."""
    runs: dict[int, Run] = {}
    barrier = threading.Barrier(_THREADS)

    def work(k: int) -> list[Array]:
        try:
            barrier.wait()
            runs[k] = session.subject.run(copies(session.arrays))
            barrier.wait()
            return gradients(runs[(k + 1) % _THREADS], seeds[k], session.arrays)
        except Exception:
            barrier.abort()  # no thread may wait for this one
            raise

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # so that threads interleave inside an operation
    try:
        with ThreadPoolExecutor(_THREADS) as pool:
            futures = [pool.submit(work, k) for k in range(_THREADS)]
            errors = [future.exception() for future in futures]
    finally:
        sys.setswitchinterval(interval)
    for error in errors:
        if error is not None and not isinstance(error, threading.BrokenBarrierError):
            raise error
    return [g for future in futures for g in future.result()]


# -- in parts --------------------------------------------------------------------------------------
def masks(session: Session) -> Iterator[Variant]:
    """Differentiate each subset: these alone require grad, or all do and these are asked for."""
    names, count, seeds = session.subject.names, len(session.arrays), session.seeds()
    full = zeros_for_none(session.vjp(seeds, copies(session.arrays)), session.arrays)
    hint = (
        "compute each gradient under its own ctx.needs_input_grad, from nothing that is only "
        "computed or saved for another one"
    )
    # A composition of operations may differentiate inside of its forward.
    failures = (ForwardError, BackwardError) if session.subject.is_op else (BackwardError,)

    def compute(subset: Sequence[int], asked: bool) -> list[Array]:
        run = session.subject.run(copies(session.arrays), None if asked else subset)
        chosen = Run([run.tensors[i] for i in subset], run.outputs, run.passed_arrays)
        found = grads_on_host(run_backward(lambda: chosen.vjp(seeds)))
        return zeros_for_none(found, [full[i] for i in subset])

    for subset in subsets(count):
        kept = [names[i] for i in subset]
        out = [name for name in names if name not in kept]
        when = (
            f"when {quoted(out)} needs no gradient"
            if len(out) == 1
            else f"when only {quoted(kept)} needs one"
        )
        expected = [full[i] for i in subset]
        for asked in (False, True):
            how = f"{when}, by autograd.grad(outputs, [{', '.join(kept)}])" if asked else when
            run = partial(compute, subset, asked)
            yield Variant(how, run, expected, "needs-input-grad", hint, kept, failures=failures)


def subsets(count: int) -> list[tuple[int, ...]]:
    """Return the subsets to differentiate; those that are easiest to describe come first."""
    sizes = [count - 1, 1, *(range(2, count - 1) if count <= _FEW else ())] if count > 1 else []
    found = [s for size in sizes for s in itertools.combinations(range(count), size)]
    return list(dict.fromkeys(found))


def outputs(session: Session) -> Iterator[Variant]:
    """Differentiate each output alone, and pass one tensor as the gradient of two of them."""
    run = session.subject.run(copies(session.arrays))
    values, arrays = run.values(), session.arrays
    seeds, count = session.seeds("outputs", values), len(values)

    def found(given: Sequence[Any], **options: Any) -> Callable[[], list[Array]]:
        return lambda: gradients(run, given, arrays, **options)

    hint = "test each gradient for None, or leave out ctx.set_materialize_grads(False)"
    total = [np.zeros_like(a) for a in arrays]
    for k in range(count if count > 1 else 0):
        zeros = [g if m == k else np.zeros_like(g) for m, g in enumerate(seeds)]
        alone = [g if m == k else None for m, g in enumerate(seeds)]
        when = f"when only output {k} of {count} has a gradient, the others being None, not zero"
        noise = gradient_noise(session, zeros)
        yield Variant(when, found(alone), found(zeros), "zero-grad", hint, noise=noise)
        total = [t + np.asarray(g) for t, g in zip(total, found(zeros)(), strict=True)]
    if count > 1:
        when, noise = "of those through each output alone", gradient_noise(session, seeds)
        wrong = "is not the sum"
        yield Variant(when, found(seeds), total, "output-ignored", wrong=wrong, noise=noise)
    for j, k in itertools.combinations(range(count), 2):
        if seeds[j].shape == seeds[k].shape and seeds[j].dtype == seeds[k].dtype:
            one = box(session.subject.backend.from_numpy(seeds[j].copy()))
            two, both = [seeds[j], seeds[j].copy()], [j, k]
            when = f"when outputs {j} and {k} have the same tensor as their gradient"
            noise = gradient_noise(session, [seeds[j] if m in both else None for m in range(count)])
            expected = found(two, outputs=both)
            yield Variant(when, found([one, one], outputs=both), expected, "mutation", noise=noise)


def linear(session: Session) -> Iterator[Variant]:
    """Multiply grad_output by numbers, also by 0, and add another one to it."""
    run = session.subject.run(copies(session.arrays))
    g, h = (session.seeds(purpose, run.values()) for purpose in ("linear", "linear, other"))

    def combined(a: float, xs: Arrays, b: float = 0.0, ys: Arrays = ()) -> list[Array]:
        with np.errstate(all="ignore"):
            pairs = zip(xs, ys or xs, strict=True)
            return [np.asarray(a * x + b * y if b else a * x).astype(x.dtype) for x, y in pairs]

    def vjp(a: float, b: float = 0.0) -> list[Array]:
        return gradients(run, combined(a, g, b, h), session.arrays)

    at_g = vjp(1.0)
    zeros = [np.zeros_like(e) for e in at_g]

    def at_zero(nan: bool) -> list[Array]:
        # Where a derivative is infinite, 0 times it is NaN in a right backward as well.
        pairs = zip(vjp(0.0), at_g, strict=True)
        return [
            np.where(np.isfinite(e) & (np.isnan(z) | (not nan)), z, np.zeros_like(z))
            for z, e in pairs
        ]

    same = partial(Variant, cause="nonlinear", wrong="is not linear in grad_output: it is wrong")
    when = "when grad_output is zero"
    yield Variant(when, partial(at_zero, True), zeros, "zero-grad", wrong="is NaN")
    when = "when that is zero: a term is not multiplied by grad_output"
    yield same(when, partial(at_zero, False), zeros)
    size, bound = "is it multiplied by it twice, or not at all?", "a bound, an eps?"
    for a, hint in ((2.0, size), (-1.0, "does only its size count?"), (1e-3, bound), (1e3, bound)):
        noise, when = gradient_noise(session, combined(a, g)), f"when that is multiplied by {a:g}"
        yield same(when, partial(vjp, a), combined(a, at_g), hint=hint, noise=noise)
    expected = combined(0.75, at_g, -1.5, vjp(0.0, 1.0))
    noise = gradient_noise(session, combined(0.75, g, -1.5, h))
    yield same("when that is a sum of two", partial(vjp, 0.75, -1.5), expected, noise=noise)
