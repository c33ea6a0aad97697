"""What a call leaves behind, and where it may run: memory, no_grad, threads."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import CellType, FrameType, FunctionType
from typing import Any

from pullback.check.laws import differs, floors, gradients, unlike
from pullback.check.mutation import copies, saved_arrays
from pullback.check.report import Cause
from pullback.check.session import BackwardError, Session, attempt
from pullback.check.subject import Array, ForwardError, Run
from pullback.core.engine import collect
from pullback.core.modes import no_grad

_THREADS = 4
_Kept = list[tuple[str, "weakref.ref[Any]"]]


# -- memory ---------------------------------------------------------------------------------------
def lifetime(session: Session) -> None:
    """Check that a call's memory is gone with its results, the garbage collector off."""
    with _uncollected():
        _of_one_call(session)  # what is made once and kept is no leak
        first, second = _of_one_call(session), _of_one_call(session)
        _check_gone(session, first, second)


@contextmanager
def _uncollected() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _of_one_call(session: Session) -> _Kept:
    """Run forward and backward, drop everything, and return weak references to what there was."""
    run = session.subject.run(copies(session.arrays))
    found = zip(session.subject.names, run.tensors, strict=True)
    objects: list[tuple[str, Any]] = [(f"the input `{name}`", t.data_array()) for name, t in found]
    objects += [(f"output {k}", out.data_array()) for k, out in enumerate(run.outputs)]
    objects += saved_arrays(run)
    roots = [out._node for out in run.outputs if out._node is not None]
    objects += [(f"the node {node.name()}", node) for node in collect(roots)[0] if node.runs]
    grads = attempt(lambda: run.vjp(session.seeds("lifetime")))
    objects += [("a gradient", g.data_array()) for g in grads if g is not None]
    return [(label, weakref.ref(x)) for label, x in objects if type(x).__weakrefoffset__]


def _check_gone(session: Session, first: _Kept, second: _Kept) -> None:
    """Report what of the second call is still there, unless the first call had it as well."""
    before = {id(ref()) for _, ref in first if ref() is not None}
    alive = [(label, ref) for label, ref in second if ref() is not None and id(ref()) not in before]
    if not alive:
        return
    grows = not before <= {id(ref()) for _, ref in second}
    labels = list(dict.fromkeys(label for label, _ in alive))
    holder = _holder([ref() for _, ref in alive])
    gc.collect()
    if any(ref() is not None for _, ref in alive):
        why = f"kept by {holder}" if holder else "something keeps it"
        hint = "keep nothing of a call outside of ctx: what ctx saves is released with the graph"
    else:
        why = "kept by a reference cycle until the garbage collector runs"
        hint = "let no value that was saved refer to its own tensor or graph"
    listed = ", ".join(labels[:4]) + (", ..." if len(labels) > 4 else "")
    text = f"after a call was dropped, memory of it is still alive ({why}): {listed}"
    if grows or session.subject.is_op:
        session.fail(Cause("leak", text, hint))
    else:  # a model may look at its last activations
        session.note(f"{text}; only the last call's")


def _holder(held: list[Any]) -> str:
    """Say who refers to these objects, through up to four others; empty if that has no name."""
    seen: set[int] = set()
    for _ in range(4):
        seen.update(map(id, [held, *held]))
        referrers = [
            r for r in gc.get_referrers(*held) if id(r) not in seen and not isinstance(r, FrameType)
        ]
        for referrer in referrers:
            name = _name_of(referrer, held)
            if name:
                return name
        held = referrers
    return ""


def _name_of(referrer: Any, held: list[Any]) -> str:
    """Return how to call what refers to one of `held`."""
    if isinstance(referrer, dict) and "__builtins__" in referrer:
        names = [k for k, value in referrer.items() if any(value is item for item in held)]
        return f"the global `{names[0]}` of the module {referrer.get('__name__')}"
    if isinstance(referrer, (type, FunctionType)):
        kind = "class" if isinstance(referrer, type) else "function"
        return f"the {kind} `{referrer.__name__}`"
    return "a variable of a closure" if isinstance(referrer, CellType) else ""


# -- no_grad and threads --------------------------------------------------------------------------
def modes(session: Session) -> None:
    """Check that no_grad changes no value, and that calls in several threads are independent."""
    _check_no_grad(session)
    if not session.options.fast:
        _check_threads(session)


def _check_no_grad(session: Session) -> None:
    recorded = session.subject.run(copies(session.arrays)).values()
    with no_grad():
        run = session.subject.run(copies(session.arrays))
    limits = floors(session, recorded, [])
    for k, (got, expected, floor) in enumerate(zip(run.values(), recorded, limits, strict=True)):
        wrong = differs(got, expected, session.rtol, floor)
        if wrong.any():
            text = f"under no_grad the value of output {k} is another"
            session.fail(
                Cause("state", text, "compute the result in one way, recorded or not"),
                expected=expected,
                got=got,
                wrong=wrong,
            )
            return
    if any(out.grad_fn is not None for out in run.outputs):
        session.note(f"{session.subject.name} records under no_grad")


def _check_threads(session: Session) -> None:
    """Run forward in several threads at once, and each backward in another thread than that."""
    seeds = [session.seeds(f"thread {k}") for k in range(_THREADS)]
    serial = session.subject.run(copies(session.arrays))
    expected = [gradients(serial, g, session.arrays) for g in seeds]
    try:
        got = _in_threads(session, seeds)
    except (BackwardError, ForwardError) as error:
        reason = str(error).split("\n")[0]
        text = f"it depends on other threads: in {_THREADS} at once there is an error, {reason}"
        session.fail(Cause("state", text, _HINT))
        return
    for k in range(_THREADS):
        wrong = unlike(session, got[k], expected[k], seeds[k])
        if wrong:
            i, where = wrong[0]
            name = session.subject.names[i]
            text = f"the gradient of `{name}` depends on other threads that run at the same time"
            session.fail(
                Cause("state", text, _HINT),
                name,
                expected=expected[k][i],
                got=got[k][i],
                wrong=where,
            )
            return


_HINT = "keep no buffer or setting outside of ctx, nor in a threading.local"


def _in_threads(session: Session, seeds: list[list[Array]]) -> list[list[Array]]:
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
            barrier.abort()  # let no thread wait for this one
            raise

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # so that threads meet within an operation
    try:
        with ThreadPoolExecutor(_THREADS) as pool:
            futures = [pool.submit(work, k) for k in range(_THREADS)]
            errors = [future.exception() for future in futures]
    finally:
        sys.setswitchinterval(interval)
    for error in errors:
        if error is not None and not isinstance(error, threading.BrokenBarrierError):
            raise error
    return [future.result() for future in futures]
